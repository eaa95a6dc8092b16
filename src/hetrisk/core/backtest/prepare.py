"""From rows to the problem of a backtest: periods, sites, cells, their moments, rows at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hetrisk.core.backtest.cells import CellPass, cell_moments, time_and_level, with_time
from hetrisk.core.backtest.content import content_order
from hetrisk.core.backtest.cuts import (
    FOLDS,
    Layout,
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
from hetrisk.core.numerics.rows import BoolArray, IntArray, Rows, RowSource

MOST_ROWS: Budget[int] = 50_000  # at hand for candidates that need rows, and to judge on


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
    sample = source.sample(MOST_ROWS, 0)
    # What is judged are the rows at hand: they say what is thin.
    periods = None if time_label is None else _periods(sample)
    sites = _sites(sample, level_names) if level_names else None
    layout = Layout(periods, sites)
    cells = source.sum(CellPass(layout, with_time(sample).mean(axis=0)))
    rows = _at_hand(sample, layout)
    names = () if periods is None or time_label is None else period_names(periods, time_label)
    splits = plan(layout, cells.weight, names, gap)
    training = partial(_training, cells, layout.period, rows, n_outputs)
    return Prepared(Problem(training, rows, n_outputs, layout.n_cells), splits, layout)


def _training(
    cells: Moments, period: IntArray, rows: SampleRows, n_outputs: int, chosen: BoolArray
) -> Training:
    """Return the training on some cells."""
    kind = NumbersTraining if n_outputs == 1 else LabelsTraining
    some = Moments(
        np.where(chosen, cells.weight, 0.0),
        np.where(chosen[:, None], cells.mean, 0.0),
        np.where(chosen[:, None, None], cells.scatter, 0.0),
    )
    return kind(some, period, rows.take(chosen[rows.cell]), n_outputs)


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
    Z = np.column_stack([kept.X, np.nan_to_num(kept.time), kept.y])
    centre = Z.mean(axis=0)
    cells = cell_moments(Z - centre, kept.weight, kept.cell, 1, centre)
    return _training(cells, np.zeros(1, dtype=np.int64), kept, n_outputs, np.ones(1, dtype=bool))


def period_names(periods: Periods, label: Callable[[float], str]) -> tuple[str, ...]:
    """What to call each period: by its first and last time."""
    ends = zip(periods.lower, periods.upper, strict=True)
    return tuple(label(a) if a == b else f"{label(a)} to {label(b)}" for a, b in ends)


def _periods(rows: Rows) -> Periods:
    time, held = time_and_level(rows)[0], rows.weight > 0
    value, place = np.unique(time[held], return_inverse=True)
    weight = np.bincount(place, rows.weight[held], len(value)).astype(np.float64)
    return merge_periods(value, weight)


def _sites(rows: Rows, names: Sequence[str]) -> Sites:
    level, w = time_and_level(rows)[1], rows.weight
    Z = np.column_stack([rows.X, rows.y])
    Z = Z - w @ Z / w.sum()
    spread = np.sqrt(w @ Z**2 / w.sum())
    z = Z / np.where(spread > 0, spread, 1.0)
    of = np.column_stack([np.ones(len(z)), z[:, -1], z[:, -1] ** 2, (z[:, :-1] ** 2).sum(axis=1)])
    held = level >= 0
    of, level = (of * w[:, None])[held], level[held]
    sums = np.column_stack([np.bincount(level, column, len(names)) for column in of.T])
    weight = sums[:, 0].astype(np.float64)
    return group_sites(list(names), weight, sums[:, 1:] / np.maximum(weight, 1e-300)[:, None])


def _at_hand(rows: Rows, layout: Layout) -> SampleRows:
    """Rows in an order of content; copies merged."""
    time, level = time_and_level(rows)
    cell = layout.cells(time, level)
    order, columns = content_order(rows.X, rows.y, time, rows.weight, level)
    order = order[np.argsort(cell[order], kind="stable")]
    held = SampleRows(rows.X, time, rows.y, rows.weight, cell, level, columns).take(order)
    z = np.column_stack([held.X, np.nan_to_num(held.time), held.y, held.level, held.cell])
    first = np.flatnonzero(np.append(True, (z[1:] != z[:-1]).any(axis=1)))
    weight = np.add.reduceat(held.weight, first)
    return replace(held.take(first), weight=weight).take(weight > 0)
