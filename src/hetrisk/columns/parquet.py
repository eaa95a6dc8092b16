"""Parquet files on disk: which ones a path means, what they hold, and their record batches.

Everything that can be wrong with a file is found here and named with the file and the row
group: a column that is missing or has changed type, a file that vanished or changed between
two passes over the rows, a page that cannot be decoded, a value that is missing or infinite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hetrisk.columns import FloatArray
from hetrisk.columns.arrow import check_values, decoded, is_text, line_of, text_bytes, text_columns
from hetrisk.columns.dates import is_period

# Arrow learns what pandas' periods are, rather than integers, when the first of them are made.
pa.array(pd.array([], dtype=pd.PeriodDtype("D")))

SUFFIXES = (".parquet", ".pq", ".parq")
READ_BYTES = 1 << 18  # of a column at a time: without it, whole columns of a row group are held
MOST_TEXT = 1 << 30  # bytes of text in a batch, once it is decoded
FOOTER_THREADS = 8  # footers are small reads that wait on the disk, not on the processor


@dataclass(frozen=True)
class ParquetPart:
    """One file: its path, its Arrow schema and the number of rows of each row group.

    ``stamp`` is what the file system said when the file was opened: another modification time, size
    or inode later means other rows, though their number may be the same.
    """

    path: Path
    schema: pa.Schema
    group_rows: tuple[int, ...]
    stamp: tuple[int, int, int, int]

    @property
    def n_rows(self) -> int:
        """Number of rows of the file."""
        return sum(self.group_rows)

    def place(self, row: int) -> str:
        """Name the file and the row group that hold the file's row number ``row``."""
        ends = np.cumsum(self.group_rows)
        group = min(int(np.searchsorted(ends, row, side="right")), max(len(ends) - 1, 0))
        return f"file '{self.path}', row group {group}"


def parquet_paths(path: str | Path) -> list[Path]:
    """Files that ``path`` means: itself, a folder's Parquet files at any depth, or a glob's.

    Names that begin with ``.`` or ``_`` (checksums, ``_SUCCESS``, ``_metadata``, files still
    being written) are passed over in folders. Sorted, so that the order of rows is stable.
    """
    text = str(path)
    if Path(text).is_dir():
        found = [p for p in Path(text).rglob("*") if _is_data(p.relative_to(text)) and p.is_file()]
    elif Path(text).exists():
        found = [Path(text)]
    elif has_magic(text):
        found = [Path(p) for p in glob(text, recursive=True) if Path(p).is_file()]
    else:
        raise FileNotFoundError(
            f"path must be a Parquet file, a folder or a glob; there is nothing at '{text}'."
        )
    if not found:
        raise FileNotFoundError(f"path must lead to Parquet files; '{text}' holds none.")
    return sorted(found)


def _is_data(relative: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in relative.parts)
    return relative.suffix in SUFFIXES and not hidden


def open_parts(paths: Sequence[Path]) -> list[ParquetPart]:
    """Read the footer of every file, several at a time."""
    with ThreadPoolExecutor(FOOTER_THREADS) as pool:
        return list(pool.map(_open_part, paths))


def _open_part(path: Path) -> ParquetPart:
    stamp = _stamp(path)
    with _parquet_file(path, f"file '{path}'") as file:
        schema = file.schema_arrow
        repeated = sorted({n for n in schema.names if schema.names.count(n) > 1})
        if repeated:
            raise ValueError(f"file '{path}' has more than one column named {repeated[0]!r}.")
        return ParquetPart(path, schema, _group_rows(file), stamp)


def _stamp(path: Path) -> tuple[int, int, int, int]:
    try:
        state = path.stat()
    except FileNotFoundError as error:
        raise FileNotFoundError(f"file '{path}': the file has vanished.") from error
    # The time of change too: a tool may put the time of modification back.
    return state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino


def _parquet_file(path: Path, place: str, text: Sequence[str] = ()) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(
            path, pre_buffer=False, buffer_size=READ_BYTES, read_dictionary=list(text)
        )
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{place}: the file has vanished.") from error
    except KeyError as error:  # a column of text that it had is gone
        raise ValueError(f"{place}: the file was replaced or written to meanwhile.") from error
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{place}: not a readable Parquet file ({line_of(error)}).") from error


def _group_rows(file: pq.ParquetFile) -> tuple[int, ...]:
    metadata = file.metadata
    return tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))


def is_number(kind: pa.DataType) -> bool:
    """Whether values of this Arrow type become float64 without being interpreted."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )


def is_date(kind: pa.DataType) -> bool:
    """Whether values of this Arrow type are dates or times."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or is_period(kind))


def is_label(kind: pa.DataType) -> bool:
    """Whether values of this Arrow type can be told apart one by one."""
    nested, unknown = pa.types.is_nested(kind), isinstance(kind, pa.BaseExtensionType)
    return is_date(kind) or not (nested or unknown)


