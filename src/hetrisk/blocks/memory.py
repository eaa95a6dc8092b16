"""Rows in memory, visited in blocks that fit the cache, on two threads where that pays."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import add
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from hetrisk.blocks.base import Blocks, chosen_rows
from hetrisk.core.rows import Additive, FloatArray, Rows

T = TypeVar("T", bound=Additive)

BLOCK_BYTES = 1 << 20  # a block and its weighted copy stay within a second-level cache
THREADS = 2


class ArrayBlocks(Blocks):
    """A numpy table in row blocks.

    Parameters
    ----------
    X : (n, d) features; converted to float64 block by block.
    y : (n,) targets.
    weight : (n,) sample weights, or None for ones.
    environments : (n, K) responsibilities, or None.
    """

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray | None = None,
        environments: np.ndarray | None = None,
    ) -> None:
        self.X, self.y, self.weight, self.environments = X, y, weight, environments
        self.block_rows = max(256, BLOCK_BYTES // (8 * (X.shape[1] + 1)))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def sum(self, function: Callable[[Rows], T]) -> T:
        """Apply ``function`` to every block and add up the results, in the order of the rows."""
        starts = range(0, self.n_rows, self.block_rows)
        if len(starts) <= THREADS:
            return reduce(add, (function(self._block(start)) for start in starts))
        strides = [
            starts[i * len(starts) // THREADS : (i + 1) * len(starts) // THREADS]
            for i in range(THREADS)
        ]
        # One BLAS thread each: the two threads here already use both cores on small products.
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(THREADS) as pool:
            parts = pool.map(
                lambda stride: reduce(add, (function(self._block(start)) for start in stride)),
                strides,
            )
            return reduce(add, parts)

    def sample(self, size: int, seed: int) -> Rows:
        """At most ``size`` rows drawn without replacement."""
        return self._take(chosen_rows(self.n_rows, size, seed))

    def _block(self, start: int) -> Rows:
        return self._take(slice(start, start + self.block_rows))

    def _take(self, index: slice | np.ndarray) -> Rows:
        X: FloatArray = np.asarray(self.X[index], dtype=np.float64)
        y: FloatArray = np.asarray(self.y[index], dtype=np.float64)
        weight = np.ones(len(y)) if self.weight is None else np.asarray(self.weight[index], float)
        environments = None if self.environments is None else self.environments[index]
        return Rows(X, y, weight, environments)
