"""Rows in memory, visited in blocks that fit the cache, on two threads where that pays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, reduce
from itertools import pairwise
from operator import add
from typing import TypeVar

import numpy as np

from hetrisk.blocks.base import Blocks, check_classes, codes_in
from hetrisk.blocks.stream import THREADS, in_order, single_blas_thread
from hetrisk.core.numerics.rows import WIDE_ROWS, Additive, FloatArray, Rows

T = TypeVar("T", bound=Additive)
R = TypeVar("R")

BLOCK_BYTES = 1 << 20  # a block and its weighted copy stay within a second-level cache
STRIDES = 4 * THREADS  # runs of blocks a thread takes at a time: even work, few hand-overs


class ArrayBlocks(Blocks):
    """A numpy table in row blocks.

    Parameters
    ----------
    X : (n, d) features; converted to float64 block by block.
    y : (n,) targets.
    weight : (n,) sample weights, or None for ones.
    environments : (n, K) responsibilities, or None.
    aside : (n, m) side information as numbers, or None.
    start : position of the first row, where these are part of a larger table.
    """

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray | None = None,
        environments: np.ndarray | None = None,
        aside: np.ndarray | None = None,
        start: int = 0,
    ) -> None:
        self.X, self.y, self.weight, self.environments = X, y, weight, environments
        self.aside, self.start = aside, start
        self.n_rows, self.n_features = X.shape
        self.n_shares = 0 if environments is None else environments.shape[1]
        fitting = BLOCK_BYTES // (8 * (X.shape[1] + 1))
        self.block_rows = max(256, fitting - fitting % WIDE_ROWS)

    def sum(self, function: Callable[[Rows], T]) -> T:
        starts = range(0, self.n_rows, self.block_rows)
        if len(starts) <= THREADS:
            with single_blas_thread():  # on a block this small its threads wait for each other
                return self.stride_sum(function, starts)
        cuts = [i * len(starts) // STRIDES for i in range(STRIDES + 1)]
        strides = [starts[a:b] for a, b in pairwise(cuts) if b > a]
        return reduce(add, in_order(partial(self.stride_sum, function), strides))

    def map(self, function: Callable[[Rows], R]) -> Iterator[R]:
        starts = range(0, self.n_rows, self.block_rows)
        if len(starts) <= THREADS:
            return (function(self._block(start)) for start in starts)
        return in_order(lambda start: function(self._block(start)), starts)

    def labels(self) -> np.ndarray:
        return np.unique(self.y)

    def encoded(self, classes: np.ndarray) -> ArrayBlocks:
        codes = codes_in(check_classes(classes), self.y)
        return ArrayBlocks(self.X, codes, self.weight, self.environments, self.aside, self.start)

    def carrying(self, environments: np.ndarray | None, aside: np.ndarray | None) -> ArrayBlocks:
        """Return the same rows with what is known about them."""
        return ArrayBlocks(self.X, self.y, self.weight, environments, aside, self.start)

    def _taken(self, chosen: np.ndarray) -> Rows:
        return self._take(chosen)

    def without_target(self) -> ArrayBlocks:
        """Return the same features, every target NaN."""
        return ArrayBlocks(self.X, np.broadcast_to(np.nan, self.n_rows))

    def stride_sum(self, function: Callable[[Rows], T], starts: range) -> T:
        """Sum over the blocks that begin at these rows, on the caller's thread."""
        return reduce(add, (function(self._block(start)) for start in starts))

    def _block(self, start: int) -> Rows:
        return self._take(slice(start, start + self.block_rows), self.start + start)

    def _take(self, index: slice | np.ndarray, start: int = 0) -> Rows:
        # To take rows is quicker than to index by them.
        part = self.X[index] if isinstance(index, slice) else self.X.take(index, axis=0)
        X: FloatArray = np.asarray(part, dtype=np.float64)
        y: FloatArray = np.asarray(self.y[index], dtype=np.float64)
        weight = np.ones(len(y)) if self.weight is None else np.asarray(self.weight[index], float)
        environments = None if self.environments is None else self.environments[index]
        aside = None if self.aside is None else self.aside[index]
        return Rows(X, y, weight, environments, aside, start)
