"""Fitting a folder of Parquet files without ever holding it whole, here or on a cluster.

Only numeric columns are used: categories and dates need a look at every value first, which is
what the table in memory gets. Missing values are refused by the blocks, with the file and row.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from hetrisk.cli.terminal import progress
from hetrisk.estimators.hrm import HRMClassifier, HRMRegressor
from hetrisk.tables import LeftOut, Note, Table, TableEncoder, TableError, read_target
from hetrisk.tables.cells import cells_of
from hetrisk.tables.columns import Column, NumberColumn
from hetrisk.tables.errors import listed, quoted
from hetrisk.tables.inference import understand
from hetrisk.tables.model import TableDescription, chosen_columns
from hetrisk.tables.target import CLASSIFICATION, Target

if TYPE_CHECKING:
    from hetrisk.blocks import Blocks

SAMPLED_ROWS = 20_000
SECONDS_TO_ANSWER = 10  # for a dask scheduler


def fit_large(path: Path, target: str, address: str | None, options: dict[str, Any]) -> Pipeline:
    """Fit a pipeline to Parquet files in blocks.

    Parameters
    ----------
    path : a Parquet file or a folder of them.
    target : the column to predict.
    address : of a dask scheduler, or None for this machine alone.
    options : ``task``, ``features``, ``drop`` and ``seed`` as for `fit`.
    """
    try:
        with progress("looking at the files"):
            head = _head(path)
            wanted = read_target(head.frame, target, options["task"])
            encoder = _number_encoder(head, wanted, options)
        with progress("searching for environments"), _cluster(address) as cluster:
            blocks = _blocks(path, target, encoder, cluster)
            model = _model(wanted, options["seed"]).fit(blocks)
    except (ImportError, ValueError) as error:
        # What blocks find wrong with a file is said as ValueError, with the file and the row.
        raise TableError(str(error)) from error
    encoder.description_ = _description(path, head, wanted, encoder, blocks.n_rows)
    return Pipeline([("table", encoder), ("model", model)])


def _head(path: Path) -> Table:
    """Return the first rows, enough to see what each column holds."""
    try:
        import pyarrow as pa

        from hetrisk.blocks.files import batches, check_same_columns, open_parts, parquet_paths
    except ImportError:
        raise TableError("reading Parquet needs pyarrow: pip install 'hetrisk[parquet]'") from None
    parts = open_parts(parquet_paths(path))
    check_same_columns(parts)
    found, rows = [], 0
    for part in parts:
        for _, batch in batches(part, part.schema.names, SAMPLED_ROWS):
            found.append(batch)
            rows += batch.num_rows
            if rows >= SAMPLED_ROWS:
                break
        if rows >= SAMPLED_ROWS:
            break
    if not rows:
        raise TableError(f"{quoted(path.name)} has column names but no rows")
    frame = pa.Table.from_batches(found).to_pandas(ignore_metadata=True)
    return Table(frame, path.name)


def _number_encoder(head: Table, target: Target, options: dict[str, Any]) -> TableEncoder:
    """Return an encoder that takes the numeric columns as they are."""
    X = chosen_columns(head.frame, target.name, options["features"], options["drop"])
    columns: list[Column] = []
    left_out: list[LeftOut] = []
    for name in X.columns:
        if not pd.api.types.is_numeric_dtype(X[name]):
            reason = "not numeric; only numbers are used when the data is read in blocks"
            left_out.append(LeftOut(str(name), reason))
            continue
        cells = cells_of(name, X[name])
        assert cells is not None  # numeric columns always have cells
        decision, _ = understand(cells)
        if isinstance(decision, LeftOut):
            left_out.append(decision)
        else:
            columns.append(NumberColumn(str(name), float(np.nanmedian(cells.numbers()))))
    if not columns:
        raise TableError(f"no numeric column is left to learn from: {listed(X.columns)}")
    encoder = TableEncoder()
    encoder.set_output(transform="pandas")
    encoder.columns_, encoder.left_out_, encoder.notes_ = columns, left_out, []
    encoder.feature_names_in_ = np.asarray([str(name) for name in X.columns], dtype=object)
    encoder.n_features_in_ = X.shape[1]
    return encoder


class _cluster:
    """A client of a dask scheduler for the time of a fit, or nothing at all."""

    def __init__(self, address: str | None) -> None:
        self.address = address
        self.client: Any = None

    def __enter__(self) -> Any:
        if self.address is None:
            return None
        try:
            from dask.distributed import Client
        except ImportError:
            raise TableError("--dask needs dask: pip install 'hetrisk[dask]'") from None
        try:
            self.client = Client(self.address, timeout=SECONDS_TO_ANSWER)
        except (OSError, ValueError, TypeError) as error:
            reason = str(error) or type(error).__name__
            message = f"no dask scheduler answers there ({reason})."
            raise click.BadParameter(message, param_hint="--dask") from None
        return self.client

    def __exit__(self, *error: object) -> None:
        if self.client is not None:
            self.client.close()


def _blocks(path: Path, target: str, encoder: TableEncoder, cluster: Any) -> Blocks:
    from hetrisk.blocks import DaskBlocks, ParquetBlocks

    names = [column.name for column in encoder.columns_]
    if cluster is None:
        return ParquetBlocks(path, target, names)
    import dask.dataframe as dd
    import pyarrow.parquet as pq

    from hetrisk.blocks.files import parquet_paths

    # One partition a row group, by hand: dask's own reader may fuse the partitions of some
    # columns and not of others, and then rows of X and y no longer come in step.
    groups = [
        (str(file), group)
        for file in parquet_paths(path)
        for group in range(pq.ParquetFile(file).num_row_groups)
    ]
    files, numbers = zip(*groups, strict=True)
    columns = [*names, target]
    meta = _row_group(*groups[0], columns).iloc[:0]
    table = dd.from_map(_row_group, files, numbers, columns=columns, meta=meta)
    return DaskBlocks(table[names], table[target])


def _row_group(file: str, group: int, columns: list[str]) -> pd.DataFrame:
    """Return one row group of a Parquet file; runs on the workers of the cluster."""
    import pyarrow.parquet as pq

    table = pq.ParquetFile(file).read_row_group(group, columns=columns)
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    return frame[columns]


def _model(target: Target, seed: int) -> HRMClassifier | HRMRegressor:
    kind = HRMClassifier if target.task == CLASSIFICATION else HRMRegressor
    return kind(random_state=seed)


def _description(
    path: Path, head: Table, target: Target, encoder: TableEncoder, n_rows: int
) -> TableDescription:
    note = Note("", f"read in blocks; columns understood from the first {len(head.frame):,} rows")
    return TableDescription(
        source=path.name,
        n_rows=n_rows,
        n_columns=head.frame.shape[1],
        target=target.name,
        task=target.task,
        reason=target.reason,
        notes=(note,),
        left_out=tuple(encoder.left_out_),
    )
