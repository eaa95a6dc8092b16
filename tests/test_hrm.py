"""The public estimators: scikit-learn's manners, inputs of every kind, scale, and the verdict."""

import warnings
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from hetrisk import (
    HRMClassifier,
    HRMRegressor,
    HRMSelector,
    InvariantClassifier,
    InvariantRegressor,
)
from hetrisk.blocks import ArrayBlocks, ParquetBlocks
from hetrisk.core.numerics.glm import fit_glm
from hetrisk.core.result import UNSTABLE
from hetrisk.datasets import load_task
from hetrisk.estimators import hrm
from hetrisk.estimators.hrm import METHODS, UnstableWarning

NAMES = [f"x{i}" for i in range(10)]
ALL = [
    *(
        cls(method=method, max_rounds=2)  # the second round is as good a test as the tenth
        for method in METHODS
        for cls in (HRMRegressor, HRMClassifier, HRMSelector)
    ),
    InvariantRegressor(),
    InvariantClassifier(),
]


@pytest.mark.filterwarnings("ignore::hetrisk.estimators.hrm.UnstableWarning")  # honest on noise
@parametrize_with_checks(ALL)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def task():
    return load_task("selection_bias", seed=0, r=1.9)


@pytest.fixture(scope="module")
def fitted(task):
    return HRMRegressor(method="gates", random_state=0).fit(task.train.X, task.train.y)


def test_attributes_of_a_regressor(fitted, task):
    n, d = task.train.X.shape
    K = fitted.environment_proba_.shape[1]
    assert fitted.support_.shape == fitted.gates_.shape == fitted.stability_.shape == (d,)
    assert fitted.support_.dtype == bool
    assert fitted.coef_.shape == (d,)
    assert (fitted.coef_[~fitted.support_] == 0).all()
    assert isinstance(fitted.intercept_, float)
    assert fitted.environments_.shape == (n,)
    np.testing.assert_allclose(fitted.environment_proba_.sum(axis=1), 1.0)
    assert fitted.verdict_ == "invariant"
    assert "left out" in fitted.verdict_reason_
    assert fitted.n_rounds_ == len(fitted.history_)
    assert len(fitted.evidence_.reason) == d
    s = fitted.environment_summary_
    assert (
        s.coef.shape == s.coef_error.shape == s.feature_mean.shape == s.feature_sd.shape == (K, d)
    )
    assert s.weight.sum() == pytest.approx(1.0)
    assert s.distance.shape == (K, K)
    assert s.risk_name == "RMSE"


def test_the_final_model_is_least_squares_on_the_selected_features(fitted, task):
    X, y, _ = task.train
    reference = LinearRegression().fit(X[:, fitted.support_], y)
    np.testing.assert_allclose(fitted.coef_[fitted.support_], reference.coef_)
    assert fitted.intercept_ == pytest.approx(reference.intercept_)
    np.testing.assert_allclose(
        fitted.final_estimator_.predict(X[:, fitted.support_]), fitted.predict(X)
    )


def test_environment_summary_against_plain_arithmetic(fitted, task):
    X, y, _ = task.train
    s, R = fitted.environment_summary_, fitted.environment_proba_
    erm = LinearRegression().fit(X, y)
    for k, share in enumerate(R.T):
        local = LinearRegression().fit(X, y, sample_weight=share)
        np.testing.assert_allclose(s.coef[k], local.coef_, rtol=1e-6, atol=1e-8)
        assert s.intercept[k] == pytest.approx(local.intercept_, abs=1e-8)
        for model, value in ((fitted, s.risk), (erm, s.risk_erm)):
            rmse = np.sqrt(np.average((y - model.predict(X)) ** 2, weights=share))
            assert value[k] == pytest.approx(rmse)
        np.testing.assert_allclose(s.feature_mean[k], np.average(X, axis=0, weights=share))
    gap = X @ (s.coef[0] - s.coef[1]) + s.intercept[0] - s.intercept[1]
    assert s.distance[0, 1] == pytest.approx(np.sqrt((gap**2).mean()) / y.std())


