"""An order of rows and of columns that follows from what they hold, not from where they stand.

Trees are grown on sums whose rounding, and on ties whose breaking, depends on order; so rows and
columns are put into an order of their own first. Keys are made of ranks: they do not change with
the unit of a column. Sums of 64-bit numbers wrap around, and are the same in any order.
"""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.named_numbers import Constant
from hetrisk.core.numerics.rows import FloatArray, IntArray

# Odd multipliers of splitmix64 (Steele, Lea and Flood 2014): neighbouring ranks fall far apart.
_FIRST: Constant[np.uint64] = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Constant[np.uint64] = np.uint64(0x94D049BB133111EB)


def _mixed(key: np.ndarray) -> np.ndarray:
    key = (key ^ (key >> np.uint64(30))) * _FIRST
    key = (key ^ (key >> np.uint64(27))) * _SECOND
    mixed: np.ndarray = key ^ (key >> np.uint64(31))
    return mixed


def _ranks(x: FloatArray) -> np.ndarray:
    """(n,) dense ranks; missing values share one."""
    return np.unique(x, return_inverse=True)[1].astype(np.uint64)


def content_order(X: FloatArray, y: FloatArray, more: FloatArray) -> tuple[IntArray, IntArray]:
    """Return an order of the rows and one of the columns.

    Parameters
    ----------
    X : (n, d), y : (n,); more : (n, m) what else tells rows apart, its columns in a fixed order.
    """
    target = _ranks(y)
    base = _mixed(target + np.uint64(1))
    for k, column in enumerate(more.T, start=2):
        base = _mixed(base + _mixed(_ranks(column) + np.uint64(k * 0x1000003)))
    row = base.copy()
    keys = np.zeros(X.shape[1], dtype=np.uint64)
    for j, column in enumerate(X.T):
        rank = _ranks(column)
        # Distinct ones: a row that stands there twice says nothing new, as a weight of 2 does not.
        keys[j] = np.unique(_mixed(rank * _SECOND + base)).sum()
        row += _mixed(rank * _FIRST + keys[j])
    return np.lexsort((row, target)), np.argsort(keys, kind="stable")
