"""The tests of a mechanism: their distribution, and effects as witnesses against others."""

import numpy as np
import pytest
from scipy.stats import chi2

from hetrisk.core.numerics.families import Gaussian
from hetrisk.core.numerics.rows import Rows
from hetrisk.core.sources.mechanism import weighted_chi_squared
from hetrisk.core.sources.scale_mixture import spread_p_values


@pytest.mark.parametrize("count", [1, 7])
def test_equal_weights_are_a_chi_squared_variable(count):
    for q in (0.5, 3.0, 40.0):
        exact = chi2.sf(q / 2.0, count)
        assert weighted_chi_squared(q, np.full(count, 2.0)) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("weights", [[1.0, 1.0, 5.0], [3.0, 2.0, 1.0, 0.5, 0.1], [1.0, 0.0]])
def test_unequal_weights_against_draws(weights):
    weights = np.array(weights)
    draws = np.random.default_rng(0).chisquare(1.0, (400_000, len(weights))) @ weights
    for level in (0.1, 0.01, 0.001):
        q = float(np.quantile(draws, 1.0 - level))
        assert weighted_chi_squared(q, weights) == pytest.approx(level, rel=0.25)


def test_no_weight_is_no_evidence():
    assert weighted_chi_squared(0.0, np.zeros(3)) == 1.0
    assert weighted_chi_squared(-1.0, np.ones(3)) == 1.0


def shifting_and_steady(seed: int, n: int = 1000) -> Rows:
    """Effects of y: two are noisier in a third of the rows, one has heavy tails everywhere."""
    rng = np.random.default_rng(seed)
    y, noisy = rng.standard_normal(n), np.where(rng.random(n) < 0.3, 2.0, 0.5)
    steady = y + 0.5 * rng.standard_t(4, n)
    X = y[:, None] + noisy[:, None] * rng.standard_normal((n, 2))
    return Rows(np.column_stack([X, steady]), y, np.ones(n))


def test_effects_that_shift_bear_witness_against_others_that_do_and_no_others():
    shift, stay = [], []
    for seed in range(40):
        rows = shifting_and_steady(seed)
        p = spread_p_values(rows, Gaussian(), np.array([0]), np.array([1, 2]))
        shift.append(p[0])
        stay.append(p[1])
    assert max(shift) < 1e-4
    assert min(stay) > 0.001
    assert np.mean(np.array(stay) < 0.25) < 0.45
