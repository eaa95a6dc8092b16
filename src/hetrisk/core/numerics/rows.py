"""Rows of a table, and the one thing the mathematics asks of them: sums.

Moments, responsibilities and likelihoods are all sums over rows, so every algorithm in
``core`` is written against `RowSource`: apply a function to each block of rows and add up
what comes back. Where the rows live (an array, a Parquet folder, a cluster) is the business
of ``hetrisk.blocks``; nothing here knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from math import gcd
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from hetrisk.core.numerics.named_numbers import Budget

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Rows at most that are seen as one; blocks hold a multiple of it where they can.
WIDE_ROWS: Budget[int] = 64


@dataclass(frozen=True)
class Rows:
    """A block of rows.

    Attributes
    ----------
    X : (n, d) features.
    y : (n,) targets; class codes 0, 1, ... for labels.
    weight : (n,) non-negative sample weights.
    environments : (n, K) responsibilities, where the caller knows them.
    aside : (n, m) side information as numbers, where the caller has it: values, days, or the
        codes of categories; NaN where it is missing.
    start : position of the first row in the whole table.
    """

    X: FloatArray
    y: FloatArray
    weight: FloatArray
    environments: FloatArray | None = None
    aside: FloatArray | None = None
    start: int = 0

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def first(self, count: int) -> Rows:
        """Features, targets and weights of the first rows."""
        return Rows(self.X[:count], self.y[:count], self.weight[:count])


class Additive(Protocol):
    """Anything two of which add up to a third: arrays, floats, `Moments`, `Summed` values."""

    def __add__(self, other: Any, /) -> Any: ...


T = TypeVar("T", bound=Additive)


class RowSource(Protocol):
    """Rows held somewhere, seen only through sums over blocks and through samples."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    def sum(self, function: Callable[[Rows], T]) -> T:
        """Apply ``function`` to every block of rows and add up the results.

        ``function`` must be picklable (a module-level function or a `functools.partial` of
        one), so that it can travel to the workers of a cluster.
        """
        ...

    def sample(self, size: int, seed: int) -> Rows:
        """Return at most ``size`` rows drawn without replacement, the same for the same seed."""
        ...


def take(rows: Rows, index: np.ndarray | slice) -> Rows:
    """Return some rows of a block."""
    environments = None if rows.environments is None else rows.environments[index]
    aside = None if rows.aside is None else rows.aside[index]
    return Rows(rows.X[index], rows.y[index], rows.weight[index], environments, aside)


def concatenate(parts: Sequence[Rows]) -> Rows:
    """Rows of several blocks, one below the other."""
    environments = [p.environments for p in parts if p.environments is not None]
    aside = [p.aside for p in parts if p.aside is not None]
    return Rows(
        np.concatenate([p.X for p in parts]),
        np.concatenate([p.y for p in parts]),
        np.concatenate([p.weight for p in parts]),
        np.concatenate(environments) if environments else None,
        np.concatenate(aside) if aside else None,
        parts[0].start,
    )


def wide_view(table: FloatArray) -> tuple[FloatArray, int]:
    """View a table as one of fewer, longer rows, and say how many of the rows make up one.

    Columns are many times quicker to compare, and to shift or scale each by its own amount, when
    the loop over a row is long.
    """
    n, p = table.shape
    # A view, never a copy: the number of rows that make up one must divide that of all.
    n_wide = gcd(n, WIDE_ROWS) if n else 1
    return table.reshape(n // n_wide, n_wide * p), n_wide


@dataclass(frozen=True)
class Summed:
    """Base of dataclasses that add field by field: what a pass over the rows brings back."""

    def __add__(self, other: Self) -> Self:
        added = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return type(self)(**added)
