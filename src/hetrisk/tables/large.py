"""Tables that do not fit in memory: Parquet files and text, read in blocks, here or on a cluster.

What each column means is decided on rows drawn from all files; from then on every block goes
through the same encoding as a table in memory would, categories, dates and missing values included.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hetrisk.columns.sampling import Hashes, chosen_rows, mixed
from hetrisk.tables import parquet
from hetrisk.tables.errors import TableError, quoted
from hetrisk.tables.frames import marked
from hetrisk.tables.parquet import left_outside
from hetrisk.tables.reading import Table
from hetrisk.tables.spooled import LargeTable, is_large_text, text_pieces
from hetrisk.tables.target import FEWEST_CLASS_ROWS, MOST_CLASSES

if TYPE_CHECKING:
    from hetrisk.columns.parquet import ParquetPart
    from hetrisk.columns.schema import CommonSchema

SAMPLED_ROWS = 20_000
WITNESSES = 20  # rows added for a column that the sample alone would call constant
PIECE_ROWS = 100_000
Wanted = Callable[[pd.Series], pd.Series]


def is_large(path: Path) -> bool:
    """Whether a table would not fit in memory, but can be read in blocks: Parquet, or text."""
    return parquet.is_large(path) or is_large_text(path)


def sampled(table: LargeTable, target: str) -> tuple[Table, int]:
    """Return rows from all over the files, enough to see what each column holds.

    The rows are drawn at random from all, wherever they lie. What the sample shows as constant, or
    as empty, is looked for in every row of that column, and rows where it is not are added, and so
    are rows of classes of ``target`` too rare to be drawn: a column is called constant, and a class
    the only one, only where that is so.

    Returns
    -------
    table : about `SAMPLED_ROWS` rows in the order of files and rows, which the index counts.
    n_rows : number of rows of all files.
    """
    parts, common, frame = _drawn(table, SAMPLED_ROWS, seed=0)
    total = sum(part.n_rows for part in parts)
    if len(frame) < total:
        further = _witnesses(parts, frame) | _rare_classes(parts, frame, target)
        rows = np.asarray(sorted(further - set(frame.index)), dtype=np.int64)
        if len(rows):
            frame = pd.concat([frame, _rows_at(parts, common, rows)]).sort_index()
    note = f"read in blocks; columns understood from {len(frame):,} rows drawn from all of them"
    frame = marked(frame, text=table.spool is not None)
    return Table(frame, table.name, (note, *table.notes), left_outside(common)), total


def drawn(table: LargeTable, rows: int, seed: int = 0) -> Table:
    """Return a random sample of at most this many rows, all alike likely to be drawn."""
    try:
        parts, common, frame = _drawn(table, rows, seed)
    except ValueError as error:
        raise TableError(str(error)) from error
    total = sum(part.n_rows for part in parts)
    note = f"too large for memory: a random sample of {len(frame):,} of {total:,} rows"
    frame = marked(frame.reset_index(drop=True), text=table.spool is not None)
    return Table(frame, table.name, (note, *table.notes), left_outside(common))


def _drawn(
    table: LargeTable, rows: int, seed: int
) -> tuple[list[ParquetPart], CommonSchema, pd.DataFrame]:
    parts = parquet.parquet_parts(table.path)
    from hetrisk.columns.schema import common_schema

    total = sum(part.n_rows for part in parts)
    if not total:
        raise TableError(f"{quoted(table.name)} has column names but no rows")
    common = common_schema(parts)
    whole = np.arange(total)
    if rows < total:  # chosen by what they hold: the order of the rows decides nothing
        hashes = _hashes(parts, common)
        whole = np.sort(chosen_rows(hashes, rows, seed, lambda: hashes))
    return parts, common, _rows_at(parts, common, whole)


def _hashes(parts: list[ParquetPart], common: CommonSchema) -> Hashes:
    """(n,) one number for each row of all files, whatever the order of its columns."""
    import pyarrow as pa

    from hetrisk.columns import parquet as files

    found = []
    for part in parts:
        for _, batch in files.batches(part, common.schema.names, PIECE_ROWS):
            frame = files.frame_of(common.conform(pa.Table.from_batches([batch])))
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

    from hetrisk.columns import parquet as files

    for part in parts:
        for row, batch in files.batches(part, part.schema.names, PIECE_ROWS):
            frame = files.frame_of(pa.Table.from_batches([batch]))
            frame.attrs["place"] = part.place(row)
            yield frame


def _rows_at(parts: list[ParquetPart], common: CommonSchema, positions: np.ndarray) -> pd.DataFrame:
    """Return the rows at these positions, sorted, counted over all files."""
    import pyarrow as pa

    from hetrisk.columns import parquet as files

    found, start = [], 0
    for part in parts:
        within = positions[(positions >= start) & (positions < start + part.n_rows)] - start
        ends = np.cumsum(part.group_rows)
        groups = np.unique(np.searchsorted(ends, within, side="right")).tolist()
        for row, batch in files.batches(part, common.schema.names, PIECE_ROWS, groups):
            low, high = np.searchsorted(within, [row, row + batch.num_rows])
            if high > low:
                rows = pa.Table.from_batches([batch.take(pa.array(within[low:high] - row))])
                found.append(common.conform(rows))
        start += part.n_rows
    return files.frame_of(pa.concat_tables(found)).set_index(pd.Index(positions))


def _witnesses(parts: list[ParquetPart], frame: pd.DataFrame) -> set[int]:
    """Return positions of rows that contradict what the sample shows as constant or empty."""
    only = {name: _only_value(frame[name]) for name in frame.columns}
    found: set[int] = set()
    for name, (constant, value) in only.items():
        if constant:
            cells = _values(parts, name, partial(_differs, value=value))
            found |= {place for place, _ in islice(cells, WITNESSES)}
    return found


def _rare_classes(parts: list[ParquetPart], frame: pd.DataFrame, target: str) -> set[int]:
    """Return positions of two rows of every class that the sample holds fewer than two of."""
    if target not in frame.columns:
        return set()
    counts = frame[target].value_counts()
    if len(counts) > MOST_CLASSES:
        return set()
    enough = set(counts.index[counts >= FEWEST_CLASS_ROWS])
    held: dict[Any, list[int]] = {}
    for place, value in _values(parts, target, lambda x: x.notna() & ~x.isin(list(enough))):
        rows = held.setdefault(value, [])
        if len(held) > MOST_CLASSES:
            break
        if len(rows) < FEWEST_CLASS_ROWS:
            rows.append(place)
    return {place for rows in held.values() for place in rows}


def _differs(cells: pd.Series, value: Any) -> pd.Series:
    return cells.notna() & (cells != value)


def _values(parts: list[ParquetPart], name: str, wanted: Wanted) -> Iterator[tuple[int, Any]]:
    """Yield the position and the value of the wanted cells of one column, over all files."""
    from hetrisk.columns import parquet as files

    start = 0
    for part in parts:
        for row, batch in files.batches(part, [name], PIECE_ROWS):
            values = batch.column(name).to_pandas()
            for i in np.flatnonzero(wanted(values)):
                yield int(start + row + i), values.iloc[i]
        start += part.n_rows


def _only_value(column: pd.Series) -> tuple[bool, Any]:
    """Whether the cells hold one value or none, and that value."""
    held = column.dropna()
    try:
        distinct = held.unique()
    except TypeError:  # lists and other things that cannot be compared
        return False, None
    return len(distinct) < 2, distinct[0] if len(distinct) else None
