"""The distribution that the test of a mechanism goes by."""

import numpy as np
import pytest
from scipy.stats import chi2

from hetrisk.core.sources.mechanism import weighted_chi_squared


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
