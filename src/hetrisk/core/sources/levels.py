"""Environments from what rows carry: labels, categories, numbers, dates.

Such a partition is not made from y, so its environments can be tested by ordinary inference. What
has to be decided is how fine it may be: each environment is judged by a regression of its own,
and the worst of many noisy regressions is always bad. On average an environment must hold some
rows for each coefficient (`LevelThresholds`): a coarse partition knows its regressions well, a
finer one mixes fewer of them, and both are proposed. Where there are more environments than either
allows,

* levels with an order (years, quantiles of a number) are merged with their neighbours;
* levels without one (hundreds of sites) fall into a few *kinds*: a mixture of regressions in which
  all rows of a level share their component (`hetrisk.core.mixture.kinds`), of y on the columns or,
  where some columns are effects of y, of those on y. A level is assigned by one half of its rows
  and judged by the other, so that kinds, too, are not made from the y they are judged by.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hetrisk.core.mixture.kinds import assign_kinds
from hetrisk.core.numerics.cells import FOLDS, Assignment, CellMoments
from hetrisk.core.numerics.floors import EXACT, TINY
from hetrisk.core.numerics.named_numbers import Budget, derived, measured, threshold
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows
from hetrisk.core.reach.effects import effects_within, reversed_moments

MANY_LEVELS: Budget[int] = 60  # levels beyond which the folds are made of whole levels
MOST_CELLS: Budget[float] = 5e6  # numbers in the moments of all levels: merging takes ten times
NAMED: Budget[int] = 2  # levels that the name of several together mentions


@dataclass(frozen=True)
class LevelThresholds:
    """How fine a partition by what rows carry may be."""

    coarse: float = threshold(
        30.0,
        "rows for each coefficient that environments hold on average; if less, they are merged",
        measured("[reach](research/reach.md), thin environments"),
    )
    fine: float = threshold(
        20.0,
        "the same of a second, finer partition of labels or levels",
        measured("[reach](research/reach.md), coarse and fine"),
    )
    least_rows_a_coefficient: float = threshold(
        2.0,
        "rows a coefficient below which an environment fits its own noise",
        derived("the variance of its fit is then more than twice that of the noise"),
    )
    most_bins: int = threshold(
        6,
        "intervals of a number or of time",
        measured("[reach](research/reach.md), thin environments"),
    )
    season_days: float = threshold(
        330.0,
        "days that dates must span before quarters of the year are looked at",
        derived("each quarter is then there, all but whole"),
    )


LEVEL_THRESHOLDS: Final = LevelThresholds()


@dataclass(frozen=True)
class Carried(Assignment):
    """Environments as the rows carry them: (n, K) responsibilities."""

    count: int

    @property
    def n_environments(self) -> int:
        """Number of environments."""
        return self.count

    def codes(self, rows: Rows) -> IntArray:
        """(n,) the environment with the largest share."""
        assert rows.environments is not None
        codes: IntArray = rows.environments.argmax(axis=1)
        return codes

    def shares(self, rows: Rows) -> FloatArray | None:
        """(n, K) responsibilities, or None where each row belongs to one environment."""
        shares = rows.environments
        assert shares is not None
        return None if np.all((shares == 0.0) | (shares == 1.0)) else shares


@dataclass(frozen=True)
class Levels(Assignment):
    """Environments from the codes 0, 1, ... in a side column; rows without one come last.

    Attributes
    ----------
    column : of the side columns.
    count : levels, the missing one not among them.
    missing : whether rows without a value are a level of their own.
    """

    column: int
    count: int
    missing: bool = False

    @property
    def n_environments(self) -> int:
        """Number of levels."""
        return self.count + int(self.missing)

    def codes(self, rows: Rows) -> IntArray:
        """(n,) level of each row."""
        assert rows.aside is not None
        return self._coded(rows.aside[:, self.column])

    def _coded(self, values: FloatArray) -> IntArray:
        known = ~np.isnan(values)
        if known.all():
            return self._levels(values)
        codes = np.full(len(values), self.count if self.missing else -1, dtype=np.int64)
        codes[known] = self._levels(values[known])
        return codes

    def _levels(self, values: FloatArray) -> IntArray:
        return values.astype(np.int64)


@dataclass(frozen=True)
class Intervals(Levels):
    """Environments from a number in a side column: which of the intervals it falls into."""

    cuts: tuple[float, ...] = ()

    def _levels(self, values: FloatArray) -> IntArray:
        level: IntArray = np.searchsorted(np.array(self.cuts), values, side="left")
        return level


@dataclass(frozen=True)
class Months(Levels):
    """Environments from days since 1970 in a side column: the month of the year."""

    def _levels(self, values: FloatArray) -> IntArray:
        days = np.floor(values).astype("datetime64[D]")
        month: IntArray = days.astype("datetime64[M]").astype(np.int64) % 12
        return month


@dataclass(frozen=True)
class Weekdays(Levels):
    """Environments from days since 1970 in a side column: Monday 0 to Sunday 6."""

    def _levels(self, values: FloatArray) -> IntArray:
        weekday: IntArray = (np.floor(values).astype(np.int64) + 3) % 7
        return weekday


def n_folds(n_levels: int) -> int:
    """Folds of the rows in one pass: ten, or two halves where levels are many."""
    return FOLDS if n_levels <= MANY_LEVELS else 2


def merge_neighbours(cells: CellMoments, names: tuple[str, ...], most: int) -> list[Merged]:
    """`merge_ordered`, coarse and fine, where that makes a difference."""
    coarse = merge_ordered(cells, names, most)
    fine = merge_ordered(cells, names, most, LEVEL_THRESHOLDS.fine)
    return [coarse] if len(fine.names) == len(coarse.names) else [coarse, fine]


def merge_ordered(
    cells: CellMoments,
    names: tuple[str, ...],
    most: int,
    rows_a_coefficient: float = LEVEL_THRESHOLDS.coarse,
) -> Merged:
    """Merge neighbouring levels until there are at most ``most``, of much the same size."""
    rows = cells.effective_rows
    allowed = min(most, _most_environments(cells, rows_a_coefficient))
    if int((rows > 0).sum()) <= allowed and rows[rows > 0].min() >= _least_rows(cells):
        return Merged(cells, np.arange(len(rows)), names)
    # Equal shares of the rows: the noise of the smallest environment decides how fine is too fine.
    wanted = rows.sum() / max(allowed, 1)
    group, held, groups = 0, 0.0, []
    for n in rows:
        # Start the next group where that leaves this one nearer to its share.
        if held > 0 and held + n / 2 > wanted and group < allowed - 1:
            group, held = group + 1, 0.0
        groups.append(group)
        held += n
    if held < _least_rows(cells):
        # What is left over at the end, as of a year that has just begun, goes with those before it.
        groups = [min(g, max(group - 1, 0)) for g in groups]
    return _merged(cells, np.array(groups), _span_names(names, groups))


@dataclass(frozen=True)
class Merged:
    """Levels merged into environments.

    Attributes
    ----------
    cells : (K, F) their moments.
    lookup : (J,) environment of each level; -1 for a level in none.
    names : of the environments.
    by : what kinds of levels are told apart by, if not by the regression of the target.
    kinds : (2, J) kind of each level by either half of its rows, where levels fall into kinds;
        ``lookup`` is then the first.
    """

    cells: CellMoments
    lookup: IntArray
    names: tuple[str, ...]
    by: str = ""
    kinds: IntArray | None = None

    @property
    def fine(self) -> bool:
        """Whether environments hold fewer rows a coefficient than those of a coarse partition."""
        return len(self.names) > _most_environments(self.cells, LEVEL_THRESHOLDS.coarse)

    def of(self, levels: CellMoments) -> CellMoments:
        """(K, F) the same environments made of other moments of the levels."""
        if self.kinds is not None:
            return _judged(levels, self.kinds, len(self.names))
        return _summed(levels, self.lookup, len(self.names))

    def in_none(self, levels: tuple[str, ...]) -> str:
        """Say which of the levels are too thin to belong to any environment."""
        thin = [name for name, own in zip(levels, self.lookup, strict=False) if own < 0]
        return f"; in none, for want of rows: {_listed(thin)}" if thin else ""


def merge_unordered(
    cells: CellMoments, names: tuple[str, ...], n_targets: int, groups: IntArray
) -> list[Merged]:
    """Levels as they are, where they are few; else kinds, and levels where a fine partition may."""
    coarse = _as_they_are(cells, names, LEVEL_THRESHOLDS.coarse)
    if coarse is not None:
        return [coarse]
    fine = _as_they_are(cells, names, LEVEL_THRESHOLDS.fine)
    return [*_all_kinds(cells, names, n_targets, groups), *([] if fine is None else [fine])]


def _as_they_are(
    cells: CellMoments, names: tuple[str, ...], rows_a_coefficient: float
) -> Merged | None:
    """Levels as they are, the thin ones together; None where they are too many, or all too thin."""
    rows = cells.effective_rows
    least = _least_rows(cells)
    large = int((rows >= least).sum())
    few = large <= _most_environments(cells, rows_a_coefficient) and len(rows) <= MANY_LEVELS
    if not few or (large == 0 and rows.sum() >= 2 * least):
        return None
    thin, lookup = _thin_together(cells)
    kept = [name for name, small in zip(names, thin, strict=True) if not small]
    others = [names[j] for j in np.argsort(-rows, kind="stable") if thin[j]]
    together = (lookup[thin] >= 0).any()
    merged = tuple(kept) + ((f"all others{_holding(others)}",) if together else ())
    return _merged(cells, lookup, merged)


def each_by_itself(cells: CellMoments) -> CellMoments | None:
    """Levels that are not merged, but for the thin ones; None where they are too many, or one."""
    if len(cells.weight) > MANY_LEVELS:
        return None
    _, lookup = _thin_together(cells)
    count = int(lookup.max(initial=-1)) + 1
    return _summed(cells, lookup, count) if count > 1 else None


def _thin_together(cells: CellMoments) -> tuple[BoolArray, IntArray]:
    """(J,) levels too thin for an environment, and the place of each: the thin ones share one.

    If they are few even together, they are in none (-1).
    """
    rows, least = cells.effective_rows, _least_rows(cells)
    thin = rows < least
    together = int((~thin).sum()) if float(rows[thin].sum()) >= least else -1
    return thin, np.where(thin, together, np.cumsum(~thin) - 1)


def _all_kinds(
    cells: CellMoments, names: tuple[str, ...], n_targets: int, groups: IntArray
) -> list[Merged]:
    """Kinds of levels by the regression of the target, and by its effects where it has some."""
    kinds = [_kinds(cells, names, cells, n_targets)]
    effects = np.flatnonzero(effects_within(cells, groups))
    if len(effects):
        # How effects follow y takes few coefficients: thin levels are told apart by it more surely.
        told = _in_units_of_noise(reversed_moments(cells, n_targets, effects), len(effects))
        by_effects = _kinds(cells, names, told, len(effects))
        kinds.append(replace(by_effects, by=", by how effects follow from the target"))
    return kinds


def _in_units_of_noise(cells: CellMoments, n_targets: int) -> CellMoments:
    """Moments in which the noise of every target, given the columns, has size one."""
    p = cells.gram.shape[-1] - n_targets
    gram = cells.gram.sum(axis=(0, 1)) / cells.weight.sum()
    cross = gram[:p, p:]
    explained = np.einsum("ij,ij->j", cross, np.linalg.pinv(gram[:p, :p], hermitian=True) @ cross)
    own = np.diag(gram)[p:]
    variance = np.maximum(own - explained, EXACT * own + TINY)
    scale = np.concatenate([np.ones(p), 1.0 / np.sqrt(variance)])
    return CellMoments(cells.weight, cells.square, cells.gram * scale[:, None] * scale)


def _kinds(cells: CellMoments, names: tuple[str, ...], told: CellMoments, n_targets: int) -> Merged:
    """A few kinds of levels, each level assigned by one half of its rows, judged by the other.

    ``told`` are the moments of the regression, of ``n_targets``, by which kinds are told apart.
    """
    # Assigned and judged by the same rows, levels would be sorted by their noise, and kinds differ
    # where nothing does.
    half = np.arange(cells.weight.shape[1]) % 2
    kinds = assign_kinds([told.merged_folds(half == side) for side in (0, 1)], n_targets)
    K = int(kinds.max()) + 1
    merged, held = _judged(cells, kinds, K), cells.effective_rows
    members = [np.flatnonzero(kinds[0] == k) for k in range(K)]
    by_size = [own[np.argsort(-held[own], kind="stable")] for own in members]
    # Of levels of a row or two next to none may fall into a kind.
    stay = merged.effective_rows >= _least_rows(cells)
    if not stay.any():
        return _merged(cells, np.zeros(len(names), dtype=np.int64), ("all",))
    own = np.where(stay, np.cumsum(stay) - 1, -1)[kinds]
    named = tuple(
        f"kind {n}{_holding([names[j] for j in by_size[k]])}"
        for n, k in enumerate(np.flatnonzero(stay), start=1)
    )
    return Merged(merged.some(stay), own[0], named, kinds=own)


def _judged(cells: CellMoments, kinds: IntArray, K: int) -> CellMoments:
    """(K, F) moments of kinds: each half of the rows in the kinds (2, J) that the other found."""
    half = np.arange(cells.weight.shape[1]) % 2
    # A fold holds whole levels: rows of one level may be alike in more than x and y.
    fold = np.arange(kinds.shape[1]) % (FOLDS // 2)
    parts = []
    for own, side in zip(kinds, (1, 0), strict=True):
        judged = cells.merged_folds(half == side)
        for f in range(FOLDS // 2):
            parts.append(_summed(judged, np.where(fold == f, own, -1), K))
    return CellMoments.concatenated(parts, axis=1)


def _holding(levels: list[str]) -> str:
    """Which levels an environment holds, the largest first: ``(Ohio, Texas and 14 more)``."""
    return f" ({_listed(levels)})" if levels else ""


def _listed(levels: list[str]) -> str:
    shown, more = ", ".join(levels[:NAMED]), len(levels) - NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _merged(cells: CellMoments, lookup: IntArray, names: tuple[str, ...]) -> Merged:
    return Merged(_summed(cells, lookup, len(names)), lookup, names)


def _summed(cells: CellMoments, lookup: IntArray, K: int) -> CellMoments:
    """Sum levels into the environments (J,) that they belong to; -1 is none."""
    into = np.zeros((len(lookup), K))
    held = lookup >= 0
    into[np.flatnonzero(held), lookup[held]] = 1.0
    return cells.merged(into)


def _most_environments(cells: CellMoments, rows_a_coefficient: float) -> int:
    """As many as leave enough rows a coefficient on average; at least two may be compared."""
    coefficients = cells.gram.shape[-1] - 1
    return max(2, int(cells.effective_rows.sum() / (rows_a_coefficient * coefficients)))


def _least_rows(cells: CellMoments) -> float:
    return LEVEL_THRESHOLDS.least_rows_a_coefficient * float(cells.gram.shape[-1] - 1)


def _span_names(names: tuple[str, ...], groups: list[int]) -> tuple[str, ...]:
    """Merged neighbours by the first and the last of them."""
    spans = []
    for g in sorted(set(groups)):
        members = [name for name, own in zip(names, groups, strict=True) if own == g]
        # A member may be a span itself.
        first, last = members[0].partition(" to ")[0], members[-1].rpartition(" to ")[2]
        spans.append(members[0] if len(members) == 1 else f"{first} to {last}")
    return tuple(spans)
