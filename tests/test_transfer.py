"""Risk across environments from moments, against refits on the rows themselves."""

import numpy as np
import pytest

from hetrisk.core.numerics.linear import least_squares, risk
from hetrisk.core.numerics.moments import moments
from hetrisk.core.numerics.rows import Rows
from hetrisk.core.pooled.transfer import GUARD, gated, saving, soft_gate

D = 4
EVERY = np.ones(D, dtype=bool)


def draw(n=900, seed=0):
    """The last feature follows y, up in one environment and down in the other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    y = X @ [1.0, -1.0, 0.5, 0.0] + 0.5 * rng.normal(size=n)
    hidden = rng.random(n) < 0.3
    X[:, 3] = np.where(hidden, -1.0, 1.0) * y + 0.5 * rng.normal(size=n)
    r = np.column_stack([~hidden, hidden]) * 0.8 + 0.1
    return Rows(X, y, rng.integers(1, 3, n).astype(float)), r


def weighted_fit(rows, weight, columns):
    design = np.column_stack([np.ones(len(rows)), rows.X[:, columns]])
    root = np.sqrt(weight)
    beta = np.linalg.lstsq(root[:, None] * design, root * rows.y, rcond=None)[0]
    return lambda: design @ beta


def brute_force(rows, partitions, support):
    total, weight = np.zeros(D), 0.0
    for r in partitions:
        mass = (rows.weight[:, None] * r).sum(axis=0)
        for a in range(r.shape[1]):
            if mass[a] < max(20, 3 * support.sum()):
                continue
            for b in range(r.shape[1]):
                if a == b or mass[b] < 20:
                    continue
                share = mass[b] / mass.sum()
                weight += share

                def error(columns, a=a, b=b, r=r):
                    predicted = weighted_fit(rows, rows.weight * r[:, a], columns)()
                    square = (rows.y - predicted) ** 2
                    return np.sqrt(np.average(square, weights=rows.weight * r[:, b]))

                for j in range(D):
                    with_, without = support.copy(), support.copy()
                    with_[j], without[j] = True, False
                    total[j] += share * np.log(error(without) / error(with_))
    return 1 - np.exp(total / weight)


@pytest.mark.parametrize("support", [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0], [1, 0, 1, 0]])
def test_saving_is_what_refits_save(support):
    rows, r = draw()
    support = np.array(support, dtype=bool)
    rng = np.random.default_rng(1)
    thirds = rng.dirichlet(np.ones(3), len(rows))
    pool = [moments(rows, r), moments(rows, thirds)]
    expected = brute_force(rows, [r, thirds], support)
    np.testing.assert_allclose(saving(pool, support), expected, rtol=1e-6, atol=1e-9)


def test_leaving_out_what_turns_round_saves_and_what_holds_costs():
    rows, r = draw()
    fall = saving([moments(rows, r)], EVERY)
    assert fall[3] > 0.15
    assert (fall[:2] < -0.05).all()


def test_environments_of_a_few_rows_and_empty_pools_say_nothing():
    rows, _ = draw()
    few = np.where(np.arange(len(rows))[:, None] < 5, [0.0, 1.0], [1.0, 0.0])
    np.testing.assert_array_equal(saving([moments(rows, few)], EVERY), 0.0)
    np.testing.assert_array_equal(saving([], EVERY), 0.0)
    assert soft_gate([], moments(rows), EVERY, np.ones(D), np.array([3])) == 1.0


def test_a_column_constant_in_one_environment_is_not_divided_by():
    rows, r = draw()
    hard = (r > 0.5).astype(float)
    X = rows.X.copy()
    X[hard[:, 1] == 1, 2] = 0.25
    fall = saving([moments(Rows(X, rows.y, rows.weight), hard)], EVERY)
    assert np.isfinite(fall).all()


def test_gates_are_ridges_on_their_features():
    rows, _ = draw()
    gates = np.array([1.0, 0.5, 0.25, 1.0])
    m = moments(rows)
    coef = least_squares(gated(m, gates), EVERY).coef
    covariance = m.covariance
    penalty = np.diag((1 - gates) / gates * np.diag(covariance)[:D])
    expected = np.linalg.solve(covariance[:D, :D] + penalty, covariance[:D, D])
    np.testing.assert_allclose(coef, expected)
    shut = gated(m, np.array([0.0, 1.0, 1.0, 1.0]))
    np.testing.assert_array_equal(shut.scatter, m.scatter)


def training_error(rows, gates):
    m = moments(rows)
    fit = least_squares(gated(m, gates), EVERY)
    return np.sqrt(risk(m, fit.coef, fit.intercept))


@pytest.mark.parametrize("seed", range(10))
def test_soft_gates_together_stay_within_the_guard(seed):
    """Every feature in doubt, one after the other: the guard holds for all of them together."""
    rng = np.random.default_rng(seed)
    rows, _ = draw(seed=seed)
    gates = np.ones(D)
    for j in range(D):
        pool = [moments(rows, rng.dirichlet([0.3, 0.3], len(rows)))]
        gates[j] = soft_gate(pool, moments(rows), EVERY, gates, np.array([j]))
        assert training_error(rows, gates) <= GUARD * training_error(rows, np.ones(D)) + 1e-12


def weakly_turning(seed=0, n=4000):
    """A feature worth little on the mixture, and less than nothing across environments."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    hidden = rng.random(n) < 0.4
    y = X[:, 0] + np.where(hidden, -0.3, 0.5) * X[:, 3] + rng.normal(size=n)
    return Rows(X, y, np.ones(n)), np.column_stack([~hidden, hidden]).astype(float)


def test_a_feature_that_turns_round_is_let_through_in_part_and_one_that_holds_in_full():
    rows, r = weakly_turning()
    pool, pooled = [moments(rows, r)], moments(rows)
    turning = soft_gate(pool, pooled, EVERY, np.ones(D), np.array([3]))
    assert turning == 0.25
    assert soft_gate(pool, pooled, EVERY, np.ones(D), np.array([0])) == 1.0
    both = soft_gate(pool, pooled, EVERY, np.ones(D), np.array([0, 3]))
    assert both == 1.0  # a group has one gate, and shrinking its other member costs too much
