"""From rows to the problem of a backtest: periods, sites, cells, their moments, rows at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hetrisk.core.backtest.cells import CellPass, Layout, cell_moments
from hetrisk.core.backtest.content import content_order
from hetrisk.core.backtest.cuts import (
    Periods,
    Sites,
    Split,
    group_sites,
    merge_periods,
    plan,
)
from hetrisk.core.backtest.run import Problem
from hetrisk.core.backtest.training import (
    LabelsTraining,
    NumbersTraining,
    SampleRows,
    Training,
)
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows, RowSource, Summed

MOST_ROWS: Budget[int] = 50_000  # at hand for candidates that need rows, and to judge on
MOST_TIMES: Budget[int] = 20_000  # distinct values of time; more are put into as many bins


@dataclass(frozen=True)
class Prepared:
    """A problem with its cuts."""

    problem: Problem
    splits: tuple[Split, ...]
    layout: Layout


def prepare(
    source: RowSource,
    n_outputs: int,
    level_names: Sequence[str],
    time_label: Callable[[float], str] | None,
    gap: int = 0,
) -> Prepared:
    """Make the problem.

    Parameters
    ----------
    source : rows whose ``aside`` holds time and the code of the environment, NaN for none.
    n_outputs : 1 for numbers, K for class codes.
    level_names : of the environments; () for none.
    time_label : what to call a time; None without time.
    gap : periods that are not used between those learned from and those judged.
    """
    centre = source.sum(_Count(source.n_features)).mean
    periods = None if time_label is None else _periods(source)
    sites = _sites(source, level_names, centre) if level_names else None
    layout = Layout(periods, sites)
    cells = source.sum(CellPass(layout, centre))
    rows = _rows_at_hand(source, layout)
    names = () if periods is None or time_label is None else _names(periods, time_label)
    splits = plan(layout.n_periods, sites, cells.weight, names, gap)
    problem = Problem(
        partial(_training, cells, layout, rows, n_outputs), rows, n_outputs, layout.n_cells
    )
    return Prepared(problem, splits, layout)


def _training(
    cells: Moments, layout: Layout, rows: SampleRows, n_outputs: int, chosen: BoolArray
) -> Training:
    """Return the training on some cells."""
    kept = rows.take(chosen[rows.cell])
    time = np.zeros(layout.n_cells) if layout.periods is None else layout.periods.time
    time = time[layout.period]
    weight = np.where(chosen, cells.weight, 0.0)
    if n_outputs == 1:
        some = Moments(
            weight,
            np.where(chosen[:, None], cells.mean, 0.0),
            np.where(chosen[:, None, None], cells.scatter, 0.0),
        )
        return NumbersTraining(some, weight, layout.period, time, kept)
    return LabelsTraining(weight, layout.period, time, kept, n_outputs)


def training_of_rows(
    rows: SampleRows, fold: IntArray, n_outputs: int, chosen: BoolArray
) -> Training:
    """Return the training on the rows of some folds, in one cell."""
    kept = rows.take(chosen[fold])
    kept = replace(kept, cell=np.zeros(len(kept), dtype=np.int64))
    weight, one = np.array([kept.weight.sum()]), np.zeros(1)
    period = np.zeros(1, dtype=np.int64)
    if n_outputs > 1:
        return LabelsTraining(weight, period, one, kept, n_outputs)
    Z = np.column_stack([kept.X, np.nan_to_num(kept.time), kept.y])
    centre = Z.mean(axis=0)
    cells = cell_moments(Z - centre, kept.weight, kept.cell, 1, centre)
    return NumbersTraining(cells, weight, period, one, kept)


def _names(periods: Periods, label: Callable[[float], str]) -> tuple[str, ...]:
    """What to call each period: by its first and last time."""
    ends = zip(periods.lower, periods.upper, strict=True)
    return tuple(label(a) if a == b else f"{label(a)} to {label(b)}" for a, b in ends)


@dataclass(frozen=True)
class _Totals(Summed):
    """Sums over rows."""

    weight: FloatArray
    first: FloatArray

    @property
    def mean(self) -> FloatArray:
        """(p,) means."""
        return self.first / max(float(self.weight), 1e-300)


@dataclass(frozen=True)
class _Count:
    """Weight, and sums of (x, time, y)."""

    n_features: int

    def __call__(self, rows: Rows) -> _Totals:
        aside = np.zeros((len(rows), 2)) if rows.aside is None else rows.aside
        Z = np.column_stack([rows.X, np.nan_to_num(aside[:, 0]), rows.y])
        return _Totals(np.asarray(rows.weight.sum()), rows.weight @ Z)


def _summed(place: IntArray, weight: FloatArray, size: int) -> FloatArray:
    """(size,) sums of weights by place."""
    return np.bincount(place, weight, size).astype(np.float64)


@dataclass(frozen=True)
class _Times:
    """Distinct times and the weight of each; merged they stay sorted."""

    value: FloatArray
    weight: FloatArray

    def __add__(self, other: _Times) -> _Times:
        value = np.concatenate([self.value, other.value])
        weight = np.concatenate([self.weight, other.weight])
        distinct, place = np.unique(value, return_inverse=True)
        return _Times(distinct, _summed(place, weight, len(distinct)))


@dataclass(frozen=True)
class _TimesOf:
    """Block to `_Times`; in bins between two ends, or as they are."""

    low: float = np.nan
    high: float = np.nan

    def __call__(self, rows: Rows) -> _Times:
        time = np.zeros(0) if rows.aside is None else rows.aside[:, 0]
        held = ~np.isnan(time)
        time, weight = time[held], rows.weight[held]
        if not np.isnan(self.low):
            bins = np.ceil((time - self.low) / (self.high - self.low) * MOST_TIMES)
            time = self.low + bins / MOST_TIMES * (self.high - self.low)
        value, place = np.unique(time, return_inverse=True)
        return _Times(value, _summed(place, weight, len(value)))


@dataclass(frozen=True)
class _Ends:
    """Least and greatest time, and whether few values are seen."""

    low: float
    high: float

    def __add__(self, other: _Ends) -> _Ends:
        return _Ends(min(self.low, other.low), max(self.high, other.high))


def _ends(rows: Rows) -> _Ends:
    time = np.zeros(0) if rows.aside is None else rows.aside[:, 0]
    time = time[~np.isnan(time)]
    return _Ends(*((time.min(), time.max()) if len(time) else (np.inf, -np.inf)))


def _periods(source: RowSource) -> Periods:
    ends = source.sum(_ends)
    times: _Times = source.sum(_Some(MOST_TIMES))
    if len(times.value) > MOST_TIMES:
        times = source.sum(_TimesOf(ends.low, ends.high))
    return merge_periods(times.value, times.weight)


@dataclass(frozen=True)
class _Few(_Times):
    """`_Times` that stop counting beyond a number of values."""

    most: int

    def __add__(self, other: _Times) -> _Few:
        if len(self.value) > self.most:
            return self
        merged = _Times(self.value, self.weight) + other
        return _Few(merged.value, merged.weight, self.most)


@dataclass(frozen=True)
class _Some:
    most: int

    def __call__(self, rows: Rows) -> _Few:
        found = _TimesOf()(rows)
        return _Few(found.value, found.weight, self.most)


@dataclass(frozen=True)
class _LevelSums:
    """Block to (L, 4) sums by level: weight, y, y^2, and the squared length of x."""

    n_levels: int
    centre: FloatArray
    scale: FloatArray

    def __call__(self, rows: Rows) -> FloatArray:
        code = np.full(len(rows), -1.0) if rows.aside is None else rows.aside[:, 1]
        level = np.nan_to_num(code, nan=-1.0).astype(np.int64)
        held = level >= 0
        z = (np.column_stack([rows.X, rows.y]) - self.centre) / self.scale
        of = np.column_stack([np.ones(len(z)), z[:, -1], z[:, -1] ** 2, (z[:, :-1] ** 2).sum(1)])
        of = (of * rows.weight[:, None])[held]
        sums = [np.bincount(level[held], column, self.n_levels) for column in of.T]
        return np.column_stack(sums)


@dataclass(frozen=True)
class _Squares:
    centre: FloatArray

    def __call__(self, rows: Rows) -> FloatArray:
        return rows.weight @ (np.column_stack([rows.X, rows.y]) - self.centre) ** 2


def _sites(source: RowSource, names: Sequence[str], centre: FloatArray) -> Sites:
    centre = np.delete(centre, -2)  # time is no content of a site
    square = source.sum(_Squares(centre))
    scale = np.where(square > 0, np.sqrt(square / max(source.n_rows, 1)), 1.0)
    sums = source.sum(_LevelSums(len(names), centre, scale))
    weight = sums[:, 0]
    content = sums[:, 1:] / np.maximum(weight, 1e-300)[:, None]
    return group_sites(list(names), weight, content)


def _rows_at_hand(source: RowSource, layout: Layout) -> SampleRows:
    """All rows, or as many as the budget holds, in an order of content; copies merged."""
    rows = source.sample(MOST_ROWS, 0)
    n = len(rows)
    aside = np.full((n, 2), np.nan) if rows.aside is None else rows.aside
    level = np.nan_to_num(aside[:, 1], nan=-1.0).astype(np.int64)
    cell = layout.cells(aside[:, 0], level)
    order, columns = content_order(rows.X, rows.y, aside[:, 0], rows.weight, level)
    order = order[np.argsort(cell[order], kind="stable")]
    X, y, weight = rows.X[order], rows.y[order], rows.weight[order]
    time, level, cell = aside[order, 0], level[order], cell[order]
    same = np.zeros(n, dtype=bool)
    if n > 1:
        z = np.column_stack([X, np.nan_to_num(time), y, level, cell])
        same[1:] = (z[1:] == z[:-1]).all(axis=1)
    first = np.flatnonzero(~same)
    held = weight[first] if n == 0 else np.add.reduceat(weight, first)
    keep = held > 0
    first = first[keep]
    return SampleRows(
        X[first], time[first], y[first], held[keep], cell[first], level[first], columns
    )
