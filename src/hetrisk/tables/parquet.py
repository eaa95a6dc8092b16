"""Parquet as a table: a file, or the files of a folder as the one table they are."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hetrisk.tables import inputs
from hetrisk.tables.errors import TableError, needs, quoted
from hetrisk.tables.inference import LeftOut
from hetrisk.tables.inputs import Input, Table, unreadable
from hetrisk.tables.spool import spool_folder

if TYPE_CHECKING:
    import pyarrow as pa

    from hetrisk.columns.parquet import ParquetPart
    from hetrisk.columns.schema import CommonSchema

TEXT_BYTES = 16  # what a text takes in a data frame beside its letters
MEASURED_FILES, MEASURED_ROWS = 3, 1000
PIECE_ROWS = 100_000
MOST_BYTES = 1 << 30


def is_parquet(path: Path) -> bool:
    """Whether the path is a Parquet file, or a folder (of which only Parquet is read)."""
    return path.is_dir() or (path.is_file() and ends_as_parquet(Input(path.name, path)))


def ends_as_parquet(source: Input) -> bool:
    """Whether the input begins as Parquet does and is no text: a column may be called PAR1."""
    if not source.start.startswith(b"PAR1"):
        return False
    with source.open() as file:
        file.seek(-min(4, file.seek(0, 2)), 2)
        return file.read() == b"PAR1" or b"\0" in source.start


def is_large(path: Path) -> bool:
    """Whether the path is Parquet, a file or a folder, whose table would not fit in memory."""
    if not is_parquet(path):
        return False
    try:
        parts = parquet_parts(path)
    except (ValueError, OSError):
        return False  # reading it will say what is missing or wrong
    return decoded_bytes(parts) > inputs.memory_limit()


def decoded_bytes(parts: list[ParquetPart]) -> float:
    """Bytes the table takes in memory, about.

    What a file says of itself is the size of its encoded columns: one with a few distinct values
    is a hundred times larger once it is decoded. Text is measured on the first rows of some files.
    """
    text = _text_width(parts)
    return sum(part.n_rows * sum(_width(f.type, text) for f in part.schema) for part in parts)


def _width(kind: Any, text: float) -> float:
    try:
        return max(8, int(kind.bit_width) // 8)  # numbers become float64
    except ValueError:  # text and lists have no fixed width
        return text


def _text_width(parts: list[ParquetPart]) -> float:
    """Bytes of a cell of text, on average, in the first rows of a few files."""
    from hetrisk.columns import parquet as files

    held = cells = 0
    for part in parts[:: len(parts) // MEASURED_FILES + 1]:
        with suppress(ValueError, OSError):  # whoever reads the file will say what is wrong
            found = files.first_texts(part, MEASURED_ROWS)
            held, cells = held + found[0], cells + found[1]
    return TEXT_BYTES + held / max(cells, 1)


def parquet_parts(path: Path) -> list[ParquetPart]:
    """Open the footers of the Parquet files a path means: itself, or a folder's at any depth."""
    try:
        import pyarrow  # noqa: F401

        from hetrisk.columns import parquet as files
    except ImportError:
        raise needs("reading Parquet", "pyarrow", "parquet") from None
    try:
        return files.open_parts(files.parquet_paths(path))
    except FileNotFoundError:
        raise TableError(
            f"{quoted(path.name or str(path))} is a folder without Parquet files"
        ) from None
    except ValueError as error:
        raise TableError(str(error)) from None


def left_outside(common: CommonSchema) -> tuple[LeftOut, ...]:
    """Return the columns that are not part of the table, because files disagree about them."""
    return tuple(LeftOut(name, reason) for name, reason in common.outside.items())


def read_parquet(source: Input) -> Table:
    """Read Parquet whole: a file, a folder, or what came through a pipe."""
    if source.path is None:
        with spool_folder() as folder:
            place = folder / source.name
            place.write_bytes(source.held)
            return read_parquet(Input(source.name, place))
    parts = parquet_parts(source.path)
    from hetrisk.columns.schema import common_schema

    if decoded_bytes(parts) > inputs.memory_limit():
        raise TableError(f"{source.quoted} does not fit in memory")
    common = common_schema(parts)
    if not common.schema.names:
        raise TableError(f"the files of {source.quoted} have no column in common")
    total = sum(part.n_rows for part in parts)
    frame = rows_at(parts, common, np.arange(total), inputs.memory_limit())
    return Table(frame, source.name, left_out=left_outside(common))


def rows_at(
    parts: list[ParquetPart], common: CommonSchema, positions: np.ndarray, limit: int = MOST_BYTES
) -> pd.DataFrame:
    """Return the rows at these sorted positions, counted over all files, within the limit."""
    import pyarrow as pa

    from hetrisk.columns import arrow
    from hetrisk.columns import parquet as files

    found, held = [common.schema.empty_table()], 0
    try:
        for _, _, batch, index in files.chosen_batches(
            parts, common.schema.names, PIECE_ROWS, positions, min(limit, MOST_BYTES)
        ):
            rows = pa.Table.from_batches([common.conform(batch.take(pa.array(index)))])
            held += rows.nbytes
            if held > limit:
                raise TableError(f"more than {limit / 2**20:,.0f} MB do not fit in memory")
            found.append(rows)
        return arrow.frame_of(pa.concat_tables(found))
    except TableError:
        raise
    except (pa.ArrowException, ValueError, OSError) as error:
        raise TableError(arrow.line_of(error)) from error


def checked_frame(table: pa.Table, source: Input) -> pd.DataFrame:
    """Return Arrow columns as a data frame, having refused what their types do not allow."""
    import pyarrow as pa

    from hetrisk.columns import arrow

    try:
        arrow.check_values(table, source.quoted)
        return arrow.frame_of(table)
    except (pa.ArrowException, ValueError) as error:
        raise unreadable(source, "table", error) from error