def test_shifts_and_scales_of_columns_and_target_change_nothing(fitted, task):
    X, y, _ = task.train
    scale = np.geomspace(1e-3, 1e3, 10) * np.array([1, -1] * 5)
    moved = HRMRegressor(method="gates", random_state=0).fit(X * scale + 100.0, 50.0 * y - 7.0)
    np.testing.assert_array_equal(moved.support_, fitted.support_)
    np.testing.assert_allclose(moved.gates_, fitted.gates_, atol=1e-5)
    np.testing.assert_allclose(moved.coef_ * scale / 50.0, fitted.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        moved.predict(X * scale + 100.0), 50.0 * fitted.predict(X) - 7.0, rtol=1e-6
    )
    np.testing.assert_allclose(moved.environment_proba_, fitted.environment_proba_, atol=1e-4)


def test_invariant_regressor_is_free_of_scale_and_level(task):
    X, y, e = task.train
    scale = np.geomspace(1e-3, 1e3, 10)
    given = {"invariance_penalty": 0.3, "gate_penalty": 0.01}
    for parameters in ({}, given):
        plain = InvariantRegressor(**parameters).fit(X, y, e)
        moved = InvariantRegressor(**parameters).fit(X * scale - 5.0, 20.0 * y + 1000.0, e)
        np.testing.assert_allclose(moved.gates_, plain.gates_, atol=1e-5)
        np.testing.assert_allclose(moved.coef_ * scale / 20.0, plain.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_in(frame, task, fitted):
    table = frame(dict(zip(NAMES, task.train.X.T, strict=True)))
    model = HRMRegressor(method="gates", random_state=0).fit(table, task.train.y)
    np.testing.assert_array_equal(model.feature_names_in_, NAMES)
    np.testing.assert_allclose(model.predict(table), fitted.predict(task.train.X))


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_selector_in_a_pipeline_with_output(output, task):
    table = pd.DataFrame(task.train.X, columns=NAMES)
    selector = HRMSelector(method="gates", random_state=0).set_output(transform=output)
    out = selector.fit(table, task.train.y).transform(table)
    assert list(out.columns) == NAMES[:5]
    assert selector.get_feature_names_out().tolist() == NAMES[:5]
    np.testing.assert_array_equal(selector.get_support(), np.arange(10) < 5)
    assert selector.verdict_ == "invariant"
    pipe = make_pipeline(StandardScaler(), clone(selector).set_output(), Ridge())
    assert pipe.fit(task.train.X, task.train.y).score(task.train.X, task.train.y) > 0.5


def test_selector_guesses_the_task_or_is_told(task):
    X, y, _ = task.train
    assert isinstance(HRMSelector(method="gates").fit(X, y).estimator_, HRMRegressor)
    assert isinstance(HRMSelector(method="gates").fit(X, y > 0).estimator_, HRMClassifier)
    counts = np.round(y).astype(int)
    told = HRMSelector(method="gates", task="regression").fit(X, counts)
    assert isinstance(told.estimator_, HRMRegressor)
    with pytest.raises(ValueError, match="task must be 'regression' or 'classification'"):
        HRMSelector().fit(ArrayBlocks(X, y))


@pytest.mark.parametrize(
    "labels",
    [("no", "yes"), (False, True), (3, 7), (-1.0, 1.0)],
    ids=["str", "bool", "int", "float"],
)
def test_labels_of_any_type(labels, task):
    X, y, e = task.train
    target = np.where(y > 0, labels[1], labels[0])
    for model in (
        HRMClassifier(method="gates", random_state=0).fit(X, target),
        InvariantClassifier().fit(X, target, e),
    ):
        assert model.classes_.tolist() == sorted(labels)
        assert set(model.predict(X)) == set(labels)
        proba = model.predict_proba(X)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))
        assert model.coef_.shape == (1, 10)


