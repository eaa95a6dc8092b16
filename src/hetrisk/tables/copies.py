"""Columns that say the same thing twice: copies, other units, other names for the same groups.

No table can tell two such columns apart, so a search that left one out and kept the other would
have decided nothing. They are treated as one: the first stays, the others are left out with a
note, and predictions need the first alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from hetrisk.columns import FloatArray
from hetrisk.tables.errors import quoted
from hetrisk.tables.inference import LeftOut

FEWEST_ROWS = 10  # with fewer, columns agree by chance
SAMPLED_ROWS = 2_000  # candidates are looked for among these, and checked on every row
LOOSE = 1e-6  # how far from one a correlation in the sample may be
ROUNDING = 1e-9  # relative to the spread: a change of unit costs a few digits


def sampled_rows(n_rows: int) -> np.ndarray:
    """Rows to look for candidates in, spread over all."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, SAMPLED_ROWS)).round().astype(int))


def find_copies(
    names: Sequence[str], samples: Sequence[FloatArray], whole: Callable[[int], FloatArray]
) -> list[LeftOut]:
    """Name the columns that an earlier one makes superfluous.

    Parameters
    ----------
    names : the columns, in order.
    samples : (m, d_j) encoded features of each in the `sampled_rows`.
    whole : position of a column -> (n, d_j) its features in all rows.

    Returns
    -------
    One `LeftOut` a superfluous column, in order.
    """
    if not samples or len(samples[0]) < FEWEST_ROWS:
        return []
    columns = lru_cache(maxsize=4)(whole)
    found: dict[int, LeftOut] = {}
    for later, firsts in _candidates(samples).items():
        for first in (f for f in firsts if f not in found):
            relation = _relation(columns(first), columns(later))
            if relation:
                reason = relation.format(quoted(names[first]))
                found[later] = LeftOut(names[later], f"{reason}: the two are treated as one")
                break
    return list(found.values())


def _candidates(samples: Sequence[FloatArray]) -> dict[int, list[int]]:
    """Return, for each column that may repeat others before it, those others."""
    keys: dict[int, list[int]] = {}
    single = [j for j, sample in enumerate(samples) if sample.shape[1] == 1]
    if len(single) > 1:
        Z = np.column_stack([_standardised(samples[j][:, 0]) for j in single])
        close = np.abs(Z.T @ Z) / len(Z) > 1 - LOOSE
        keys |= {j: [single[i] for i in np.flatnonzero(close[b, :b])] for b, j in enumerate(single)}
    groups: dict[bytes, list[int]] = {}
    for j, sample in enumerate(samples):
        if sample.shape[1] > 1:
            before = groups.setdefault(_partition(sample).tobytes(), [])
            keys[j] = list(before)
            before.append(j)
    return {j: keys[j] for j in sorted(keys) if keys[j]}


def _relation(x: FloatArray, y: FloatArray) -> str:
    """Return how y repeats x in every row, or ""."""
    if x.shape[1] > 1:
        return "the same groups as {}" if np.array_equal(_partition(x), _partition(y)) else ""
    if np.array_equal(x, y):
        return "a copy of {}"
    u, v = _standardised(x[:, 0]), _standardised(y[:, 0])
    sign = np.sign(u @ v)
    if np.abs(v - sign * u).max() > ROUNDING * max(1.0, float(np.abs(u).max())):
        return ""
    return "{} in another unit" if sign > 0 else "{} turned round"


def _standardised(x: FloatArray) -> FloatArray:
    # Scale first: the square of a number near the largest one overflows.
    largest = np.abs(x).max()
    scaled = x / largest if largest > 0 else x
    centred = scaled - scaled.mean()
    spread = np.sqrt(np.mean(centred**2))
    return centred / spread if spread > 0 else np.zeros_like(x)


def _partition(features: FloatArray) -> np.ndarray:
    """Return a code a row for its level, numbered by first rows: names and order do not matter."""
    levels = features @ np.arange(1, features.shape[1] + 1)
    _, start, codes = np.unique(levels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(start))[codes]
