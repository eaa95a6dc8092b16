"""Moments of (x, time, y) in every cell, in one pass over the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.backtest.cuts import Layout
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.rows import FloatArray, IntArray, Rows

ROUNDING = 1e-12  # of what is taken off a column before its sums: what comes back below it is zero


def time_and_level(rows: Rows) -> tuple[FloatArray, IntArray]:
    """(n,) times, NaN for none, and (n,) codes of environments, -1 for none."""
    aside = np.full((len(rows), 2), np.nan) if rows.aside is None else rows.aside
    return aside[:, 0], np.nan_to_num(aside[:, 1], nan=-1.0).astype(np.int64)


def with_time(rows: Rows) -> FloatArray:
    """(n, d + 2) the columns (x, time, y); zero for no time."""
    return np.column_stack([rows.X, np.nan_to_num(time_and_level(rows)[0]), rows.y])


@dataclass(frozen=True)
class CellPass:
    """Block of rows to moments of cells."""

    layout: Layout
    centre: FloatArray

    def __call__(self, rows: Rows) -> Moments:
        time, level = time_and_level(rows)
        cell = self.layout.cells(time, level)
        return cell_moments(
            with_time(rows) - self.centre, rows.weight, cell, self.layout.n_cells, self.centre
        )


def cell_moments(
    Z: FloatArray, weight: FloatArray, cell: IntArray, n_cells: int, centre: FloatArray
) -> Moments:
    """Moments of the rows of each cell; ``centre`` is what was taken off before."""
    order = np.argsort(cell, kind="stable")
    Z, weight, cell = Z[order], weight[order], cell[order]
    starts = np.searchsorted(cell, np.arange(n_cells + 1))
    p = Z.shape[1]
    total, mean = np.zeros(n_cells), np.zeros((n_cells, p))
    scatter = np.zeros((n_cells, p, p))
    for c in np.flatnonzero(np.diff(starts) > 0):
        z, w = Z[starts[c] : starts[c + 1]], weight[starts[c] : starts[c + 1]]
        total[c] = w.sum()
        if total[c] > 0:
            mean[c] = w @ z / total[c]
            z = z - mean[c]
            scatter[c] = (z.T * w) @ z
    there = mean + centre
    # A column that is zero in a cell comes back as rounding of what was taken off, and rounding
    # beside rounding would pass for a spread.
    rounding = np.abs(there) <= ROUNDING * np.abs(centre)
    still = np.diagonal(scatter, axis1=1, axis2=2) <= total[:, None] * (ROUNDING * centre) ** 2
    nothing = rounding & still
    scatter[np.broadcast_to(nothing[:, :, None], scatter.shape)] = 0.0
    scatter[np.broadcast_to(nothing[:, None, :], scatter.shape)] = 0.0
    return Moments(total, np.where(nothing, 0.0, there), scatter)
