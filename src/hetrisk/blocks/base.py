"""The interface every home of rows implements: sums over blocks, and samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from hetrisk.core.rows import Additive, FloatArray, Rows

T = TypeVar("T", bound=Additive)


class Blocks(ABC):
    """Rows seen through sums over blocks (`hetrisk.core.rows.RowSource`)."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features."""

    @abstractmethod
    def sum(self, function: Callable[[Rows], T]) -> T:
        """Apply ``function`` to every block of rows and add up the results."""

    @abstractmethod
    def sample(self, size: int, seed: int) -> Rows:
        """At most ``size`` rows drawn without replacement, the same for the same seed."""

    def standardised(self, centre: FloatArray, scale: FloatArray) -> Blocks:
        """See the same rows as (z - centre) / scale, the p = d + 1 columns (X, y) in order.

        Applied block by block: no copy of the table is made.
        """
        return StandardisedBlocks(self, Standardise(centre, scale))


@dataclass(frozen=True)
class Standardise:
    """z -> (z - centre) / scale on the columns (X, y)."""

    centre: FloatArray
    scale: FloatArray

    def __call__(self, rows: Rows) -> Rows:
        X = (rows.X - self.centre[:-1]) / self.scale[:-1]
        y = (rows.y - self.centre[-1]) / self.scale[-1]
        return Rows(X, y, rows.weight, rows.environments)


@dataclass(frozen=True)
class _Composed:
    outer: Callable[[Rows], Additive]
    inner: Callable[[Rows], Rows]

    def __call__(self, rows: Rows) -> Additive:
        return self.outer(self.inner(rows))


class StandardisedBlocks(Blocks):
    """A view of other blocks through `Standardise`."""

    def __init__(self, source: Blocks, transform: Standardise) -> None:
        self.source = source
        self.transform = transform

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.source.n_features

    def sum(self, function: Callable[[Rows], T]) -> T:
        """Apply ``function`` to every standardised block and add up the results."""
        return self.source.sum(_Composed(function, self.transform))  # type: ignore[return-value]

    def sample(self, size: int, seed: int) -> Rows:
        """Return a sample of the standardised rows."""
        return self.transform(self.source.sample(size, seed))


def chosen_rows(n_rows: int, size: int, seed: int) -> np.ndarray:
    """Sorted indices of ``size`` of ``n_rows`` rows, all of them when there are no more."""
    if size >= n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, size=size, replace=False))
