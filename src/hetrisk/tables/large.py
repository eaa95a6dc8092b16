"""Tables that do not fit in memory, Parquet files and text: a sample of rows, or piece by piece."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hetrisk.columns.sampling import Hashes, chosen_rows, mixed
from hetrisk.tables import parquet
from hetrisk.tables.errors import TableError, quoted
from hetrisk.tables.frames import marked
from hetrisk.tables.inputs import Table
from hetrisk.tables.parquet import left_outside
from hetrisk.tables.spooled import LargeTable, is_large_text, text_pieces

if TYPE_CHECKING:
    from hetrisk.columns.parquet import ParquetPart
    from hetrisk.columns.schema import CommonSchema


def is_large(path: Path) -> bool:
    """Whether a table would not fit in memory, but can be read in blocks: Parquet, or text."""
    return parquet.is_large(path) or is_large_text(path)


def drawn(table: LargeTable, rows: int, seed: int = 0) -> Table:
    """Return a sample of at most this many rows, by what they hold, in the order of the files."""
    from hetrisk.columns.schema import common_schema

    parts = parquet.parquet_parts(table.path)
    total = sum(part.n_rows for part in parts)
    if not total:
        raise TableError(f"{quoted(table.name)} has column names but no rows")
    common = common_schema(parts)
    chosen = np.arange(total)
    try:
        if rows < total:
            hashes = _hashes(parts, common)
            chosen = np.sort(chosen_rows(hashes, rows, seed, lambda: hashes))
        frame = parquet.rows_at(parts, common, chosen)
    except ValueError as error:
        raise TableError(str(error)) from error
    note = f"too large for memory: a sample of {len(frame):,} of {total:,} rows"
    return Table(
        marked(frame, text=table.text), table.name, (note, *table.notes), left_outside(common)
    )


def _hashes(parts: list[ParquetPart], common: CommonSchema) -> Hashes:
    """(n,) one number for each row of all files, whatever the order of its columns."""
    import pyarrow as pa

    from hetrisk.columns import arrow
    from hetrisk.columns import parquet as files

    found = []
    for part in parts:
        for _, batch in files.batches(part, common.schema.names, parquet.PIECE_ROWS):
            frame = arrow.frame_of(pa.Table.from_batches([common.conform(batch)]))
            total = np.zeros(len(frame), dtype=np.uint64)
            for name in frame.columns:
                column = frame[name].astype(str) if frame[name].dtype == object else frame[name]
                key = np.uint64(zlib.crc32(str(name).encode("utf-8", "surrogatepass")))
                cells = np.asarray(pd.util.hash_pandas_object(column, index=False), dtype=np.uint64)
                total += mixed(cells + key)
            found.append(total)
    return np.concatenate(found)


def pieces(
    path: Path, encoding: str = "utf-8", delimiter: str | None = None
) -> Iterator[pd.DataFrame]:
    """Yield the rows of a large table a piece at a time, in the order of files and rows.

    ``attrs["place"]`` of each names its file. ``encoding`` and ``delimiter`` are those of text.
    """
    if not parquet.is_parquet(path):
        yield from text_pieces(path, encoding, delimiter)
        return
    parts = parquet.parquet_parts(path)
    import pyarrow as pa

    from hetrisk.columns import arrow
    from hetrisk.columns import parquet as files

    try:
        for part in parts:
            for row, batch in files.batches(part, part.schema.names, parquet.PIECE_ROWS):
                frame = arrow.frame_of(pa.Table.from_batches([batch]))
                frame.attrs["place"] = part.place(row)
                yield frame
    except ValueError as error:
        raise TableError(str(error)) from error
