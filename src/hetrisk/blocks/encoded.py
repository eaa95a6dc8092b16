"""Parquet files whose columns are not numbers yet: every block is encoded as it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa

from hetrisk.blocks.base import codes_in, one_hot
from hetrisk.blocks.parquet import ParquetBlocks, check_number_of_labels
from hetrisk.columns import arrow
from hetrisk.columns import parquet as files
from hetrisk.core.numerics.rows import FloatArray

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class ReadColumn:
    """A column, and how its cells become values; travels to workers.

    Attributes
    ----------
    name : of the column.
    read : the column -> (n,) values; a ValueError says what cannot be read.
    """

    name: str
    read: Callable[[pd.Series], np.ndarray]


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become features, a target and what goes with them.

    Attributes
    ----------
    columns : the columns the features are made of.
    feature_names : names of the features, in order.
    features : table -> (n, d) finite numbers.
    target : the column to predict: numbers or labels, None or NaN where one is missing.
    environments : the column that names where a row came from, none missing; or None.
    aside : columns of side information: numbers, dates or names, missing values allowed.
    weight : the column of weights, finite numbers that are not negative; or None.
    """

    columns: tuple[str, ...]
    feature_names: tuple[str, ...]
    features: Callable[[pd.DataFrame], FloatArray]
    target: ReadColumn
    environments: ReadColumn | None = None
    aside: tuple[ReadColumn, ...] = ()
    weight: ReadColumn | None = None


class EncodedBlocks(ParquetBlocks):
    """A table in Parquet files, seen through an `Encoding`.

    Parameters
    ----------
    path : a Parquet file, a folder (searched at any depth) or a glob.
    encoding : how its columns become numbers.
    """

    def __init__(self, path: str | Path, encoding: Encoding) -> None:
        self.encoding = encoding
        self._readers = {column.name: column for column in encoding.aside}
        super().__init__(
            path,
            encoding.target.name,
            encoding.columns,
            weight=_name(encoding.weight),
            environments=_name(encoding.environments),
            aside=tuple(self._readers),
        )

    @property
    def n_features(self) -> int:
        """Number of encoded features."""
        return len(self.encoding.feature_names)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded features."""
        return self.encoding.feature_names

    def labels(self) -> np.ndarray:
        """Distinct labels of the target, sorted, in one pass over its column."""
        found: set[str] = set()
        for part, row, batch in self._column(self.encoding.target.name):
            found |= set(self._read_targets(part, row, batch))
        return np.sort(np.asarray(list(found)))

    def _check_types(self) -> None:
        """Any type will do: the encoding knows."""
        files.require(self.parts, *self._columns)

    def _features(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> FloatArray:
        frame = arrow.frame_of(pa.Table.from_batches([batch]))
        with _placed(part, row):
            return self.encoding.features(frame[list(self.encoding.columns)])

    def _weights(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> FloatArray:
        if self.weight is None or self.encoding.weight is None:
            return np.ones(batch.num_rows)
        return self._read(self.encoding.weight, part, row, batch)

    def _environments(
        self, part: files.ParquetPart, row: int, batch: pa.RecordBatch
    ) -> FloatArray | None:
        if self.environments is None or self.environment_labels is None:
            return None
        assert self.encoding.environments is not None  # it named the column
        names = self._read(self.encoding.environments, part, row, batch)
        position = codes_in(self.environment_labels, names.astype(self.environment_labels.dtype))
        return one_hot(position, len(self.environment_labels))

    def _environment_names(self) -> np.ndarray:
        assert self.encoding.environments is not None  # it named the column
        column, found = self.encoding.environments, set[str]()
        for part, row, batch in self._column(column.name):
            found |= set(self._read(column, part, row, batch))
            check_number_of_labels(column.name, len(found))
        return np.sort(np.asarray(list(found)))

    def _side(
        self, part: files.ParquetPart, row: int, batch: pa.RecordBatch, name: str
    ) -> pd.Series:
        return pd.Series(self._read(self._readers[name], part, row, batch)).infer_objects()

    def _read(
        self, column: ReadColumn, part: files.ParquetPart, row: int, batch: pa.RecordBatch
    ) -> np.ndarray:
        frame = arrow.frame_of(pa.Table.from_batches([batch]).select([column.name]))
        with _placed(part, row):
            return column.read(frame[column.name])

    def _targets(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> FloatArray:
        if self.target is None:
            return np.full(batch.num_rows, np.nan)
        values = self._read_targets(part, row, batch)
        if self.classes is not None:
            values = codes_in(self.classes, values.astype(self.classes.dtype))
        return values.astype(np.float64)

    def _read_targets(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> np.ndarray:
        values = self._read(self.encoding.target, part, row, batch)
        missing = np.flatnonzero(pd.isna(values))
        if len(missing):
            files.fail(part, row, int(missing[0]), self.encoding.target.name, "missing")
        return values


@contextmanager
def _placed(part: files.ParquetPart, row: int) -> Iterator[None]:
    """Say in which file and from which row on something was wrong."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{part.place(row)}, rows counted from {row}: {error}") from error


def _name(column: ReadColumn | None) -> str | None:
    return None if column is None else column.name
