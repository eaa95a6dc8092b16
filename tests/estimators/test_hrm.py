"""The paper's algorithm as estimators: manners of scikit-learn, the loop and its history."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from hetrisk import HRMClassifier, HRMRegressor
from hetrisk.blocks import ArrayBlocks, ParquetBlocks
from hetrisk.core.predictor import Inputs
from hetrisk.datasets import load_task

NAMES = [f"x{i}" for i in range(10)]
FIXED = {"n_environments": 2, "invariance_penalty": 10.0, "gate_penalty": 0.003, "random_state": 0}


@parametrize_with_checks([HRMRegressor(max_rounds=2), HRMClassifier(max_rounds=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def task():
    return load_task("selection_bias", seed=0, r=1.9)


@pytest.fixture(scope="module")
def fitted(task):
    return HRMRegressor(random_state=0).fit(task.train.X, task.train.y)


def test_the_invariant_columns_are_found(task, fitted):
    np.testing.assert_array_equal(fitted.support_, task.invariant)
    plain = LinearRegression().fit(task.train.X, task.train.y)
    worst = {
        name: max(((y - model.predict(X)) ** 2).mean() for X, y in task.test.values())
        for name, model in (("hrm", fitted), ("plain", plain))
    }
    assert worst["hrm"] < worst["plain"]


def test_the_model_is_least_squares_on_open_columns(task, fitted):
    X, y, _ = task.train
    reference = LinearRegression().fit(X[:, fitted.support_], y)
    np.testing.assert_allclose(fitted.coef_[fitted.support_], reference.coef_)
    assert (fitted.coef_[~fitted.support_] == 0).all()
    assert fitted.intercept_ == pytest.approx(reference.intercept_)
    np.testing.assert_allclose(fitted.predict(X), reference.predict(X[:, fitted.support_]))
    np.testing.assert_allclose(fitted.predictor_.predict(Inputs(X))[:, 0], fitted.predict(X))


def test_without_a_refit_it_is_the_gated_model(task):
    X, y, _ = task.train
    refitted = HRMRegressor(**FIXED).fit(X, y)
    gated = HRMRegressor(**FIXED, refit=False).fit(X, y)
    np.testing.assert_array_equal(gated.support_, refitted.support_)
    assert (gated.coef_[~gated.support_] == 0).all()
    assert np.abs(gated.coef_ - refitted.coef_).max() > 1e-4


def test_the_history_names_the_answer(fitted):
    chosen = [record for record in fitted.history_ if record.chosen]
    assert len(chosen) == 1
    assert not (fitted.support_ & ~np.array(chosen[0].support)).any()
    assert chosen[0].carry_over == min(record.carry_over for record in fitted.history_)
    assert chosen[0].invariance_penalty == fitted.invariance_penalty_
    assert fitted.n_rounds_ == sum(r.run == chosen[0].run for r in fitted.history_)


def test_with_everything_given_there_is_one_run_and_its_last_round(task):
    model = HRMRegressor(**FIXED).fit(task.train.X, task.train.y)
    assert {record.run for record in model.history_} == {1}
    assert model.history_[-1].chosen
    assert model.n_environments_ == model.environment_proba_.shape[1] == 2
    single = HRMRegressor(**FIXED, max_rounds=1).fit(task.train.X, task.train.y)
    assert len(single.history_) == single.n_rounds_ == 1


@pytest.mark.parametrize("penalty", ["trace", "masked"])
@pytest.mark.parametrize("assignment", ["soft", "hard"])
def test_forms_of_the_penalty_and_of_assignment(task, penalty, assignment):
    given = {**FIXED, "invariance_penalty": 10.0 if penalty == "trace" else 300.0}
    model = HRMRegressor(**given, penalty=penalty, assignment=assignment)
    model.fit(task.train.X, task.train.y)
    shares = model.environment_proba_
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.isin(shares, [0.0, 1.0]).all() == (assignment == "hard")
    assert model.support_[:5].all()


def test_shifts_and_scales_change_nothing(task):
    X, y, _ = task.train
    scale = np.geomspace(1e-3, 1e3, 10)
    plain = HRMRegressor(**FIXED).fit(X, y)
    moved = HRMRegressor(**FIXED).fit(X * scale + 100.0, 50.0 * y - 7.0)
    np.testing.assert_array_equal(moved.support_, plain.support_)
    np.testing.assert_allclose(moved.coef_ * scale / 50.0, plain.coef_, rtol=1e-6, atol=1e-9)


def test_the_order_of_rows_changes_nothing(task):
    X, y, _ = task.train
    order = np.random.default_rng(0).permutation(len(y))
    plain, shuffled = HRMRegressor(**FIXED).fit(X, y), HRMRegressor(**FIXED).fit(X[order], y[order])
    np.testing.assert_array_equal(plain.support_, shuffled.support_)
    np.testing.assert_allclose(plain.coef_, shuffled.coef_)


def test_integer_weights_are_repeated_rows(task):
    X, y = task.train.X[:800], task.train.y[:800]
    weight = np.tile([1, 2], 400)
    weighed = HRMRegressor(**FIXED).fit(X, y, sample_weight=weight)
    repeated = HRMRegressor(**FIXED).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(weighed.support_, repeated.support_)
    np.testing.assert_allclose(weighed.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)


def test_weights_are_keyword_only(task):
    with pytest.raises(TypeError, match="positional"):
        HRMRegressor().fit(task.train.X, task.train.y, np.ones(2000))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_in(frame, task):
    table = frame(dict(zip(NAMES, task.train.X.T, strict=True)))
    model = HRMRegressor(**FIXED).fit(table, task.train.y)
    np.testing.assert_array_equal(model.feature_names_in_, NAMES)
    reference = HRMRegressor(**FIXED).fit(task.train.X, task.train.y)
    np.testing.assert_allclose(model.predict(table), reference.predict(task.train.X))


def test_rows_elsewhere(tmp_path, task):
    reference = HRMRegressor(**FIXED).fit(task.train.X, task.train.y)
    near = HRMRegressor(**FIXED).fit(ArrayBlocks(task.train.X, task.train.y))
    np.testing.assert_allclose(near.coef_, reference.coef_)
    frame = pd.DataFrame(task.train.X, columns=NAMES).assign(price=task.train.y)
    frame.to_parquet(tmp_path / "rows.parquet")
    far = HRMRegressor(**FIXED).fit(ParquetBlocks(tmp_path / "rows.parquet", target="price"))
    np.testing.assert_allclose(far.coef_, reference.coef_, rtol=1e-6)
    with pytest.raises(AttributeError, match="not held for rows out of core"):
        _ = far.environment_proba_
    labels = far.predict_environments(frame[NAMES], frame["price"])
    np.testing.assert_array_equal(labels, reference.environments_)


def test_n_jobs_changes_nothing_but_the_time(task, fitted):
    model = HRMRegressor(random_state=0, n_jobs=2).fit(task.train.X, task.train.y)
    np.testing.assert_array_equal(model.gates_, fitted.gates_)


@pytest.mark.parametrize("labels", [("no", "yes"), (False, True), (3, 7), (-1.0, 1.0)])
def test_labels_of_any_type(labels, task):
    X, y, _ = task.train
    model = HRMClassifier(**FIXED).fit(X, np.where(y > 0, labels[1], labels[0]))
    assert model.classes_.tolist() == sorted(labels)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))
    assert model.coef_.shape == (1, 10)


def test_multiclass(task):
    X, y, _ = task.train
    target = np.array(["low", "mid", "high"])[np.digitize(y, [-1, 1])]
    model = HRMClassifier(**{**FIXED, "invariance_penalty": 1.0}).fit(X, target)
    assert model.coef_.shape == (3, 10)
    assert model.predict_proba(X).shape == (2000, 3)
    assert model.score(X, target) > 0.6
    np.testing.assert_allclose(model.predictor_.predict(Inputs(X)), model.predict_proba(X))


def test_the_logistic_refit_is_scikit_learns(task):
    X, y, _ = task.train
    model = HRMClassifier(**FIXED).fit(X, y > 0)
    centre, spread = X.mean(axis=0), X.std(axis=0)
    reference = LogisticRegression(tol=1e-8, max_iter=1000)
    reference.fit(((X - centre) / spread)[:, model.support_], y > 0)
    coef = (model.coef_ * spread)[:, model.support_]
    np.testing.assert_allclose(coef, reference.coef_, rtol=1e-3, atol=1e-3)


def test_constant_and_duplicated_columns(task):
    wide = np.column_stack([task.train.X, np.full(2000, 7.0), task.train.X[:, 0]])
    model = HRMRegressor(**FIXED).fit(wide, task.train.y)
    assert not model.support_[10]
    assert model.gates_[10] == 0.0
    assert np.isfinite(model.predict(wide)).all()


@pytest.mark.parametrize("n", [3, 8, 30])
def test_few_rows(n):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 10)), rng.normal(size=n)
    assert np.isfinite(HRMRegressor(random_state=0).fit(X, y).predict(X)).all()


def test_bad_parameters_are_named(task):
    X, y, _ = task.train
    for bad in (
        {"n_environments": 1},
        {"invariance_penalty": -1.0},
        {"gate_noise": 0.0},
        {"penalty": "linear"},
        {"assignment": "fuzzy"},
        {"max_rounds": 0},
    ):
        with pytest.raises(ValueError, match=next(iter(bad))):
            HRMRegressor(**bad).fit(X, y)
    with pytest.raises(ValueError, match="at least two classes; got one class"):
        HRMClassifier().fit(X, np.ones(len(X), dtype=int))
    holes = np.where(X > 3, np.nan, X)
    with pytest.raises(ValueError, match="NaN"):
        HRMRegressor().fit(holes, y)
    with pytest.raises(ValueError, match=r"column '.*' holds NaN: encode it first: .*TableEncoder"):
        HRMRegressor().fit(pd.DataFrame(holes), y)
    words = pd.DataFrame(X).assign(status=np.where(X[:, 0] > 0, "owner", "tenant"))
    with pytest.raises(ValueError, match=r"column 'status' holds .*: encode it first: .*Encoder"):
        HRMRegressor().fit(words, y)
    numbers = pd.DataFrame(X).astype(object)
    assert HRMRegressor(**FIXED).fit(numbers, y).n_features_in_ == X.shape[1]


def test_verbose_prints_the_rounds(capsys, task):
    HRMRegressor(**FIXED, verbose=1).fit(task.train.X, task.train.y)
    assert capsys.readouterr().out.count("round=") >= 1
