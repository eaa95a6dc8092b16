"""Mechanisms tested on all rows: the level holds at any size, whatever the blocks."""

import numpy as np
import pytest
from scipy import stats

from hetrisk.blocks import ArrayBlocks
from hetrisk.core.confirmation import mechanism_on_all_rows
from hetrisk.core.evidence import consequences, mechanism_p_value
from hetrisk.core.families import Gaussian
from hetrisk.core.rows import Held, Rows

GROUPS = np.arange(5)
EFFECTS = np.array([False, False, False, True, True])


def causal(n, seed, spread=lambda X, y, hidden: np.ones(len(y))):
    """Three causes of y and two effects of it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = X[:, :3] @ [1.0, -1.0, 0.8] + 0.7 * rng.normal(size=n)
    X[:, 3:] = y[:, None] + spread(X, y, rng.random(n) < 0.3)[:, None] * X[:, 3:]
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def p_value(X, y, shifting=EFFECTS, groups=GROUPS, j=3):
    rows = Held(Rows(X, y, np.ones(len(y))))
    return mechanism_on_all_rows(rows, Gaussian(), groups, shifting, j)


def test_in_a_small_table_it_is_the_test_of_the_search():
    """Robust errors with and without the correction for leverage are one at this size."""
    X, y = causal(4000, 0, lambda X, y, hidden: 1 + 0.1 * (X[:, 0] > 0))
    rows = Rows(X, y, np.ones(len(y)))
    found = consequences(rows, Gaussian(), GROUPS)
    assert found.is_effect.tolist() == EFFECTS.tolist()
    expected = mechanism_p_value(rows, Gaussian(), GROUPS, found, 3)
    assert np.log(p_value(X, y)) == pytest.approx(np.log(expected), rel=0.05, abs=0.1)


def test_the_level_holds_where_the_spread_follows_the_target():
    draws = [
        p_value(*causal(3000, seed, lambda X, y, hidden: 0.3 + np.abs(y))) for seed in range(120)
    ]
    assert stats.binom.sf((np.array(draws) < 0.05).sum() - 1, 120, 0.05) > 1e-3


def test_environments_that_only_show_in_the_spreads_of_several_effects_are_confirmed():
    X, y = causal(4000, 0, lambda X, y, hidden: np.where(hidden, 3.0, 0.5))
    assert p_value(X, y) < 1e-6
    assert p_value(X, y, shifting=np.arange(5) == 3) > 1e-3  # alone it does not show


def test_columns_of_its_own_group_say_nothing():
    X, y = causal(4000, 1)
    X[:, 0] = np.abs(X[:, 3]) + 0.1 * X[:, 0]
    assert p_value(X, y) < 1e-6
    assert p_value(X, y, groups=np.array([3, 1, 2, 3, 4])) > 1e-3


def test_blocks_and_weights():
    X, y = causal(6000, 2, lambda X, y, hidden: 1 + 0.05 * (X[:, 0] > 0))
    blocks = ArrayBlocks(X, y)
    blocks.block_rows = 700
    got = mechanism_on_all_rows(blocks, Gaussian(), GROUPS, EFFECTS, 3)
    assert got == pytest.approx(p_value(X, y), rel=1e-6)
    some = np.arange(6000) < 4000
    weighted = Held(Rows(X, y, some.astype(float)))
    got = mechanism_on_all_rows(weighted, Gaussian(), GROUPS, EFFECTS, 3)
    assert got == pytest.approx(p_value(X[some], y[some]), rel=1e-6)
