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
from hetrisk.core.environments.thin import Merged, merge
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
        """(n, K) shares of the rows in the environments; zeros for rows in none."""
        shares = self.levels.shares(rows)
        if shares is not None:
            into = np.eye(len(self.names) + 1)[self.merged.lookup[0]][:, : len(self.names)]
            return np.asarray(shares @ into, dtype=np.float64)
        codes = self.codes(rows)
        return np.eye(len(self.names) + 1)[codes][:, : len(self.names)]


def environments(rows: RowSource, family: Family, levels: Levels) -> Environments:
    """Sum the rows of every level in one pass, and merge."""
    halves = rows.sum(partial(_level_sums, family=family, levels=levels))
    d = rows.n_features
    merged = merge(halves, halves.shape[-1] - 1 - d, levels.ordered)
    sums = np.zeros((merged.count, *halves.shape[2:]))
    for lookup, own in zip(merged.lookup, halves, strict=True):
        np.add.at(sums, lookup[lookup >= 0], own[lookup >= 0])
    return Environments(levels, merged, merged.names(levels.names), sums)


def design(rows: Rows, family: Family) -> FloatArray:
    """(n, q) z = (1, x, y), the targets last."""
    return np.column_stack([np.ones(len(rows)), rows.X, family.targets(rows.y)])


def cell_sums(Z: FloatArray, weight: FloatArray, cell: IntArray, n_cells: int) -> FloatArray:
    """(n_cells, q, q) weighted sums of z z' by cell; cells below zero are none."""
    sums = np.zeros((n_cells, Z.shape[1], Z.shape[1]))
    order = np.argsort(cell, kind="stable")
    held, start = np.unique(cell[order], return_index=True)
    weighted = Z * weight[:, None]
    for own, at in zip(held, np.split(order, start[1:]), strict=True):
        if own >= 0:
            sums[own] = Z[at].T @ weighted[at]
    return sums


def _level_sums(rows: Rows, family: Family, levels: Levels) -> FloatArray:
    """(2, J, q, q) of a block."""
    Z, half, J = design(rows, family), parts(rows, 2), len(levels.names)
    shares = levels.shares(rows)
    if shares is None:
        codes = levels.codes(rows)
        cell = np.where(codes >= 0, half * J + codes, -1)
        return cell_sums(Z, rows.weight, cell, 2 * J).reshape(2, J, *Z.shape[1:] * 2)
    soft = [cell_sums(Z, rows.weight * share, half, 2) for share in shares.T]
    return np.stack(soft, axis=1)
