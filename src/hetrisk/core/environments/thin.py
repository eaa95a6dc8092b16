"""Thin and many environments, merged until each holds enough rows for a regression of its own.

Levels with an order (dates, numbers) are merged with their neighbours. Labels have no order, so
they are given one: by the direction in which their regressions differ most. With r the residuals
of the pooled regression, s_j = sum of (1, x) r over the rows of level j is zero in the mean where
all levels are alike; u is the leading direction of the s_j beyond noise, and level j stands at
u's_j / n_j. Sorted and judged by the same rows, levels would be parted by their noise, and differ
where nothing does. So each half of the rows is sorted by where the other half puts its level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.floors import NEARLY_SINGULAR, TINY
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray, IntArray

# Rows for each coefficient that environments must hold on average, or they are merged. Half of it
# lets the worst of many small environments be a matter of chance.
ROWS_A_COEFFICIENT = 20.0
# Rows a coefficient below which a fit has more variance than the noise: such levels are joined.
LEAST_ROWS = 2.0
MOST_MERGED: Budget[int] = 8  # environments made by merging


@dataclass(frozen=True)
class Merged:
    """Where rows go: ``lookup`` (2, J) is the environment of level j for either half of its rows.

    -1 is none. ``count`` environments, each a list of levels; ``merged`` says whether levels as
    they came are no longer told apart.
    """

    lookup: IntArray
    count: int
    merged: bool

    def environment(self, codes: IntArray, halves: IntArray) -> IntArray:
        """(n,) environment of each row, from its level (-1 for none) and its half, 0 or 1."""
        known = np.where(codes >= 0, self.lookup[halves, np.maximum(codes, 0)], -1)
        return np.asarray(known, dtype=np.int64)

    def names(self, levels: tuple[str, ...]) -> tuple[str, ...]:
        """Names of the environments, from those of the levels."""
        return tuple(
            _called([n for n, k in zip(levels, self.lookup[0], strict=True) if k == e])
            for e in range(self.count)
        )


def kept(sums: FloatArray, n_targets: int) -> Merged | None:
    """Levels as they are, those too thin together; None where most are: they must be merged.

    ``sums`` (J, q, q) are those of z z' over the rows of each level, z = (1, x, y).
    """
    rows, p = sums[:, 0, 0], sums.shape[-1] - n_targets
    if rows.sum() < ROWS_A_COEFFICIENT * p * max(int((rows > 0).sum()), 1):
        return None
    return _thin_together(rows, LEAST_ROWS * p)


def merge(halves: FloatArray, n_targets: int, ordered: bool) -> Merged:
    """Merge levels until they hold enough rows.

    Parameters
    ----------
    halves : (2, J, q, q) sums of z z' of either half of the rows of each level, z = (1, x, y);
        (1, J, q, q) of all of them will do where levels are ordered.
    n_targets : of the last columns of z.
    ordered : whether levels j and j + 1 are neighbours.
    """
    rows = halves[:, :, 0, 0].sum(axis=0)
    p = halves.shape[-1] - n_targets
    # Tests hold their level from four rows a coefficient on: fewer cannot be compared.
    least = 2 if rows.sum() >= 4.0 * LEAST_ROWS * p else 1
    count = int(np.clip(rows.sum() / (ROWS_A_COEFFICIENT * p), least, MOST_MERGED))
    if ordered:
        lookup = np.tile(_cut(rows, count), (2, 1))
    else:
        by_other = _positions(halves, n_targets)[::-1]
        lookup = np.stack([_cut_sorted(rows, at, count) for at in by_other])
    return Merged(lookup, int(lookup.max()) + 1, True)


def _thin_together(rows: FloatArray, least: float) -> Merged:
    """Levels as they are; those too thin are one, or none if they are thin together."""
    thin = rows < least
    together = int((~thin).sum()) if rows[thin].sum() >= least else -1
    lookup = np.where(thin, together, np.cumsum(~thin) - 1)
    return Merged(np.tile(lookup, (2, 1)), int(lookup.max()) + 1, bool(thin.any()))


def _cut(rows: FloatArray, count: int) -> IntArray:
    """Cut levels in order into runs of much the same number of rows."""
    middle = np.cumsum(rows) - rows / 2.0
    group = np.minimum((count * middle / max(rows.sum(), TINY)).astype(np.int64), count - 1)
    # A run without a level has no number.
    return np.unique(group, return_inverse=True)[1].astype(np.int64)


def _cut_sorted(rows: FloatArray, position: FloatArray, count: int) -> IntArray:
    order = np.argsort(position, kind="stable")
    lookup = np.empty(len(rows), dtype=np.int64)
    lookup[order] = _cut(rows[order], count)
    return lookup


def _positions(halves: FloatArray, n_targets: int) -> FloatArray:
    """(2, J) where either half of its rows puts each level."""
    p = halves.shape[-1] - n_targets
    pooled = halves.sum(axis=(0, 1))
    own = pooled[:p, :p] + NEARLY_SINGULAR * pooled[0, 0] * np.eye(p)
    coef = np.linalg.solve(own, pooled[:p, p:])
    score = halves[:, :, :p, p:] - halves[:, :, :p, :p] @ coef
    # In units of their noise, all directions alike where nothing differs.
    whitened = np.linalg.solve(np.linalg.cholesky(own / pooled[0, 0]), score)
    flat = whitened.reshape(2, halves.shape[1], -1)
    rows = halves[:, :, 0, 0]
    between = np.einsum("hji,hjk->hik", flat, flat) - rows.sum(axis=1)[:, None, None] * np.eye(
        flat.shape[-1]
    ) * ((pooled[p:, p:] - pooled[:p, p:].T @ coef).trace() / pooled[0, 0])
    direction = np.linalg.eigh(between)[1][:, :, -1]
    # Both halves look the same way; which one is of no consequence, but must not be chance.
    direction[1] *= 1.0 if direction[0] @ direction[1] >= 0 else -1.0
    position = np.einsum("hji,hi->hj", flat, direction) / np.maximum(rows, 1.0)
    farthest = position[0, np.abs(position[0]).argmax()]
    return np.asarray(position if farthest >= 0 else -position, dtype=np.float64)


def _called(levels: list[str]) -> str:
    """What to call several levels together."""
    shown, more = ", ".join(levels[:2]), len(levels) - 2
    return f"{shown} and {more} more" if more > 0 else shown
