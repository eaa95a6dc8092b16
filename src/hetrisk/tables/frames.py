"""Data frames of any library as the one kind the encoder reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from hetrisk.tables.errors import TableError

MARK = "hetrisk"


def is_frame(X: Any) -> bool:
    """Whether it is a data frame in memory, of pandas or polars."""
    return isinstance(X, pd.DataFrame) or _is_polars(X)


@dataclass(frozen=True)
class Reading:
    """How the cells of a frame are to be read, where whoever read the file was told.

    It goes with the frame (``DataFrame.attrs``), so that all that encodes it later knows.

    Attributes
    ----------
    text : whether columns of text hold whatever they spell, as in a delimited file, where there is
        nothing but text.
    category, number, use, decimal, dayfirst : as for `hetrisk.tables.TableEncoder`.
    """

    text: bool = False
    category: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    use: tuple[str, ...] = ()
    decimal: str | None = None
    dayfirst: bool | None = None


def reading_of(frame: pd.DataFrame) -> Reading:
    """Return how a frame is to be read."""
    return Reading(**frame.attrs.get(MARK, {}))


def marked(frame: pd.DataFrame, **changes: Any) -> pd.DataFrame:
    """Return a frame that is to be read so; ``changes`` are fields of `Reading`."""
    fresh = frame.copy(deep=False)
    fresh.attrs = frame.attrs | {MARK: asdict(replace(reading_of(frame), **changes))}
    return fresh


def as_frame(X: Any, names: Sequence[str] | None = None) -> pd.DataFrame:
    """Return a table in pandas: a frame, or an array (n, d) with ``names``, by default x0, x1."""
    if is_frame(X):
        return as_pandas(X)
    if type(X).__module__.startswith("scipy.sparse"):
        raise TypeError(f"X must be dense; got {type(X).__name__}, which is sparse data.")
    array = np.asarray(X)
    if array.ndim != 2:
        raise TableError(
            f"X must be a frame or have 2 dimensions; got {array.ndim}. Reshape your data either "
            "using array.reshape(-1, 1) or array.reshape(1, -1)."
        )
    if array.dtype.kind == "c":
        raise TableError("Complex data not supported: X must hold real numbers")
    if array.shape[1] == 0:
        raise TableError(f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
    if names is None or len(names) != array.shape[1]:
        names = [f"x{j}" for j in range(array.shape[1])]
    frame = pd.DataFrame(array, columns=list(names), copy=False)
    return frame.infer_objects() if array.dtype == object else frame


def as_pandas(X: Any) -> pd.DataFrame:
    """Return the frame in pandas; that of polars column by column, without pyarrow."""
    if isinstance(X, pd.DataFrame):
        return X
    if not _is_polars(X):
        raise TableError(f"X must be a pandas or polars DataFrame; got {type(X).__name__}.")
    return pd.DataFrame({column.name: _series(column) for column in X.get_columns()})


def as_series(values: Any, name: str) -> pd.Series:
    """Return one column in pandas: an array, a list, or a Series of pandas, polars or Arrow."""
    library = type(values).__module__.split(".")[0]
    if isinstance(values, pd.DataFrame) and values.shape[1] == 1:
        values = values.iloc[:, 0]
    elif library == "polars" and type(values).__name__ == "Series":
        values = _series(values)
    elif library == "pyarrow":
        values = values.to_pandas()
    series = values if isinstance(values, pd.Series) else pd.Series(_column(values, name))
    return series if series.name == name else series.rename(name)


def _column(values: Any, name: str) -> Any:
    if isinstance(values, pd.Index):
        return values
    array = np.asarray(values, dtype=None if hasattr(values, "dtype") else object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise TableError(f"{name} must be one column; got {array.ndim} axes")
    return pd.Series(array).infer_objects() if array.dtype == object else array


def _is_polars(X: Any) -> bool:
    # By name: polars need not be installed.
    kind = type(X)
    return kind.__name__ == "DataFrame" and kind.__module__.split(".")[0] == "polars"


def _series(column: Any) -> pd.Series:
    """Return a column of polars with the type it says it has."""
    kind = str(column.dtype)
    if column.dtype.is_numeric() and not column.null_count():
        return pd.Series(column.to_numpy())
    if kind.startswith(("Date", "Datetime")):
        return pd.Series(pd.to_datetime(pd.Series(column.to_list(), dtype=object)))
    held = pd.Series(column.to_list(), dtype=object)
    if kind.startswith(("Categorical", "Enum")):
        return held.astype("category")
    if kind in ("String", "Boolean"):
        return held.astype("str" if kind == "String" else "boolean")
    return held.infer_objects()
