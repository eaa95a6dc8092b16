"""Data frames of any library as the one kind the encoder reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hetrisk.tables.errors import TableError


def is_frame(X: Any) -> bool:
    """Whether it is a data frame in memory, of pandas or polars."""
    return isinstance(X, pd.DataFrame) or _is_polars(X)


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


def is_numeric(X: Any) -> bool:
    """Whether every cell of a frame is a number or a truth already, and none is missing."""
    if isinstance(X, pd.DataFrame):
        plain = all(_is_number(dtype) for dtype in X.dtypes)
        return plain and not bool(X.isna().to_numpy().any())
    plain = all(column.dtype.is_numeric() or str(column.dtype) == "Boolean" for column in X)
    if not plain:
        return False
    return not any(c.null_count() or (c.dtype.is_float() and c.is_nan().any()) for c in X)


def _is_number(dtype: Any) -> bool:
    return pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)


def _is_polars(X: Any) -> bool:
    # By name: polars need not be installed.
    kind = type(X)
    return kind.__name__ == "DataFrame" and kind.__module__.split(".")[0] == "polars"


def _series(column: Any) -> pd.Series:
    if column.dtype.is_numeric() and not column.null_count():
        return pd.Series(column.to_numpy())
    if column.dtype.is_temporal() and str(column.dtype).startswith(("Date", "Datetime")):
        return pd.Series(pd.to_datetime(pd.Series(column.to_list(), dtype=object)))
    return pd.Series(column.to_list(), dtype=object).infer_objects()
