"""Delimited text: found out how it is laid out, checked line by line, and read.

Passes over the file check encoding, NUL bytes and the number of fields in every line before a
table is built, because a parser that quietly fills short lines loses data. The text itself is
never held: every pass streams it from where it lies.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TextIO

import numpy as np
import pandas as pd

from hetrisk.tables import remedies
from hetrisk.tables.errors import TableError, counted, listed, quoted
from hetrisk.tables.formats import is_json
from hetrisk.tables.inputs import Input
from hetrisk.tables.notation import parse_number

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
CHUNK = 1 << 20
SNIFFED_LINES = 50
MANY_COLUMNS = 2_000
LONGEST_FIRST_LINE = 1 << 20
_OF_WIDE = ("utf-16", "utf-32")  # encodings that begin with a mark; latin-1 is no guess for these
# The longer marks first: one of UTF-32 begins as one of UTF-16 does.
_WIDE = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class Layout:
    """How a text is laid out.

    Attributes
    ----------
    encoding, delimiter : to read it with.
    names : of the columns.
    notes : what was found out, a clause each.
    """

    encoding: str
    delimiter: str
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def layout_of(source: Input, encoding: str, delimiter: str | None) -> Layout:
    """Find the delimiter (None) and the names; refuse lines that do not fit them.

    ``encoding`` is one that `checked_encoding` returned.
    """
    notes: tuple[str, ...] = ()
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii()):
        raise TableError(f"fields are separated by one ASCII character; got {quoted(delimiter)}")
    if delimiter is None:
        delimiter = _delimiter(source, encoding)
        if delimiter != ",":
            notes = (f"fields separated by {DELIMITERS[delimiter]}s",)
    names = _check_lines(source, encoding, delimiter)
    refuse_duplicates(names, source)
    return Layout(encoding, delimiter, tuple(names), notes)


def frames(source: Input, layout: Layout, rows: int | None = None) -> Iterator[pd.DataFrame]:
    """Yield the cells as text, ``rows`` lines at a time; None: all at once."""
    with opened(source, layout.encoding) as text:
        if len(layout.names) > MANY_COLUMNS:
            yield from _wide_frames(text, layout, rows)
            return
        found = pd.read_csv(
            text,
            sep=layout.delimiter,
            header=0,
            index_col=False,
            dtype=str,
            na_filter=False,
            engine="c",
            chunksize=rows,
        )
        pieces: Iterable[pd.DataFrame] = [found] if isinstance(found, pd.DataFrame) else found
        for frame in pieces:
            frame.columns = pd.Index(layout.names)
            yield frame


def _wide_frames(text: TextIO, layout: Layout, rows: int | None) -> Iterator[pd.DataFrame]:
    """As `frames`, for very many columns: to make each of them takes longer than to read it."""
    lines = (line for line in csv.reader(text, delimiter=layout.delimiter) if line)
    next(lines)
    while block := list(islice(lines, rows)):
        cells = np.empty((len(block), len(layout.names)), dtype=object)
        cells[:] = block
        yield pd.DataFrame(cells, columns=pd.Index(layout.names), dtype=object, copy=False)


def begins_as_json(source: Input, encoding: str) -> bool:
    """Whether the text is JSON rather than delimited."""
    with opened(source, encoding) as text:
        return is_json(_first_line(text))


def unpacked_bytes(source: Input, most: int) -> int:
    """Bytes of the text once it is unpacked, counted up to a little over ``most``."""
    if source.path is not None and not source.start.startswith(b"\x1f\x8b"):
        return source.path.stat().st_size
    total = 0
    for chunk in _chunks(source):
        total += len(chunk)
        if total > most:
            break
    return total


def swelling(source: Input) -> float:
    """How many times as much memory a text takes once it is a table, measured on its first rows."""
    sample = next(_chunks(source), b"").decode("latin-1")
    lines = sample.splitlines(keepends=True)
    text = "".join(lines[:-1] or lines)
    mark = max(DELIMITERS, key=lines[0].count) if lines else ","
    try:
        frame = pd.read_csv(
            io.StringIO(text), sep=mark, dtype=str, na_filter=False, on_bad_lines="skip"
        )
    except (ValueError, csv.Error):  # reading all of it will say what is wrong
        return 1.0
    return max(1.0, float(frame.memory_usage(deep=True).sum()) / max(len(text), 1))


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


def header_notes(names: list[str]) -> tuple[str, ...]:
    """Say that the first line was read as names, where it looks like data."""
    if not looks_headerless(names):
        return ()
    return (f"the first line was read as names ({listed(names, 3)}) but looks like data",)


def header_hint(names: list[str]) -> str:
    """Return a clause for messages about names, where the file seems to have none."""
    if not looks_headerless(names):
        return ""
    return "; the first line looks like data: if the file has no line of names, add one"


def checked_encoding(source: Input, encoding: str, limit: float = math.inf) -> str:
    """Return the encoding to read with, having refused NUL bytes and undecodable ones.

    More than ``limit`` bytes of text are refused as soon as they have been seen.
    """
    start = next(_chunks(source), b"")[:4]
    wide = next((name for mark, name in _WIDE.items() if start.startswith(mark)), "")
    encoding = wide or encoding
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError:
        raise TableError(f"{quoted(encoding)} is not an encoding Python knows") from None
    lines, total = 1, 0
    for chunk in _chunks(source):
        total += len(chunk)
        if total > limit:
            raise TableError(
                f"{source.quoted} holds more than {limit / 2**30:.1f} GB of text, too much for "
                "this machine's memory"
            )
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
        if codecs.lookup(encoding).name in _OF_WIDE:
            raise TableError(
                f"{source.quoted} is not {encoding}: {error.reason}, line {line}"
            ) from None
        raise TableError(
            f"{source.quoted}, line {line}: the byte 0x{error.object[error.start]:02x} is not "
            f"{encoding}; if the file comes from an old Windows program, say",
            remedies.ENCODING,
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


@contextmanager
def opened(source: Input, encoding: str) -> Iterator[TextIO]:
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
        with opened(source, encoding) as text:
            widths = _widths(text, delimiter)
        if widths and widths[0] > 1:
            scores[delimiter] = (widths.count(widths[0]) / len(widths), widths[0])
    if not scores:
        raise TableError(
            f"{source.quoted} has only one column: if its fields are separated by something "
            "other than commas, tabs, semicolons or bars, say which with",
            remedies.DELIMITER,
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
    with opened(source, encoding) as text:
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
    if "unexpected end of data" in words:
        return "a quotation mark is opened and never closed"
    if "field larger" in words:
        return (
            f"a field of more than {csv.field_size_limit():,} characters, as where a quotation "
            "mark is opened and never closed"
        )
    if "expected after" in words:
        return "text follows a closing quotation mark"
    return words


def refuse_duplicates(names: list[str], source: Input) -> None:
    """Refuse two columns of one name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(
            f"{source.quoted} has more than one column named {listed(twice)}{header_hint(names)}"
        )
