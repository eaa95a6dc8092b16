"""Tables that do not fit in memory: Parquet files, read in blocks, here or on a cluster.

What each column means is decided on a sample of rows spread over all files; from then on every
block goes through the same `TableEncoder` as a table in memory would, categories, dates and
missing values included. Only a missing target is refused, with the file and the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.estimators.quality import assess
from hetrisk.tables.cells import MISSING_IN_TARGET, cells_of
from hetrisk.tables.encoder import TableEncoder
from hetrisk.tables.errors import TableError, quoted
from hetrisk.tables.model import prepare
from hetrisk.tables.notation import Notation
from hetrisk.tables.parquet import parquet_parts
from hetrisk.tables.reading import Table
from hetrisk.tables.target import REGRESSION, Target

if TYPE_CHECKING:
    import pyarrow as pa

    from hetrisk.blocks import Blocks
    from hetrisk.blocks.files import ParquetPart

SAMPLED_ROWS = 20_000
SAMPLED_GROUPS = 20  # row groups the sample is drawn from, spread evenly over the files
PIECE_ROWS = 100_000


def fit_parquet(path: Path, target: str, *, cluster: bool = False, **options: Any) -> Pipeline:
    """Fit a pipeline to Parquet files in blocks.

    Parameters
    ----------
    path : a Parquet file or a folder of them.
    target : the column to predict; it may be missing in no row.
    cluster : compute on the dask cluster whose client is active.
    options : as for `hetrisk.tables.model.fit_table`.

    Returns
    -------
    Pipeline as from `fit_table`.
    """
    try:
        sample, n_rows = sampled(path)
        ready = prepare(sample, target, **options)
        encoder = ready.encoder
        encoder.description_ = replace(encoder.description_, n_rows=n_rows)
        ready.model.fit(encoded_blocks(path, encoder, ready.target, cluster=cluster))
        ready.keep_quality(assess(ready.model, encoder.transform(ready.X), ready.target.values))
    except (ImportError, ValueError) as error:
        # What blocks find wrong with a file is said as ValueError, with the file and the row.
        raise TableError(str(error)) from error
    return ready.pipeline


def encoded_blocks(
    path: Path, encoder: TableEncoder, target: Target, *, cluster: bool = False
) -> Blocks:
    """Return the rows of Parquet files as a fitted encoder reads them."""
    from hetrisk.blocks.encoded import EncodedBlocks, Encoding, encoded_on_cluster

    encoding = Encoding(
        columns=tuple(column.name for column in encoder.columns_),
        feature_names=tuple(encoder.get_feature_names_out()),
        features=_Features(encoder),
        target=target.name,
        targets=_Targets(target.task, target.notation),
    )
    return encoded_on_cluster(path, encoding) if cluster else EncodedBlocks(path, encoding)


@dataclass(frozen=True)
class _Features:
    """The encoder as a function; a value, so that it can be sent to workers."""

    encoder: TableEncoder

    def __call__(self, frame: pd.DataFrame) -> FloatArray:
        return self.encoder.encode(frame)[0]


@dataclass(frozen=True)
class _Targets:
    """The target as `hetrisk.tables.read_target` reads it: numbers, or classes as text."""

    task: str
    notation: Notation

    def __call__(self, column: pd.Series) -> np.ndarray:
        cells = cells_of(column.name, column, MISSING_IN_TARGET)
        if cells is None:
            raise ValueError(f"the target {quoted(column.name)} does not hold single values")
        if self.task == REGRESSION:
            return cells.numbers(self.notation)
        codes, levels = cells.levels()
        return np.asarray([*levels, None], dtype=object)[codes]


def sampled(path: Path) -> tuple[Table, int]:
    """Return rows from all over the files, enough to see what each column holds.

    Returns
    -------
    table : about `SAMPLED_ROWS` rows, in the order of files and rows.
    n_rows : number of rows of all files.
    """
    parts = parquet_parts(path)
    from hetrisk.blocks import files

    total = sum(part.n_rows for part in parts)
    if not total:
        raise TableError(f"{quoted(path.name)} has column names but no rows")
    groups = [(part, g) for part in parts for g, rows in enumerate(part.group_rows) if rows]
    spread = np.unique(np.linspace(0, len(groups) - 1, SAMPLED_GROUPS).round().astype(int))
    most = -(-SAMPLED_ROWS // len(spread))
    found = [_first_rows(part, group, most) for part, group in (groups[i] for i in spread)]
    table = files.concatenated(found)
    note = f"read in blocks; columns understood from a sample of {table.num_rows:,} rows"
    return Table(table.to_pandas(ignore_metadata=True), path.name, (note,)), total


def pieces(path: Path) -> Iterator[pd.DataFrame]:
    """Yield the rows of Parquet files a piece at a time, in the order of files and rows."""
    parts = parquet_parts(path)
    import pyarrow as pa

    from hetrisk.blocks import files

    for part in parts:
        for _, batch in files.batches(part, part.schema.names, PIECE_ROWS):
            yield pa.Table.from_batches([batch]).to_pandas(ignore_metadata=True)


def _first_rows(part: ParquetPart, group: int, most: int) -> pa.Table:
    import pyarrow as pa

    from hetrisk.blocks import files

    _, batch = next(files.batches(part, part.schema.names, most, [group]))
    return pa.Table.from_batches([batch])
