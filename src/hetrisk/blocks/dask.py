"""Rows on dask: arrays and dataframes, on local threads or on the workers of a cluster.

The graph of the collection is walked once a pass: rows kept on the workers with ``persist()``
are read from their memory, others are computed again. What travels is the function, once a
pass, and the sums, one a partition; they are added in a tree of fixed shape, so the answer
does not depend on which worker was quicker, or on whether one was lost and its partitions
computed again elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial, reduce
from operator import add
from typing import Any, TypeVar

import dask.array as da
import numpy as np
import pandas as pd
from dask.base import compute, is_dask_collection
from dask.delayed import Delayed, delayed

from hetrisk.blocks.aside import as_frame, described, side_matrix
from hetrisk.blocks.base import (
    Blocks,
    check_classes,
    codes_in,
    one_hot,
)
from hetrisk.blocks.labels import (
    as_labels,
    check_shares,
    in_numpy,
    name_of,
    refuse_mixed,
    sorted_labels,
)
from hetrisk.blocks.memory import ArrayBlocks
from hetrisk.blocks.partitions import (
    aligned,
    are_label_columns,
    beside,
    check_features,
    one_column,
    partitions,
)
from hetrisk.blocks.stream import single_blas_thread
from hetrisk.blocks.weights import WeightScale
from hetrisk.core.numerics.rows import Additive, FloatArray, Rows, concatenate, take
from hetrisk.core.result import SideColumn

T = TypeVar("T", bound=Additive)
R = TypeVar("R")

FAN_IN = 8  # sums added by one task of the tree
WINDOW = 16  # partitions in flight when results come back one by one


class DaskBlocks(Blocks):
    """A dask array or dataframe, one partition of rows a task.

    Parameters
    ----------
    X : dask array (n, d) or dask dataframe of numbers.
    y : (n,) targets: a dask array or series with the same partitions (arrays with other chunks
        are rechunked), or an array in memory; None for rows to predict.
    weight : (n,) sample weights of any size, as ``y``, or None for ones. Their sum is found in a
        pass over them (see `hetrisk.blocks.weights`).
    environments : (n,) labels, a dataframe of several columns of labels, not all of them floating
        point (these are side columns then, in which whole numbers are labels too), or (n, K)
        responsibilities, as ``y``; or None.
    aside : (n, m) side information, as ``y``: a dask dataframe, series or array, or None.
    classes : labels of the target in the order of their codes, or None for a numeric target.

    Attributes
    ----------
    environment_labels : distinct environment labels, sorted, where labels were given.
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        weight: Any = None,
        environments: Any = None,
        aside: Any = None,
        classes: Sequence[object] | np.ndarray | None = None,
    ) -> None:
        # A collection kept on the workers by persist() is forgotten with its last reference.
        self._collections = (X, y, weight, environments, aside)
        given = in_numpy(environments)
        environments = one_column(given)
        if aside is not None and not is_dask_collection(aside):
            aside = as_frame(aside)  # with the names of its columns
        several: tuple[str, ...] = ()
        if are_label_columns(environments):
            several = tuple(map(str, environments.columns))
            aside, environments = beside(aside, environments), None
        self.feature_names = check_features(X)
        self.n_features = int(X.shape[1])
        features = partitions(X)
        self.lengths: list[int] = _compute([delayed(len)(part) for part in features])
        self.n_rows = sum(self.lengths)
        if not self.n_rows:
            raise ValueError(f"X must have rows; got none in {len(features)} partition(s).")
        self._columns = {
            "X": features,
            "y": aligned(y, self.lengths, "y"),
            "sample_weight": aligned(weight, self.lengths, "sample_weight"),
            "environments": aligned(environments, self.lengths, "environments"),
            "aside": aligned(aside, self.lengths, "aside"),
        }
        self._weight_scale = None if weight is None else self._scale_of_weights()
        self.has_target = y is not None
        self.classes = None if classes is None else check_classes(classes)
        if environments is not None and environments.ndim == 1:
            labels = delayed(as_labels, pure=False)
            self._columns["environments"] = list(map(labels, self._columns["environments"]))
            self.environment_labels = sorted_labels(self._distinct("environments"))
            # That of a dask array is the name of a task.
            self.environment_name = "" if isinstance(given, da.Array) else name_of(given)
        elif environments is not None:
            self.n_shares = int(environments.shape[1])
        self.side_columns = () if aside is None else self._describe_aside(several)

    def sum(self, function: Callable[[Rows], T]) -> T:
        """Apply ``function`` to every block and add up the results, in a tree."""
        sums = self._tasks(_partition_sum, _shared(function))
        while len(sums) > 1:
            groups = [sums[i : i + FAN_IN] for i in range(0, len(sums), FAN_IN)]
            sums = [delayed(_added, pure=False)(group) for group in groups]
        total: T = _compute(sums)[0]
        return total

    def map(self, function: Callable[[Rows], R]) -> Iterator[R]:
        """Yield ``function(block)`` in the order of the rows, one block a partition."""
        tasks = self._tasks(_applied, _shared(function))
        for start in range(0, len(tasks), WINDOW):
            yield from _compute(tasks[start : start + WINDOW])

    def _taken(self, chosen: np.ndarray) -> Rows:
        """Rows at sorted positions; others do not travel."""
        starts = np.cumsum([0, *self.lengths])
        cuts = np.searchsorted(chosen, starts)
        rows = delayed(_taken, pure=False)
        blocks = self._blocks()
        return concatenate(
            _compute(
                [
                    rows(chosen[cuts[i] : cuts[i + 1]] - starts[i], block)
                    for i, block in blocks.items()
                    if cuts[i + 1] > cuts[i]
                ]
            )
        )

    def labels(self) -> np.ndarray:
        if not self.has_target:
            raise ValueError("y must be given to find its labels; got None.")
        return self._distinct("y")

    def encoded(self, classes: np.ndarray) -> DaskBlocks:
        other = copy(self)
        vars(other).pop("_contents", None)  # of other columns
        other.classes = check_classes(classes)
        return other

    def without_target(self) -> DaskBlocks:
        other = copy(self)
        vars(other).pop("_contents", None)  # of other columns
        nothing: list[Any] = [None] * len(self.lengths)
        other._columns = dict.fromkeys(self._columns, nothing) | {"X": self._columns["X"]}
        other.has_target, other.environment_labels, other.side_columns = False, None, ()
        other.n_shares, other._weight_scale = 0, None
        return other

    def _scale_of_weights(self) -> WeightScale:
        seen = delayed(_seen_weights, pure=False)
        columns = zip(self._columns["sample_weight"], self.lengths, strict=True)
        found = _compute([seen(part, n, i) for i, (part, n) in enumerate(columns)])
        return reduce(add, found).checked("sample_weight")

    def _describe_aside(self, labels: Sequence[str]) -> tuple[SideColumn, ...]:
        """What the side columns are; a column at a time travels from the workers."""
        frames = [delayed(as_frame, pure=False)(part) for part in self._columns["aside"]]
        names: list[str] = _compute([delayed(list, pure=False)(frames[0])])[0]

        def parts(position: int) -> list[pd.Series]:
            return _compute([delayed(_column, pure=False)(f, position) for f in frames])

        return tuple(
            described(str(name), i, partial(parts, i), self.n_rows, str(name) in labels)
            for i, name in enumerate(names)
        )

    def _distinct(self, name: str) -> np.ndarray:
        task = delayed(_labels_of, pure=False)
        found = _compute([task(i, part, name) for i, part in enumerate(self._columns[name])])
        values = np.concatenate(found)
        refuse_mixed(name, values)
        # As a list once more: text held as objects becomes an array of text.
        return np.unique(np.asarray(values.tolist()) if values.dtype.kind == "O" else values)

    def _blocks(self) -> dict[int, Delayed]:
        """Rows of each partition that has any, by its number."""
        rows = delayed(partial(_rows, scale=self._weight_scale), pure=False)
        columns = zip(*self._columns.values(), strict=True)
        starts = np.cumsum([0, *self.lengths]).tolist()
        return {
            i: rows(i, *parts, self.classes, self.environment_labels, self.side_columns, starts[i])
            for i, parts in enumerate(columns)
            if self.lengths[i]
        }

    def _tasks(self, task: Callable[..., Any], function: Delayed) -> list[Delayed]:
        return [delayed(task, pure=False)(function, block) for block in self._blocks().values()]


