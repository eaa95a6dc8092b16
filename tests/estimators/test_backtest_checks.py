"""As scikit-learn's estimators: its checks unfiltered, clones, pickles, pipelines, searches."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from hetrisk import BacktestClassifier, BacktestRegressor
from hetrisk.estimators import trees

pytestmark = pytest.mark.filterwarnings(
    "ignore::hetrisk.estimators.backtest.TooFewEnvironmentsWarning"
)
LINEAR = ["ridge", "trend", "level", "within"]


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setitem(trees.SETTINGS, "max_iter", 4)


@parametrize_with_checks([BacktestRegressor(), BacktestClassifier()])
def test_scikit_learn_checks(estimator, check) -> None:
    check(estimator)


def table(n: int = 180, labels: bool = False) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    X["when"] = np.arange(n) * 6 // n + 2015
    X["where"] = np.arange(n) % 5
    y = X["a"] + 0.7 * (X["when"] - 2015) + rng.normal(size=n)
    return X, (y > 2).to_numpy() if labels else y.to_numpy()


MODELS = [BacktestRegressor, BacktestClassifier]


def fitted(kind, **options):
    X, y = table(labels=kind is BacktestClassifier)
    return kind(**{"time": "when", "environment": "where", **options}).fit(X, y), X, y


@pytest.mark.parametrize("kind", MODELS)
def test_pickle_and_clone(kind) -> None:
    model, X, y = fitted(kind)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.ranking_ == model.ranking_
    assert repr(again.ranking_) == repr(model.ranking_)
    copy = clone(model)
    assert not hasattr(copy, "ranking_")
    np.testing.assert_array_equal(copy.fit(X, y).predict(X), model.predict(X))


@pytest.mark.parametrize("kind", MODELS)
def test_frames_and_arrays_give_the_same_answer(kind) -> None:
    model, X, y = fitted(kind)
    of_polars = clone(model).fit(pl.from_pandas(X), y)
    of_array = clone(model).set_params(time=2, environment=-1).fit(X.to_numpy(), y)
    assert model.weights_ == of_polars.weights_ == of_array.weights_
    expected = model.predict(X)
    np.testing.assert_allclose(of_polars.predict(pl.from_pandas(X)), expected, rtol=1e-12)
    np.testing.assert_allclose(of_polars.predict(X), expected, rtol=1e-12)
    np.testing.assert_allclose(of_array.predict(X.to_numpy()), expected, rtol=1e-10)
    assert list(of_array.environment_levels_) == list(model.environment_levels_)
    assert (model.time_name_, model.environment_name_) == ("when", "where")
    assert model.columns_ == ("a", "b")


def test_positions_name_columns_of_frames_too() -> None:
    model, X, y = fitted(BacktestRegressor, candidates=LINEAR)
    by_position = clone(model).set_params(time=2, environment=3).fit(X, y)
    assert by_position.time_name_ == "when"
    np.testing.assert_array_equal(by_position.predict(X), model.predict(X))


def test_time_in_any_form_gives_the_same_answer() -> None:
    """Years, years in text, and dates of which one is in each year."""
    model, X, y = fitted(BacktestRegressor, candidates=LINEAR)
    words = X.assign(when=X["when"].astype(str))
    by_words = clone(model).fit(words, y)
    np.testing.assert_allclose(by_words.predict(words), model.predict(X), rtol=1e-12)
    quarters = X.assign(when=pd.PeriodIndex.from_fields(year=X["when"], quarter=1, freq="Q"))
    by_quarters = clone(model).fit(quarters, y)
    assert by_quarters.weights_ == model.weights_
    np.testing.assert_allclose(by_quarters.predict(quarters), model.predict(X), rtol=1e-9)


@pytest.mark.parametrize("kind", MODELS)
def test_in_pipelines_and_searches(kind) -> None:
    X, y = table(labels=kind is BacktestClassifier)
    model = kind(environment="where", candidates=LINEAR)
    scores = cross_val_score(make_pipeline(FunctionTransformer(), model), X, y, cv=3)
    assert (scores > 0.0).all()
    search = GridSearchCV(model, {"reach": [0.0, 2.0]}, cv=2).fit(X, y)
    assert search.best_estimator_.best_name_


@pytest.mark.parametrize("kind", MODELS)
def test_two_processes_give_the_same_answer(kind) -> None:
    model, X, y = fitted(kind, candidates=["ridge", "trend"])
    parallel = clone(model).set_params(n_jobs=2).fit(X, y)
    assert parallel.ranking_ == model.ranking_
    np.testing.assert_array_equal(parallel.predict(X), model.predict(X))


def test_verbose_prints_progress(capsys) -> None:
    fitted(BacktestRegressor, candidates=["ridge"], verbose=1)
    told = capsys.readouterr().err
    assert "fits" in told
    assert "0 s left" in told
    fitted(BacktestRegressor, candidates=["ridge"])
    assert capsys.readouterr().err == ""


class Refusing(LinearRegression):
    """An estimator that cannot be fitted."""

    def fit(self, X, y, sample_weight=None):
        raise RuntimeError("no licence")


class Infinite(LinearRegression):
    def predict(self, X):
        return np.full(len(X), np.inf)


def test_candidates_of_the_user() -> None:
    own = {"mine": LinearRegression(), "broken": Refusing(), "wild": Infinite(), "level": "level"}
    model, X, _ = fitted(BacktestRegressor, candidates=own)
    lines = {line.candidate: line for line in model.ranking_}
    assert {"plain", "constant", "mine", "broken", "wild", "level"} <= set(lines)
    assert lines["broken"].note == "RuntimeError: no licence"
    assert "not finite" in lines["wild"].note
    assert np.isnan(lines["broken"].criterion)
    assert model.ranking_[-1].candidate in ("broken", "wild")
    assert {line.candidate for line in model.backtest_}.isdisjoint({"broken", "wild"})
    # With time as its last column the user's least squares is a trend without a ridge.
    assert lines["mine"].criterion < lines["plain"].criterion
    assert np.isfinite(model.predict(X)).all()


class Huge(LinearRegression):
    """An estimator whose errors have no square."""

    def predict(self, X):
        return np.full(len(X), 1e200)


def test_predictions_without_a_square_are_bad_ones_and_nothing_else() -> None:
    model, X, _ = fitted(BacktestRegressor, candidates={"huge": Huge(), "level": "level"})
    assert model.weights_.get("huge", 0.0) == 0.0
    assert model.ranking_[-1].candidate == "huge"
    assert np.isfinite([line.criterion for line in model.ranking_]).all()
    assert np.isfinite(model.predict(X)).all()


def test_plain_may_be_as_wrong_as_it_can_in_an_environment() -> None:
    rng = np.random.default_rng(0)
    site, a = np.arange(240) % 6, rng.normal(size=240)
    X = pd.DataFrame({"a": np.where(site == 5, 1e99, 1e-90) * a, "site": site.astype(str)})
    y = a + rng.normal(size=240)
    model = BacktestRegressor(["ridge", "splines"], environment="site").fit(X, y)
    assert np.isfinite([line.mean for line in model.ranking_]).all()
    assert np.isfinite(model.predict(X)).all()


def test_an_estimator_of_the_user_is_deployed_and_cannot_be_plain_arrays() -> None:
    X, y = table()
    y = y + 9.0 * (X["when"] - 2015).to_numpy()
    model = BacktestRegressor({"mine": LinearRegression()}, time="when").fit(
        X[["a", "b", "when"]], y
    )
    assert model.best_name_ == "mine"
    assert isinstance(model.best_estimator_, LinearRegression)
    assert model.predictor_ is None
    expected = LinearRegression().fit(X[["a", "b", "when"]], y).predict(X[["a", "b", "when"]])
    np.testing.assert_allclose(model.predict(X), expected)
    adapted = model.adapt(X.iloc[:30], y[:30] + 3.0)
    assert adapted.predictor_ is None
    assert adapted.predict(X).mean() > model.predict(X).mean() + 0.05


def test_a_classifier_of_the_user() -> None:
    own = {"mine": LogisticRegression()}
    model, X, _ = fitted(BacktestClassifier, candidates=own)
    assert np.isfinite({line.candidate: line for line in model.ranking_}["mine"].mean)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_a_random_state_reaches_candidates_that_take_one() -> None:
    from sklearn.ensemble import ExtraTreesRegressor

    own = {"mine": ExtraTreesRegressor(5)}
    first, X, y = fitted(BacktestRegressor, candidates=own, random_state=3)
    second = clone(first).fit(X, y)
    assert first.ranking_ == second.ranking_
    generators = [clone(first).set_params(random_state=np.random.RandomState(3)) for _ in "ab"]
    generators[1].set_params(n_jobs=2)
    one, two = (model.fit(X, y).ranking_ for model in generators)
    assert one == two


def test_records_are_tables() -> None:
    model, _, _ = fitted(BacktestRegressor, candidates=["ridge"])
    frame = model.ranking_.to_frame()
    assert list(frame["candidate"]) == [line.candidate for line in model.ranking_]
    assert len(model.backtest_.to_frame()) == len(model.backtest_)
    assert "candidate" in repr(model.backtest_).splitlines()[0]
