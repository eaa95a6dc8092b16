"""A table from a file nobody vouches for: delimited text, gzipped or not, and other formats.

Text is read as text, with no guess at types (see `hetrisk.tables.inference`). Before the table is
built, passes over the file check encoding, NUL bytes and the number of fields in every line,
because a parser that quietly fills short lines loses data. The text itself is never held: every
pass streams it from where it lies.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

import pandas as pd

from hetrisk.tables import inputs
from hetrisk.tables.errors import TableError, counted, listed, quoted
from hetrisk.tables.formats import is_json, read_json, reader_of
from hetrisk.tables.inference import LeftOut
from hetrisk.tables.inputs import Contents, Input, input_of
from hetrisk.tables.notation import parse_number
from hetrisk.tables.parquet import read_parquet

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
CHUNK = 1 << 20
SNIFFED_LINES = 50
LONGEST_FIRST_LINE = 1 << 20
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class Table:
    """A table as read.

    Attributes
    ----------
    frame : the cells; text where the file holds text.
    source : the file's name, without its folder.
    notes : what the reader did that its owner should know, a clause each.
    left_out : columns of some files that are not part of the table, and why.
    """

    frame: pd.DataFrame
    source: str
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def read_table(
    path: str | os.PathLike[str], *, encoding: str = "utf-8", delimiter: str | None = None
) -> Table:
    """Read a table, whatever its format, told apart by content.

    CSV, TSV and JSON lines (gzipped or not) and Stata need nothing more; Parquet and Feather need
    pyarrow, Excel workbooks openpyxl, and say so. The Parquet files of a folder are read as the one
    table they are.

    Parameters
    ----------
    path : the file, a folder of Parquet files, or ``-`` for standard input.
    encoding : of the text, if it is text.
    delimiter : between the fields; None finds it among comma, tab, semicolon and bar.

    Raises
    ------
    TableError : when the file is not a table, with a sentence saying why.
    OSError : when it cannot be opened.
    """
    source = input_of(path)
    if source.is_folder:
        return _checked(read_parquet(source), source)
    if not source.start:
        raise TableError(f"{source.quoted} is empty")
    reader = reader_of(source)
    if reader is not None:
        return _checked(reader(source), source)
    encoding = _checked_encoding(source, encoding)
    with _opened(source, encoding) as text:
        json = delimiter is None and is_json(_first_line(text))
    if json:
        with _opened(source, encoding) as text:
            return _checked(read_json(text, source), source)
    return _checked(_read_fields(source, encoding, delimiter), source)


def looks_headerless(names: list[str]) -> bool:
    """Whether the names of the columns look like a row of data: most of them are numbers.

    Years are names, and so are 0, 1, 2, ...: data frames without names are written so.
    """
    numbers = [
        name
        for position, name in enumerate(names)
        if parse_number(name) == parse_number(name)
        and not (name.isdigit() and (1800 <= int(name) <= 2100 or int(name) - position in (0, 1)))
    ]
    return len(numbers) >= len(names) / 2 and len(numbers) > 0


def header_hint(names: list[str]) -> str:
    """Return a clause for messages about names, where the file seems to have none."""
    if not looks_headerless(names):
        return ""
    return "; the first line looks like data: if the file has no line of names, add one"


def _read_fields(source: Input, encoding: str, delimiter: str | None) -> Contents:
    notes: tuple[str, ...] = ()
    if delimiter is None:
        delimiter = _delimiter(source, encoding)
        if delimiter != ",":
            notes = (f"fields separated by {DELIMITERS[delimiter]}s",)
    header = _check_lines(source, encoding, delimiter)
    _refuse_duplicates(header, source)
    with _opened(source, encoding) as text:
        frame = pd.read_csv(
            text, sep=delimiter, header=0, index_col=False, dtype=str, na_filter=False, engine="c"
        )
    frame.columns = pd.Index(header)
    return Contents(frame, notes)


def _checked_encoding(source: Input, encoding: str) -> str:
    """Return the encoding to read with, having refused NUL bytes and undecodable ones."""
    wide = source.start.startswith(_WIDE) or _unpacked_start(source).startswith(_WIDE)
    encoding = "utf-16" if wide else encoding
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError:
        raise TableError(f"{quoted(encoding)} is not an encoding Python knows") from None
    lines, total, limit = 1, 0, inputs.memory_limit()
    for chunk in _chunks(source):
        total += len(chunk)
        if total > limit:
            raise _too_much(source, limit)
        if not wide and b"\0" in chunk:
            line = lines + chunk.count(b"\n", 0, chunk.index(b"\0"))
            raise TableError(f"{source.quoted} is not text: line {line} holds a NUL byte")
        _decode(decoder, chunk, lines, source, encoding)
        lines += chunk.count(b"\n")
    _decode(decoder, b"", lines, source, encoding, final=True)
    return "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding


def _decode(
    decoder: codecs.IncrementalDecoder,
    chunk: bytes,
    line: int,
    source: Input,
    encoding: str,
    final: bool = False,
) -> None:
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError as error:
        line += error.object.count(b"\n", 0, error.start)
        raise TableError(
            f"{source.quoted}, line {line}: the byte 0x{error.object[error.start]:02x} is not "
            f"{encoding}; say --encoding latin-1 if the file comes from an old Windows program"
        ) from None
    except UnicodeError as error:  # a stream that does not begin as UTF-16 and UTF-32 must
        raise TableError(f"{source.quoted} is not {encoding}: {error}") from None


def _chunks(source: Input) -> Iterator[bytes]:
    try:
        with source.unpacked() as file:
            while chunk := file.read(CHUNK):
                yield chunk
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"{source.quoted} is a damaged or truncated gzip file: {error}") from None


def _unpacked_start(source: Input) -> bytes:
    return next(_chunks(source), b"")[:4]


def _too_much(source: Input, limit: int) -> TableError:
    return TableError(
        f"{source.quoted} holds more than {limit / 2**30:.1f} GB of text, too much for this "
        "machine's memory: convert it to a folder of Parquet files and fit that"
    )


@contextmanager
def _opened(source: Input, encoding: str) -> Iterator[TextIO]:
    """Open the text, checked before, with its line ends as they are."""
    with source.unpacked() as file, io.TextIOWrapper(file, encoding, newline="") as text:
        yield text


def _first_line(text: TextIO) -> str:
    """Return the first line that is not blank, or as much of it as tells JSON from a header."""
    while line := text.readline(LONGEST_FIRST_LINE):
        if line.strip():
            return line
    return ""


def _delimiter(source: Input, encoding: str) -> str:
    """Return the delimiter that splits the first lines into most fields, all lines alike."""
    scores = {}
    for delimiter in DELIMITERS:
        with _opened(source, encoding) as text:
            widths = _widths(text, delimiter)
        if widths and widths[0] > 1:
            scores[delimiter] = (widths.count(widths[0]) / len(widths), widths[0])
    if not scores:
        raise TableError(
            f"{source.quoted} has only one column: if its fields are separated by something "
            "other than commas, tabs, semicolons or bars, say which with --delimiter"
        )
    return max(scores, key=lambda delimiter: scores[delimiter])


def _widths(text: TextIO, delimiter: str) -> list[int]:
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


def _check_lines(source: Input, encoding: str, delimiter: str) -> list[str]:
    """Return the names in the first line; refuse lines that differ in their number of fields."""
    header: list[str] = []
    with _opened(source, encoding) as text:
        for line, record in _records(text, delimiter, source):
            if not record:
                continue
            header = header or record
            if len(record) != len(header):
                raise TableError(
                    f"{source.quoted}, line {line}: {counted(len(record), 'field')} where the "
                    f"header has {len(header):,}"
                )
    if not header:
        raise TableError(f"{source.quoted} is empty")
    return [name.strip() for name in header]


def _records(text: TextIO, delimiter: str, source: Input) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    try:
        for record in reader:
            yield reader.line_num, record
    except csv.Error as error:
        raise TableError(f"{source.quoted}, line {reader.line_num}: {_plain(error)}") from None


def _plain(error: csv.Error) -> str:
    words = str(error)
    if "unexpected end of data" in words or "field larger" in words:
        return "a quotation mark is opened and never closed"
    if "expected after" in words:
        return "text follows a closing quotation mark"
    return words


def _refuse_duplicates(names: list[str], source: Input) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(
            f"{source.quoted} has more than one column named {listed(twice)}{header_hint(names)}"
        )


def _checked(found: Contents, source: Input) -> Table:
    names = [str(name) for name in found.frame.columns]
    _refuse_duplicates(names, source)
    if len(found.frame) == 0:
        raise TableError(f"{source.quoted} has column names but no rows")
    notes = found.notes
    if looks_headerless(names):
        notes += (f"the first line was read as names ({listed(names, 3)}) but looks like data",)
    return Table(found.frame, source.name, notes, found.left_out)
