"""Rows told apart by what they hold, never by where they stand.

Where rows are sampled or split, the choice is a hash of their content: any order of rows or
columns gives the same rows, in memory, in files and on a cluster, and a row given twice is chosen
as one with weight two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from hetrisk.core.numerics.named_numbers import Constant
from hetrisk.core.numerics.rows import IntArray, Rows, RowSource, concatenate, take

# Odd multipliers of splitmix64 (Steele, Lea and Flood 2014): neighbouring keys fall far apart.
MIX: Constant[tuple[np.uint64, np.uint64]] = (
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
# Of a standard deviation: what rounding leaves undecided is far below it.
_GRAIN: Constant[float] = 2.0**-20


def keys(rows: Rows) -> np.ndarray:
    """(n,) 64-bit hash of standardised features and target, whatever the order of the columns."""
    key = np.zeros(len(rows), dtype=np.uint64)
    # Symmetric functions of the columns, so that none has a place.
    for values in (rows.y, rows.X.sum(axis=1), np.einsum("ij,ij->i", rows.X, rows.X)):
        key = mixed(key + np.rint(values / _GRAIN).astype(np.int64).astype(np.uint64))
    return key


def parts(rows: Rows, count: int, clusters: IntArray | None = None) -> IntArray:
    """(n,) which of ``count`` parts each row falls into.

    Rows of one cluster (codes (n,), negative for none) depend on each other and fall together.
    """
    key = keys(rows)
    if clusters is not None:
        together = np.flatnonzero(clusters >= 0)
        own = np.zeros(int(clusters.max(initial=0)) + 1, dtype=np.uint64)
        np.maximum.at(own, clusters[together], key[together])
        key[together] = own[clusters[together]]
    part: IntArray = ((key >> np.uint64(32)) % np.uint64(count)).astype(np.int64)
    return part


def sampled(rows: RowSource, size: int, weight: float) -> Rows:
    """About ``size`` rows at most, sorted by content; all, where there are no more.

    ``weight`` is that of all rows.
    """
    share = min(1.0, size / max(weight, 1.0))
    kept = rows.sum(partial(_kept, share=share)).rows
    order = np.lexsort((kept.y, keys(kept)))
    return take(kept, order)


@dataclass(frozen=True)
class _Kept:
    rows: Rows

    def __add__(self, other: _Kept) -> _Kept:
        return _Kept(concatenate([self.rows, other.rows]))


def _kept(rows: Rows, share: float) -> _Kept:
    held = rows.weight > 0
    if share < 1.0:
        held &= keys(rows) < np.uint64(share * 2.0**64)
    return _Kept(take(rows, np.flatnonzero(held)))


def mixed(key: np.ndarray) -> np.ndarray:
    """64-bit keys, scattered: neighbours fall far apart (splitmix64)."""
    key = (key ^ (key >> np.uint64(30))) * MIX[0]
    key = (key ^ (key >> np.uint64(27))) * MIX[1]
    scattered: np.ndarray = key ^ (key >> np.uint64(31))
    return scattered
