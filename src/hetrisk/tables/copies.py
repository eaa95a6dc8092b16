"""Columns that say the same thing twice: copies, other units, other names for the same groups.

No table can tell two such columns apart, so a search that left one out and kept the other would
have decided nothing. They are treated as one: the one with the shortest name stays (of as long
ones the first in the alphabet, so that the order of columns decides nothing), the others are left
out with a note, and predictions need the one alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache

import numpy as np

from hetrisk.columns import FloatArray
from hetrisk.columns.words import quoted
from hetrisk.tables.category import CategoryColumn
from hetrisk.tables.columns import Column
from hetrisk.tables.inference import LeftOut

FEWEST_ROWS = 10  # with fewer, columns agree by chance
LOOSE = 1e-7  # how far apart projections of copies may lie, relative to their size
ROUNDING = 1e-9  # relative to the spread: a change of unit costs a few digits


def find_copies(
    columns: Sequence[Column], encoded: Callable[[int], FloatArray], asked: Collection[str] = ()
) -> list[LeftOut]:
    """Name the columns that another one makes superfluous.

    Parameters
    ----------
    columns : what is known of each.
    encoded : position of a column -> (n, d_j) its features.
    asked : columns that stay before others.

    Returns
    -------
    One `LeftOut` a superfluous column, in order of the columns.
    """
    found: dict[int, LeftOut] = {}
    values = lru_cache(maxsize=4)(encoded)
    rank = [(c.name not in asked, len(c.name), c.name) for c in columns]
    for alike in _candidates(columns, encoded):
        kept: list[int] = []
        for j in sorted(alike, key=rank.__getitem__):
            relations = ((i, _relation(values(i), values(j), _grouped(columns[j]))) for i in kept)
            first = next(((i, relation) for i, relation in relations if relation), None)
            if first is None:
                kept.append(j)
                continue
            reason = first[1].format(quoted(columns[first[0]].name))
            found[j] = LeftOut(columns[j].name, f"{reason}: the two are treated as one")
    return [found[j] for j in sorted(found)]


def _grouped(column: Column) -> bool:
    """Whether the features of a column are levels rather than a number."""
    return isinstance(column, CategoryColumn) and len(column.feature_names) > 1


def _candidates(
    columns: Sequence[Column], encoded: Callable[[int], FloatArray]
) -> Iterator[list[int]]:
    """Columns that may repeat each other: their projections on one vector at random agree.

    Copies have the same projection whatever the vector, so nothing depends on the order of rows.
    """
    groups: dict[bytes, list[int]] = {}
    projected: list[tuple[float, int]] = []
    direction = np.empty(0)
    for j, column in enumerate(columns):
        features = encoded(j)
        if len(features) < FEWEST_ROWS:
            return
        if _grouped(column):
            groups.setdefault(_partition(features).tobytes(), []).append(j)
            continue
        if not len(direction):
            direction = np.random.default_rng(0).standard_normal(len(features))
        size = abs(float(_standardised(features[:, 0]) @ direction))
        projected.append((size / np.sqrt(len(features)), j))
    yield from (alike for alike in groups.values() if len(alike) > 1)
    projected.sort()
    alike: list[int] = []
    last = -np.inf
    for size, j in projected:
        if size - last > LOOSE and len(alike) > 1:
            yield alike
        alike = [*alike, j] if size - last <= LOOSE else [j]
        last = size
    if len(alike) > 1:
        yield alike


def _relation(x: FloatArray, y: FloatArray, grouped: bool) -> str:
    """Return how y repeats x in every row, or ""."""
    if grouped:
        return "the same groups as {}" if np.array_equal(_partition(x), _partition(y)) else ""
    if x.shape != y.shape or not np.array_equal(x[:, 1:], y[:, 1:]):
        return ""  # they are missing in other rows
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
