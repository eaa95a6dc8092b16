"""A table from a file nobody vouches for: delimited text, gzipped or not, and other formats.

Text is read as text, with no guess at types (see `hetrisk.tables.inference`).
"""

from __future__ import annotations

import os
from dataclasses import replace

import pandas as pd

from hetrisk.tables import inputs
from hetrisk.tables.errors import TableError
from hetrisk.tables.formats import read_json, reader_of
from hetrisk.tables.frames import marked
from hetrisk.tables.inputs import Input, Table, input_of
from hetrisk.tables.parquet import read_parquet
from hetrisk.tables.text import (
    begins_as_json,
    checked_encoding,
    frames,
    header_notes,
    layout_of,
    opened,
    refuse_duplicates,
)


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
    with source.unchanged():
        return _read_text(source, encoding, delimiter)


def _read_text(source: Input, encoding: str, delimiter: str | None) -> Table:
    encoding = checked_encoding(source, encoding, inputs.memory_limit())
    if delimiter is None and begins_as_json(source, encoding):
        with opened(source, encoding) as text:
            return _checked(read_json(text, source), source)
    layout = layout_of(source, encoding, delimiter)
    frame = next(frames(source, layout), pd.DataFrame(columns=list(layout.names)))
    return _checked(Table(marked(frame, text=True), source.name, layout.notes), source)


def _checked(found: Table, source: Input) -> Table:
    names = [str(name) for name in found.frame.columns]
    refuse_duplicates(names, source)
    if len(found.frame) == 0:
        raise TableError(f"{source.quoted} has column names but no rows")
    return replace(found, notes=(*found.notes, *header_notes(names)))
