"""Parquet files whose columns are not numbers yet: every block is encoded as it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from hetrisk.blocks import files
from hetrisk.blocks.base import codes_in
from hetrisk.blocks.parquet import ParquetBlocks
from hetrisk.core.numerics.rows import FloatArray

if TYPE_CHECKING:
    from hetrisk.blocks.dask import DaskBlocks

_TARGET = "\0target"  # a name no column can have


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become features and a target; travels to workers.

    Attributes
    ----------
    columns : the columns the features are made of.
    feature_names : names of the features, in order.
    features : table -> (n, d) finite numbers.
    target : the column to predict.
    targets : that column -> (n,) numbers or labels, None or NaN where one is missing.
    """

    columns: tuple[str, ...]
    feature_names: tuple[str, ...]
    features: Callable[[pd.DataFrame], FloatArray]
    target: str
    targets: Callable[[pd.Series], np.ndarray]


class EncodedBlocks(ParquetBlocks):
    """A table in Parquet files, seen through an `Encoding`.

    Parameters
    ----------
    path : a Parquet file, a folder (searched at any depth) or a glob.
    encoding : how its columns become numbers.
    """

    def __init__(self, path: str | Path, encoding: Encoding) -> None:
        self.encoding = encoding
        super().__init__(path, encoding.target, encoding.columns)

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
        for part in self.parts:
            for row, batch in files.batches(part, [self.encoding.target], 1 << 20):
                found |= set(self._read_targets(part, row, batch))
        return np.sort(np.asarray(list(found)))

    def _check_types(self) -> None:
        """Any type will do: the encoding knows."""
        files.require(self.parts, *self._columns)

    def _features(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> FloatArray:
        frame = _frame(pa.Table.from_batches([batch]))
        try:
            return self.encoding.features(frame[list(self.encoding.columns)])
        except ValueError as error:
            raise ValueError(f"{part.place(row)}, rows counted from {row}: {error}") from error

    def _targets(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> FloatArray:
        if self.target is None:
            return np.full(batch.num_rows, np.nan)
        values = self._read_targets(part, row, batch)
        if self.classes is not None:
            values = codes_in(self.classes, values.astype(self.classes.dtype))
        return values.astype(np.float64)

    def _read_targets(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> np.ndarray:
        name = self.encoding.target
        values = self.encoding.targets(_frame(pa.Table.from_batches([batch]))[name])
        missing = np.flatnonzero(pd.isna(values))
        if len(missing):
            files.fail(part, row, int(missing[0]), name, "missing")
        return values


def encoded_on_cluster(path: str | Path, encoding: Encoding) -> DaskBlocks:
    """Return the same rows as `EncodedBlocks`, read and encoded by the workers of dask.

    One partition a row group, by hand: dask's own reader may fuse the partitions of some columns
    and not of others, and then rows of X and y no longer come in step.
    """
    import dask.dataframe as dd

    from hetrisk.blocks.dask import DaskBlocks

    parts = files.open_parts(files.parquet_paths(path))
    files.require(parts, *encoding.columns, encoding.target)
    groups = [(str(p.path), g) for p in parts for g, rows in enumerate(p.group_rows) if rows]
    if not groups:
        raise ValueError(f"'{path}' holds no rows in {len(parts)} file(s).")
    places, numbers = zip(*groups, strict=True)
    meta = _encoded_group(*groups[0], encoding=encoding).iloc[:0]
    table = dd.from_map(_encoded_group, places, numbers, encoding=encoding, meta=meta)
    return DaskBlocks(table[list(encoding.feature_names)], table[_TARGET])


def _encoded_group(file: str, group: int, encoding: Encoding) -> pd.DataFrame:
    """Return one row group as numbers; runs on the workers of the cluster."""
    columns = [*encoding.columns, encoding.target]
    frame = _frame(pq.ParquetFile(file).read_row_group(group, columns=columns))
    features = encoding.features(frame[list(encoding.columns)])
    targets = encoding.targets(frame[encoding.target])
    missing = np.flatnonzero(pd.isna(targets))
    if len(missing):
        raise ValueError(
            f"file '{file}', row group {group}: column {encoding.target!r} is missing in row "
            f"{missing[0]} of the group."
        )
    encoded = pd.DataFrame(features, columns=list(encoding.feature_names))
    encoded[_TARGET] = targets
    return encoded


def _frame(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    return frame