def _compute(tasks: Sequence[Delayed]) -> list[Any]:
    with single_blas_thread():
        return list(compute(*tasks))


def _shared(function: Callable[[Rows], Any]) -> Delayed:
    """Return the function as a task of its own: it travels once a worker, not once a partition."""
    task: Delayed = delayed(function, pure=False, traverse=False)
    return task


def _rows(
    number: int,
    X: Any,
    y: Any,
    weight: Any,
    environments: Any,
    aside: Any,
    classes: np.ndarray | None,
    environment_labels: np.ndarray | None,
    side_columns: tuple[SideColumn, ...],
    start: int,
    scale: WeightScale | None,
) -> Rows:
    """Rows of a partition, checked: every value finite, every column as long as X."""
    n = len(X)
    features = _numbers(X, n, "X", number)
    if y is None:
        target = np.full(n, np.nan)
    elif classes is None:
        target = _numbers(y, n, "y", number)
    else:
        target = codes_in(classes, np.asarray(y)).astype(np.float64)
    return Rows(
        features,
        target,
        np.ones(n) if scale is None else scale.scaled(_weights(weight, n, number)),
        _responsibilities(environments, n, environment_labels, number),
        _side_values(aside, side_columns),
        start,
    )


def _weights(values: Any, n: int, number: int) -> FloatArray:
    """(n,) weights of a partition, as given."""
    weight = _numbers(values, n, "sample_weight", number)
    if weight.min(initial=0.0) < 0:
        raise ValueError(f"partition {number}: sample_weight must not be negative.")
    return weight


