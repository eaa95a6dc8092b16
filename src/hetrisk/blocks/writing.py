"""Columns computed block by block, written to one Parquet file or to none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hetrisk.atomic import replacing
from hetrisk.blocks.base import Blocks
from hetrisk.core.numerics.rows import Rows

GROUP_ROWS = 1 << 18


def write_columns(
    source: Blocks, function: Callable[[Rows], Mapping[str, np.ndarray]], path: str | Path
) -> Path:
    """Write the columns that ``function`` computes of each block, one row of them a row.

    The file is written under a hidden name beside ``path`` and renamed when it is complete:
    an error or Ctrl-C on the way leaves nothing behind, and a file already at ``path`` as it
    was. Memory holds a row group at a time.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"path must be in a folder that exists; got '{path}'.")
    with replacing(path) as temporary:
        tables = (pa.table(dict(columns)) for columns in source.map(function))
        write_tables(tables, temporary)
    return path


def write_tables(tables: Iterable[pa.Table], path: Path) -> None:
    """Write tables with the same columns one below the other; the first one's types hold."""
    groups = _row_groups(tables)
    first = next(groups)
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first, row_group_size=GROUP_ROWS)
        for table in groups:
            writer.write_table(table.cast(first.schema), row_group_size=GROUP_ROWS)


def _row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(t.num_rows for t in held) >= GROUP_ROWS:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)