def test_a_model_of_all_columns_is_fitted_once(monkeypatch):
    """Many classes take seconds a fit: plain ERM, the final model and the summary share one."""
    fits = Mock(side_effect=fit_glm)
    monkeypatch.setattr("hetrisk.estimators.final.fit_glm", fits)
    X = np.random.default_rng(0).normal(size=(240, 3))
    y = np.digitize(X[:, 0] + X[:, 1], np.linspace(-2, 2, 11))
    model = HRMClassifier(reach=0).fit(X, y)
    assert len(model.classes_) == 12
    assert model.support_.all()
    assert fits.call_count == 1
    np.testing.assert_array_equal(np.atleast_2d(model.erm_coef_), model.coef_)


def test_multiclass(task):
    X, y, e = task.train
    target = np.array(["low", "mid", "high"])[np.digitize(y, [-1, 1])]
    model = HRMClassifier(method="gates", random_state=0).fit(X, target)
    assert model.coef_.shape == (3, 10)
    assert model.intercept_.shape == (3,)
    assert model.predict_proba(X).shape == (2000, 3)
    assert model.environment_summary_.coef.shape[1:] == (3, 10)
    assert model.score(X, target) > 0.7
    np.testing.assert_allclose(
        model.final_estimator_.predict_proba(X[:, model.support_]), model.predict_proba(X)
    )
    known = InvariantClassifier().fit(X, target, e)
    np.testing.assert_array_equal(known.support_, np.arange(10) < 5)


@pytest.mark.parametrize("kind", ["known", "named", "found"])
def test_logistic_refit_matches_scikit_learn(task, kind):
    """Scikit-learn's default penalty on standardised features, whoever chose them."""
    X, y, e = task.train
    if kind == "known":
        model = InvariantClassifier().fit(X, y > 0, e)
    elif kind == "named":
        model = HRMClassifier(reach=0.0, random_state=0).fit(X, y > 0, environments=np.eye(2)[e])
    else:
        model = HRMClassifier(method="gates", random_state=0).fit(X, y > 0)
    centre, spread = X.mean(axis=0), X.std(axis=0)
    reference = LogisticRegression(tol=1e-8, max_iter=1000)
    reference.fit(((X - centre) / spread)[:, model.support_], y > 0)
    coef = (model.coef_ * spread)[:, model.support_]
    np.testing.assert_allclose(coef, reference.coef_, rtol=1e-3, atol=1e-3)
    shift = model.intercept_ + model.coef_ @ centre
    np.testing.assert_allclose(shift, reference.intercept_, atol=1e-2)


@pytest.mark.parametrize("kind", [HRMRegressor, HRMClassifier])
def test_too_few_rows_with_responsibilities_are_one_environment(kind):
    rng = np.random.default_rng(0)
    X, shares = rng.normal(size=(30, 3)), np.eye(2)[rng.integers(2, size=30)]
    y = X[:, 0] if kind is HRMRegressor else X[:, 0] > 0
    model = kind(random_state=0).fit(X, y, environments=shares)
    assert model.verdict_ == "unsearched"
    assert model.environment_proba_.shape == (30, 1)


def test_final_estimators(task):
    X, y, _ = task.train
    boosted = HRMRegressor(
        method="gates", final_estimator=HistGradientBoostingRegressor(max_iter=20), random_state=0
    ).fit(X, y)
    np.testing.assert_allclose(
        boosted.predict(X), boosted.final_estimator_.predict(X[:, boosted.support_])
    )
    assert not hasattr(boosted, "coef_")
    assert boosted.environment_summary_.risk.max() < y.std()
    labels = HRMClassifier(
        method="gates", final_estimator=HistGradientBoostingClassifier(max_iter=20), random_state=0
    ).fit(X, np.where(y > 0, "a", "b"))
    assert set(labels.predict(X)) == {"a", "b"}
    assert labels.predict_proba(X).shape == (2000, 2)
    assert labels.environment_summary_.risk_name == "error rate"


