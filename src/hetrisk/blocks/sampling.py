"""Samples of rows by what they hold: the same from memory, Parquet and dask, in any order of rows.

Every row has a number that follows from its features and its target alone, whatever the order of
the columns; the rows with the smallest numbers are the sample (`hetrisk.columns.sampling`). Which
of two rows with the same features and target is taken is told by what else they carry
(environments, side columns, weights) and, where columns may be exchanged, by their order.
"""

from __future__ import annotations

import numpy as np

from hetrisk.columns.sampling import STEP, Hashes, mixed
from hetrisk.core.numerics.rows import FloatArray, Rows


def content(rows: Rows) -> Hashes:
    """(n,) one number a row, from its features in whatever order and its target."""
    # A sum of mixed values does not know which column they came from; the target it does.
    return mixed(_bits(rows.X)).sum(axis=1, dtype=np.uint64) + mixed(mixed(_bits(rows.y)) + STEP)


def company(rows: Rows) -> Hashes:
    """(n,) a second number a row, from everything it holds, column by column."""
    # In single precision: backends add weights up in another order before they divide by the mean.
    weight = rows.weight.astype(np.float32)[:, None]
    parts = [rows.X, rows.environments, rows.aside, weight]
    held = np.hstack([part for part in parts if part is not None]).astype(np.float64, copy=False)
    place = np.arange(1, held.shape[1] + 1, dtype=np.uint64) * STEP
    return mixed(_bits(held) + place).sum(axis=1, dtype=np.uint64)


def _bits(values: FloatArray) -> Hashes:
    plain = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # there is one zero
    bits: Hashes = np.where(np.isnan(plain), np.nan, plain).view(np.uint64)
    return bits
