"""Parts of predictors against loops and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from hetrisk.core import predictor as predictors
from hetrisk.core.predictor import (
    PARTS,
    SOFTMAX,
    HingesPart,
    Inputs,
    LevelPart,
    LinearPart,
    Predictor,
    TreesPart,
    single,
)
from hetrisk.estimators.trees import SETTINGS, grow, grow_for_labels

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
Y = X[:, 0] + np.abs(X[:, 1]) + 0.1 * rng.normal(size=120)
ROWS = Inputs(X, np.arange(120.0), np.arange(120) % 5)


def test_linear_parts() -> None:
    own = LinearRegression().fit(np.column_stack([X, ROWS.time]), Y)
    part = LinearPart(own.coef_[:3, None], np.atleast_1d(own.intercept_), own.coef_[3:])
    expected = own.predict(np.column_stack([X, ROWS.time]))
    np.testing.assert_allclose(part.scores(ROWS)[:, 0], expected)
    moved = LinearPart(part.coef, part.intercept + 60 * part.slope, part.slope, 60.0)
    np.testing.assert_allclose(moved.scores(ROWS), part.scores(ROWS))
    with pytest.raises(ValueError, match="needs the time column; X has none"):
        part.scores(Inputs(X))


def test_columns_without_a_coefficient_may_be_missing() -> None:
    part = LinearPart(np.array([[1.0], [0.0], [2.0]]), np.zeros(1), np.zeros(1))
    holes = X.copy()
    holes[:, 1] = np.nan
    np.testing.assert_array_equal(part.scores(Inputs(holes)), part.scores(Inputs(X)))
    assert not part.needs_time


def test_level_parts() -> None:
    part = LevelPart(np.array([[1.0], [2.0]]), np.array([-1.0]))
    codes = np.array([0, 1, -1, 2, 7])
    found = part.scores(Inputs(np.zeros((5, 1)), None, codes))
    # Codes beyond the levels are known by name, but were not learned from.
    assert found[:, 0].tolist() == [1.0, 2.0, -1.0, -1.0, -1.0]
    assert part.scores(Inputs(np.zeros((2, 1))))[:, 0].tolist() == [-1.0, -1.0]
    assert Predictor(((part,),), np.ones(1)).needs_environment


def test_hinges_parts() -> None:
    feature, knot = np.array([0, 0, 2]), np.array([-1.0, 0.5, 0.0])
    coef = np.array([[1.0], [-2.0], [0.5]])
    part = HingesPart(feature, knot, coef, np.array([3.0]), 3)
    expected = np.full(120, 3.0)
    for h in range(3):
        expected += coef[h, 0] * np.maximum(X[:, feature[h]] - knot[h], 0)
    np.testing.assert_allclose(part.scores(ROWS)[:, 0], expected)


def walked(part: TreesPart, x: np.ndarray) -> np.ndarray:
    """Scores of one row, tree by tree."""
    scores = part.base.copy()
    for root, output in zip(part.root, part.output, strict=True):
        at = root
        while part.left[at] != at:
            v = x[part.feature[at]]
            goes_left = part.missing_left[at] > 0 if np.isnan(v) else v <= part.threshold[at]
            at = part.left[at] if goes_left else part.right[at]
        scores[output] += part.value[at]
    return scores


@given(st.integers(0, 500))
def test_trees_parts_walk_from_root_to_leaf(seed) -> None:
    draws = np.random.default_rng(seed)
    weight = draws.uniform(0.5, 2.0, 120)
    part = grow(X, Y, weight, draws.permutation(3))
    holes = X[:20].copy()
    holes[draws.random(holes.shape) < 0.2] = np.nan
    expected = np.array([walked(part, x) for x in holes])
    np.testing.assert_allclose(part.scores(Inputs(holes)), expected)


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setitem(SETTINGS, "max_iter", 8)


def test_trees_are_those_of_scikit_learn() -> None:
    own = HistGradientBoostingRegressor(**SETTINGS).fit(X, Y)
    part = grow(X, Y, np.ones(120), np.arange(3))
    np.testing.assert_allclose(part.scores(ROWS)[:, 0], own.predict(X), rtol=1e-12)
    labels = np.digitize(Y, [0.5])
    classifier = HistGradientBoostingClassifier(**SETTINGS).fit(X, labels)
    found = grow_for_labels(X, labels.astype(float), np.ones(120), np.arange(3), 2)
    p = single(found, link=SOFTMAX).predict(ROWS)
    np.testing.assert_allclose(p, classifier.predict_proba(X), rtol=1e-10)
    labels = np.digitize(Y, [0.2, 1.0])
    classifier = HistGradientBoostingClassifier(**SETTINGS).fit(X, labels)
    found = grow_for_labels(X, labels.astype(float), np.ones(120), np.arange(3), 3)
    p = single(found, link=SOFTMAX).predict(ROWS)
    np.testing.assert_allclose(p, classifier.predict_proba(X), rtol=1e-10)


def test_trees_of_classes_that_are_not_there() -> None:
    labels = np.where(Y > 0.5, 3.0, 1.0)
    part = grow_for_labels(X, labels, np.ones(120), np.arange(3), 4)
    p = single(part, link=SOFTMAX).predict(ROWS)
    assert (p[:, [0, 2]] < 0.02).all()
    assert (p[:, [0, 2]] > 0).all()
    only = grow_for_labels(X, np.full(120, 2.0), np.ones(120), np.arange(3), 4)
    assert (single(only, link=SOFTMAX).predict(ROWS).argmax(axis=1) == 2).all()


@pytest.mark.parametrize("kind", ["hinges", "trees"])
def test_many_rows_are_taken_in_turn(monkeypatch, kind) -> None:
    part = grow(X, Y, np.ones(120), np.arange(3))
    if kind == "hinges":
        part = HingesPart(np.array([0]), np.zeros(1), np.ones((1, 1)), np.zeros(1), 3)
    whole = single(part).predict(ROWS)
    monkeypatch.setattr(predictors, "ROWS_AT_ONCE", 50)
    np.testing.assert_array_equal(single(part).predict(ROWS), whole)


def test_predictors_are_weighted_means_of_members() -> None:
    one = LinearPart(np.eye(3)[:, :1], np.array([1.0]), np.zeros(1))
    two = LinearPart(np.eye(3)[:, 1:2], np.zeros(1), np.zeros(1))
    both = Predictor(((one, two), (two,)), np.array([0.25, 0.75]))
    expected = 0.25 * (X[:, 0] + 1 + X[:, 1]) + 0.75 * X[:, 1]
    np.testing.assert_allclose(both.predict(ROWS)[:, 0], expected)


def test_softmax_of_any_scores() -> None:
    scores = LinearPart(np.array([[1e4, -1e4, 0.0]]), np.array([0.0, 0.0, 5.0]), np.zeros(3))
    p = single(scores, link=SOFTMAX).predict(Inputs(np.array([[1.0], [0.0], [-1.0]])))
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(p[1, 2], np.exp(5) / (2 + np.exp(5)))


def test_every_part_has_a_kind_of_its_own() -> None:
    assert all(PARTS[kind].kind == kind for kind in PARTS)
    assert set(PARTS) == {"linear", "level", "hinges", "trees"}
