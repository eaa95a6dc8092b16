"""Formats other than delimited text: Feather, Excel, Stata, JSON lines, and Parquet next door.

Each is told apart by its first bytes and read by the library that knows it, imported only then.
Whatever that library finds wrong becomes one sentence with the file's name.
"""

from __future__ import annotations

import json
import struct
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from typing import IO, Any

import numpy as np
import pandas as pd

from hetrisk.tables import inputs
from hetrisk.tables.errors import TableError, needs, quoted
from hetrisk.tables.frames import marked
from hetrisk.tables.inputs import Input, Table, unreadable
from hetrisk.tables.parquet import checked_frame, ends_as_parquet, read_parquet

FOREIGN = {
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save it as .xlsx or CSV",
    **{b"BZh%d1AY&SY" % n: "compressed with bzip2; only gzip is read" for n in range(1, 10)},
    b"\xfd7zXZ": "compressed with xz; only gzip is read",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; only gzip is read",
    b"\x89HDF": "an HDF5 file; save the table as CSV or Parquet",
    b"SQLite": "an SQLite database; save the table as CSV or Parquet",
    b"%PDF": "a PDF; save the table as CSV",
    **{b"\x80%c" % n: "a pickle; save the table as CSV or Parquet" for n in range(2, 6)},
}
CELL_BYTES = 100  # of one cell of a sheet or of JSON, about
LAST_ROW = 1 << 20  # of a sheet, as Excel has them
_SPACE = "\ufeff \t\r\n"
Reader = Callable[[Input], Table]


def reader_of(source: Input) -> Reader | None:
    """Return what reads the input's format; None for text in lines."""
    start = source.start
    if ends_as_parquet(source):
        return read_parquet
    if start.startswith((b"ARROW1\0", b"FEA1")):
        return read_feather
    if start.startswith(b"PK\x03\x04"):
        return read_workbook
    if start.startswith(b"<stata_d") or (start[:1] in b"qrs" and start[1:3] in (b"\1\1", b"\2\1")):
        return read_stata
    for magic, what in FOREIGN.items():
        if start.startswith(magic):
            raise TableError(f"{source.quoted} is {what}")
    return None


def read_feather(source: Input) -> Table:
    """Read a Feather file (Arrow's file format)."""
    try:
        import pyarrow as pa
        import pyarrow.feather as feather
    except ImportError:
        raise needs("reading Feather", "pyarrow", "formats") from None
    try:
        with source.open() as file:
            _refuse_larger(_unpacked(file), source)
            file.seek(0)
            table = feather.read_table(file)
    except (pa.ArrowException, OSError, struct.error) as error:
        raise unreadable(source, "Feather file", error) from None
    return Table(checked_frame(table, source), source.name)


def _unpacked(file: IO[bytes]) -> int:
    """Bytes of the buffers of a Feather file once they are unpacked, by what stands before each.

    What says where they lie is a flatbuffer: tables that point to their fields.
    """
    import pyarrow as pa

    def at(place: int) -> int:
        return place + int(struct.unpack_from("<I", meta, place)[0])

    def field(table: int, number: int) -> int:
        layout = table - struct.unpack_from("<i", meta, table)[0]
        size, _, *fields = struct.unpack_from("<HH5H", meta + bytes(16), layout)
        return table + fields[number] if 4 + 2 * number < size and fields[number] else 0

    file.seek(len(b"ARROW1\0\0"))
    total = 0
    for message in pa.ipc.MessageReader.open_stream(file):
        if message.type not in ("record batch", "dictionary"):
            continue
        meta, body = message.metadata.to_pybytes(), memoryview(message.body)
        batch = at(field(at(0), 2))
        if message.type == "dictionary":
            batch = at(field(batch, 1))
        buffers, packed = at(field(batch, 2)), field(batch, 3) != 0
        for k in range(struct.unpack_from("<I", meta, buffers)[0]):
            start, length = struct.unpack_from("<qq", meta, buffers + 4 + 16 * k)
            size = struct.unpack_from("<q", body, start)[0] if packed and length else length
            total += max(size, length)
    return total


def read_workbook(source: Input) -> Table:
    """Read the first sheet of an Excel workbook: its first row names the columns."""
    _refuse_other_archives(source)
    try:
        import openpyxl
    except ImportError:
        raise needs("reading an Excel workbook", "openpyxl", "formats") from None
    try:
        with source.open() as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns of styles and buttons it skips
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            sheets = [sheet.title for sheet in book.worksheets]
            if not sheets:
                raise TableError(f"{source.quoted} holds no sheet with cells")
            lines = _lines(book.worksheets[0].iter_rows(values_only=True), source)
            book.close()
    except TableError:
        raise
    except Exception as error:  # openpyxl raises whatever the XML made it stumble over
        raise unreadable(source, "Excel workbook", error) from None
    only = f"only the first of {len(sheets)} sheets ({quoted(sheets[0])}) was read"
    # Sheets hold numbers that were typed as text, and words for true and false.
    frame = marked(_from_lines(lines), text=True)
    return Table(frame, source.name, (only,) if len(sheets) > 1 else ())