def batches(
    part: ParquetPart,
    columns: Sequence[str],
    batch_rows: int,
    groups: Sequence[int] | None = None,
    most_text: int = MOST_TEXT,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Stream a file: the row number each record batch starts at, and the batch.

    With ``groups``, only those row groups are read (row numbers still count the whole file).
    The footer is read again on every pass, and the file's stamp is compared before and after,
    so that a file replaced since is not misread.
    """
    chosen = range(len(part.group_rows)) if groups is None else groups
    chosen = [g for g in chosen if part.group_rows[g]]
    starts = np.concatenate([[0], np.cumsum(part.group_rows)]).astype(int)
    with _parquet_file(part.path, part.place(0), text_columns(part.schema)) as file:
        if _group_rows(file) != part.group_rows:
            raise ValueError(
                f"file '{part.path}' has changed since it was opened: it had "
                f"{part.n_rows} rows in {len(part.group_rows)} row groups, and now has "
                f"{file.metadata.num_rows} in {file.metadata.num_row_groups}."
            )
        check_stamp(part)
        for run in _runs(chosen):
            row = int(starts[run[0]])
            try:
                for batch in file.iter_batches(
                    batch_rows, run, columns=list(columns), use_threads=False
                ):
                    whole = decoded(batch, part.place(row), most_text)
                    check_values(whole, part.place(row))
                    yield row, whole
                    row += batch.num_rows
            except (pa.ArrowException, OSError) as error:
                raise ValueError(
                    f"{part.place(row)}: cannot be read ({line_of(error)})."
                ) from error
        check_stamp(part)


def chosen_batches(
    parts: Sequence[ParquetPart],
    columns: Sequence[str],
    batch_rows: int,
    chosen: np.ndarray,
    most_text: int = MOST_TEXT,
) -> Iterator[tuple[ParquetPart, int, pa.RecordBatch, np.ndarray]]:
    """Batches with some of the ``chosen`` rows of all files (sorted), and which rows those are."""
    first = 0
    for part in parts:
        within = chosen[np.searchsorted(chosen, first) :] - first
        within = within[: np.searchsorted(within, part.n_rows)]
        groups = np.unique(np.searchsorted(np.cumsum(part.group_rows), within, side="right"))
        for row, batch in batches(part, columns, batch_rows, groups.tolist(), most_text):
            low, high = np.searchsorted(within, [row, row + batch.num_rows])
            if high > low:
                yield part, row, batch, within[low:high] - row
        first += part.n_rows


def check_stamp(part: ParquetPart) -> None:
    """Raise if the file has become another one since it was opened."""
    if _stamp(part.path) != part.stamp:
        raise ValueError(
            f"file '{part.path}' was replaced or written to since it was opened; the rows read so "
            "far are not those it holds now."
        )


def _runs(groups: Sequence[int]) -> list[list[int]]:
    """Split sorted row group numbers into runs without gaps: each streams as one."""
    runs: list[list[int]] = []
    for group in groups:
        if runs and group == runs[-1][-1] + 1:
            runs[-1].append(group)
        else:
            runs.append([group])
    return runs


def numbers(batch: pa.RecordBatch, name: str, part: ParquetPart, row: int) -> FloatArray:
    """Return a column of a record batch as float64, every value finite."""
    column = batch.column(name)
    if column.null_count:
        fail(part, row, int(pc.index(column.is_null(), True).as_py()), name, "missing")
    if column.type != pa.float64():
        column = column.cast(pa.float64(), safe=False)
    values: FloatArray = column.to_numpy(zero_copy_only=False)
    # One addition a value: the sum is finite unless a value is not (or the values overflow).
    with np.errstate(invalid="ignore", over="ignore"):
        total = values.sum()
    if not np.isfinite(total):
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            kind = "NaN" if np.isnan(values[bad[0]]) else "infinite"
            fail(part, row, int(bad[0]), name, kind)
    return values


def codes(
    batch: pa.RecordBatch, name: str, part: ParquetPart, row: int, classes: np.ndarray
) -> np.ndarray:
    """Return a column of labels as positions in ``classes``."""
    column = plain_labels(batch, name, part, row)
    try:
        known = pa.array(classes).cast(column.type)
    except pa.ArrowException as error:
        raise ValueError(
            f"classes must be values of column {name!r}, which holds {column.type}; "
            f"got {classes.tolist()}."
        ) from error
    position = pc.index_in(column, value_set=known)
    if position.null_count:
        first = int(pc.index(position.is_null(), True).as_py())
        value = f"{column[first].as_py()!r}, which is not among the {len(classes)} known classes"
        fail(part, row, first, name, value)
    found: np.ndarray = position.to_numpy(zero_copy_only=False)
    return found


def plain_labels(batch: pa.RecordBatch, name: str, part: ParquetPart, row: int) -> pa.Array:
    """Return a column of labels, dictionary decoded, none missing."""
    column = batch.column(name)
    if column.null_count:
        fail(part, row, int(pc.index(column.is_null(), True).as_py()), name, "missing")
    if pa.types.is_floating(column.type):
        numbers(batch, name, part, row)
    return column.cast(pa.string()) if is_text(column.type) else column


def fail(part: ParquetPart, row: int, offset: int, name: str, found: str) -> None:
    """Raise an error that names the file, the row group, the column and the row."""
    raise ValueError(
        f"{part.place(row + offset)}: column {name!r} is {found} in row {row + offset} of the file."
    )


def first_texts(part: ParquetPart, rows: int) -> tuple[int, int]:
    """Bytes of the text in the first rows of a file, found without decoding it, and its cells."""
    names = text_columns(part.schema)
    if not names:
        return 0, 0
    check_stamp(part)
    with _parquet_file(part.path, part.place(0), names) as file:
        try:
            for batch in file.iter_batches(rows, columns=names, use_threads=False):
                total = sum(map(text_bytes, batch.columns))
                return total, batch.num_rows * batch.num_columns
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{part.place(0)}: cannot be read ({line_of(error)}).") from error
    return 0, 0
