"""The interface every backend implements: sums over blocks, and samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from hetrisk.blocks.labels import quoted
from hetrisk.blocks.sampling import company, content
from hetrisk.columns.sampling import Hashes, chosen_rows
from hetrisk.core.numerics.rows import Additive, FloatArray, Rows, take, wide_view
from hetrisk.core.result import SideColumn

T = TypeVar("T", bound=Additive)
R = TypeVar("R")


class Blocks(ABC):
    """Rows seen through sums over blocks (`hetrisk.core.numerics.rows.RowSource`).

    Attributes
    ----------
    environment_labels : distinct labels of known environments, sorted, in the order of the
        columns of ``Rows.environments``; None where labels were not given.
    environment_name : what these labels are called; "" where they have no name.
    side_columns : what the columns of ``Rows.aside`` are.
    time_rule : how the column of time was read, where it became numbers; None where it held them.
    n_rows, n_features : number of rows and of features.
    feature_names : names of the features, where the table has them.
    n_shares : columns of the responsibilities that rows carry; 0 where they carry labels, or none.
    has_target : whether the rows carry targets (else ``Rows.y`` is NaN).
    """

    environment_labels: np.ndarray | None = None
    environment_name: str = ""
    side_columns: tuple[SideColumn, ...] = ()
    time_rule: Any = None
    n_rows: int
    n_features: int
    feature_names: tuple[str, ...] | None = None
    n_shares: int = 0
    has_target: bool = True

    @abstractmethod
    def map(self, function: Callable[[Rows], R]) -> Iterator[R]:
        """Yield ``function(block)`` for every block, in the order of the rows."""

    @abstractmethod
    def sum(self, function: Callable[[Rows], T]) -> T:
        """Apply ``function`` to every block of rows and add up the results."""

    def sample(self, size: int, seed: int = 0) -> Rows:
        """At most ``size`` rows by what they hold: the same wherever they live, in any order.

        They come in an order of their own (`hetrisk.blocks.sampling`). Memory holds a number for
        every row, and so is what it was found from: a further sample reads its own rows alone.
        """
        chosen = chosen_rows(self._contents, size, seed, lambda: self.collect(company))
        order = np.argsort(chosen)
        return take(self._taken(chosen[order]), np.argsort(order))

    @cached_property
    def _contents(self) -> Hashes:
        return self.collect(content)

    @abstractmethod
    def _taken(self, chosen: np.ndarray) -> Rows:
        """Return the rows at sorted positions."""

    @abstractmethod
    def labels(self) -> np.ndarray:
        """Distinct values of the target, sorted: the classes of a classification."""

    @abstractmethod
    def encoded(self, classes: np.ndarray) -> Blocks:
        """Return the same rows with targets as positions in ``classes``."""

    @abstractmethod
    def without_target(self) -> Blocks:
        """Return the same rows to predict: features alone."""

    def collect(self, function: Callable[[Rows], np.ndarray]) -> np.ndarray:
        """Concatenate ``function(block)``, an array with one entry a row, over all blocks."""
        return np.concatenate(list(self.map(function)))

    def standardised(self, centre: FloatArray, scale: FloatArray) -> Blocks:
        """See the same rows as (z - centre) / scale, the p = d + 1 columns (X, y) in order.

        Applied block by block: no copy of the table is made.
        """
        return self.viewed(Standardise(centre, scale))

    def viewed(self, transform: Callable[[Rows], Rows], n_features: int | None = None) -> Blocks:
        """See the same rows through a picklable function of each block.

        ``n_features`` says how many features come out, where that is not what goes in.
        """
        return ViewedBlocks(self, transform, n_features)


@dataclass(frozen=True)
class Standardise:
    """z -> (z - centre) / scale on the columns (X, y)."""

    centre: FloatArray
    scale: FloatArray

    def __call__(self, rows: Rows) -> Rows:
        wide, n_wide = wide_view(rows.X)
        X = wide - np.tile(self.centre[:-1], n_wide)
        X *= np.tile(1.0 / self.scale[:-1], n_wide)  # in place, and a product: every pass does this
        y = (rows.y - self.centre[-1]) / self.scale[-1]
        return replace(rows, X=X.reshape(rows.X.shape), y=y)


@dataclass(frozen=True)
class _Composed(Generic[R]):
    outer: Callable[[Rows], R]
    inner: Callable[[Rows], Rows]

    def __call__(self, rows: Rows) -> R:
        return self.outer(self.inner(rows))


class ViewedBlocks(Blocks):
    """A view of other blocks through a function of each."""

    def __init__(
        self,
        source: Blocks,
        transform: Callable[[Rows], Rows],
        n_features: int | None = None,
    ) -> None:
        self.source = source
        self.transform = transform
        self.n_rows, self.feature_names = source.n_rows, source.feature_names
        self.n_features = source.n_features if n_features is None else n_features
        self.n_shares, self.has_target = source.n_shares, source.has_target
        self.environment_labels = source.environment_labels
        self.environment_name = source.environment_name
        self.side_columns = source.side_columns

    def map(self, function: Callable[[Rows], R]) -> Iterator[R]:
        return self.source.map(_Composed(function, self.transform))

    def labels(self) -> np.ndarray:
        return self.source.labels()

    def encoded(self, classes: np.ndarray) -> Blocks:
        return ViewedBlocks(self.source.encoded(classes), self.transform, self.n_features)

    def without_target(self) -> Blocks:
        return ViewedBlocks(self.source.without_target(), self.transform, self.n_features)

    def sum(self, function: Callable[[Rows], T]) -> T:
        return self.source.sum(_Composed(function, self.transform))

    def sample(self, size: int, seed: int = 0) -> Rows:
        return self.transform(self.source.sample(size, seed))

    def _taken(self, chosen: np.ndarray) -> Rows:
        return self.transform(self.source._taken(chosen))


def check_classes(classes: Sequence[object] | np.ndarray) -> np.ndarray:
    """Return class labels as an array, at least one and all distinct."""
    values = np.asarray(classes)
    if values.ndim != 1 or len(values) == 0 or len(np.unique(values)) < len(values):
        raise ValueError(f"classes must be distinct labels, at least one; got {classes!r}.")
    return values


def one_hot(codes: np.ndarray, n_columns: int) -> FloatArray:
    """(n, n_columns) matrix with a one in column ``codes[i]`` of row i."""
    matrix = np.zeros((len(codes), n_columns))
    matrix[np.arange(len(codes)), codes] = 1.0
    return matrix


def codes_in(classes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Positions of ``values`` in ``classes``."""
    order = np.argsort(classes)
    position = np.searchsorted(classes, values, sorter=order)
    found = order[np.minimum(position, len(classes) - 1)]
    unknown = np.flatnonzero(classes[found] != values)
    if len(unknown):
        raise ValueError(
            f"y must hold labels among the {len(classes)} classes {classes.tolist()[:10]}; got "
            f"{quoted(np.asarray(values)[unknown[0]])}."
        )
    return found