def _refuse_other_archives(source: Input) -> None:
    try:
        with source.open() as file, zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            expanded = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError) as error:
        raise unreadable(source, "zip archive", error) from None
    if "xl/workbook.xml" not in names:
        raise TableError(f"{source.quoted} is a zip archive; unpack it, and fit the table inside")
    if expanded > inputs.memory_limit():
        raise TableError(f"{source.quoted} does not fit in memory once it is unpacked")


def _lines(rows: Iterator[tuple[Any, ...]], source: Input) -> list[dict[int, Any]]:
    """Return the cells of each line that has any, by column: a sheet may be mostly nothing."""
    lines, cells, blank = [], 0, 0
    limit = inputs.memory_limit() // CELL_BYTES
    for row in rows:
        line = {i: cell for i, cell in enumerate(row) if cell is not None}
        cells += len(line)
        blank = 0 if line else blank + 1
        if cells > limit or blank > LAST_ROW:
            what = (
                "does not fit in memory" if cells > limit else "has rows beyond the last of Excel"
            )
            raise TableError(f"{source.quoted} {what}")
        if line:
            lines.append(line)
    width = len({i for line in lines for i in line})
    if width * len(lines) > limit:
        raise TableError(f"{source.quoted} does not fit in memory")
    return lines


def _from_lines(lines: list[dict[int, Any]]) -> pd.DataFrame:
    """Return the frame of a sheet: blank lines and blank columns are dropped."""
    if not lines:
        return pd.DataFrame()
    used = sorted({i for line in lines for i in line})
    names = [str(lines[0].get(i, "")).strip() for i in used]
    series = [
        pd.Series([line.get(i) for line in lines[1:]], dtype=object).infer_objects() for i in used
    ]
    frame = pd.concat(series, axis=1)
    frame.columns = pd.Index(names)
    return frame


def read_stata(source: Input) -> Table:
    """Read a Stata file; values with labels become the labels."""
    try:
        with source.open() as file:
            return Table(pd.read_stata(file), source.name)
    except Exception as error:  # a damaged file breaks the parser in many ways
        raise unreadable(source, "Stata file", error) from None


def is_json(first_line: str) -> bool:
    """Whether a text begins as JSON records do."""
    line = first_line.lstrip(_SPACE)
    if line.startswith("["):
        return line[1:].lstrip()[:1] in ("{", "")
    try:
        return line.startswith("{") and isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def read_json(text: Iterator[str], source: Input) -> Table:
    """Read JSON lines, one object a line, or one array of objects."""
    lines = enumerate(text, start=1)
    first = next((number, line) for number, line in lines if line.strip(_SPACE))
    if first[1].lstrip(_SPACE).startswith("["):
        whole = "".join([first[1], *(line for _, line in lines)])
        records = _array(whole, source)
    else:
        records, held = [], 0
        for number, line in chain([first], lines):
            if line.strip():
                held += _unfolded(line)
                _refuse_larger(held, source)
                record = _parsed(line.rstrip(), source, number)
                if not isinstance(record, dict):
                    raise TableError(f"{source.quoted}, line {number}: not a JSON object")
                records.append(record)
    return Table(_framed(records, source), source.name)


def _unfolded(text: str) -> int:
    """Bytes that JSON takes once it is parsed, about: values are set apart by these marks."""
    return len(text) + CELL_BYTES * sum(map(text.count, ",[{"))


def _refuse_larger(held: int, source: Input) -> None:
    if held > inputs.memory_limit():
        raise TableError(f"{source.quoted} does not fit in memory")


def _framed(records: list[dict[str, Any]], source: Input) -> pd.DataFrame:
    names = dict.fromkeys(name for record in records for name in record)
    _refuse_larger(CELL_BYTES // 5 * len(names) * len(records), source)  # a name of its own a row
    try:
        return pd.DataFrame.from_records(records)
    except UnicodeEncodeError as error:
        half = error.object[error.start : error.end]
        raise TableError(f"{source.quoted} holds half a character, {quoted(half)}") from None
    except OverflowError:  # integers of hundreds of digits beside others
        columns = {n: np.asarray([r.get(n) for r in records], dtype=object) for n in names}
        return pd.DataFrame(columns)


def _record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, refusing one that says two things under one name."""
    record = dict(pairs)
    if len(record) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{quoted(twice)} stands twice in one object")
    return record


def _array(text: str, source: Input) -> list[dict[str, Any]]:
    _refuse_larger(_unfolded(text), source)
    records = _parsed(text, source, 1)
    strange = [i for i, record in enumerate(records) if not isinstance(record, dict)]
    if strange:
        raise TableError(f"{source.quoted}: item {strange[0] + 1} is not a JSON object")
    return records


def _parsed(text: str, source: Input, line: int) -> Any:
    try:
        return json.loads(text.lstrip("\ufeff"), object_pairs_hook=_record)
    except json.JSONDecodeError as error:
        where = line + error.lineno - 1
        raise TableError(f"{source.quoted}, line {where}: not JSON ({error.msg})") from None
    except (ValueError, RecursionError) as error:
        raise TableError(f"{source.quoted}, line {line}: not JSON ({error})") from None
