"""Environments that a column may go along with: a date, a site, a batch, a region.

A hint is never a feature. Each proposes partitions by its kind:

* category: its levels, the thin ones together; with many thin levels, a few kinds of them;
* number: up to six intervals that hold as many rows each, and two halves (a slow drift shows
  best between the ends, a break in one place);
* date: the same along time, and seasons: quarters of the year, working days and weekends.

Rows whose hint is missing are a level of their own where there are enough of them.
"""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.cells import FOLDS, Assignment, CellMoments, cell_moments
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray, IntArray, RowSource
from hetrisk.core.result import HintColumn
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
from hetrisk.core.sources.proposal import HINTED, Proposal, proposed

FINE: Budget[int] = 48  # intervals of a number that neighbours are merged from
QUANTILE_ROWS: Budget[int] = 50_000  # rows that quantiles are taken from
QUARTERS = ("December to February", "March to May", "June to August", "September to November")
WEEK = ("Monday to Friday", "Saturday and Sunday")


def hinted(rows: RowSource, family: Family, groups: IntArray, column: HintColumn) -> list[Proposal]:
    """Partitions along one hint."""
    position = column.position
    if column.kind == "category":
        return _along_levels(rows, family, groups, column)
    sample = rows.sample(QUANTILE_ROWS, 0).hints
    assert sample is not None
    values = sample[:, position]
    known = values[~np.isnan(values)]
    if len(np.unique(known)) < 2:
        return []
    found = _along_values(rows, family, column, position, known)
    if column.kind == "date":
        found += _seasons(rows, family, column, position, known)
    return found


def _along_levels(
    rows: RowSource, family: Family, groups: IntArray, column: HintColumn
) -> list[Proposal]:
    """The levels of a category, or kinds of them."""
    names = (*column.levels, *(("missing",) if column.missing else ()))
    width = rows.n_features + 1 + family.n_targets
    if len(names) < 2 or 2 * len(names) * width**2 > MOST_CELLS:
        return []
    base = Levels(column.position, len(column.levels), column.missing)
    cells = cell_moments(rows, family, base, n_folds(len(names)))
    found: list[Proposal] = []
    for merged in merge_unordered(cells, names, family.n_targets, groups):
        many = merged.names and merged.names[0].startswith("kind ")
        how = (
            f"{len(names)} levels in {len(merged.names)} kinds{merged.by}" if many else "its levels"
        )
        how += merged.in_none(names)
        found += _if_any(proposed(column.name, HINTED, how, base, merged, cells))
    return found


def _along_values(
    rows: RowSource, family: Family, column: HintColumn, position: int, known: FloatArray
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
    rows: RowSource, family: Family, column: HintColumn, position: int, known: FloatArray
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
    column: HintColumn,
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
