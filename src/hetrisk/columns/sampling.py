"""A sample of rows by what they hold, whatever their order: the rows with the smallest numbers.

Every row comes with a number that follows from what it holds. Rows that hold the same are copies:
the k-th copy has a number of its own, so that a value that fills half of a table fills half of its
sample. Which of two copies is taken is told by a second number.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_A, _B, _C = np.uint64(30), np.uint64(27), np.uint64(31)


def chosen_rows(
    first: Hashes, size: int, seed: int, second: Callable[[], Hashes]
) -> NDArray[np.intp]:
    """Positions of the rows in a sample of at most ``size``, in an order that is theirs.

    Parameters
    ----------
    first : (n,) numbers of the rows.
    size : of the sample.
    seed : another one, another sample.
    second : gives (n,) more numbers; called only where rows repeat each other.
    """
    number = mixed(first + np.uint64(seed * int(_SECOND) % (1 << 64)))
    placed = np.sort(number)
    if not (placed[1:] == placed[:-1]).any():
        # To sort numbers is quicker than to sort places: of those alone that are taken.
        few = np.arange(len(number))
        if size < len(number):
            few = few[number < placed[size]]
        return few[np.argsort(number[few])]
    order = np.lexsort((second(), number))
    starts = np.flatnonzero(np.append(True, placed[1:] != placed[:-1]))
    copy = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    # The first copy keeps its number, and so do rows that have none.
    again = np.where(copy > 0, mixed(placed + copy.astype(np.uint64) * STEP), placed)
    return order[np.argsort(again, kind="stable")][:size]


def mixed(bits: Hashes) -> Hashes:
    """Return numbers whose every bit depends on all of ``bits`` (Steele, Lea and Flood, 2014)."""
    with np.errstate(over="ignore"):
        out = bits + STEP
        out = (out ^ (out >> _A)) * _FIRST
        out = (out ^ (out >> _B)) * _SECOND
    return out ^ (out >> _C)
