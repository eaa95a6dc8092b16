"""Labels make a coarse and a fine partition, and what surely differs is heard in turn."""

import warnings

import numpy as np
import pytest

from hetrisk import HRMRegressor
from hetrisk.core import given
from hetrisk.core.sources import levels
from hetrisk.core.sources.levels import LevelThresholds
from hetrisk.estimators.base import UnstableWarning

from .made import cells_of

turns = given._turns


def wards(seed=0, sizes=(900, 420, 260, 180, 140), d=12):
    """Wards of unequal size, each reading the target with a gain of its own."""
    rng = np.random.default_rng(seed)
    ward = np.repeat(np.arange(len(sizes)), sizes)
    n = len(ward)
    X = rng.standard_normal((n, d))
    y = X[:, :4].sum(axis=1) + rng.standard_normal(n)
    X[:, -1] = np.array([1.0, 0.8, 0.5, 0.1, -0.2])[ward] * y + rng.standard_normal(n)
    return X, y, np.array([f"ward {w}" for w in ward])


def test_a_fine_partition_keeps_apart_what_a_coarse_one_mixes(monkeypatch):
    X, y, ward = wards()
    model = HRMRegressor().fit(X, y, environments=ward)
    assert np.flatnonzero(~model.support_).tolist() == [11]
    assert model.environment_labels_ == tuple(np.unique(ward))
    monkeypatch.setattr(levels, "LEVEL_THRESHOLDS", LevelThresholds(fine=30.0))
    coarse = HRMRegressor().fit(X, y, environments=ward)
    assert len(coarse.environment_labels_) < len(model.environment_labels_)


@pytest.mark.parametrize("n_levels", [3, 5, 12])
def test_kinds_are_made_once_and_levels_stay_as_they_are_where_a_partition_may(
    monkeypatch, n_levels
):
    """2,000 rows and 21 coefficients: at most three environments, four where they may be finer."""
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((2000, 19)), rng.integers(0, n_levels, 2000)
    cells = cells_of(X, X[:, 0] + rng.standard_normal(2000), codes)
    names = tuple(f"w{k}" for k in range(n_levels))
    made = []
    monkeypatch.setattr(levels, "_kinds", counted(levels._kinds, made))
    found = levels.merge_unordered(cells, names, 1, np.arange(19))
    as_they_are = [merged for merged in found if merged.names == names]
    assert len(as_they_are) == (n_levels <= 5)
    assert len(made) == (0 if n_levels == 3 else 1)
    assert [merged.fine for merged in as_they_are] == {3: [False], 5: [True], 12: []}[n_levels]


def counted(function, calls):
    def once(*given):
        calls.append(given)
        return function(*given)

    return once


@pytest.mark.parametrize("count", [2, 20])
def test_neighbours_are_merged_coarse_and_fine(count):
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((1800, 4)), rng.integers(0, count, 1800)
    cells = cells_of(X, X[:, 0] + rng.standard_normal(1800), codes)
    found = levels.merge_neighbours(cells, tuple(map(str, range(2000, 2000 + count))), count)
    assert [len(merged.names) for merged in found] == {2: [2], 20: [11, 18]}[count]


def test_a_hint_has_a_fine_partition_too():
    X, y, ward = wards()
    model = HRMRegressor().fit(X, y, hints=ward)
    assert np.flatnonzero(~model.support_).tolist() == [11]
    assert model.environment_labels_ == tuple(np.unique(ward))


def years():
    """Seven years, told apart or merged, of which only two halves say which column to blame."""
    rng = np.random.default_rng(61)
    count, d = int(rng.integers(4, 12)), int(rng.integers(4, 14))
    n = int(rng.uniform(15, 32) * (d + 1) * count)
    year, X = np.sort(rng.integers(0, count, n)), rng.normal(size=(n, d))
    y = X[:, :4].sum(axis=1) + rng.normal(size=n)
    X[:, -1] = rng.uniform(-0.5, 1.2, count)[year] * y + rng.normal(size=n)
    X[:, -2] = rng.uniform(0.3, 0.8, count)[year] * y + rng.normal(size=n)
    return X, y, 2000 + year


def test_where_the_first_partition_leaves_nothing_out_the_next_is_heard(monkeypatch):
    X, y, year = years()
    model = HRMRegressor().fit(X, y, environments=year)
    assert model.verdict_ == "invariant"
    assert model.sources_[0].n_environments == len(model.environment_labels_)
    monkeypatch.setattr(given, "_turns", lambda used: turns(used)[:1])
    with pytest.warns(UnstableWarning):
        first = HRMRegressor().fit(X, y, environments=year)
    assert first.verdict_ == "unstable"
    assert len(first.environment_labels_) > len(model.environment_labels_)


@pytest.mark.parametrize("seed", [0, 4, 12])
def test_a_partition_that_leaves_nothing_out_either_takes_no_turn(monkeypatch, seed):
    """Where every slope moves; what is told of is the first, the one with the most regret."""
    rng = np.random.default_rng(seed)
    year, X = np.sort(rng.integers(0, 7, 1100)), rng.normal(size=(1100, 6))
    slopes = rng.normal(size=(7, 6))
    y = (X * (1.0 + 0.5 * slopes[year])).sum(axis=1) + rng.normal(size=1100)
    heard, told = [], []

    def listened(used):
        heard.append(turns(used))
        return heard[-1]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnstableWarning)
        for every in (listened, lambda used: turns(used)[:1]):
            monkeypatch.setattr(given, "_turns", every)
            told.append(HRMRegressor().fit(X, y, environments=2000 + year))
    assert len(heard[0]) > 1
    model, first = told
    assert model.verdict_ == first.verdict_ != "invariant"
    assert model.environment_labels_ == first.environment_labels_
    assert model.verdict_reason_ == first.verdict_reason_


def source(p_value, others=()):
    return given.TestedSource(None, None, p_value, np.ones(2), 1.0, 0.01, tuple(others))


@pytest.mark.parametrize("n_others", [0, 1, 2])
def test_other_partitions_are_heard_after_the_first_and_apart_last(n_others):
    others = [source(0.001) for _ in range(n_others)]
    first, second, silent = source(0.0, others), source(0.002), source(0.5)
    turns = given._turns([first, second, silent])
    assert turns[0] == [first, second]
    assert turns[1:-1] == [[other, second] for other in others]
    assert turns[-1] == [silent]


def test_the_source_says_which_partition_decided():
    X, y, ward = wards(seed=3)
    model = HRMRegressor().fit(X, y, environments=ward)
    assert model.sources_[0].n_environments == len(model.environment_labels_)
