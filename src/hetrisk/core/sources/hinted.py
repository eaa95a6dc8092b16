"""Environments that a column may go along with: a date, a site, a batch, a region.

A hint is never a feature. Each proposes partitions by its kind:

* category: its levels, the thin ones together; with many thin levels, a few kinds of them; of more
  levels than there is memory for, those with the most rows;
* number: up to six intervals that hold as many rows each, and two halves (a slow drift shows
  best between the ends, a break in one place);
* date: the same along time, and seasons: quarters of the year, working days and weekends.

Rows whose hint is missing are a level of their own where there are enough of them; beside a single
value of whatever kind, they are the other of two levels.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from hetrisk.core.numerics.cells import FOLDS, Assignment, CellMoments, cell_moments
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray, IntArray, Rows, RowSource
from hetrisk.core.result import SideColumn
from hetrisk.core.sources.levels import (
    LEVEL_THRESHOLDS,
    MOST_CELLS,
    Intervals,
    Levels,
    Merged,
    Months,
    Weekdays,
    merge_ordered,
    merge_unordered,
    n_folds,
)
from hetrisk.core.sources.proposal import HINTED, Grouped, Proposal, proposed

FINE: Budget[int] = 48  # intervals of a number that neighbours are merged from
QUANTILE_ROWS: Budget[int] = 50_000  # rows that quantiles are taken from
QUARTERS = ("December to February", "March to May", "June to August", "September to November")
WEEK = ("Monday to Friday", "Saturday and Sunday")


def hinted(rows: RowSource, family: Family, groups: IntArray, column: SideColumn) -> list[Proposal]:
    """Partitions along one hint."""
    position = column.position
    if column.kind == "category":
        base = Levels(position, len(column.levels), column.missing)
        return _along_levels(rows, family, groups, column, base, column.levels)
    sample = rows.sample(QUANTILE_ROWS, 0).aside
    assert sample is not None
    values = sample[:, position]
    known = values[~np.isnan(values)]
    if not len(known):
        return []
    if len(np.unique(known)) < 2:
        only = _interval_names(np.empty(0), known, column.kind)
        return _along_levels(
            rows, family, groups, column, Intervals(position, 1, column.missing), only
        )
    found = _along_values(rows, family, column, position, known)
    if column.kind == "date":
        found += _seasons(rows, family, column, position, known)
    return found


def _along_levels(
    rows: RowSource,
    family: Family,
    groups: IntArray,
    column: SideColumn,
    levels: Levels,
    known: tuple[str, ...],
) -> list[Proposal]:
    """The levels of a category, or kinds of them; ``known`` are the names of those not missing."""
    names = (*known, *(("missing",) if column.missing else ()))
    width = rows.n_features + 1 + family.n_targets
    most = int(MOST_CELLS / (2 * width**2))
    if min(len(names), most) < 2:
        return []
    base: Assignment = levels
    if len(names) > most:
        chosen = _largest(rows, levels, most)
        base, names = _some(levels, chosen), tuple(names[j] for j in chosen)
    others = "; those with fewer rows in none" if column.further or base is not levels else ""
    cells = cell_moments(rows, family, base, n_folds(len(names)))
    found: list[Proposal] = []
    for merged in merge_unordered(cells, names, family.n_targets, groups):
        many = merged.names and merged.names[0].startswith("kind ")
        how = (
            f"{len(names)} levels in {len(merged.names)} kinds{merged.by}" if many else "its levels"
        )
        how += merged.in_none(names) + others
        found += _if_any(proposed(column.name, HINTED, how, base, merged, cells))
    return found


def _largest(rows: RowSource, levels: Levels, most: int) -> IntArray:
    """The ``most`` levels with the most rows, in their order."""
    held = rows.sum(partial(_held, levels=levels))
    chosen: IntArray = np.sort(np.argsort(-held, kind="stable")[:most])
    return chosen


def _held(rows: Rows, levels: Levels) -> FloatArray:
    """(J,) weight of the rows of each level."""
    codes = levels.codes(rows)
    own = codes >= 0
    return np.bincount(codes[own], rows.weight[own], levels.n_environments).astype(np.float64)


def _some(levels: Levels, chosen: IntArray) -> Grouped:
    """The chosen levels; rows of the others are in none."""
    lookup = np.full(levels.n_environments, -1, dtype=np.int64)
    lookup[chosen] = np.arange(len(chosen))
    return Grouped(levels, tuple(lookup.tolist()), len(chosen))


def _along_values(
    rows: RowSource, family: Family, column: SideColumn, position: int, known: FloatArray
) -> list[Proposal]:
    """Intervals of a number or of time: several, and two halves."""
    distinct = np.unique(known)
    if len(distinct) <= FINE:
        cuts = (distinct[:-1] + distinct[1:]) / 2
    else:
        # Finer than will be used: neighbours are merged by rows that count, weights included.
        cuts = np.unique(np.quantile(known, np.linspace(0, 1, FINE + 1)[1:-1]))
    base = Intervals(position, len(cuts) + 1, column.missing, tuple(map(float, cuts)))
    cells = cell_moments(rows, family, base, FOLDS)
    names = _interval_names(cuts, known, column.kind)
    found: list[Proposal] = []
    for most in (LEVEL_THRESHOLDS.most_bins, 2):
        merged = _beside_missing(cells, names, most, column.missing)
        how = f"{len(merged.names)} intervals"
        if not any(len(merged.names) == len(other.names) for other in found):
            found += _if_any(proposed(column.name, HINTED, how, base, merged, cells))
    return found


def _seasons(
    rows: RowSource, family: Family, column: SideColumn, position: int, known: FloatArray
) -> list[Proposal]:
    """Quarters of the year, where dates span one; working days and weekends."""
    found = []
    if np.ptp(known) >= LEVEL_THRESHOLDS.season_days:
        quarter = (np.arange(12) + 1) % 12 // 3
        found += _seasonal(rows, family, column, Months(position, 12), quarter, QUARTERS)
    weekend = (np.arange(7) >= 5).astype(int)
    if len(np.unique((np.floor(known).astype(int) + 3) % 7)) == 7:
        found += _seasonal(rows, family, column, Weekdays(position, 7), weekend, WEEK)
    return found


def _seasonal(
    rows: RowSource,
    family: Family,
    column: SideColumn,
    base: Assignment,
    groups: np.ndarray,
    names: tuple[str, ...],
) -> list[Proposal]:
    """A partition by what recurs, where each part has rows enough."""
    cells = cell_moments(rows, family, base, FOLDS)
    into = np.zeros((len(groups), len(names)))
    into[np.arange(len(groups)), groups] = 1.0
    merged = Merged(cells.merged(into), groups, names)
    # Two rows a coefficient, as for any environment (`LevelThresholds`).
    enough = merged.cells.effective_rows.min() >= 2.0 * cells.gram.shape[-1]
    how = "seasons" if len(names) > 2 else "days of the week"
    return _if_any(proposed(column.name, HINTED, how, base, merged, cells)) if enough else []


def _beside_missing(cells: CellMoments, names: tuple[str, ...], most: int, missing: bool) -> Merged:
    """Merge neighbours; rows without a value stay apart, or in none where they are few."""
    if not missing:
        return merge_ordered(cells, names, most)
    valued = CellMoments(cells.weight[:-1], cells.square[:-1], cells.gram[:-1])
    merged = merge_ordered(valued, names, most)
    enough = cells.effective_rows[-1] >= merged.cells.effective_rows.min() / 2
    lookup = np.append(merged.lookup, len(merged.names) if enough else -1)
    if not enough:
        return Merged(merged.cells, lookup, merged.names)
    last = CellMoments(cells.weight[-1:], cells.square[-1:], cells.gram[-1:])
    both = CellMoments.concatenated([merged.cells, last], axis=0)
    return Merged(both, lookup, (*merged.names, "missing"))


def _if_any(proposal: Proposal) -> list[Proposal]:
    """A partition with one environment compares nothing."""
    return [proposal] if int(proposal.merged.cells.held.sum()) > 1 else []


def _interval_names(cuts: FloatArray, known: FloatArray, kind: str) -> tuple[str, ...]:
    """Intervals by the first and the last value that they hold."""

    def shown(value: float) -> str:
        if kind == "date":
            return str(np.datetime64(int(np.floor(value)), "D"))
        return f"{value:.4g}"

    distinct = np.unique(known)
    if len(distinct) == len(cuts) + 1:
        return tuple(shown(float(v)) for v in distinct)
    interval = np.searchsorted(cuts, distinct, side="left")
    ends = [
        distinct[interval == k][[0, -1]] if np.any(interval == k) else cuts[[k - 1, k - 1]]
        for k in range(len(cuts) + 1)
    ]
    return tuple(" to ".join(dict.fromkeys(map(shown, map(float, pair)))) for pair in ends)
