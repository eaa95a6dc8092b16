"""An order of rows and of columns that follows from what they hold, not from where they stand.

Trees are grown on sums whose rounding, and on ties whose breaking, depends on order; so rows and
columns are put into an order of their own first. Keys are made of ranks: they do not change with
the unit of a column. Sums of 64-bit numbers wrap around, and are the same in any order.
"""

from __future__ import annotations

import numpy as np

from hetrisk.core.environments.content import MIX, mixed
from hetrisk.core.numerics.rows import FloatArray, IntArray

ROUNDING = 1e-9  # share of the weight by which sums of it may differ


def _ranks(x: FloatArray) -> np.ndarray:
    """(n,) dense ranks; missing values share one."""
    return np.unique(x, return_inverse=True)[1].astype(np.uint64)


def content_order(
    X: FloatArray, y: FloatArray, time: FloatArray, weight: FloatArray, level: IntArray
) -> tuple[IntArray, IntArray]:
    """Return an order of the rows and one of the columns.

    Parameters
    ----------
    X : (n, d), y : (n,), time : (n,), weight : (n,).
    level : (n,) code of the environment, -1 for none; which code it is has no say.
    """
    of = np.unique(level, return_inverse=True)[1]
    ranks = [_ranks(column) for column in (y, time, *X.T)]
    # A row that is there twice is a row of weight two: sums are over rows that differ.
    whole = mixed(of.astype(np.uint64))
    for rank in ranks:
        whole = mixed(whole + rank)
    _, first, place = np.unique(whole, return_index=True, return_inverse=True)
    share = np.bincount(place, weight) / max(float(weight.sum()), 1e-300)
    # Rounded: sums of weights differ in their last digits with the order of rows.
    mass = mixed(np.round(share / ROUNDING).astype(np.uint64))
    target, when, *columns = (rank[first] for rank in ranks)
    base = mixed(mixed(target + np.uint64(1)) + mixed(when + MIX[0]))
    row = base.copy()
    keys = np.zeros(len(columns), dtype=np.uint64)
    for j, rank in enumerate(columns):
        keys[j] = mixed(mixed(rank * MIX[1] + base) + mass).sum(dtype=np.uint64)
        row += mixed(rank * MIX[0] + keys[j])
    # What its environment holds tells a row from others that are the same in all else.
    held = np.zeros(int(of.max(initial=0)) + 1, dtype=np.uint64)
    np.add.at(held, of[first], mixed(row + mass))
    row += mixed(held[of[first]])
    return np.lexsort((row[place], ranks[0])), np.argsort(keys, kind="stable")
