"""Columns of Arrow as they come from files nobody vouches for: checked, bounded, made a frame."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

STRINGS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)


def line_of(error: BaseException) -> str:
    """Return the first line of what an error says."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def check_values(table: pa.Table | pa.RecordBatch, place: str) -> None:
    """Raise if a column holds what its type does not allow, with ``place`` and its name.

    Text that is not UTF-8 would otherwise fail wherever a cell is first looked at.
    """
    for field, column in zip(table.schema, table.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowException as error:
            text = any(test(field.type) for test in STRINGS)
            why = "text that is not UTF-8" if text else f"broken {field.type}"
            raise ValueError(
                f"{place}: column {field.name!r} holds {why} ({line_of(error)})."
            ) from error


def frame_of(table: pa.Table) -> pd.DataFrame:
    """Return Arrow columns as a data frame.

    What pandas noted in the file goes first: it may be broken, and Arrow reads it even where told
    to ignore it.
    """
    plain = table.replace_schema_metadata(None)
    try:
        frame: pd.DataFrame = plain.to_pandas()
    except (ValueError, OverflowError):  # dates no calendar has, or a category that is two
        columns = {name: _series(plain.column(name), name) for name in plain.schema.names}
        frame = pd.DataFrame(columns, columns=plain.schema.names)
    return frame


def _series(column: pa.ChunkedArray, name: str) -> pd.Series:
    """One column that may not be what its type says."""
    if pa.types.is_dictionary(column.type):
        chunks = [chunk.dictionary_decode() for chunk in column.chunks]
        column = pa.chunked_array(chunks, type=column.type.value_type)
    try:
        values: pd.Series = column.to_pandas()
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"column {name!r} holds values out of range ({line_of(error)})."
        ) from error
    return values


def decoded(table: pa.Table, place: str, limit: int) -> pa.Table:
    """Return a table that was read with text as dictionaries, with the text itself.

    Two texts of 20 MB take a few kilobytes in a file, and any number of gigabytes once every row
    has its own: how much is found before it is decoded, and more than ``limit`` bytes are refused.
    """
    total = 0
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if not pa.types.is_dictionary(column.type) or not is_text(column.type.value_type):
            continue
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        total += sum(map(text_bytes, chunks))
        if total > limit:
            raise ValueError(
                f"{place}: column {name!r} holds more than {limit / 2**20:,.0f} MB of text."
            )
        plain = [chunk.dictionary_decode() for chunk in chunks]
        whole = pa.chunked_array(plain, type=column.type.value_type)
        at = table.schema.get_field_index(name)
        value = whole if isinstance(table, pa.Table) else pa.concat_arrays(plain)
        table = table.set_column(at, pa.field(name, column.type.value_type), value)
    return table


def text_bytes(column: pa.Array) -> int:
    """Bytes of the text that a dictionary stands for, row by row."""
    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0)


def text_columns(schema: pa.Schema) -> list[str]:
    """Columns of plain text, which are read as dictionaries first."""
    return [field.name for field in schema if is_text(field.type)]


def is_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in STRINGS)
