"""The reach curve: of our models, and of any other."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from hetrisk import HRMClassifier, HRMRegressor
from hetrisk.core.reach.curve import Line, break_even
from hetrisk.datasets import load_task
from hetrisk.estimators.quality import assess
from hetrisk.metrics import reach_curve


@pytest.fixture(scope="module")
def train():
    return load_task("selection_bias", seed=0).train


def test_the_curve_of_a_fit_is_consistent(train):
    model = HRMRegressor(reach=1.7).fit(train.X, train.y, environments=train.environments)
    curve = model.reach_curve_
    assert 1.7 in curve.reach
    assert (np.diff(curve.error) >= -1e-12).all()
    assert (curve.low <= curve.error).all()
    assert (curve.error <= curve.high).all()
    assert len(curve.left_out) == len(curve.reach)
    at = int(np.searchsorted(curve.reach, 1.7))
    assert curve.error[at] < curve.error_erm[at]
    assert curve.error[0] >= curve.error_erm[0]
    assert curve.error[0] == pytest.approx(
        np.sqrt(np.mean((model.predict(train.X) - train.y) ** 2)), rel=1e-6
    )


def test_least_squares_has_the_curve_that_is_drawn_of_it(train):
    model = LinearRegression().fit(train.X, train.y)
    ours = HRMRegressor().fit(train.X, train.y, environments=train.environments).reach_curve_
    found = reach_curve(model, train.X, train.y, train.environments, reach=ours.reach)
    assert np.allclose(found.error_erm, ours.error_erm, rtol=1e-6)
    assert np.allclose(found.error, ours.error_erm, rtol=1e-6)
    assert found.break_even == 0.0


@pytest.mark.parametrize(("count", "named"), [(3, "s"), (20, ""), (20, "s"), (150, "s"), (150, "")])
def test_environments_too_thin_to_be_judged_are_put_together_as_in_a_fit(count, named):
    """Numbers are neighbours or kinds, names kinds: whatever the search would judge."""
    rng = np.random.default_rng(0)
    X = 5.0 + rng.standard_normal((1500, 4))
    y = 100.0 * (X @ [1.0, 0.5, 0.0, 0.2] + rng.standard_normal(1500))
    codes = rng.integers(0, count, 1500)
    sites = np.array([f"{named}{code}" for code in codes]) if named else codes
    ours = HRMRegressor().fit(X, y, environments=sites).reach_curve_
    found = reach_curve(LinearRegression().fit(X, y), X, y, sites, reach=ours.reach)
    assert np.allclose(found.error_erm, ours.error_erm, rtol=1e-6)
    assert np.allclose(found.error, ours.error_erm, rtol=1e-6)
    # One population: were each of 150 sites judged alone, the worst would be far beyond.
    assert found.error[-1] < 2.0 * found.error[0]


def test_where_all_but_one_environment_are_too_thin_nothing_moves():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 6))
    y = X[:, 0] + rng.standard_normal(120)
    sites = np.array(["main"] * 115 + ["far"] * 5)
    ours = HRMRegressor().fit(X, y, environments=sites)
    assert ours.verdict_ == "unsearched"
    found = reach_curve(LinearRegression().fit(X, y), X, y, sites)
    assert np.allclose(found.error, ours.reach_curve_.error_erm[0], rtol=1e-6)


def test_a_gain_that_is_rounding_never_pays():
    def line(risk, regret):
        return Line(risk, 0.0, np.array([regret]), np.array([risk]))

    assert break_even(line(1.1, 0.0), line(1.0, 1e-31)) == np.inf
    assert break_even(line(1.0 + 1e-15, 1e-14), line(1.0, 0.0)) == 0.0
    assert break_even(line(1.1, 0.0), line(1.0, 1e-4)) == pytest.approx(np.sqrt(1000.0))


def test_a_model_without_the_shortcut_has_the_flatter_curve(train):
    ours = HRMRegressor().fit(train.X, train.y, environments=train.environments)
    found = reach_curve(ours, train.X, train.y, train.environments)
    assert found.error[-1] < 0.5 * found.error_erm[-1]


def test_pipelines_trees_frames_and_labels(train):
    frame = pd.DataFrame(train.X).add_prefix("c").assign(word="a")
    numbers = frame.drop(columns="word")
    trees = HistGradientBoostingRegressor(max_iter=20).fit(numbers, train.y)
    assert np.isfinite(reach_curve(trees, numbers, train.y, train.environments).error).all()
    pipe = make_pipeline(StandardScaler(), LogisticRegression()).fit(train.X, train.y > 0)
    curve = reach_curve(pipe, train.X, train.y > 0, train.environments)
    assert curve.unit == "root Brier score"
    three = np.digitize(train.y, [-1, 1])
    model = HRMClassifier().fit(train.X, three, environments=train.environments)
    assert np.isfinite(reach_curve(model, train.X, three, train.environments).error).all()


@pytest.fixture(scope="module")
def shops():
    """A table with a text column, and where its rows come from."""
    rng = np.random.default_rng(0)
    shop, town = rng.integers(0, 3, 600), rng.integers(0, 2, 600)
    size = rng.standard_normal(600)
    y = size + np.array([0.0, 1.0, 3.0])[shop] * town + rng.standard_normal(600)
    frame = pd.DataFrame({"size": size, "rooms": rng.integers(1, 9, 600)})
    return frame.assign(town=np.array(["A", "B"])[town]), y, shop


def same(found, wanted):
    return np.allclose(found.error, wanted.error) and np.allclose(found.high, wanted.high)


def test_a_polars_frame_reaches_the_model_as_it_is(shops):
    """With its names and its text: warnings are errors here."""
    pl = pytest.importorskip("polars")
    frame, y, shop = shops
    other = pl.DataFrame({name: frame[name].to_list() for name in frame})
    encode = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    pipe = make_pipeline(encode, HistGradientBoostingRegressor(max_iter=20)).fit(frame, y)
    assert same(reach_curve(pipe, other, y, shop), reach_curve(pipe, frame, y, shop))
    numbers = ["size", "rooms"]
    line = LinearRegression().fit(frame[numbers], y)
    wanted = reach_curve(line, frame[numbers], y, shop)
    assert same(reach_curve(line, other.select(numbers), y, shop), wanted)


def test_numbers_in_an_array_of_objects_are_numbers(shops):
    frame, y, shop = shops
    numbers = frame[["size", "rooms"]].to_numpy()
    line = LinearRegression().fit(numbers, y)
    wanted = reach_curve(line, numbers, y, shop)
    assert same(reach_curve(line, numbers.astype(object), y, shop), wanted)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"environments": np.full((600, 2), 0.5)}, r"environments must be labels .* responsib"),
        ({"environments": None}, r"environments must be labels .* got None"),
        ({"y": np.append(np.nan, np.zeros(599))}, r"y must hold finite numbers; got nan in 1 of 6"),
        ({"y": np.array(["a"] * 600)}, r"y must hold finite numbers; got 'a' in 600 of 600"),
        ({"y": np.zeros(599)}, r"y must have length n_samples=600; got 599"),
        ({"y": np.zeros((600, 2))}, r"y must be one value for each row \(n,\); got shape"),
        ({"reach": 2}, r"reach must be a list of numbers from 0 to 1e\+06; got 2"),
        ({"reach": []}, r"reach must be a list"),
        ({"reach": [1.0, -1.0]}, r"from 0 to 1e\+06; got \[1.0, -1.0\]"),
        ({"reach": [0.0, np.nan]}, r"reach must be a list of numbers"),
        ({"reach": [np.inf]}, r"reach must be a list of numbers"),
    ],
)
def test_what_no_curve_can_be_drawn_of_is_refused(shops, changed, words):
    frame, y, shop = shops
    X = frame[["size", "rooms"]]
    model = LinearRegression().fit(X, y)
    given = {"y": y, "environments": shop, "reach": None} | changed
    with pytest.raises(ValueError, match=words):
        reach_curve(model, X, **given)


def test_labels_that_no_probability_is_known_of_are_refused(shops):
    frame, y, shop = shops
    X, large = frame[["size", "rooms"]], np.where(y > 0, "large", "small")
    model = LogisticRegression().fit(X, large)
    other = np.where(np.arange(600) < 3, "huge", large)
    with pytest.raises(
        ValueError, match=r"y must hold classes .*'small'\]; got 'huge' in 3 of 600"
    ):
        reach_curve(model, X, other, shop)
    with pytest.raises(ValueError, match=r"got True in 600 of 600"):
        reach_curve(model, X, np.ones(600, dtype=bool), shop)
    with pytest.raises(ValueError, match=r"model must have predict_proba.*got LinearSVC"):
        reach_curve(LinearSVC().fit(X, large), X, large, shop)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_curve_of_labels_starts_at_the_error_out_of_fold(n_classes):
    """Steep logistic probabilities: a linear one errs visibly more than the model does."""
    rng = np.random.default_rng(0)
    site = rng.integers(0, 3, 1500)
    X = rng.standard_normal((1500, 3))
    score = 4.0 * (X[:, 0] - X[:, 1]) + rng.logistic(size=1500)
    X[:, 2] = np.array([1.5, 1.0, 0.1])[site] * score + rng.standard_normal(1500)
    y = np.digitize(score, np.linspace(-3, 3, n_classes + 1)[1:-1])
    model = HRMClassifier().fit(X, y, environments=site)
    curve = model.reach_curve_
    shown = assess(model, X, y).error(curve.unit)
    assert curve.error[0] == pytest.approx(shown.this, rel=0.02)
    assert curve.error_erm[0] == pytest.approx(shown.plain, rel=0.02)
    assert (np.diff(curve.error_erm) > 0).all()


def test_the_verdict_on_labels_goes_by_the_curve_that_is_shown():
    """What leaves must pay in the errors that are shown, not in those it was chosen by."""
    for seed in range(3):
        task = load_task("copied_label", seed=seed)
        model = HRMClassifier().fit(
            task.train.X, task.train.y, environments=task.train.environments
        )
        curve = model.reach_curve_
        at = int(np.searchsorted(curve.reach, 2.0))
        pays = curve.error[at] < curve.error_erm[at] and curve.break_even <= 2.0
        assert (model.verdict_ == "invariant") == pays


def test_probabilities_err_by_one_at_most(train):
    y = (train.y > 0).astype(int)
    model = HRMClassifier(reach=20.0).fit(train.X, y, environments=train.environments)
    curve = model.reach_curve_
    for name in ("error", "error_erm", "high", "high_erm"):
        assert getattr(curve, name).max() <= 1.0
