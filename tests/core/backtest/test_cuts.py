"""Periods, sites and trainings: what is learned from and what is judged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetrisk.core.backtest.cuts import (
    FOLDS,
    LEAST_ROWS,
    MOST_PERIODS,
    Layout,
    Periods,
    group_sites,
    merge_periods,
)
from hetrisk.core.backtest.cuts import plan as plan_of

counts = st.lists(st.integers(1, 90), min_size=2, max_size=60)


def plan(n_periods, sites, weight, gap=0):
    names, time = tuple(f"p{k}" for k in range(n_periods)), np.arange(float(n_periods))
    layout = Layout(Periods(time, time, time) if n_periods > 1 else None, sites)
    return plan_of(layout, np.asarray(weight, dtype=float), names, gap)


def sites_of(weight, seed=0):
    weight = np.asarray(weight, dtype=float)
    content = np.random.default_rng(seed).normal(size=(len(weight), 3))
    return group_sites([f"s{k}" for k in range(len(weight))], weight, content)


@given(counts)
def test_thin_periods_are_merged_until_each_can_be_judged(rows) -> None:
    weight = np.array(rows, dtype=float)
    periods = merge_periods(np.arange(len(rows)) * 2.0, weight)
    of = periods.of(np.arange(len(rows)) * 2.0)
    assert (np.diff(of) >= 0).all()
    assert set(of) == set(range(len(periods)))
    held = np.bincount(of, weight)
    assert len(periods) == 1 or held.min() >= LEAST_ROWS * (1 - 1e-9)
    assert len(periods) <= MOST_PERIODS
    assert (periods.lower[1:] > periods.upper[:-1]).all()
    mean = np.bincount(of, weight * np.arange(len(rows)) * 2) / held
    np.testing.assert_allclose(periods.time, mean)


def test_periods_read_further_times() -> None:
    periods = merge_periods(np.array([1.0, 2.0, 3.0]), np.full(3, 30.0))
    assert periods.of(np.array([0.0, 1.5, 2.0, 9.0, np.nan])).tolist() == [0, 1, 1, 2, -1]
    # One period ahead at least, however early; the step is one.
    assert periods.horizon(np.array([0.0, 4.0, 6.0, np.nan])).tolist() == [1.0, 1.0, 3.0, 1.0]


@given(counts, st.integers(0, 3))
def test_forward_only_and_a_gap(rows, gap) -> None:
    splits = plan(len(rows), None, rows, gap)
    for split in splits:
        last = np.flatnonzero(split.train).max()
        assert split.train[: last + 1].all()
        for left in split.left:
            judged = np.flatnonzero(left.cells)
            assert judged.min() > last + gap
            assert left.horizon == judged[0] - last
    if gap == 0 and len(rows) > 3:
        assert len(splits) > 1
        assert all(split.left[-1].cells[-1] for split in splits)


@given(st.lists(st.integers(1, 60), min_size=2, max_size=260), st.randoms())
def test_every_site_is_left_out_once_and_never_on_both_sides(rows, random) -> None:
    sites = sites_of(rows)
    held = np.bincount(sites.site, rows, len(sites))
    splits = plan(1, sites, held)
    assert len(splits) <= 10
    left_out = [left.environment for split in splits for left in split.left]
    assert sorted(left_out) == list(range(len(sites)))
    for split in splits:
        judged = np.any([left.cells for left in split.left], axis=0)
        assert not (split.train & judged).any()
        assert (split.train | judged).all()
    # Neither names nor the order in which levels are listed has a say.
    order = random.sample(range(len(rows)), len(rows))
    weight = np.array(rows, dtype=float)
    content = np.random.default_rng(0).normal(size=(len(rows), 3))
    names = [f"z{k}" for k in range(len(rows))]
    again = group_sites(names, weight[order], content[order])
    np.testing.assert_array_equal(again.site, sites.site[order])
    np.testing.assert_array_equal(again.fold, sites.fold)


def test_folds_hold_about_as_many_rows() -> None:
    rows = np.random.default_rng(1).integers(1, 200, 300)
    sites = sites_of(rows)
    size = np.bincount(sites.fold[sites.site], rows)
    assert len(size) == FOLDS
    assert size.max() - size.min() <= 20
    assert "small ones" in " ".join(sites.names)


def test_few_sites_are_a_fold_each() -> None:
    assert sites_of([50, 40, 30]).n_folds == 3
    assert sites_of([50]).n_folds == 1
    assert plan(1, sites_of([50]), [50.0]) == ()
    assert plan(1, None, [50.0]) == ()


def test_with_time_and_sites_both_are_asked() -> None:
    sites, n_periods = sites_of([50] * 7), 8
    splits = plan(n_periods, sites, np.full(n_periods * sites.n_folds, 25.0))
    period = np.repeat(np.arange(n_periods), sites.n_folds)
    group = np.tile(np.arange(sites.n_folds), n_periods)
    known = [split for split in splits if split.left[0].known]
    new = [split for split in splits if not split.left[0].known]
    assert len(new) == sites.n_folds
    assert all(split.left[0].name.startswith("new sites") for split in new)
    for split in splits:
        for left in split.left:
            assert period[left.cells].min() > period[split.train].max()
            shared = set(group[left.cells]) & set(group[split.train])
            assert bool(shared) is left.known
    assert len({split.cut for split in known}) == len(known) == 4


def test_rounding_of_sums_of_weights_decides_nothing() -> None:
    """The same weights in another order sum to another last digit."""
    sites, n_periods = sites_of([50] * 5), 4
    of_cells = np.full(n_periods * sites.n_folds, LEAST_ROWS / 2)
    exact = plan(n_periods, sites, of_cells)
    rounded = plan(n_periods, sites, of_cells * (1 - 1e-15))
    assert [split.cut for split in rounded] == [split.cut for split in exact]
    assert any(not left.known for split in exact for left in split.left)


@pytest.mark.parametrize("n_levels", [3, 7])
def test_one_period_with_sites_is_sites_alone(n_levels) -> None:
    """All times in one period that can be judged: cells are groups, sites are left out."""
    periods = merge_periods(np.array([1.0, 2.0]), np.array([20.0, 5.0]))
    assert len(periods) == 1
    sites = sites_of([40] * n_levels)
    layout = Layout(periods, sites)
    splits = plan_of(layout, np.full(layout.n_cells, 40.0))
    for split in splits:
        assert len(split.train) == layout.n_cells
        assert not any((left.cells & split.train).any() for left in split.left)


def test_cells_of_rows() -> None:
    periods = merge_periods(np.array([1.0, 2.0]), np.array([30.0, 30.0]))
    sites = sites_of([30, 30, 30])
    time, level = np.array([1.0, 2.0, np.nan, 2.0]), np.array([0, 2, 1, -1])
    cell = Layout(periods, sites).cells(time, level)
    group = sites.fold[sites.site]
    assert cell.tolist() == [group[0], 3 + group[2], -1, -1]
    assert Layout(None, sites).cells(time, level)[:3].tolist() == sites.site[[0, 2, 1]].tolist()
    assert Layout(periods, None).cells(time, level).tolist() == [0, 1, -1, 1]
    assert Layout(None, None).cells(time, level).tolist() == [0, 0, 0, 0]