def test_final_estimator_that_cannot_weigh_says_so(task):
    X, y, _ = task.train
    weight = np.linspace(1, 2, len(y))
    model = HRMRegressor(method="gates", final_estimator=KNeighborsRegressor())
    with pytest.raises(ValueError, match="does not take weights"):
        model.fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("model", [HRMRegressor(method="gates", random_state=0)], ids=["hrm"])
def test_integer_weights_are_repeated_rows(model, task):
    X, y, _ = task.train
    X, y = X[:800], y[:800]
    weight = np.tile([1, 2], 400)
    weighed = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(weighed.support_, repeated.support_)
    np.testing.assert_allclose(weighed.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)


def test_blocks_in_memory_equal_arrays(task, fitted):
    model = HRMRegressor(method="gates", random_state=0)
    model.fit(ArrayBlocks(task.train.X, task.train.y))
    np.testing.assert_allclose(model.coef_, fitted.coef_)
    np.testing.assert_allclose(model.environment_proba_, fitted.environment_proba_)


def test_rows_out_of_core(tmp_path, task, fitted):
    frame = pd.DataFrame(task.train.X, columns=NAMES).assign(price=task.train.y)
    frame.to_parquet(tmp_path / "rows.parquet")
    blocks = ParquetBlocks(tmp_path / "rows.parquet", target="price")
    model = HRMRegressor(method="gates", random_state=0).fit(blocks)
    np.testing.assert_array_equal(model.feature_names_in_, NAMES)
    np.testing.assert_array_equal(model.support_, fitted.support_)
    np.testing.assert_allclose(model.coef_, fitted.coef_, rtol=1e-6)
    with pytest.raises(AttributeError, match="not held for rows out of core"):
        _ = model.environment_proba_
    assert not hasattr(model, "environments_")
    labels = model.predict_environments(frame[NAMES], frame["price"])
    np.testing.assert_array_equal(labels, fitted.environments_)
    with pytest.raises(ValueError, match="y must be None"):
        HRMRegressor().fit(blocks, task.train.y)


def test_feature_groups_share_a_gate(task):
    X, y, e = task.train
    groups = ["a", "a", "b", "b", "b", "v", "v", "n", "n", "n"]
    for model in (
        HRMRegressor(method="gates", feature_groups=groups, random_state=0).fit(X, y),
        InvariantRegressor(feature_groups=groups).fit(X, y, e),
    ):
        for name in set(groups):
            own = np.array(groups) == name
            assert len(set(model.support_[own])) == 1
        assert model.support_[:5].all()
        assert not model.support_[5:7].any()
    with pytest.raises(ValueError, match="feature_groups must hold one name or integer per column"):
        HRMRegressor(feature_groups=["a"]).fit(X, y)


def test_environments_as_labels_or_responsibilities(task):
    X, y, e = task.train
    by_code = InvariantRegressor().fit(X, y, e)
    by_name = InvariantRegressor().fit(X, y, np.where(e == 0, "east", "west"))
    by_share = InvariantRegressor().fit(X, y, np.eye(2)[e])
    assert by_name.environment_names_.tolist() == ["east", "west"]
    assert by_share.environment_names_ is None
    for other in (by_name, by_share):
        np.testing.assert_allclose(other.gates_, by_code.gates_)
        np.testing.assert_allclose(other.coef_, by_code.coef_)


def test_bad_environments_are_named(task):
    X, y, e = task.train
    with pytest.raises(ValueError, match=r"environments must have length n_samples=2000; got 1999"):
        InvariantRegressor().fit(X, y, e[:-1])
    with pytest.raises(ValueError, match="non-negative with rows summing to one"):
        InvariantRegressor().fit(X, y, np.ones((2000, 2)))
    with pytest.raises(ValueError, match=r"label per row \(n,\) or responsibilities \(n, K\)"):
        InvariantRegressor().fit(X, y, np.ones((2000, 2, 2)))


