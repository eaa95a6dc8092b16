"""Tables that do not fit in memory, as blocks that are encoded as they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from hetrisk.blocks import Blocks
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.tables.encoding import Encoding
from hetrisk.tables.target import Target
from hetrisk.tables.time import TimeColumn
from hetrisk.tables.weights import read_weights


def table_blocks(
    path: Path,
    encoding: Encoding,
    target: Target,
    *,
    aside: Mapping[str, Callable[[pd.Series], np.ndarray]],
    weight: str | None = None,
    time: TimeColumn | None = None,
) -> Blocks:
    """Return the rows of Parquet files as an encoding reads them.

    Parameters
    ----------
    path : a Parquet file, or a folder of them.
    encoding : of the features.
    target : as read from a sample of the rows; in the files it may be missing in no row.
    aside : name of a side column -> how it is read: to numbers (a column of time), or to names of
        environments.
    weight : the column of weights.
    time : how the column of time is read, where one stands aside: periods are called by it.
    """
    from hetrisk.blocks.encoded import EncodedBlocks

    blocks = EncodedBlocks(
        path,
        target.name,
        tuple(column.name for column in encoding.columns),
        encoding.feature_names,
        encode=lambda frame: encoding.encode(frame)[0],
        readers={**aside, target.name: target.read, **({weight: _weights} if weight else {})},
        aside=tuple(aside),
        weight=weight,
    )
    blocks.time_rule = time
    return blocks


def _weights(column: pd.Series) -> FloatArray:
    return read_weights(column.to_frame(), str(column.name))
