"""Text larger than memory, put down as Parquet for as long as it is needed.

One pass finds how the text is laid out and checks every line, another writes it a piece at a time
to a temporary folder (``TMPDIR`` says where), which goes away with the work, or, where that was
killed, with the next. Cells stay text: what
they mean is decided later, on rows drawn from all of them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

import pandas as pd

from hetrisk.columns.dates import MISSING_IN_TARGET
from hetrisk.tables import inputs
from hetrisk.tables.cells import cells_of
from hetrisk.tables.errors import TableError, counted, needs, quoted
from hetrisk.tables.formats import reader_of
from hetrisk.tables.inputs import Input, input_of
from hetrisk.tables.parquet import is_parquet
from hetrisk.tables.spool import spool_folder
from hetrisk.tables.target import check_target_name
from hetrisk.tables.text import (
    begins_as_json,
    checked_encoding,
    frames,
    header_notes,
    layout_of,
    swelling,
    unpacked_bytes,
)

PIECE_CELLS = 1 << 21  # of text at a time: some 20 MB
MOST_PIECE_ROWS = 100_000
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class LargeTable:
    """A table that is read in blocks.

    Attributes
    ----------
    path : a Parquet file or a folder of them.
    name : of the file or folder the user gave.
    notes : what was done to get there, a clause each.
    text : whether it was text, so that its cells are what they spell.
    """

    path: Path
    name: str
    notes: tuple[str, ...] = ()
    text: bool = False


def is_large_text(path: Path) -> bool:
    """Whether a path is delimited text, gzipped or not, that would not fit in memory."""
    if not path.is_file():
        return False
    source = Input(path.name, path)
    try:
        if not source.start or reader_of(source) is not None:
            return False
        limit = int(inputs.memory_limit() / swelling(source))
        return unpacked_bytes(source, limit) > limit and not begins_as_json(source, "latin-1")
    except TableError:
        return False  # reading it will say what is wrong


@contextmanager
def in_parquet(
    path: Path, target: str | None = None, encoding: str = "utf-8", delimiter: str | None = None
) -> Iterator[LargeTable]:
    """Give a large table as Parquet: as it is, or for text written to a temporary folder.

    Rows of text without a ``target`` are left out, as they are from a table in memory. What is
    found wrong with the temporary file is said of the user's.
    """
    if is_parquet(path):
        yield LargeTable(path, path.name or str(path))
        return
    source = input_of(path)
    with _room_for(source), spool_folder() as folder:
        place = folder / "text.parquet"
        with source.unchanged():
            notes = _spool(source, place, target, encoding, delimiter)
        try:
            yield LargeTable(place, path.name, notes, text=True)
        except (TableError, ValueError) as error:
            raise TableError(str(error).replace(str(place), path.name)) from error


@contextmanager
def _room_for(source: Input) -> Iterator[None]:
    """Say of a full disk which one it is, and what to do: what writes there names no file."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise TableError(
            f"{source.quoted} is larger than memory, and its rows do not fit in the folder for "
            f"temporary files, {quoted(gettempdir(), 200)} ({os.strerror(error.errno)}): let "
            "TMPDIR name a folder on a larger disk"
        ) from error


def text_pieces(path: Path, encoding: str, delimiter: str | None) -> Iterator[pd.DataFrame]:
    """Yield the cells of a text a piece at a time; ``attrs["place"]`` of each says where it is."""
    source = input_of(path)
    start = 0
    with source.unchanged():
        layout = layout_of(source, checked_encoding(source, encoding), delimiter)
        for frame in frames(source, layout, _piece_rows(len(layout.names))):
            frame.attrs["place"] = f"{source.quoted}, rows counted from {start:,}"
            start += len(frame)
            yield frame.reset_index(drop=True)


def _piece_rows(n_columns: int) -> int:
    return max(1, min(MOST_PIECE_ROWS, PIECE_CELLS // n_columns))


def _spool(
    source: Input, place: Path, target: str | None, encoding: str, delimiter: str | None
) -> tuple[str, ...]:
    """Write the rows of a text as Parquet, and return the notes about it."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise needs("reading text larger than memory", "pyarrow", "parquet") from None
    layout = layout_of(source, checked_encoding(source, encoding), delimiter)
    if target is not None:
        check_target_name(list(layout.names), target)
    schema = pa.schema([(name, pa.large_string()) for name in layout.names])
    written = gone = 0
    with pq.ParquetWriter(place, schema) as writer:
        for frame in frames(source, layout, _piece_rows(len(layout.names))):
            kept = frame if target is None else _with_target(frame, target)
            written, gone = written + len(kept), gone + len(frame) - len(kept)
            writer.write_table(pa.Table.from_pandas(kept, schema, preserve_index=False))
    if gone and not written:
        raise TableError(f"every value of the target {quoted(str(target))} is missing")
    if not written:
        raise TableError(f"{source.quoted} has column names but no rows")
    notes = (*layout.notes, *header_notes(list(layout.names)))
    if gone:
        rows = counted(gone, "row")
        notes += (f"{rows} without a value of {quoted(str(target))} left out: it is the target",)
    return notes


def _with_target(frame: pd.DataFrame, target: str) -> pd.DataFrame:
    cells = cells_of(target, frame[target], MISSING_IN_TARGET)
    assert cells is not None  # text always has single values
    return frame.loc[~cells.missing]