def test_bad_targets_and_parameters_are_named(task):
    X, y, _ = task.train
    with pytest.raises(ValueError, match="at least two classes; got one class"):
        HRMClassifier().fit(X, np.ones(len(X), dtype=int))
    with pytest.raises(ValueError, match="method"):
        HRMRegressor(method="magic").fit(X, y)
    with pytest.raises(ValueError, match="n_environments"):
        HRMRegressor(n_environments=1).fit(X, y)
    with pytest.raises(ValueError, match="gate_noise"):
        InvariantRegressor(gate_noise=0.0).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        HRMRegressor().fit(np.where(X > 3, np.nan, X), y)


def test_constant_and_duplicated_columns(task):
    X, y, e = task.train
    wide = np.column_stack([X, np.full(len(X), 7.0), X[:, 0]])
    for model in (
        HRMRegressor(method="gates", random_state=0).fit(wide, y),
        InvariantRegressor().fit(wide, y, e),
    ):
        assert not model.support_[10]
        assert model.gates_[10] == 0.0
        assert np.isfinite(model.predict(wide)).all()
        assert not model.support_[5]


@pytest.mark.parametrize("n", [3, 8, 30])
def test_few_rows(n):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 10)), rng.normal(size=n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnstableWarning)
        assert np.isfinite(HRMRegressor(method="gates", random_state=0).fit(X, y).predict(X)).all()


def test_n_jobs_changes_nothing_but_the_time(task, fitted):
    model = HRMRegressor(method="gates", random_state=0, n_jobs=2).fit(task.train.X, task.train.y)
    np.testing.assert_array_equal(model.gates_, fitted.gates_)


def test_verbose_prints_a_line_a_round(capsys, task):
    HRMRegressor(method="gates", verbose=1, random_state=0).fit(task.train.X, task.train.y)
    assert capsys.readouterr().out.count("round") >= 1


def test_an_unstable_verdict_warns(monkeypatch, task, fitted):
    def unstable(rows, family, groups, settings):
        found = METHODS["gates"].search(rows, family, groups, settings)
        return replace(
            found, verdict=UNSTABLE, support=np.ones(10, dtype=bool), gates=np.ones(10), coef=None
        )

    monkeypatch.setitem(hrm.METHODS, "auto", hrm.Method(unstable))
    with pytest.warns(UnstableWarning, match="Plain ERM is used"):
        model = HRMRegressor(random_state=0).fit(task.train.X, task.train.y)
    reference = LinearRegression().fit(task.train.X, task.train.y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-6)


def test_a_search_may_bring_its_own_coefficients(monkeypatch, task):
    def own(rows, family, groups, settings):
        found = METHODS["gates"].search(rows, family, groups, settings)
        return replace(found, coef=np.arange(10.0), intercept=1.0)

    monkeypatch.setitem(hrm.METHODS, "auto", hrm.Method(own))
    X, y, _ = task.train
    model = HRMRegressor(random_state=0).fit(X, y)
    expected = y.mean() + y.std() * (1.0 + ((X - X.mean(0)) / X.std(0)) @ np.arange(10.0))
    np.testing.assert_allclose(model.predict(X), expected)


@pytest.mark.parametrize("seed", range(3))
def test_cats_and_dogs_keeps_the_animal_alone(seed):
    task = load_task("cats_and_dogs", seed=seed)
    model = HRMClassifier(method="gates", random_state=seed).fit(task.train.X, task.train.y)
    assert model.support_.tolist() == [True, False, False]


@pytest.mark.parametrize("seed", range(3))
def test_known_environments_give_the_invariant_features(seed):
    for name in ("selection_bias", "anti_causal"):
        task = load_task(name, seed=seed)
        support = InvariantRegressor().fit(*task.train).support_
        np.testing.assert_array_equal(support[task.identifiable], task.invariant[task.identifiable])
