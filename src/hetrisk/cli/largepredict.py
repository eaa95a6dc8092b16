"""Predicting Parquet files a piece at a time: a folder, or a file larger than memory."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetrisk import atomic
from hetrisk.tables import TableError

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.pipeline import Pipeline

PIECE_ROWS = 100_000


def predict_large(
    pipeline: Pipeline, data: Path, out: Path | None, label: str | None, probabilities: bool
) -> tuple[int, list[Any]]:
    """Predict every row of Parquet files, in the order of files and rows.

    Parameters
    ----------
    pipeline : a model fitted from a table.
    data : a Parquet file or a folder of them.
    out : where to write (.csv or .parquet), whole or not at all; None for the terminal.
    label, probabilities : as for ``hetrisk predict``.

    Returns
    -------
    Number of rows, and the notes, each once.
    """
    notes: dict[Any, None] = {}
    counted = _Count()
    pieces = counted(_pieces(pipeline, data, label, probabilities, notes))
    if out is None:
        for i, piece in enumerate(pieces):
            sys.stdout.write(piece.to_csv(index=False, header=i == 0, lineterminator="\n"))
    else:
        with atomic.replacing(out) as temporary:
            parquet = out.suffix.lower() in (".parquet", ".pq")
            (_write_parquet if parquet else _write_csv)(pieces, temporary)
    return counted.rows, list(notes)


class _Count:
    """Counts the rows of what passes through."""

    rows = 0

    def __call__(self, pieces: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for piece in pieces:
            self.rows += len(piece)
            yield piece


def _pieces(
    pipeline: Pipeline, data: Path, label: str | None, probabilities: bool, notes: dict[Any, None]
) -> Iterator[pd.DataFrame]:
    try:
        import pyarrow as pa

        from hetrisk.blocks.files import batches, open_parts, parquet_paths
    except ImportError:
        raise TableError("reading Parquet needs pyarrow: pip install 'hetrisk[parquet]'") from None
    from hetrisk.cli.predict import predicted

    try:
        for part in open_parts(parquet_paths(data)):
            for _, batch in batches(part, part.schema.names, PIECE_ROWS):
                frame = pa.Table.from_batches([batch]).to_pandas(ignore_metadata=True)
                predictions, told = predicted(pipeline, frame, label, probabilities)
                notes.update(dict.fromkeys(told))
                yield predictions
    except ValueError as error:  # what is wrong with a file, with its name and row group
        raise TableError(str(error)) from error


def _write_parquet(pieces: Iterator[pd.DataFrame], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    try:
        for piece in pieces:
            schema = None if writer is None else writer.schema
            table = pa.Table.from_pandas(piece, schema=schema, preserve_index=False)
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _write_csv(pieces: Iterator[pd.DataFrame], path: Path) -> None:
    with path.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        for i, piece in enumerate(pieces):
            file.write(piece.to_csv(index=False, header=i == 0, lineterminator="\n"))
