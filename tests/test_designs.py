"""Designed tasks and the unit tests of Aubin et al.: what the columns say, and where."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hetrisk.datasets import load_task
from hetrisk.datasets.mixing import rotation

DESIGNS = (
    *("selected_on_target", "spreading_effects", "copied_label"),
    *("cause_and_effect", "cows_and_camels", "small_margin"),
)
ROTATED = ("selected_on_target", "copied_label")


def worst(task, columns=slice(None)):
    """Error of plain (logistic) regression on some columns, in the worst test environment."""
    labels = task.task_type == "classification"
    model = make_pipeline(StandardScaler(), LogisticRegression() if labels else LinearRegression())
    model.fit(task.train.X[:, columns], task.train.y)
    return max(
        np.mean(model.predict(X[:, columns]) != y)
        if labels
        else np.sqrt(np.mean((model.predict(X[:, columns]) - y) ** 2))
        for X, y in task.test.values()
    )


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_is_its_seed_and_its_settings(name):
    task, again, other = load_task(name, 3), load_task(name, 3), load_task(name, 4)
    np.testing.assert_array_equal(task.train.X, again.train.X)
    assert not np.array_equal(task.train.X, other.train.X)
    assert set(task.train.environments) == set(range(len(task.environment_names)))
    assert len(set(task.feature_names)) == task.n_features
    assert task.recovered(task.invariant) is True
    assert task.recovered(~task.invariant) is False
    # The order of the rows does not give the environments away.
    half = task.train.environments[: len(task.train.y) // 2]
    assert set(half) == set(task.train.environments)


@pytest.mark.parametrize(
    ("name", "setting", "plain", "stable"),
    [
        ("selected_on_target", {}, 0.736, 0.452),
        ("selected_on_target", {"curve": "step"}, 1.104, 0.613),
        ("spreading_effects", {}, 2.0, 0.508),
        ("copied_label", {}, 0.512, 0.236),
        ("cause_and_effect", {}, 4.78, 4.45),
    ],
)
def test_shortcuts_break_and_causes_hold(name, setting, plain, stable):
    tasks = [load_task(name, seed, **setting) for seed in range(3)]
    assert np.mean([worst(t) for t in tasks]) == pytest.approx(plain, rel=0.1)
    assert np.mean([worst(t, t.invariant) for t in tasks]) == pytest.approx(stable, rel=0.07)


def test_a_drifting_cause_is_a_cause_all_the_same():
    task = load_task("drifting_causes", seed=1)
    assert task.invariant.all()
    assert worst(task) < worst(task, task.invariant & (np.arange(5) > 0))
    still = load_task("drifting_causes", seed=1, n_drifting=0)
    assert worst(still) == pytest.approx(0.5, rel=0.1)


def test_small_margin_has_the_error_of_its_margin():
    """Five columns at +-0.1 with deviation 0.1: the normal tail beyond the root of five."""
    task = load_task("small_margin", 0, n_samples=20_000)
    assert worst(task, task.invariant) == pytest.approx(0.0127, abs=0.003)
    assert len(task.environment_names) == 3
    assert load_task("small_margin", n_environments=5).environment_names[-1] == "e5"


@pytest.mark.parametrize("name", ["cause_and_effect", "cows_and_camels", "small_margin"])
def test_in_the_unit_tests_the_spurious_columns_tell_nothing_when_tested(name):
    task = load_task(name, 1, n_samples=4000)
    for X, y in task.test.values():
        spurious = X[:, ~task.invariant]
        related = [abs(np.corrcoef(column, y)[0, 1]) for column in spurious.T]
        assert max(related) < 0.08
    X, y, _ = task.train
    assert max(abs(np.corrcoef(c, y)[0, 1]) for c in X[:, ~task.invariant].T) > 0.3


@pytest.mark.parametrize("name", ROTATED)
def test_rotated_columns_have_no_stable_set_but_the_same_lengths(name):
    task = load_task(name, 2, rotated=True)
    assert task.invariant is None
    assert task.identifiable is None
    assert task.recovered(np.ones(task.n_features)) is None
    assert task.feature_names[0] == "x1"
    plain = load_task(name, 2)
    lengths = [np.mean(t.train.X**2) for t in (task, plain)]
    assert lengths[0] == pytest.approx(lengths[1], rel=0.2)


@given(d=st.integers(1, 12), seed=st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_a_rotation_keeps_lengths(d, seed):
    turn = rotation(np.random.default_rng(seed), d)
    np.testing.assert_allclose(turn @ turn.T, np.eye(d), atol=1e-12)


def test_pooled_copied_labels_follow_their_rates():
    task = load_task("copied_label", rates=(0.6, 1.0), n_samples=4000)
    X, y, environments = task.train
    right = [np.mean((X[environments == e, -1] > 0) == y[environments == e]) for e in (0, 1)]
    np.testing.assert_allclose(right, [0.6, 1.0], atol=0.03)


def test_an_environment_may_be_empty():
    assert load_task("selected_on_target", share=1.0, n_samples=100).environment_names == ("r=1.9",)


@pytest.mark.parametrize(
    ("name", "setting", "message"),
    [
        ("selected_on_target", {"curve": "line"}, "curve must be one of 'product', .*; got 'line'"),
        ("selected_on_target", {"share": 2.0}, "share must be between 0 and 1; got 2.0"),
        ("selected_on_target", {"n_causes": 2}, "n_causes must be at least 3; got 2"),
        ("spreading_effects", {"sizes": (1, 2)}, "one entry an environment; got 2, 3 and 3"),
        ("copied_label", {"rates": (0.5, 1.5)}, "rates must be between 0 and 1; got 1.5"),
        ("small_margin", {"n_environments": 0}, "n_environments must be at least 1; got 0"),
        ("cows_and_camels", {"n_samples": 1}, "n_samples must be at least 2; got 1"),
        ("cause_and_effect", {"n_samples": 1}, "n_samples must be at least 2; got 1"),
    ],
)
def test_errors(name, setting, message):
    with pytest.raises(ValueError, match=message):
        load_task(name, **setting)
