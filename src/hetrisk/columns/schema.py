"""One rule for the columns of several Parquet files that make one table.

A column is part of the table if every file has it, in whatever order, and its types meet:
numbers of any width (truths included) as numbers, text however it is encoded as text, dates and
times as times, periods as the times they start at. What is left outside is named, with the files
that disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hetrisk.columns.arrow import STRINGS
from hetrisk.columns.dates import is_period, plain
from hetrisk.columns.parquet import ParquetPart, is_date, is_number


@dataclass(frozen=True)
class CommonSchema:
    """What the files of a table have in common.

    Attributes
    ----------
    schema : the columns of the table, in the order of the first file, with the types they meet in.
    outside : columns that are not part of it, and why, as a clause that names files.
    """

    schema: pa.Schema
    outside: dict[str, str]

    def conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return columns of one file with the types they have in the whole table."""
        kinds = [self.schema.field(name).type for name in batch.schema.names]
        columns = [_cast(column, kind) for column, kind in zip(batch.columns, kinds, strict=True)]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def common_schema(parts: Sequence[ParquetPart]) -> CommonSchema:
    """Find what files have in common."""
    fields, outside = [], {}
    names = dict.fromkeys(name for part in parts for name in part.schema.names)
    for name in names:
        lacking = [part for part in parts if name not in part.schema.names]
        if lacking:
            outside[name] = f"not in every file: '{lacking[0].path}' has no such column"
            continue
        kinds = [part.schema.field(name).type for part in parts]
        meeting = _meeting(kinds)
        if meeting is None:
            outside[name] = _disagreement(parts, kinds)
        else:
            fields.append(pa.field(name, meeting))
    return CommonSchema(pa.schema(fields), outside)


def _disagreement(parts: Sequence[ParquetPart], kinds: Sequence[pa.DataType]) -> str:
    held = [i for i, kind in enumerate(kinds) if not pa.types.is_null(kind)]
    first = held[0]
    # A pair may meet where three do not; then the last one is as good an example as any.
    other = next((i for i in held if _meeting([kinds[first], kinds[i]]) is None), held[-1])
    return (
        f"its type changes between files: {kinds[first]} in '{parts[first].path}', {kinds[other]} "
        f"in '{parts[other].path}'"
    )


def _meeting(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """Return the type all of these become without being interpreted, or None."""
    held = [kind for kind in map(_undressed, kinds) if not pa.types.is_null(kind)]
    if not held:
        return pa.null()
    if all(kind == held[0] for kind in held):
        return held[0]
    if all(any(test(kind) for test in STRINGS) for kind in held):
        return pa.string()
    if all(pa.types.is_signed_integer(kind) for kind in held):
        return pa.int64()
    if all(is_number(kind) for kind in held):
        return pa.float64()
    zones = {kind.tz for kind in held if pa.types.is_timestamp(kind)}
    if all(map(is_date, held)) and len(zones) < 2:
        return pa.timestamp("us", tz=zones.pop() if zones else None)
    return None


def _undressed(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a dictionary, or of the times that periods start at."""
    if is_period(kind):
        return pa.timestamp("us")
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if is_period(column.type):
        column = pa.array(plain(column.to_pandas()), pa.timestamp("us"), from_pandas=True)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if column.type == kind else column.cast(kind, safe=False)
