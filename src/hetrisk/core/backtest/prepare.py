"""From rows to the problem of a backtest: periods, sites, cells, their moments, rows at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hetrisk.core.backtest.cells import CellPass, Layout, cell_moments, time_and_level
from hetrisk.core.backtest.content import content_order
from hetrisk.core.backtest.cuts import (
    FOLDS,
    Left,
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
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows, RowSource

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
    total = source.sum(_totals)
    centre = total[1:] / max(float(total[0]), 1e-300)
    periods = None if time_label is None else _periods(source)
    sites = _sites(source, level_names, centre) if level_names else None
    layout = Layout(periods, sites)
    cells = source.sum(CellPass(layout, centre))
    rows = _rows_at_hand(source, layout)
    names = () if periods is None or time_label is None else period_names(periods, time_label)
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


def among_rows(problem: Problem) -> tuple[Problem, tuple[Split, ...]]:
    """Return the same rows, which stand in an order of content, with every fifth left out in turn.

    That is random cross-validation.
    """
    rows = problem.rows
    n_folds = min(FOLDS, len(rows))
    fold = np.arange(len(rows)) % n_folds
    splits = tuple(
        Split(np.arange(n_folds) != k, (Left(np.arange(n_folds) == k, k, f"random fold {k + 1}"),))
        for k in range(n_folds)
    )
    training = partial(_training_of_rows, rows, fold, problem.n_outputs)
    return Problem(training, replace(rows, cell=fold), problem.n_outputs, n_folds), splits


def _training_of_rows(
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


def period_names(periods: Periods, label: Callable[[float], str]) -> tuple[str, ...]:
    """What to call each period: by its first and last time."""
    ends = zip(periods.lower, periods.upper, strict=True)
    return tuple(label(a) if a == b else f"{label(a)} to {label(b)}" for a, b in ends)


def _totals(rows: Rows) -> FloatArray:
    """Sums of (1, x, time, y)."""
    Z = np.column_stack([rows.X, np.nan_to_num(time_and_level(rows)[0]), rows.y])
    return np.append(rows.weight.sum(), rows.weight @ Z)


@dataclass(frozen=True)
class _Times:
    """Distinct times, sorted, and the weight of each; of too ``many`` the first and the last."""

    value: FloatArray
    weight: FloatArray
    many: bool = False

    def __add__(self, other: _Times) -> _Times:
        value = np.concatenate([self.value, other.value])
        weight = np.concatenate([self.weight, other.weight])
        return _distinct(value, weight, self.many or other.many)


def _distinct(time: FloatArray, weight: FloatArray, many: bool = False) -> _Times:
    value, place = np.unique(time, return_inverse=True)
    weight = np.bincount(place, weight, len(value)).astype(np.float64)
    # Bins have one edge more than there are bins.
    if many or len(value) > MOST_TIMES + 1:
        return _Times(value[[0, -1]], weight[[0, -1]], True)
    return _Times(value, weight)


def _times(rows: Rows, ends: tuple[float, float] | None = None) -> _Times:
    """Times of a block as they are, or in bins between two ends."""
    time = time_and_level(rows)[0]
    held = ~np.isnan(time)
    time = time[held]
    if ends is not None:
        low, high = ends
        bins = np.ceil((time - low) / (high - low) * MOST_TIMES)
        time = low + bins / MOST_TIMES * (high - low)
    return _distinct(time, rows.weight[held])


def _periods(source: RowSource) -> Periods:
    times = source.sum(_times)
    if times.many or len(times.value) > MOST_TIMES:
        ends = float(times.value[0]), float(times.value[-1])
        times = source.sum(partial(_times, ends=ends))
    return merge_periods(times.value, times.weight)


def _level_sums(rows: Rows, n_levels: int, centre: FloatArray, scale: FloatArray) -> FloatArray:
    """(L, 4) sums by level: weight, y, y^2, and the squared length of x."""
    level = time_and_level(rows)[1]
    held = level >= 0
    z = (np.column_stack([rows.X, rows.y]) - centre) / scale
    of = np.column_stack([np.ones(len(z)), z[:, -1], z[:, -1] ** 2, (z[:, :-1] ** 2).sum(1)])
    of = (of * rows.weight[:, None])[held]
    return np.column_stack([np.bincount(level[held], column, n_levels) for column in of.T])


def _squares(rows: Rows, centre: FloatArray) -> FloatArray:
    squares: FloatArray = rows.weight @ (np.column_stack([rows.X, rows.y]) - centre) ** 2
    return squares


def _sites(source: RowSource, names: Sequence[str], centre: FloatArray) -> Sites:
    centre = np.delete(centre, -2)  # time is no content of a site
    square = source.sum(partial(_squares, centre=centre))
    scale = np.where(square > 0, np.sqrt(square / max(source.n_rows, 1)), 1.0)
    sums = source.sum(partial(_level_sums, n_levels=len(names), centre=centre, scale=scale))
    weight = sums[:, 0]
    content = sums[:, 1:] / np.maximum(weight, 1e-300)[:, None]
    return group_sites(list(names), weight, content)


def _rows_at_hand(source: RowSource, layout: Layout) -> SampleRows:
    """All rows, or as many as the budget holds, in an order of content; copies merged."""
    rows = source.sample(MOST_ROWS, 0)
    n = len(rows)
    time, level = time_and_level(rows)
    cell = layout.cells(time, level)
    order, columns = content_order(rows.X, rows.y, time, rows.weight, level)
    order = order[np.argsort(cell[order], kind="stable")]
    X, y, weight = rows.X[order], rows.y[order], rows.weight[order]
    time, level, cell = time[order], level[order], cell[order]
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
