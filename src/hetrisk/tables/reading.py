"""A table from a file nobody vouches for: CSV, TSV or Parquet, gzipped or not.

Text is read as text, with no guess at types (see `hetrisk.tables.inference`). One pass checks
encoding, NUL bytes and the number of fields in every line before the table is built, because a
parser that quietly fills short lines loses data.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pandas as pd

from hetrisk.tables.errors import TableError, counted, listed, quoted

if TYPE_CHECKING:
    from hetrisk.blocks.files import ParquetPart

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
CHUNK = 1 << 20
SNIFFED_LINES = 50
_FOREIGN = {
    b"PK\x03\x04": "a zip archive or an Excel workbook; save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
    b"BZh": "compressed with bzip2; only gzip is read",
    b"\xfd7zXZ": "compressed with xz; only gzip is read",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; only gzip is read",
    b"\x89HDF": "an HDF5 file; save the table as CSV or Parquet",
    b"SQLite": "an SQLite database; save the table as CSV or Parquet",
    b"%PDF": "a PDF; save the table as CSV",
    b"\x80\x02": "a pickle; save the table as CSV or Parquet",
    b"\x80\x03": "a pickle; save the table as CSV or Parquet",
    b"\x80\x04": "a pickle; save the table as CSV or Parquet",
    b"\x80\x05": "a pickle; save the table as CSV or Parquet",
}


@dataclass(frozen=True)
class Table:
    """A table as read.

    Attributes
    ----------
    frame : the cells; text where the file holds text.
    source : the file's name, without its folder.
    notes : what the reader did that its owner should know, a clause each.
    """

    frame: pd.DataFrame
    source: str
    notes: tuple[str, ...] = ()


def read_table(
    path: str | os.PathLike[str], *, encoding: str = "utf-8", delimiter: str | None = None
) -> Table:
    """Read a CSV, TSV or Parquet file (gzipped or not), or a folder of Parquet files.

    Files are told apart by content; the files of a folder are read as the one table they are.

    Parameters
    ----------
    path : the file, or the folder.
    encoding : of the text, if it is text.
    delimiter : between the fields; None finds it among comma, tab, semicolon and bar.

    Raises
    ------
    TableError : when the file is not a table, with a sentence saying why.
    OSError : when it cannot be opened.
    """
    path = Path(path)
    if path.is_dir():
        return _read_parquet(path)
    if path.exists() and not path.is_file():
        raise TableError(f"{quoted(path.name)} is not a regular file")
    start = _start(path)
    if not start:
        raise TableError(f"{quoted(path.name)} is empty")
    if start.startswith(b"PAR1"):
        return _read_parquet(path)
    for magic, what in _FOREIGN.items():
        if start.startswith(magic):
            raise TableError(f"{quoted(path.name)} is {what}")
    return _read_text(path, encoding, delimiter)


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(8)


def is_large(path: Path) -> bool:
    """Whether the path is Parquet, a file or a folder, whose table would not fit in memory."""
    if not path.is_dir() and not (path.is_file() and _start(path).startswith(b"PAR1")):
        return False
    try:
        import pyarrow.parquet as pq

        sizes = [_expanded(pq.ParquetFile(part.path).metadata) for part in parquet_parts(path)]
    except (ImportError, ValueError, OSError):
        return False  # reading it will say what is missing or wrong
    return sum(sizes) > _memory_limit()


def _expanded(metadata: Any) -> int:
    """Bytes of a Parquet file once decompressed."""
    return sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))


def parquet_parts(path: Path) -> list[ParquetPart]:
    """Open the footers of the Parquet files a path means: itself, or a folder's at any depth."""
    try:
        from hetrisk.blocks import files
    except ImportError:
        raise TableError("reading Parquet needs pyarrow: pip install 'hetrisk[parquet]'") from None
    try:
        parts = files.open_parts(files.parquet_paths(path))
        files.check_same_columns(parts)
    except FileNotFoundError:
        raise TableError(f"{quoted(path.name)} is a folder without Parquet files") from None
    except ValueError as error:
        raise TableError(str(error)) from None
    return parts


def _read_parquet(path: Path) -> Table:
    """Read a Parquet file, or the files of a folder as the one table they are."""
    parts = parquet_parts(path)
    import pyarrow as pa
    import pyarrow.parquet as pq

    from hetrisk.blocks import files

    if is_large(path):
        raise TableError(f"{quoted(path.name)} does not fit in memory")
    try:
        table = files.concatenated([pq.ParquetFile(part.path).read() for part in parts])
        frame = table.to_pandas(ignore_metadata=True)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{quoted(path.name)} is not readable as Parquet: {error}") from None
    return _checked(frame, path, ())