def _seen_weights(values: Any, n: int, number: int) -> WeightScale:
    return WeightScale.of(_weights(values, n, number))


def _side_values(aside: Any, columns: tuple[SideColumn, ...]) -> FloatArray | None:
    if aside is None:
        return None
    frame = as_frame(aside)
    return side_matrix([_column(frame, i) for i in range(len(columns))], columns)


def _column(frame: pd.DataFrame, position: int) -> pd.Series:
    return frame.iloc[:, position]


def _responsibilities(
    environments: Any, n: int, labels: np.ndarray | None, number: int
) -> FloatArray | None:
    if environments is None:
        return None
    if len(environments) != n:
        raise ValueError(
            f"partition {number}: environments must have length {n}; got {len(environments)}."
        )
    if labels is None:
        try:
            return check_shares(np.asarray(environments))
        except ValueError as error:
            raise ValueError(f"partition {number}: {error}") from error
    return one_hot(codes_in(labels, np.asarray(environments)), len(labels))


def _labels_of(number: int, values: Any, name: str) -> np.ndarray:
    """Distinct labels of a partition, none missing."""
    labels = np.asarray(values)
    missing = np.flatnonzero(pd.isna(labels))
    if len(missing):
        raise ValueError(f"partition {number}: {name} is missing in row {missing[0]}.")
    refuse_mixed(f"partition {number}: {name}", labels)
    return np.unique(labels)


def _numbers(values: Any, n: int, name: str, number: int) -> FloatArray:
    array: FloatArray = np.ascontiguousarray(values, dtype=np.float64)
    if len(array) != n:
        raise ValueError(f"partition {number}: {name} must have length {n}; got {len(array)}.")
    with np.errstate(invalid="ignore", over="ignore"):
        total = array.sum()  # finite unless a value is not, or the values overflow
    if not np.isfinite(total) and not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))[0]
        column = f", column {bad[1]}" if array.ndim == 2 else ""
        kind = "NaN" if np.isnan(array[tuple(bad)]) else "infinite"
        raise ValueError(f"partition {number}: {name} is {kind} in row {bad[0]}{column}.")
    return array


def _partition_sum(function: Callable[[Rows], T], rows: Rows) -> T:
    """Sum over a partition in blocks that fit the cache, on the one thread of the task."""
    source = ArrayBlocks(rows.X, rows.y, rows.weight, rows.environments, rows.aside, rows.start)
    return source.stride_sum(function, range(0, source.n_rows, source.block_rows))


def _applied(function: Callable[[Rows], R], rows: Rows) -> R:
    return function(rows)


def _taken(index: np.ndarray, rows: Rows) -> Rows:
    return take(rows, index)


def _added(parts: list[T]) -> T:
    return reduce(add, parts)
