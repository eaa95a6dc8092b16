"""Second moments of rows in cells: an environment and a fold of the rows.

Everything that named or hinted environments are judged by (regret, its noise, resamples) follows
from the moments of (1, x, y) in each environment, split once more into folds of rows. One pass
over the rows makes them; afterwards no row is touched again. Rows are standardised before, so
plain sums of products keep their digits.

A fold is a pseudo-random function of a row's position in the table: the same rows fall into the
same folds in memory, on disk and on a cluster, whatever the blocks they arrive in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import ROUNDING
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.named_numbers import Budget, Constant
from hetrisk.core.numerics.rows import (
    BoolArray,
    FloatArray,
    IntArray,
    Rows,
    RowSource,
    Summed,
    wide_view,
)

# Of the rows: noise is measured between them, resamples are drawn from them.
FOLDS: Budget[int] = 10
# 2^64 over the golden ratio: neighbours fall far apart.
MULTIPLIER: Constant[np.uint64] = np.uint64(0x9E3779B97F4A7C15)


class Assignment(ABC):
    """Which environment each row belongs to, from what the row carries."""

    @property
    @abstractmethod
    def n_environments(self) -> int:
        """Number of environments."""

    @abstractmethod
    def codes(self, rows: Rows) -> IntArray:
        """(n,) environment of each row; -1 for rows that belong to none."""

    def shares(self, rows: Rows) -> FloatArray | None:
        """(n, K) responsibilities where rows may belong to several environments, else None."""
        return None


@dataclass(frozen=True)
class CellMoments(Summed):
    """Sums over the rows of J environments by F folds.

    Attributes
    ----------
    weight, square : (J, F) sums of the weights and of their squares.
    gram : (J, F, q, q) weighted sums of z z' with z = (1, x, y), q = 1 + d + t for t targets.
    """

    weight: FloatArray
    square: FloatArray
    gram: FloatArray

    @classmethod
    def concatenated(cls, parts: Sequence[CellMoments], axis: int) -> CellMoments:
        """Several of them side by side: environments (axis 0) or folds (axis 1)."""
        sums = ("weight", "square", "gram")
        return cls(*(np.concatenate([getattr(p, s) for p in parts], axis=axis) for s in sums))

    def merged(self, groups: FloatArray) -> CellMoments:
        """Sum environments into K groups: ``groups`` (J, K) are their shares in each."""
        q = self.gram.shape[-1]
        gram = np.tensordot(groups.T, self.gram.reshape(len(groups), -1), axes=1)
        shape = (groups.shape[1], *self.gram.shape[1:2], q, q)
        return CellMoments(groups.T @ self.weight, (groups**2).T @ self.square, gram.reshape(shape))

    def some(self, chosen: BoolArray) -> CellMoments:
        """The chosen environments."""
        return CellMoments(self.weight[chosen], self.square[chosen], self.gram[chosen])

    def merged_folds(self, chosen: BoolArray) -> CellMoments:
        """Sum the chosen folds into one."""
        return CellMoments(
            self.weight[:, chosen].sum(axis=1, keepdims=True),
            self.square[:, chosen].sum(axis=1, keepdims=True),
            self.gram[:, chosen].sum(axis=1, keepdims=True),
        )

    def moved(self, centre: FloatArray, divisor: FloatArray) -> CellMoments:
        """The moments of (x - centre) / divisor, y among the x; zero where the divisor is none."""
        # z = (1, x) becomes T z, and a sum of z z' becomes T (sum) T': rows are not read again.
        T = np.diag(np.append(1.0, 1.0 / divisor))
        T[1:, 0] = -centre / divisor
        return CellMoments(self.weight, self.square, T @ self.gram @ T.T)

    def moments(self, n_targets: int) -> Moments:
        """Moments of (x, y) in each environment, for one target."""
        if n_targets != 1:
            raise ValueError(f"n_targets must be 1; got {n_targets}.")
        weight, gram = self.weight.sum(axis=1), self.gram.sum(axis=1)
        mean = gram[:, 0, 1:] / np.where(weight > 0, weight, 1.0)[:, None]
        outer = weight[:, None, None] * mean[:, :, None] * mean[:, None, :]
        return Moments(weight, mean, gram[:, 1:, 1:] - outer)

    @property
    def held(self) -> BoolArray:
        """(J,) environments that hold rows, rounding aside."""
        weight = self.weight.sum(axis=1)
        held: BoolArray = weight > ROUNDING * weight.sum()
        return held

    @property
    def effective_rows(self) -> FloatArray:
        """(J,) rows of equal weight that would say as much (Kish)."""
        weight, square = self.weight.sum(axis=1), self.square.sum(axis=1)
        rows: FloatArray = np.divide(weight**2, square, out=np.zeros_like(weight), where=square > 0)
        return rows


def cell_moments(
    rows: RowSource, family: Family, assignment: Assignment, n_folds: int
) -> CellMoments:
    """Moments of every environment and fold, in one pass."""
    return rows.sum(CellPass(family, assignment, n_folds))


@dataclass(frozen=True)
class CellPass:
    """The moments of a block of rows; of z less a ``centre`` (q,), if there is one."""

    family: Family
    assignment: Assignment
    n_folds: int
    centre: FloatArray | None = None

    def __call__(self, rows: Rows) -> CellMoments:
        """Sum over the rows of every environment and fold."""
        return self.moments(rows, self.columns(rows))

    def columns(self, rows: Rows) -> FloatArray:
        """(n, q) z = (1, x, y), row after row whatever the order of the table."""
        targets = self.family.targets(rows.y)
        d, t = rows.X.shape[1], targets.shape[1]
        Z = np.empty((len(rows), 1 + d + t))
        Z[:, 0], Z[:, 1 : 1 + d], Z[:, 1 + d :] = 1.0, rows.X, targets
        return Z

    def moments(self, rows: Rows, Z: FloatArray) -> CellMoments:
        """The same where the `columns` are at hand; they are reused."""
        if self.centre is not None and self.centre.any():
            wide, n_wide = wide_view(Z)
            wide -= np.tile(self.centre, n_wide)
        fold = folds(rows, self.n_folds)
        n_cells = self.assignment.n_environments * self.n_folds
        shares = self.assignment.shares(rows)
        if shares is None:
            codes = self.assignment.codes(rows)
            cell = np.where(codes >= 0, codes * self.n_folds + fold, n_cells)
            return self._shaped(*_by_cell(Z, rows.weight, cell, n_cells))
        parts = [
            _by_cell(Z, rows.weight * share, k * self.n_folds + fold, n_cells)
            for k, share in enumerate(shares.T)
        ]
        weight, square, gram = (sum(part[1:], start=part[0]) for part in zip(*parts, strict=True))
        return self._shaped(weight, square, gram)

    def _shaped(self, weight: FloatArray, square: FloatArray, gram: FloatArray) -> CellMoments:
        shape = (self.assignment.n_environments, self.n_folds)
        return CellMoments(
            weight.reshape(shape), square.reshape(shape), gram.reshape(*shape, *gram.shape[1:])
        )


def folds(rows: Rows, n_folds: int) -> IntArray:
    """(n,) fold of each row, by its position in the whole table."""
    if n_folds == 1:
        return np.zeros(len(rows), dtype=np.int64)
    position = np.arange(rows.start, rows.start + len(rows), dtype=np.uint64)
    # The upper bits of a product by an odd number far from any fraction (Knuth's multiplicative
    # hash): sorted or periodic tables fall evenly into the folds.
    position *= MULTIPLIER
    mixed, divisor = (position >> np.uint64(40)).astype(np.uint32), np.uint32(n_folds)
    # The remainder from the quotient: short integers are divided many at a time.
    fold: IntArray = (mixed - divisor * (mixed // divisor)).astype(np.int64)
    return fold


def _by_cell(
    Z: FloatArray, weight: FloatArray, cell: IntArray, n_cells: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sums of weight, squared weight and weighted products by cell; ``n_cells`` is no cell."""
    # Short integers are sorted by counting.
    order = np.argsort(cell.astype(np.min_scalar_type(n_cells)), kind="stable")
    counts = np.bincount(cell, minlength=n_cells + 1)[:n_cells]
    by_cell = Z.take(order, axis=0)
    sums = counts.astype(np.float64), counts.astype(np.float64)
    if not np.all(weight == 1.0):
        by_cell *= np.sqrt(weight.take(order))[:, None]
        sums = _sums(cell, weight, n_cells), _sums(cell, weight**2, n_cells)
    gram = np.zeros((n_cells, Z.shape[1], Z.shape[1]))
    bounds = pairwise([0, *np.cumsum(counts).tolist()])
    # Rows of a cell lie together after the sort: a product a cell, and no row is looked at twice.
    for own, (start, end) in zip(gram, bounds, strict=True):
        block = by_cell[start:end]
        np.dot(block.T, block, out=own)
    return *sums, gram


def _sums(cell: IntArray, values: FloatArray, n_cells: int) -> FloatArray:
    return np.bincount(cell, values, minlength=n_cells + 1)[:n_cells].astype(np.float64)
