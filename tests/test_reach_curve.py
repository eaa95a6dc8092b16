"""The reach curve: of our models, and of any other."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hetrisk import HRMClassifier, HRMRegressor
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
    assert np.allclose(found.error, ours.error_erm, rtol=0.01)
    assert found.break_even == pytest.approx(0.0)


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


def test_responsibilities_are_refused(train):
    shares = np.full((len(train.y), 2), 0.5)
    model = LinearRegression().fit(train.X, train.y)
    with pytest.raises(ValueError, match="must be labels"):
        reach_curve(model, train.X, train.y, shares)


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
