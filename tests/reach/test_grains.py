"""Labels make a coarse and a fine partition, and what surely differs is heard in turn."""

import numpy as np
import pytest

from hetrisk import HRMRegressor
from hetrisk.core import given
from hetrisk.core.sources import levels
from hetrisk.core.sources.levels import LevelThresholds, Merged, at_each_grain


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


def test_a_partition_that_both_make_is_looked_at_once():
    made = {30.0: ["a", "b"], 20.0: ["b", "c"]}

    def merge(rows_a_coefficient):
        return [Merged(None, None, (name,)) for name in made[rows_a_coefficient]]

    assert [merged.names for merged in at_each_grain(merge)] == [("a",), ("b",), ("c",)]


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
