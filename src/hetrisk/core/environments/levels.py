"""What rows say of where they are from: levels, and the sums of each.

Labels, dates, numbers and responsibilities all become levels 0, 1, ..., J - 1, some with an order.
One pass over the rows gives the sums of every level, each half of its rows apart
(`hetrisk.core.environments.thin` says why).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from hetrisk.core.environments.content import parts
from hetrisk.core.environments.thin import Merged, kept, merge
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray, IntArray, Rows, RowSource

# Levels of a number or of time: finer than that, neighbours are one before anything is asked.
MOST_ORDERED: Budget[int] = 256


@dataclass(frozen=True)
class Levels:
    """How the levels of rows are read.

    Attributes
    ----------
    name : of the source.
    names : (J,) of the levels.
    ordered : whether level j and level j + 1 are neighbours.
    column : of `Rows.aside` that holds them; None where rows carry responsibilities.
    edges : (J - 1,) of the intervals that the levels are; None where the column holds codes.
    """

    name: str
    names: tuple[str, ...]
    ordered: bool
    column: int | None
    edges: FloatArray | None = None

    def codes(self, rows: Rows) -> IntArray:
        """(n,) level of each row, -1 for none."""
        if self.column is None:
            assert rows.environments is not None
            return np.asarray(rows.environments.argmax(axis=1), dtype=np.int64)
        assert rows.aside is not None
        value = rows.aside[:, self.column]
        known = np.isfinite(value)
        code = np.full(len(value), -1, dtype=np.int64)
        code[known] = (
            value[known].astype(np.int64)
            if self.edges is None
            else np.searchsorted(self.edges, value[known], side="right")
        )
        return code

    def shares(self, rows: Rows) -> FloatArray | None:
        """(n, J) responsibilities where rows belong to several levels, else None."""
        if self.column is not None or rows.environments is None:
            return None
        soft = not np.all((rows.environments == 0.0) | (rows.environments == 1.0))
        return rows.environments if soft else None


@dataclass(frozen=True)
class Environments:
    """A source of environments, its levels merged as far as their rows ask for it.

    Attributes
    ----------
    levels : as they came.
    merged : where they went.
    names : (K,) of the environments.
    sums : (K, q, q) of z z', z = (1, x, y).
    """

    levels: Levels
    merged: Merged
    names: tuple[str, ...]
    sums: FloatArray

    def codes(self, rows: Rows) -> IntArray:
        """(n,) environment of each row, -1 for none."""
        codes = self.levels.codes(rows)
        return self.merged.environment(codes, parts(rows, 2) if self.merged.merged else 0 * codes)

    def membership(self, rows: Rows) -> FloatArray:
        """(n, K) shares of the rows, or (n,) environments where each belongs to one; -1 is none."""
        shares = self.levels.shares(rows)
        if shares is None:
            return self.codes(rows).astype(np.float64)
        into = np.eye(len(self.names) + 1)[self.merged.lookup[0]][:, : len(self.names)]
        return np.asarray(shares @ into, dtype=np.float64)


def environments(rows: RowSource, family: Family, levels: Levels) -> Environments:
    """Sum the rows of every level in one pass, and merge; in a second one by halves, if need be."""
    t = family.n_targets
    whole = rows.sum(partial(_level_sums, family=family, levels=levels, halves=1))
    merged = kept(whole[0], t)
    if merged is None and not levels.ordered:
        whole = rows.sum(partial(_level_sums, family=family, levels=levels, halves=2))
    if merged is None:
        merged = merge(whole, t, levels.ordered)
    sums = np.zeros((merged.count, *whole.shape[2:]))
    for lookup, own in zip(merged.lookup, whole, strict=False):
        np.add.at(sums, lookup[lookup >= 0], own[lookup >= 0])
    return Environments(levels, merged, merged.names(levels.names), sums)


def design(rows: Rows, family: Family) -> FloatArray:
    """(n, q) z = (1, x, y), the targets last."""
    return np.column_stack([np.ones(len(rows)), rows.X, family.targets(rows.y)])


def cell_sums(Z: FloatArray, weight: FloatArray, cell: IntArray, n_cells: int) -> FloatArray:
    """(n_cells, q, q) weighted sums of z z' by cell; cells below zero are none."""
    sums = np.zeros((n_cells, Z.shape[1], Z.shape[1]))
    # Rows of a cell lie together once sorted: a product a cell, and no row is looked at twice.
    order = np.argsort((cell + 1).astype(np.min_scalar_type(n_cells + 1)), kind="stable")
    ends = np.cumsum(np.bincount(cell + 1, minlength=n_cells + 1))
    sorted_rows = Z.take(order, axis=0)
    if not np.all(weight == 1.0):
        sorted_rows *= np.sqrt(weight.take(order))[:, None]
    for own, start, end in zip(sums, ends[:-1], ends[1:], strict=True):
        block = sorted_rows[start:end]
        np.dot(block.T, block, out=own)
    return sums


def _level_sums(rows: Rows, family: Family, levels: Levels, halves: int) -> FloatArray:
    """(halves, J, q, q) of a block."""
    Z, J = design(rows, family), len(levels.names)
    half = parts(rows, halves) if halves > 1 else np.zeros(len(rows), dtype=np.int64)
    shares = levels.shares(rows)
    if shares is None:
        codes = levels.codes(rows)
        cell = np.where(codes >= 0, half * J + codes, -1)
        return cell_sums(Z, rows.weight, cell, halves * J).reshape(halves, J, *Z.shape[1:] * 2)
    soft = [cell_sums(Z, rows.weight * share, half, halves) for share in shares.T]
    return np.stack(soft, axis=1)
