"""Parquet files whose columns are not numbers yet: every block is encoded as it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from hetrisk.blocks.base import codes_in
from hetrisk.blocks.parquet import ParquetBlocks
from hetrisk.columns import arrow
from hetrisk.columns import parquet as files
from hetrisk.core.numerics.rows import FloatArray


class EncodedBlocks(ParquetBlocks):
    """A table in Parquet files, with columns that become numbers as they are read.

    Parameters
    ----------
    path : a Parquet file, a folder (searched at any depth) or a glob.
    target : the column to predict: numbers or labels, None or NaN where one is missing.
    columns : the columns the features are made of.
    feature_names : names of the features, in order.
    encode : table -> (n, d) finite numbers.
    readers : name of any other column -> its cells to (n,) values; a ValueError says what cannot
        be read.
    aside : columns of side information: numbers, dates or names, missing values allowed.
    weight : the column of weights, finite numbers that are not negative; or None.
    """

    def __init__(
        self,
        path: str | Path,
        target: str,
        columns: Sequence[str],
        feature_names: tuple[str, ...],
        *,
        encode: Callable[[pd.DataFrame], FloatArray],
        readers: Mapping[str, Callable[[pd.Series], np.ndarray]],
        aside: Sequence[str] = (),
        weight: str | None = None,
    ) -> None:
        self._encode, self._readers = encode, readers
        super().__init__(path, target, columns, weight=weight, aside=aside)
        self.feature_names, self.n_features = feature_names, len(feature_names)

    def labels(self) -> np.ndarray:
        """Distinct labels of the target, sorted, in one pass over its column."""
        assert self.target is not None  # asked for only where there is one
        found: set[str] = set()
        for part, row, batch in self._column(self.target):
            found |= set(self._read_targets(part, row, batch))
        return np.sort(np.asarray(list(found)))

    def _check_types(self) -> None:
        """Any type will do: the encoding knows."""

    def _features(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> FloatArray:
        frame = arrow.frame_of(pa.Table.from_batches([batch]))
        with _placed(part, row):
            return self._encode(frame[list(self.features)])

    def _weights(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> FloatArray:
        if self.weight is None:
            return np.ones(batch.num_rows)
        return self._read(part, row, batch, self.weight)

    def _side(
        self, part: files.ParquetPart, row: int, batch: pa.RecordBatch, name: str
    ) -> pd.Series:
        return pd.Series(self._read(part, row, batch, name)).infer_objects()

    def _read(
        self, part: files.ParquetPart, row: int, batch: pa.RecordBatch, name: str
    ) -> np.ndarray:
        frame = arrow.frame_of(pa.Table.from_batches([batch]).select([name]))
        with _placed(part, row):
            return self._readers[name](frame[name])

    def _targets(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> FloatArray:
        if self.target is None:
            return np.full(batch.num_rows, np.nan)
        values = self._read_targets(part, row, batch)
        if self.classes is not None:
            values = codes_in(self.classes, values.astype(self.classes.dtype))
        return values.astype(np.float64)

    def _read_targets(self, part: files.ParquetPart, row: int, batch: pa.RecordBatch) -> np.ndarray:
        assert self.target is not None
        values = self._read(part, row, batch, self.target)
        missing = np.flatnonzero(pd.isna(values))
        if len(missing):
            files.fail(part, row, int(missing[0]), self.target, "missing")
        return values


@contextmanager
def _placed(part: files.ParquetPart, row: int) -> Iterator[None]:
    """Say in which file and from which row on something was wrong."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{part.place(row)}, rows counted from {row}: {error}") from error