def _read_text(path: Path, encoding: str, delimiter: str | None) -> Table:
    limit = _memory_limit()
    text = _decoded(path, encoding, limit)
    notes = []
    if delimiter is None:
        delimiter = _delimiter(text, path)
        if delimiter != ",":
            notes.append(f"fields separated by {DELIMITERS[delimiter]}s")
    _check_lines(text, delimiter, path)
    text.seek(0)
    raw = pd.read_csv(text, sep=delimiter, header=None, dtype=str, na_filter=False, engine="c")
    header = [str(name).strip() for name in raw.iloc[0]]
    _refuse_duplicates(header, path)
    frame = raw.iloc[1:].reset_index(drop=True)
    frame.columns = pd.Index(header)
    return _checked(frame, path, tuple(notes))


def _decoded(path: Path, encoding: str, limit: int) -> io.StringIO:
    """Return the whole text, checked for NUL bytes and undecodable ones; line ends unchanged."""
    try:
        with _opened(path) as file:
            data = file.read(limit + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TableError(
            f"{quoted(path.name)} is a damaged or truncated gzip file: {error}"
        ) from None
    if len(data) > limit:
        raise TableError(
            f"{quoted(path.name)} holds more than {limit / 2**30:.1f} GB of text, too much for "
            "this machine's memory: convert it to a folder of Parquet files and fit that"
        )
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise TableError(f"{quoted(path.name)} is not text: line {line} holds a NUL byte")
    try:
        return io.StringIO(data.decode(encoding).removeprefix("\ufeff"), newline="")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[error.start]
        raise TableError(
            f"{quoted(path.name)}, line {line}: the byte 0x{byte:02x} is not {encoding}; "
            "say --encoding latin-1 if the file comes from an old Windows program"
        ) from None
    except LookupError:
        raise TableError(f"{quoted(encoding)} is not an encoding Python knows") from None


def _opened(path: Path) -> IO[bytes] | gzip.GzipFile:
    if _start(path).startswith(b"\x1f\x8b"):
        return gzip.open(path, "rb")
    return path.open("rb")


def _memory_limit() -> int:
    """Bytes of text that can be read with room to work: an eighth of the memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 8


def _delimiter(text: io.StringIO, path: Path) -> str:
    """Return the delimiter that splits the first lines into most fields, all lines alike."""
    scores = {}
    for delimiter in DELIMITERS:
        text.seek(0)
        widths = _widths(text, delimiter)
        if widths and widths[0] > 1:
            scores[delimiter] = (widths.count(widths[0]) / len(widths), widths[0])
    if not scores:
        raise TableError(
            f"{quoted(path.name)} has only one column: if its fields are separated by something "
            "other than commas, tabs, semicolons or bars, say which with --delimiter"
        )
    return max(scores, key=lambda delimiter: scores[delimiter])


def _widths(text: io.StringIO, delimiter: str) -> list[int]:
    widths: list[int] = []
    try:
        for record in csv.reader(text, delimiter=delimiter):
            if record:
                widths.append(len(record))
            if len(widths) == SNIFFED_LINES:
                break
    except csv.Error:
        pass  # the full check that follows says what is wrong, and on which line
    return widths


def _check_lines(text: io.StringIO, delimiter: str, path: Path) -> None:
    """Refuse a table whose lines differ in their number of fields, or with no lines at all."""
    text.seek(0)
    records = 0
    width = 0
    for line, record in _records(text, delimiter, path):
        if not record:
            continue
        records += 1
        width = width or len(record)
        if len(record) != width:
            raise TableError(
                f"{quoted(path.name)}, line {line}: {counted(len(record), 'field')} where the "
                f"header has {width:,}"
            )
    if records == 0:
        raise TableError(f"{quoted(path.name)} is empty")


def _records(text: io.StringIO, delimiter: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    try:
        for record in reader:
            yield reader.line_num, record
    except csv.Error as error:
        raise TableError(f"{quoted(path.name)}, line {reader.line_num}: {_plain(error)}") from None


def _plain(error: csv.Error) -> str:
    words = str(error)
    if "unexpected end of data" in words or "field larger" in words:
        return "a quotation mark is opened and never closed"
    if "expected after" in words:
        return "text follows a closing quotation mark"
    return words


def _refuse_duplicates(names: list[str], path: Path) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"{quoted(path.name)} has more than one column named {listed(twice)}")


def _checked(frame: pd.DataFrame, path: Path, notes: tuple[str, ...]) -> Table:
    if len(frame) == 0:
        raise TableError(f"{quoted(path.name)} has column names but no rows")
    return Table(frame, path.name, notes)
