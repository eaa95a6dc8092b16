"""Tables that do not fit in memory: Parquet files and text, read in blocks, here or on a cluster.

What each column means is decided on rows drawn from all files; from then on every
block goes through the same `TableEncoder` as a table in memory would, categories, dates and
missing values included. Only a missing target is refused, with the file and the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from hetrisk.columns import FloatArray
from hetrisk.columns.dates import MISSING_IN_TARGET
from hetrisk.estimators.quality import assess
from hetrisk.tables import parquet
from hetrisk.tables.cells import cells_of
from hetrisk.tables.encoder import TableEncoder
from hetrisk.tables.errors import TableError, quoted
from hetrisk.tables.model import Prepared, prepare, said_of
from hetrisk.tables.notation import Notation
from hetrisk.tables.parquet import left_outside
from hetrisk.tables.reading import Table
from hetrisk.tables.roles import ENVIRONMENT, HINT, WEIGHT
from hetrisk.tables.spooled import LargeTable, is_large_text, text_pieces
from hetrisk.tables.target import FEWEST_CLASS_ROWS, MOST_CLASSES, REGRESSION

if TYPE_CHECKING:
    from hetrisk.blocks import Blocks
    from hetrisk.columns.parquet import ParquetPart
    from hetrisk.columns.schema import CommonSchema

SAMPLED_ROWS = 20_000
WITNESSES = 20  # rows added for a column that the sample alone would call constant
PIECE_ROWS = 100_000
Wanted = Callable[[pd.Series], pd.Series]


def is_large(path: Path) -> bool:
    """Whether a table would not fit in memory, but can be read in blocks: Parquet, or text."""
    return parquet.is_large(path) or is_large_text(path)


def fit_parquet(
    table: LargeTable,
    target: str,
    *,
    final_estimator: Callable[[str], Any] = lambda task: None,
    cluster: bool = False,
    **options: Any,
) -> Pipeline:
    """Fit a pipeline to Parquet files in blocks.

    Parameters
    ----------
    table : where the files are, and what they are called.
    target : the column to predict; it may be missing in no row.
    final_estimator : the task ("regression" or "classification") -> the final model, or None for
        the linear one.
    cluster : compute on the dask cluster whose client is active.
    options : as for `hetrisk.tables.model.fit_table`.

    Returns
    -------
    Pipeline as from `fit_table`.
    """
    try:
        sample, n_rows = sampled(table, target)
        ready = prepare(sample, target, **options)
        ready.model.set_params(final_estimator=final_estimator(ready.target.task))
        encoder = ready.encoder
        encoder.description_ = replace(encoder.description_, n_rows=n_rows)
        with said_of(encoder.description_):
            ready.model.fit(_rows(table, ready, cluster))
            Z, y = encoder.transform(ready.X), ready.target.values
            ready.keep_quality(assess(ready.model, Z, y, **ready.roles.given))
    except (ImportError, ValueError) as error:
        # What blocks find wrong with a file is said as ValueError, with the file and the row.
        raise TableError(str(error)) from error
    return ready.pipeline


def _rows(table: LargeTable, ready: Prepared, cluster: bool) -> Blocks:
    from hetrisk.blocks.encoded import EncodedBlocks

    rows = encoded_blocks(table.path, ready, cluster=cluster)
    if table.spool is None or not isinstance(rows, EncodedBlocks):
        return rows
    return rows.written(table.spool / "encoded.parquet")


def encoded_blocks(path: Path, ready: Prepared, *, cluster: bool = False) -> Blocks:
    """Return the rows of Parquet files as a fitted encoder reads them, with what goes with them."""
    from hetrisk.blocks.encoded import EncodedBlocks, Encoding, ReadColumn, encoded_on_cluster

    encoder, target, roles = ready.encoder, ready.target, ready.roles
    reads = {
        role: tuple(ReadColumn(column.name, column) for column in roles.of(role))
        for role in (ENVIRONMENT, HINT, WEIGHT)
    }
    encoding = Encoding(
        columns=tuple(column.name for column in encoder.columns_),
        feature_names=tuple(encoder.get_feature_names_out()),
        features=_Features(encoder),
        target=ReadColumn(target.name, _Targets(target.task, target.notation)),
        environments=next(iter(reads[ENVIRONMENT]), None),
        aside=reads[HINT],
        weight=next(iter(reads[WEIGHT]), None),
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
    return Table(frame, table.name, (note, *table.notes), left_outside(common)), total


def drawn(table: LargeTable, rows: int, seed: int = 0) -> Table:
    """Return a random sample of at most this many rows, all alike likely to be drawn."""
    try:
        parts, common, frame = _drawn(table, rows, seed)
    except ValueError as error:
        raise TableError(str(error)) from error
    total = sum(part.n_rows for part in parts)
    note = f"too large for memory: a random sample of {len(frame):,} of {total:,} rows"
    frame = frame.reset_index(drop=True)
    return Table(frame, table.name, (note, *table.notes), left_outside(common))


def _drawn(
    table: LargeTable, rows: int, seed: int
) -> tuple[list[ParquetPart], CommonSchema, pd.DataFrame]:
    parts = parquet.parquet_parts(table.path)
    from hetrisk.blocks.base import chosen_rows
    from hetrisk.columns.schema import common_schema

    total = sum(part.n_rows for part in parts)
    if not total:
        raise TableError(f"{quoted(table.name)} has column names but no rows")
    common = common_schema(parts)
    return parts, common, _rows_at(parts, common, chosen_rows(total, rows, seed))


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
