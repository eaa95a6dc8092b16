"""Columns then and now: what moved is seen, what did not is not."""

import numpy as np
import pytest
from scipy import stats

from hetrisk.core.drift.columns import distances, shares_equal, summarise


def test_summaries_are_those_of_the_rows_with_a_value():
    X = np.array([[1.0, 0.0], [3.0, 1.0], [np.nan, 1.0], [2.0, 1.0]])
    columns = summarise(X)
    assert columns.mean == pytest.approx([2.0, 0.75])
    assert columns.missing == pytest.approx([0.25, 0.0])
    assert columns.indicator.tolist() == [False, True]
    assert columns.outside(np.array([[9.0, 0.0]])).tolist() == [[True, False]]


def test_distance_is_at_most_the_two_sample_statistic():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(500, 1)), rng.normal(0.4, 1, size=(200, 1))
    distance, p = distances(summarise(X), new)
    exact = stats.ks_2samp(X[:, 0], new[:, 0])
    assert 0.9 * exact.statistic <= distance[0] <= exact.statistic + 1e-12
    assert p[0] >= exact.pvalue / 2


def test_nothing_moved_in_a_twentieth_of_the_cases_at_most():
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(800, 300)), rng.normal(size=(150, 300))
    assert np.mean(distances(summarise(X), new)[1] < 0.05) < 0.07


def test_shares_are_compared_exactly():
    p = shares_equal(0.5, 0.9, 40, 30)
    assert p == pytest.approx(stats.fisher_exact([[20, 20], [27, 3]]).pvalue, rel=0.6)


def test_a_column_without_a_value_has_not_moved():
    X = np.full((20, 1), np.nan)
    assert distances(summarise(X), np.ones((5, 1)))[0] == 0
    assert distances(summarise(np.ones((5, 1))), X)[1] == 1
