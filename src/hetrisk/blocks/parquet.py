"""Rows in Parquet files: streamed in record batches, never held whole."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from hetrisk.blocks.aside import described, side_matrix
from hetrisk.blocks.base import (
    Blocks,
    check_classes,
    one_hot,
)
from hetrisk.blocks.labels import sorted_labels
from hetrisk.blocks.stream import in_order, read_ahead
from hetrisk.blocks.weights import WeightScale
from hetrisk.columns import parquet as files
from hetrisk.columns.schema import common_schema
from hetrisk.core.numerics.rows import Additive, FloatArray, Rows, concatenate, take

T = TypeVar("T", bound=Additive)
R = TypeVar("R")

BLOCK_BYTES = 1 << 22  # decoding has a cost a column and batch, so blocks larger than in memory

MAX_LABELS = 10_000


class ParquetBlocks(Blocks):
    """A table in Parquet files, larger than memory if need be.

    Only a few blocks are in memory at a time. Empty row groups are passed over. Every value
    is checked on every pass: a missing or infinite one raises an error that names the file,
    the row group, the column and the row.

    Parameters
    ----------
    path : a Parquet file, a folder (searched at any depth) or a glob.
    target : name of the target column, or None for rows to predict.
    features : names of the feature columns, in order; None for every other column that all files
        have, in whatever order, with types that meet (see `hetrisk.columns.schema`). A warning
        names the columns of some files that are left outside.
    weight : name of a column of sample weights of any size, or None for ones. Their sum is found
        in a pass over the column (see `hetrisk.blocks.weights`).
    environments : name of a column of labels, or names of several: these are side columns then, in
        which whole numbers are labels too.
    aside : names of columns of side information: numbers, dates or categories, missing values
        allowed. They are no features.
    classes : labels of the target in the order of their codes, or None for a numeric target
        (classifiers find the labels themselves, in one pass over the target).
    block_rows : rows in a block; None for blocks of 4 MB.

    Attributes
    ----------
    environment_labels : distinct values of the environments column, sorted, or None.
    side_columns : what the side columns are.
    outside : columns that are not part of the table because files disagree about them, and why.

    Examples
    --------
    >>> import tempfile, pandas as pd
    >>> from hetrisk.blocks import ParquetBlocks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = pd.DataFrame({"size": [1.0, 2.0, 3.0], "price": [2.0, 4.1, 5.9]})
    ...     table.to_parquet(f"{folder}/part-0.parquet")
    ...     source = ParquetBlocks(folder, target="price")
    ...     source.n_rows, source.feature_names, source.sum(lambda rows: rows.y.sum())
    (3, ('size',), np.float64(12.0))
    """

    def __init__(
        self,
        path: str | Path,
        target: str | None,
        features: Sequence[str] | None = None,
        *,
        weight: str | None = None,
        environments: str | Sequence[str] | None = None,
        aside: Sequence[str] | str = (),
        classes: Sequence[object] | np.ndarray | None = None,
        block_rows: int | None = None,
    ) -> None:
        self.path, self.target, self.weight = path, target, weight
        self.aside = (aside,) if isinstance(aside, str) else tuple(aside)
        several = () if environments is None or isinstance(environments, str) else environments
        labels = tuple(several) if len(several) > 1 else ()
        self.environments = environments if isinstance(environments, str) else None
        if len(several) == 1:
            self.environments = several[0]
        self.aside += labels
        self.parts = files.open_parts(files.parquet_paths(path))
        self.n_rows, self.has_target = sum(part.n_rows for part in self.parts), target is not None
        starts = np.cumsum([0, *(part.n_rows for part in self.parts)]).tolist()
        self._first_rows = {p.path: first for p, first in zip(self.parts, starts, strict=False)}
        self._common = common_schema(self.parts)
        self.outside = self._common.outside
        self.features = self.feature_names = self._feature_columns(features)
        self.n_features = len(self.features)
        self.block_rows = block_rows or max(256, BLOCK_BYTES // (8 * (len(self.features) + 1)))
        self.classes = None if classes is None else check_classes(classes)
        self._check()
        if weight is not None:
            self._weight_scale = self._seen_weights().checked(f"weight column {weight!r}")
        if self.environments is not None:
            self.environment_labels = sorted_labels(self._distinct(self.environments))
            self.environment_name = self.environments
        self.side_columns = tuple(
            described(name, i, partial(self._side_parts, name), self.n_rows, name in labels)
            for i, name in enumerate(self.aside)
        )

    def map(self, function: Callable[[Rows], R]) -> Iterator[R]:
        """Yield ``function(block)`` in the order of the rows; files in the order of their names."""
        return in_order(partial(self._apply, function), read_ahead(self._batches()))

    def sum(self, function: Callable[[Rows], T]) -> T:
        return reduce(add, self.map(function))

    def labels(self) -> np.ndarray:
        """Distinct values of the target, sorted, in one pass over its column."""
        if self.target is None:
            raise ValueError("target must name a column to find its labels; got None.")
        return self._distinct(self.target)

    def encoded(self, classes: np.ndarray) -> ParquetBlocks:
        return self._altered(classes=check_classes(classes))

    def without_target(self) -> ParquetBlocks:
        """Return the same features alone: the other columns are not read."""
        gone = dict.fromkeys(("target", "weight", "environments", "classes"))
        return self._altered(**gone, aside=(), side_columns=(), has_target=False)

    def _altered(self, **changes: Any) -> ParquetBlocks:
        """Return the same files with other columns or classes."""
        other = copy(self)
        vars(other).pop("_contents", None)  # of other columns
        vars(other).update(changes)
        return other

    def _taken(self, chosen: np.ndarray) -> Rows:
        """Rows at sorted positions; row groups without any are not read."""
        return concatenate(list(in_order(self._take, read_ahead(self._chosen_batches(chosen)))))

    def _feature_columns(self, features: Sequence[str] | None) -> tuple[str, ...]:
        roles = [self.target, self.weight, self.environments, *self.aside]
        if features is None:
            for name, reason in self.outside.items():
                if name not in roles:
                    warnings.warn(f"column {name!r} is not used: {reason}.", stacklevel=3)
            return tuple(name for name in self._common.schema.names if name not in roles)
        if isinstance(features, str):
            raise ValueError(f"features must be a list of column names; got {features!r}.")
        return tuple(features)

    def _check(self) -> None:
        if not self.features:
            raise ValueError(f"features must name at least one column; '{self.path}' leaves none.")
        if len(set(self.features)) < len(self.features):
            raise ValueError(f"features must be distinct; got {list(self.features)}.")
        roles: dict[str, str] = {}
        for role, name in self._roles():
            if name in roles:
                raise ValueError(f"column {name!r} cannot be both {roles[name]} and {role}.")
            roles[name] = role
        held = self._common.schema.names
        for name in roles:
            if name not in held:
                reason = self.outside.get(name, f"'{self.path}' has only {held}")
                raise ValueError(f"column {name!r} cannot be used: {reason}.")
        self._check_types()
        if not self.n_rows:
            raise ValueError(f"'{self.path}' holds no rows in {len(self.parts)} file(s).")

    def _roles(self) -> list[tuple[str, str]]:
        """Every column that is read, and what for: no column for two things."""
        given = [("target", self.target), ("environments", self.environments)]
        given += [*(("aside", name) for name in self.aside), ("weight", self.weight)]
        roles = [("features", name) for name in self.features]
        return roles + [(role, name) for role, name in given if name is not None]

    def _check_types(self) -> None:
        for role, name in self._roles():
            kind = self._common.schema.field(name).type
            what = "numbers" if role in ("features", "weight") else "labels"
            right = files.is_number(kind) if what == "numbers" else files.is_label(kind)
            if role != "aside" and not right:
                raise ValueError(
                    f"column {name!r} must hold {what}; it holds {kind} in '{self.path}'."
                )

    @property
    def _columns(self) -> list[str]:
        return [name for _, name in self._roles()]

    def _batches(self) -> Iterator[tuple[files.ParquetPart, int, pa.RecordBatch]]:
        for part in self.parts:
            for row, batch in files.batches(part, self._columns, self.block_rows):
                yield part, row, self._common.conform(batch)

    def _column(self, name: str) -> Iterator[tuple[files.ParquetPart, int, pa.RecordBatch]]:
        """One column, in batches as large as one column may be."""
        for part in self.parts:
            for row, batch in files.batches(part, [name], 1 << 20):
                yield part, row, self._common.conform(batch)

    def _chosen_batches(
        self, chosen: np.ndarray
    ) -> Iterator[tuple[files.ParquetPart, int, pa.RecordBatch, np.ndarray]]:
        for part, row, batch, index in files.chosen_batches(
            self.parts, self._columns, self.block_rows, chosen
        ):
            yield part, row, self._common.conform(batch), index

    def _apply(
        self, function: Callable[[Rows], R], item: tuple[files.ParquetPart, int, pa.RecordBatch]
    ) -> R:
        return function(self._rows(*item))

    def _take(self, item: tuple[files.ParquetPart, int, pa.RecordBatch, np.ndarray]) -> Rows:
        part, row, batch, index = item
        try:
            return self._rows(part, row, batch.take(pa.array(index)))
        except ValueError:
            # Something is wrong with a chosen row: the whole batch gives its place in the file.
            return take(self._rows(part, row, batch), index)

    def _rows(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> Rows:
        weights = self._weights(part, row, batch)
        return Rows(
            self._features(part, row, batch),
            self._targets(part, row, batch),
            weights if self.weight is None else self._weight_scale.scaled(weights),
            self._environments(part, row, batch),
            self._aside(part, row, batch),
            self._first_rows[part.path] + row,
        )

    def _features(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> FloatArray:
        X: FloatArray = np.empty((batch.num_rows, len(self.features)))
        for j, name in enumerate(self.features):
            X[:, j] = files.numbers(batch, name, part, row)
        return X

    def _targets(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> FloatArray:
        if self.target is None:
            return np.full(batch.num_rows, np.nan)
        if self.classes is not None:
            return files.codes(batch, self.target, part, row, self.classes).astype(np.float64)
        if not files.is_number(batch.column(self.target).type):
            found = batch.column(self.target).type
            raise ValueError(
                f"target column {self.target!r} must hold numbers (or pass classes=); it holds "
                f"{found} in file '{part.path}'."
            )
        return files.numbers(batch, self.target, part, row)

    def _weights(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> FloatArray:
        if self.weight is None:
            return np.ones(batch.num_rows)
        values = files.numbers(batch, self.weight, part, row)
        if values.min(initial=0.0) < 0:
            first = row + int(np.argmax(values < 0))
            raise ValueError(
                f"{part.place(first)}: weight column {self.weight!r} is negative in row {first} "
                "of the file."
            )
        return values

    def _seen_weights(self) -> WeightScale:
        assert self.weight is not None  # asked for only where there is such a column
        weights = (self._weights(*item) for item in self._column(self.weight))
        return reduce(add, map(WeightScale.of, weights))

    def _environments(
        self, part: files.ParquetPart, row: int, batch: pa.RecordBatch
    ) -> FloatArray | None:
        if self.environments is None or self.environment_labels is None:
            return None
        position = files.codes(batch, self.environments, part, row, self.environment_labels)
        return one_hot(position, len(self.environment_labels))

    def _aside(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> FloatArray | None:
        if not self.aside:
            return None
        values = [self._side(part, row, batch, name) for name in self.aside]
        return side_matrix(values, self.side_columns)

    def _side(
        self, part: files.ParquetPart, row: int, batch: pa.RecordBatch, name: str
    ) -> pd.Series:
        values: pd.Series = batch.column(name).to_pandas(date_as_object=False)
        return values

    def _side_parts(self, name: str) -> Iterator[pd.Series]:
        for part, row, batch in self._column(name):
            yield self._side(part, row, batch, name)

    def _distinct(self, column: str) -> np.ndarray:
        found: pa.Array | None = None
        for part, row, batch in self._column(column):
            new = files.plain_labels(batch, column, part, row)
            found = pc.unique(new if found is None else pa.concat_arrays([found, pc.unique(new)]))
            if len(found) > MAX_LABELS:
                raise ValueError(
                    f"column {column!r} must hold labels; it has more than {MAX_LABELS} distinct "
                    "values."
                )
        assert found is not None  # there is at least one row: checked when the files were opened
        # As a list once more: text held as objects becomes an array of text.
        text = pa.types.is_string(found.type)
        values = np.asarray(found.to_pylist()) if text else found.to_numpy(zero_copy_only=False)
        return np.sort(values)
