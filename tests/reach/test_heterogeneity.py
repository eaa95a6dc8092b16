"""The noise of coefficients, measured between folds of rows."""

import numpy as np
import pytest

from hetrisk import HRMRegressor
from hetrisk.core.numerics.families import Gaussian
from hetrisk.core.numerics.rows import Held, Rows
from hetrisk.core.reach.heterogeneity import _whitened_scores, environments_of, heterogeneity
from hetrisk.core.reach.regret import fit_set
from hetrisk.core.result import SearchSettings, SideColumn
from hetrisk.core.sources import tested as sources_tested
from hetrisk.core.sources.hinted import hinted
from hetrisk.core.thresholds import THRESHOLDS

from .made import cells_of, table

FULL = np.ones(4, dtype=bool)


def test_a_score_is_how_far_coefficients_move_without_its_fold():
    X, y, codes = table()
    cells = cells_of(X, y, codes)
    environments = environments_of(cells, 1)
    fits = fit_set(environments, FULL)
    draws = _whitened_scores(cells, environments, fits)
    K, F = cells.weight.shape
    for k in range(K):
        A = environments.stacked[0][1 + k]
        size = np.linalg.norm(draws[k * F : (k + 1) * F], axis=1)
        moved = []
        for f in range(F):
            others = cells.gram[k].sum(axis=0) - cells.gram[k, f]
            off = np.linalg.solve(others[:5, :5], others[:5, 5]) - fits.coef[1 + k, :, 0]
            moved.append(np.sqrt(off @ A @ off))
        ratio = size / np.array(moved)
        assert ratio.max() / ratio.min() == pytest.approx(1.0, abs=1e-2)


def test_one_far_row_is_no_environment_of_its_own():
    """A bent mean and columns with heavy tails: the farthest row pulls its environment's line."""
    p_values = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.standard_t(2.7, (1500, 6))
        y = np.tanh(X).sum(axis=1) + rng.standard_normal(1500)
        found = heterogeneity(cells_of(X, y, rng.integers(0, 5, 1500)), 1)
        p_values.append(found.p_value)
    assert np.mean(np.array(p_values) < 0.01) <= 0.05  # 0.43 by scores that leverage has shrunk


def test_what_differs_is_seen_beside_a_far_row():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 4))
    codes = rng.integers(0, 3, 1500)
    y = X.sum(axis=1) + 0.5 * (codes == 1) * X[:, 0] + rng.standard_normal(1500)
    X[0, 2], y[0] = 60.0, 0.0
    found = heterogeneity(cells_of(X, y, codes), 1)
    assert found.column_p_values[0] < 1e-6
    assert found.column_p_values[2] > 0.01


@pytest.mark.parametrize("rows", [1, 2, 6])
def test_a_year_that_has_just_begun_goes_with_those_before_it(rows):
    """A few rows make no environment: their own fit, and its error, would be theirs alone."""
    differ = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((800, 5))
        y = X.sum(axis=1) + rng.standard_normal(800)
        year = 2000 + rng.integers(0, 3, 800)
        year[-rows:] = 2003
        model = HRMRegressor().fit(X, y, environments=year)
        differ += model.sources_[0].p_value < 0.0027
        assert min(score.rows for score in model.leave_one_out_) > 100
    assert differ == 0


def test_kinds_of_levels_that_hold_a_row_or_two_are_not_trusted():
    differ = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((1200, 5))
        y = X.sum(axis=1) + X[:, 0] ** 2 + rng.standard_normal(1200)
        label = np.char.add("l", np.minimum(np.arange(1200), 1197).astype(str))
        model = HRMRegressor().fit(X, y, environments=label)
        differ += model.sources_[0].p_value < 0.0027
    assert differ == 0


def test_regret_beyond_chance_is_nothing_where_nothing_differs():
    found = []
    for seed in range(40):
        X, y, codes = table(seed, n=2400, d=5, K=6, flip=0.0)
        found.append(heterogeneity(cells_of(X, y, codes), 1))
    chance = 6 * 5 / 2400  # six coefficients, five environments beyond the first
    assert abs(np.mean([f.regret for f in found])) < 0.15 * chance


def test_a_source_says_the_p_value_of_the_partition_that_decides():
    """Of six intervals and two halves the one with more regret decides, if it surely differs."""
    decided = set()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, time = rng.standard_normal((900, 3)), np.sort(rng.random(900))
        slope = 1.0 + 0.5 * (time > 0.5) + 0.1 * (time > 1 / 6)
        y = slope * X[:, 0] + X[:, 1] + rng.standard_normal(900)
        rows = Held(Rows(X, y, np.ones(900), aside=time[:, None]))
        column = SideColumn("time", "number", 0)
        settings = SearchSettings(hints=(column,))
        (tested,) = sources_tested.test_sources(
            rows, Gaussian(), np.arange(3), settings, THRESHOLDS.sure
        )
        partitions = hinted(rows, Gaussian(), np.arange(3), column)
        each = [heterogeneity(p.merged.cells, 1).p_value for p in partitions]
        own = tested.found.p_value
        assert tested.p_value == pytest.approx(min(1.0, len(each) * own))
        decided.add(own > min(each))
    assert decided == {False, True}


def test_a_column_that_is_one_in_a_single_row_hides_nothing():
    """Without the fold of that row nothing is known of its coefficient, and all of the others."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        codes = np.arange(600) % 4
        X = rng.standard_normal((600, 3))
        y = X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(600)
        X[:, 2] = y * (codes - 1.5) + rng.standard_normal(600)
        rare = np.zeros(600)
        rare[[np.flatnonzero(codes == k)[seed] for k in range(4)]] = 1.0
        plain = heterogeneity(cells_of(X, y, codes), 1).p_value
        beside = heterogeneity(cells_of(np.column_stack([X, rare]), y, codes), 1).p_value
        assert np.log(beside) < 0.8 * np.log(plain) < 0.0
