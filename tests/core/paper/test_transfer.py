"""What carries over: against fits on rows, and what must not change it."""

import numpy as np
import pytest

from hetrisk.blocks import ArrayBlocks
from hetrisk.core.numerics.families import Bernoulli, Gaussian, Multinomial
from hetrisk.core.paper.choice import LEFT, PRICE, gate_price
from hetrisk.core.paper.transfer import carry_over, target_moments, unexplained, usefulness

from .test_invariance import world


def standard(seed=0, n=600, **more):
    X, y, shares = world(seed=seed, n=n, **more)
    return (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std(), shares


def environments_of(X, y, shares, family=None):
    rows = ArrayBlocks(X, y, None, shares)
    return target_moments(rows, family or Gaussian(), None)


def by_rows(X, y, shares, mask, price):
    """X_p from least squares on rows."""
    label, A = shares.argmax(axis=1), np.column_stack([np.ones(len(X)), X[:, mask]])
    errors = []
    for here in (label == e for e in range(shares.shape[1])):
        fit = np.linalg.lstsq(A[~here], y[~here], rcond=None)[0]
        errors.append(((y - A @ fit)[here] ** 2).mean())
    return np.mean(errors) + price * mask.sum()


def test_scores_are_those_of_fits_on_rows():
    X, y, shares = standard()
    masks = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [1, 0, 1, 1, 0]], dtype=bool)
    pool = [shares, np.eye(2)[(X[:, 0] > 0).astype(int)]]
    losses = np.array([[by_rows(X, y, p, mask, 0.01) for p in pool] for mask in masks])
    expected = (losses / losses.min(axis=0)).mean(axis=1)
    found = carry_over([environments_of(X, y, p) for p in pool], masks, 0.01)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_an_effect_that_turns_does_not_carry_over():
    rng = np.random.default_rng(0)
    X, e = rng.normal(size=(4000, 3)), rng.integers(2, size=4000)
    y = X @ np.array([1.0, -1.0, 0.5]) + 0.5 * rng.normal(size=4000)
    effect = np.where(e == 0, y, -y) + rng.normal(size=4000)
    m = environments_of(np.column_stack([X, effect]), y / y.std(), np.eye(2)[e])
    causes = np.array([True, True, True, False])
    scores = carry_over([m], np.array([causes, causes | True]), 0.0)
    assert scores[0] < scores[1]


def test_an_environment_without_rows_says_nothing():
    X, y, shares = standard()
    masks = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]], dtype=bool)
    wider = np.column_stack([shares, np.zeros(len(X))])
    scores = [carry_over([environments_of(X, y, s)], masks, 0.01) for s in (shares, wider)]
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("family", [Bernoulli(), Multinomial(3)], ids=["binary", "three classes"])
def test_labels_are_indicators(family):
    X, y, shares = standard()
    codes = np.digitize(y, np.quantile(y, np.arange(1, family.n_targets + 1) / 3)).astype(float)
    codes = np.minimum(codes, max(family.n_outputs, 2) - 1)
    m = environments_of(X, codes, shares, family)
    assert m.mean.shape == (3, 5 + family.n_targets)
    masks = np.array([[True] * 5, [False] * 5])
    scores = carry_over([m], masks, 0.0)
    assert scores[0] < scores[1]


def test_usefulness_is_the_rise_of_the_error():
    X, y, shares = standard()
    whole = environments_of(X, y, shares[:, :1] * 0 + 1)

    def error(columns):
        A = np.column_stack([np.ones(len(X)), X[:, columns]])
        return ((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2).mean()

    every = np.arange(5)
    rises = [error(every[every != j]) - error(every) for j in every]
    np.testing.assert_allclose(usefulness(whole, 5), rises, rtol=1e-6)
    assert unexplained(whole, 5) == pytest.approx(error(every), rel=1e-6)


def test_a_gate_costs_a_share_of_what_is_left_where_little_is():
    X, y, shares = standard()
    rng = np.random.default_rng(0)
    noisy = environments_of(X, (y + 3 * rng.normal(size=len(y))) / 3, shares)
    exact = environments_of(X, X @ np.ones(5) / 5 + 0.05 * rng.normal(size=len(y)), shares)
    assert gate_price(None, noisy, 5) == PRICE
    assert gate_price(None, exact, 5) == pytest.approx(LEFT * unexplained(exact, 5))
    assert gate_price(0.1, exact, 5) == 0.1
    assert gate_price(None, environments_of(X, X[:, 0], shares), 5) == PRICE / 100
