"""Stable columns through the public face."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from hetrisk import StableClassifier, StableRegressor, StableSelector
from hetrisk.blocks import ArrayBlocks, DaskBlocks, ParquetBlocks
from hetrisk.core.environments.content import parts
from hetrisk.core.numerics.rows import Rows
from hetrisk.core.result import VERDICTS
from hetrisk.datasets import load_task

LEFT_OUT, DIFFERENCES, NOTHING, TOO_FEW = VERDICTS
LETTERS = np.array(list("dacbefgh"))


def effect(seed=0, n=900, spreads=(0.3, 1.0, 2.0)):
    """Three causes and an effect of y that is noisier in some environments; the causes shift."""
    rng = np.random.default_rng(seed)
    e = np.arange(n) % len(spreads)
    X = rng.standard_normal((n, 3)) + rng.standard_normal((len(spreads), 3))[e]
    y = X @ [1.0, -1.0, 0.5] + 0.5 * rng.standard_normal(n)
    noisy = 0.8 * y + np.array(spreads)[e] * rng.standard_normal(n)
    return np.column_stack([X, noisy]), y, e


def copied_label(seed=0, n=2000, rates=(0.6, 0.95)):
    rng = np.random.default_rng(seed)
    e, side = np.arange(n) % 2, rng.choice([-1, 1], n)
    copy = side * np.where(rng.random(n) < np.array(rates)[e], 1, -1)
    X = np.column_stack([side[:, None] + 2 * rng.standard_normal((n, 3)), copy])
    X[:, 3] += 0.3 * rng.standard_normal(n)
    return X, side > 0, e


@parametrize_with_checks([StableRegressor(), StableClassifier(), StableSelector()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_known_environments():
    X, y, e = effect()
    model = StableRegressor(reach=4.0).fit(X, y, environments=e)
    assert model.verdict_ == LEFT_OUT
    assert model.support_.tolist() == [True, True, True, False]
    assert model.coef_[3] == 0.0
    assert "x3" in model.verdict_reason_
    assert [c.kept for c in model.evidence_] == model.support_.tolist()
    assert len(model.evidence_[0].coefficients) == 3
    assert model.stability_.shape == (4,)
    assert model.environments_.tolist() == e.tolist()
    assert model.environment_proba_.shape == (len(y), 3)
    assert model.predict_environments(X, y).shape == y.shape
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_)
    assert model.evidence_.to_frame().shape[0] == 4
    assert model.sources_[0].known


def test_slopes_are_in_the_users_units():
    X, y, e = effect()
    small = StableRegressor().fit(X, y, environments=e).evidence_
    large = StableRegressor().fit(X / 1000, 10 * y, environments=e).evidence_
    for a, b in zip(small, large, strict=True):
        np.testing.assert_allclose(10_000 * np.array(a.coefficients), b.coefficients, rtol=1e-6)


def test_verdicts():
    rng = np.random.default_rng(0)
    X, e = rng.standard_normal((900, 3)), np.arange(900) % 3
    steady = X.sum(axis=1) + rng.standard_normal(900)
    assert StableRegressor().fit(X, steady, environments=e).verdict_ == NOTHING
    moving = (X * np.array([[1, 2, 3], [2, 1, 0.5], [0, 1, 2]])[e]).sum(axis=1)
    moving = moving + 0.3 * rng.standard_normal(900)
    found = StableRegressor().fit(X, moving, environments=e)
    assert found.verdict_ == DIFFERENCES
    assert found.support_.all()
    few = StableRegressor().fit(X[:12], steady[:12], environments=e[:12])
    assert few.verdict_ == TOO_FEW
    assert StableRegressor().fit(X[:12], steady[:12]).verdict_ == TOO_FEW


@pytest.mark.parametrize("seed", range(2))
def test_inferred_environments(seed):
    task = load_task("anti_causal", seed=seed, n_phi=9, n_psi=1)
    model = StableRegressor().fit(task.train.X, task.train.y)
    assert model.support_.tolist() == [True] * 9 + [False]
    assert not model.sources_[0].known
    task = load_task("selection_bias", seed=seed)
    model = StableRegressor().fit(task.train.X, task.train.y)
    assert model.support_.tolist() == [True] * 5 + [False] + [True] * 4
    assert model.environment_proba_.shape[1] == 2


@pytest.mark.parametrize("known", [True, False])
def test_a_column_in_two_units_is_one(known):
    rng = np.random.default_rng(2)
    environment = (rng.random(3000) < 0.2).astype(int)
    x = rng.normal(size=(3000, 3))
    y = x @ [1.0, -1.0, 0.5] + rng.normal(size=3000)
    effect = np.array([1.0, -1.0])[environment] * y + 0.3 * rng.normal(size=3000)
    X = np.column_stack([x, effect])
    environments = environment if known else None
    once = StableRegressor(reach=4.0).fit(X, y, environments=environments)
    again = np.column_stack([X, 3 * X + 1, -X])
    thrice = StableRegressor(reach=4.0).fit(again, y, environments=environments)
    assert once.support_.tolist() == [True, True, True, False]
    assert thrice.support_.tolist() == 3 * once.support_.tolist()
    np.testing.assert_allclose(thrice.predict(again), once.predict(X), atol=1e-8)


def test_keep_and_groups():
    X, y, e = effect()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "late"])
    asked = {"environments": e}
    assert StableRegressor(4.0, keep="late").fit(frame, y, **asked).support_.all()
    assert StableRegressor(4.0, keep=[3]).fit(X, y, **asked).support_.all()
    groups = ["a", "b", "c", "c"]
    assert StableRegressor(4.0, feature_groups=groups).fit(X, y, **asked).support_[2:].std() == 0
    with pytest.raises(ValueError, match="no column 'zzz'"):
        StableRegressor(keep="zzz").fit(frame, y, **asked)
    # One column, nothing that may leave, one group: there is nothing to decide.
    assert StableRegressor().fit(X[:, :1], y, **asked).support_.tolist() == [True]
    assert StableRegressor().fit(X[:60, :1], y[:60]).support_.tolist() == [True]
    assert StableRegressor(feature_groups=[0] * 4).fit(X, y, **asked).support_.shape == (4,)


def test_a_final_estimator_of_the_users_own():
    X, y, e = effect()
    model = StableRegressor(4.0, final_estimator=Ridge(1.0)).fit(X, y, environments=e)
    np.testing.assert_allclose(model.predict(X), Ridge(1.0).fit(X[:, :3], y).predict(X[:, :3]))
    assert model.predictor_ is None
    X, label, e = copied_label()
    given_ = StableClassifier(final_estimator=LogisticRegression()).fit(X, label, environments=e)
    assert given_.predict_proba(X).shape == (len(label), 2)


def test_labels():
    X, label, e = copied_label()
    names = np.where(label, "yes", "no")
    model = StableClassifier(reach=4.0).fit(X, names, environments=e)
    assert model.support_.tolist() == [True, True, True, False]
    assert set(model.predict(X)) == {"yes", "no"}
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    three = np.digitize(X[:, 0] + X[:, 1], [-1, 1])
    many = StableClassifier().fit(X, three, environments=e)
    assert many.predict_proba(X).shape == (len(label), 3)
    assert many.coef_.shape == (3, 4)


def test_copies_of_a_label_leave_only_where_that_is_assumed():
    X, label, _ = copied_label(rates=(0.8, 0.8))
    assert StableClassifier().fit(X, label).support_.all()
    assumed = StableClassifier(assume_label_copies=True).fit(X, label)
    assert assumed.support_.tolist() == [True, True, True, False]
    assert "assumption" in assumed.verdict_reason_


def test_selector():
    X, y, e = effect()
    frame = pd.DataFrame(X, columns=list("abcd"))
    selector = StableSelector(reach=4.0).fit(frame, y, environments=e)
    assert selector.get_feature_names_out().tolist() == ["a", "b", "c"]
    assert selector.set_output(transform="pandas").transform(frame).shape == (900, 3)
    with pytest.raises(ValueError, match="task must be"):
        StableSelector().fit(ArrayBlocks(X, y))


def test_weights_after_y_are_not_environments():
    X, y, e = effect()
    with pytest.raises(TypeError):
        StableRegressor().fit(X, y, e)


@pytest.mark.parametrize("environments", [np.zeros(900), ["a"] * 900, np.arange(900)])
def test_environments_that_say_nothing(environments):
    X, y, _ = effect()
    with pytest.raises(ValueError, match="environments must"):
        StableRegressor().fit(X, y, environments=environments)
    with pytest.raises(ValueError, match="must have length n_samples=900; got 12"):
        StableRegressor().fit(X, y, environments=np.arange(12) % 3)


def exact(seed=0, n=300):
    """A target that one of the sources gives away: what a fit leaves of it is rounding."""
    X, _, e = effect(seed, n)
    return X, X[:, 0] > X[:, 0].mean(), e


def thin(seed=0, n=600):
    """Sixty sites of ten rows, ties and equal sizes among them."""
    X, y, _ = effect(seed, n)
    return X.round(1), y, np.arange(n) // 10


TABLES = {"effect": effect, "copies": copied_label, "exact": exact, "thin": thin}


@settings(max_examples=24)
@given(
    seed=st.integers(0, 30),
    how=st.sampled_from(["inferred", "labels", "letters", "ordered", "several"]),
    table=st.sampled_from(list(TABLES)),
)
def test_order_and_names_do_not_decide(seed, how, table):
    rng = np.random.default_rng(seed)
    X, y, e = TABLES[table](seed, n=600)
    make = StableRegressor if y.dtype.kind == "f" else StableClassifier
    rows, columns = rng.permutation(len(y)), rng.permutation(4)
    codes = rng.permutation(e.max() + 1)[e]
    frame = pd.DataFrame({"a": e, "b": X[:, 0] > X[:, 0].mean(), "c": e + 0.5})
    plain, other = {
        "inferred": (None, None),
        "labels": (e, codes[rows]),
        "letters": (e, LETTERS[codes % 8][rows] + (codes // 8).astype(str)[rows]),
        "ordered": (e + 0.5, e[rows] + 0.5),
        "several": (frame, frame.assign(a=codes).iloc[rows, rng.permutation(3)]),
    }[how]
    first = make().fit(X, y, environments=plain)
    second = make().fit(X[rows][:, columns], y[rows], environments=other)
    assert first.verdict_ == second.verdict_
    assert first.support_[columns].tolist() == second.support_.tolist()
    np.testing.assert_allclose(first.stability_[columns], second.stability_)
    value = "predict" if make is StableRegressor else "predict_proba"
    np.testing.assert_allclose(
        getattr(first, value)(X), getattr(second, value)(X[:, columns]), atol=1e-8
    )


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("labels", [True, False])
def test_a_weight_of_two_is_the_row_twice(known, labels):
    X, y, e = (copied_label if labels else effect)(3, n=600)
    times = np.random.default_rng(0).integers(0, 3, 600)
    make = StableClassifier if labels else StableRegressor
    twice = np.repeat(np.arange(600), times)
    asked = [{"environments": e}, {"environments": e[twice]}] if known else [{}, {}]
    first = make().fit(X, y, sample_weight=times.astype(float), **asked[0])
    second = make().fit(X[twice], y[twice], **asked[1])
    assert first.support_.tolist() == second.support_.tolist()
    np.testing.assert_allclose(first.coef_, second.coef_, atol=1e-6)
    if known:
        assert first.sources_[0].p_value == pytest.approx(second.sources_[0].p_value, rel=1e-6)


@pytest.mark.parametrize("size", [1e-100, 1e-150, 1 / 600])
def test_weights_that_cannot_be_counts_only_compare(size):
    X, label, e = copied_label(n=600)
    plain = StableClassifier().fit(X, label, environments=e)
    tiny = StableClassifier().fit(X, label, environments=e, sample_weight=np.full(600, size))
    np.testing.assert_allclose(tiny.predict_proba(X), plain.predict_proba(X), atol=1e-6)


def drifting(n=1800, J=60, seed=0):
    """An effect whose gain falls along time, or differs between sites."""
    rng = np.random.default_rng(seed)
    level = np.arange(n) * J // n
    X = rng.standard_normal((n, 4))
    y = X @ [1.0, -1.0, 0.5, 0.7] + 0.5 * rng.standard_normal(n)
    return X, y, level, rng


@pytest.mark.parametrize("J", [60, 61, 600, 1800])
def test_dates_along_which_an_effect_drifts(J):
    X, y, level, rng = drifting(J=J)
    late = np.linspace(1.5, -0.2, J)[level] * y + 0.5 * rng.standard_normal(len(y))
    days = np.datetime64("2001-01-01") + level
    for when in (days, level + 0.5):
        model = StableRegressor().fit(np.column_stack([X, late]), y, environments=when)
        assert model.support_.tolist() == [True] * 4 + [False]


@pytest.mark.parametrize("J", [90, 180])
def test_thin_sites(J):
    X, y, site, rng = drifting(J=J)
    gain = np.where(np.arange(J) % 6 == 0, -1.0, 1.0)[site]
    table = np.column_stack([X, gain * y + 0.5 * rng.standard_normal(len(y))])
    assert not StableRegressor().fit(table, y, environments=site).support_[4]
    shuffled = rng.permutation(site)
    assert StableRegressor().fit(table, y, environments=shuffled).support_.all()


def test_rows_of_a_person_are_left_out_together():
    X, y, person, rng = drifting(n=1500, J=100)
    X[:, :2] = rng.standard_normal((100, 2))[person]
    y = y + rng.standard_normal(100)[person]
    model = StableRegressor().fit(X, y, environments=person)
    assert model.support_.all()
    part = parts(Rows(X, y, np.ones(len(y))), 5, person)
    assert all(len(np.unique(part[person == p])) == 1 for p in range(100))
    assert len(np.unique(part)) == 5


def test_several_sources_in_any_order():
    X, y, e = effect()
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"site": LETTERS[e], "noise": rng.integers(0, 4, 900)})
    first = StableRegressor(reach=4.0).fit(X, y, environments=frame)
    second = StableRegressor(reach=4.0).fit(X, y, environments=frame[["noise", "site"]])
    assert first.support_.tolist() == [True, True, True, False]
    assert first.verdict_reason_ == second.verdict_reason_
    assert [s.name for s in first.sources_] == [s.name for s in second.sources_]
    np.testing.assert_allclose(first.stability_, second.stability_)
    np.testing.assert_allclose(first.predict(X), second.predict(X))


def test_responsibilities():
    X, y, e = effect()
    shares = np.eye(3)[e]
    hard = StableRegressor(reach=4.0).fit(X, y, environments=e)
    soft = StableRegressor(reach=4.0).fit(X, y, environments=0.9 * shares + 0.1 / 3)
    same = StableRegressor(reach=4.0).fit(X, y, environments=shares)
    assert hard.support_.tolist() == soft.support_.tolist() == same.support_.tolist()
    np.testing.assert_allclose(soft.environment_proba_.sum(axis=1), 1.0)


def test_rows_without_an_environment():
    X, y, e = effect()
    some = e.astype(object)
    some[::10] = None
    model = StableRegressor(reach=4.0).fit(X, y, environments=some)
    assert not model.support_[3]
    assert (model.environments_[::10] == -1).all()


@pytest.mark.parametrize("known", [True, False])
def test_the_same_answer_wherever_rows_live(tmp_path, known):
    da = pytest.importorskip("dask.array")
    X, y, e = effect(n=900)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, where=LETTERS[e])
    frame.to_parquet(tmp_path / "rows.parquet")
    asked = {"environments": "where"} if known else {"features": list("abcd")}
    far = ParquetBlocks(tmp_path / "rows.parquet", "y", **asked)
    made = [da.from_array(X, chunks=(300, 4)), da.from_array(y, chunks=300)]
    labels = {"environments": da.from_array(LETTERS[e], chunks=300)} if known else {}
    held = StableRegressor(4.0).fit(X, y, **({"environments": LETTERS[e]} if known else {}))
    stored = StableRegressor(4.0).fit(far)
    assert stored.support_.tolist() == held.support_.tolist()
    assert stored.verdict_reason_[-60:] == held.verdict_reason_[-60:]
    np.testing.assert_allclose(stored.predict(frame[list("abcd")]), held.predict(X), atol=1e-8)
    assert stored.sources_[0].p_value == pytest.approx(held.sources_[0].p_value, rel=1e-6)
    with pytest.raises(AttributeError, match="not held for rows out of core"):
        _ = stored.environments_
    spread = StableRegressor(4.0).fit(DaskBlocks(*made, **labels))
    assert spread.support_.tolist() == held.support_.tolist()
    np.testing.assert_allclose(spread.predict(X), held.predict(X), atol=1e-8)
