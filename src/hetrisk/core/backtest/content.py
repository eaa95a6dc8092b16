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


def _sums(key: np.ndarray, value: np.ndarray, weight: FloatArray, of: IntArray) -> np.ndarray:
    """(G,) of each group: what the distinct keys in it hold, each with its share of all weight.

    A share and not a count: a row that is there twice is a row of weight two. ``value`` (n,) is
    what stands for a key, ``of`` (n,) the group of each row; keys differ between groups.
    """
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    share = np.bincount(place, weight) / max(float(weight.sum()), 1e-300)
    # Rounded: sums of weights differ in their last digits with the order of rows.
    mass = np.round(share / ROUNDING).astype(np.uint64)
    sums = np.zeros(int(of.max(initial=0)) + 1, dtype=np.uint64)
    np.add.at(sums, of[first], mixed(value[first] + mixed(mass)))
    return sums


def content_order(
    X: FloatArray, y: FloatArray, time: FloatArray, weight: FloatArray, level: IntArray
) -> tuple[IntArray, IntArray]:
    """Return an order of the rows and one of the columns.

    Parameters
    ----------
    X : (n, d), y : (n,), time : (n,), weight : (n,).
    level : (n,) code of the environment, -1 for none; which code it is has no say.
    """
    target, one = _ranks(y), np.zeros(len(y), dtype=np.int64)
    base = mixed(target + np.uint64(1))
    base = mixed(base + mixed(_ranks(time) + MIX[0]))
    row = base.copy()
    keys = np.zeros(X.shape[1], dtype=np.uint64)
    for j, column in enumerate(X.T):
        rank = _ranks(column)
        held = mixed(rank * MIX[1] + base)
        keys[j] = _sums(held, held, weight, one)[0]
        row += mixed(rank * MIX[0] + keys[j])
    # What its environment holds tells a row from others that are the same in all else.
    of = np.unique(level, return_inverse=True)[1]
    row += mixed(_sums(mixed(row + mixed(of.astype(np.uint64))), row, weight, of)[of])
    return np.lexsort((row, target)), np.argsort(keys, kind="stable")
