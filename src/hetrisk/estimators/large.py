"""Tables that do not fit in memory, as blocks that are encoded as they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from hetrisk.blocks import Blocks
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.tables.encoding import Encoding
from hetrisk.tables.target import Target


def table_blocks(
    path: Path,
    encoding: Encoding,
    target: Target,
    *,
    aside: Mapping[str, Callable[[pd.Series], np.ndarray]] | None = None,
    weight: str | None = None,
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
    """
    from hetrisk.blocks.encoded import EncodedBlocks, ReadColumn
    from hetrisk.blocks.encoded import Encoding as BlockEncoding

    whole = BlockEncoding(
        columns=tuple(column.name for column in encoding.columns),
        feature_names=encoding.feature_names,
        features=_Features(encoding),
        target=ReadColumn(target.name, target.read),
        aside=tuple(ReadColumn(name, read) for name, read in (aside or {}).items()),
        weight=None if weight is None else ReadColumn(weight, _weights),
    )
    return EncodedBlocks(path, whole)


@dataclass(frozen=True)
class _Features:
    """The encoding as a function; a value, so that it can be sent to workers."""

    encoding: Encoding

    def __call__(self, frame: pd.DataFrame) -> FloatArray:
        return self.encoding.encode(frame)[0]


def _weights(column: pd.Series) -> FloatArray:
    from hetrisk.tables.weights import read_weights

    return read_weights(column.to_frame(), str(column.name))
