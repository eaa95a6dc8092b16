"""Parquet files whose columns are not numbers yet: every block is encoded as it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from hetrisk.blocks.base import codes_in, one_hot
from hetrisk.blocks.parquet import ParquetBlocks, check_number_of_labels
from hetrisk.blocks.stream import in_order, read_ahead
from hetrisk.columns import parquet as files
from hetrisk.core.numerics.rows import FloatArray

if TYPE_CHECKING:
    from hetrisk.blocks.dask import DaskBlocks

# Names no column can have: a file's names hold no NUL.
_TARGET, _WEIGHT, _ENVIRONMENT, _ASIDE = "\0target", "\0weight", "\0environment", "\0aside"


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

    @property
    def read_columns(self) -> tuple[str, ...]:
        """Every column of the files that is looked at."""
        others = (self.target, self.environments, self.weight, *self.aside)
        return (*self.columns, *(column.name for column in others if column is not None))


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

    def written(self, place: Path) -> ParquetBlocks:
        """Write the encoded rows to a file and return them as they lie there.

        The same rows, without the work of reading text on every pass over them.
        """
        tables = in_order(self._encoded, read_ahead(self._batches()))
        first = next(tables)
        with pq.ParquetWriter(place, first.schema, use_dictionary=False) as writer:
            for table in chain([first], tables):
                writer.write_table(table)
        return ParquetBlocks(
            place,
            _TARGET,
            self.encoding.feature_names,
            weight=None if self.weight is None else _WEIGHT,
            environments=None if self.environments is None else _ENVIRONMENT,
            aside=self.aside,
        )

    def _encoded(self, item: tuple[files.ParquetPart, int, pa.RecordBatch]) -> pa.Table:
        """One batch as it is written: numbers, and names of environments and classes."""
        part, row, batch = item
        X = self._features(part, row, batch)
        arrays = {name: pa.array(X[:, j]) for j, name in enumerate(self.feature_names)}
        arrays[_TARGET] = _plain(self._read_targets(part, row, batch))
        if self.encoding.weight is not None:
            arrays[_WEIGHT] = _plain(self._read(self.encoding.weight, part, row, batch))
        if self.encoding.environments is not None:
            arrays[_ENVIRONMENT] = _plain(self._read(self.encoding.environments, part, row, batch))
        for side in self.encoding.aside:
            arrays[side.name] = _plain(self._read(side, part, row, batch))
        return pa.table(arrays)

    def _check_types(self) -> None:
        """Any type will do: the encoding knows."""
        files.require(self.parts, *self._columns)

    def _features(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> FloatArray:
        frame = files.frame_of(pa.Table.from_batches([batch]))
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
        frame = files.frame_of(pa.Table.from_batches([batch]).select([column.name]))
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


def encoded_on_cluster(path: str | Path, encoding: Encoding) -> DaskBlocks:
    """Return the same rows as `EncodedBlocks`, read and encoded by the workers of dask.

    One partition a row group, by hand: dask's own reader may fuse the partitions of some columns
    and not of others, and then rows of X and y no longer come in step.
    """
    import dask.dataframe as dd

    from hetrisk.blocks.dask import DaskBlocks

    parts = files.open_parts(files.parquet_paths(path))
    files.require(parts, *encoding.read_columns)
    groups = [(str(p.path), g) for p in parts for g, rows in enumerate(p.group_rows) if rows]
    if not groups:
        raise ValueError(f"'{path}' holds no rows in {len(parts)} file(s).")
    places, numbers = zip(*groups, strict=True)
    meta = _encoded_group(*groups[0], encoding=encoding).iloc[:0]
    table = dd.from_map(_encoded_group, places, numbers, encoding=encoding, meta=meta)
    aside = [_ASIDE + column.name for column in encoding.aside]
    plainly = table[aside].rename(columns=lambda name: name.removeprefix(_ASIDE))
    return DaskBlocks(
        table[list(encoding.feature_names)],
        table[_TARGET],
        weight=None if encoding.weight is None else table[_WEIGHT],
        environments=None if encoding.environments is None else table[_ENVIRONMENT],
        aside=plainly if aside else None,
    )


def _encoded_group(file: str, group: int, encoding: Encoding) -> pd.DataFrame:
    """Return one row group as numbers; runs on the workers of the cluster."""
    try:
        table = pq.ParquetFile(file).read_row_group(group, columns=list(encoding.read_columns))
        return _encoded_frame(files.frame_of(table), encoding)
    except (pa.ArrowException, OSError) as error:
        what = f"cannot be read ({files.line_of(error)})."
        raise ValueError(f"file '{file}', row group {group}: {what}") from error
    except ValueError as error:
        raise ValueError(f"file '{file}', row group {group}: {error}") from error


def _encoded_frame(frame: pd.DataFrame, encoding: Encoding) -> pd.DataFrame:
    features = encoding.features(frame[list(encoding.columns)])
    targets = encoding.target.read(frame[encoding.target.name])
    missing = np.flatnonzero(pd.isna(targets))
    if len(missing):
        raise ValueError(
            f"column {encoding.target.name!r} is missing in row {missing[0]} of the group."
        )
    encoded = pd.DataFrame(features, columns=list(encoding.feature_names))
    encoded[_TARGET] = targets
    for key, column in ((_WEIGHT, encoding.weight), (_ENVIRONMENT, encoding.environments)):
        if column is not None:
            encoded[key] = column.read(frame[column.name])
    for column in encoding.aside:
        encoded[_ASIDE + column.name] = column.read(frame[column.name])
    return encoded


@contextmanager
def _placed(part: files.ParquetPart, row: int) -> Iterator[None]:
    """Say in which file and from which row on something was wrong."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{part.place(row)}, rows counted from {row}: {error}") from error


def _plain(values: np.ndarray) -> pa.Array:
    """Values as Arrow: numbers and dates as they are, names as text, whatever a batch holds."""
    return pa.array(values, pa.string() if values.dtype.kind in "OU" else None)


def _name(column: ReadColumn | None) -> str | None:
    return None if column is None else column.name
