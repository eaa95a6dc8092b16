"""Hints as numbers: the same rule wherever the rows live.

Numbers stay as they are, dates become days since 1970, everything else the position of its text
among the levels of its column; what is missing is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.result import HintColumn

DAY = np.timedelta64(1, "D")
MOST_LEVELS = 10_000


def as_frame(hints: Any) -> pd.DataFrame:
    """Hints as named columns, from an array, a Series or a frame (pandas or polars)."""
    if hasattr(hints, "to_pandas"):
        hints = hints.to_pandas()
    if isinstance(hints, pd.Series):
        return hints.to_frame(hints.name if hints.name is not None else "hint")
    if isinstance(hints, pd.DataFrame):
        return hints
    array = np.asarray(hints)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2:
        raise ValueError(f"hints must be (n,) or (n, m); got {array.ndim} axes.")
    names = ["hint"] if array.shape[1] == 1 else [f"hint{j}" for j in range(array.shape[1])]
    return pd.DataFrame({name: array[:, j] for j, name in enumerate(names)})


def hint_kind(values: pd.Series) -> str:
    """What a column of hints holds: "date", "number" or "category"."""
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return "date"
    if pd.api.types.is_bool_dtype(values.dtype):
        return "category"
    return "number" if pd.api.types.is_numeric_dtype(values.dtype) else "category"


def hint_levels(values: pd.Series) -> set[str]:
    """The levels of a category, as text."""
    return set(values.dropna().astype("string").unique())


def hint_numbers(values: pd.Series, column: HintColumn) -> FloatArray:
    """(n,) values of a hint as numbers."""
    missing = values.isna().to_numpy()
    if column.kind == "date":
        stamps = values.dt.tz_localize(None) if values.dt.tz is not None else values
        days = (stamps.to_numpy("datetime64[ns]") - np.datetime64(0, "D")) / DAY
        return np.where(missing, np.nan, days)
    if column.kind == "number":
        numbers = values.to_numpy(np.float64, na_value=np.nan)
        if np.isinf(numbers).any():
            raise ValueError(
                f"hint {column.name!r} must be finite or missing; got an infinite value."
            )
        return numbers
    text = pd.Index(values.astype("string").fillna("").to_numpy(object))
    place = pd.Index(column.levels).get_indexer(text)
    return np.where(missing | (place < 0), np.nan, place.astype(np.float64))


def described(
    name: str, position: int, parts: Callable[[], Iterable[pd.Series]], n_rows: int
) -> HintColumn:
    """Describe a column of hints from its parts, visited once."""
    kinds: set[str] = set()
    levels: set[str] = set()
    missing = 0
    for values in parts():
        missing += int(values.isna().sum())
        if values.isna().all():
            continue
        kinds.add(hint_kind(values))
        if kinds == {"category"}:
            levels |= hint_levels(values)
    if missing == n_rows:
        raise ValueError(f"hint {name!r} holds no value: all {n_rows} are missing.")
    if len(kinds) > 1:
        raise ValueError(f"hint {name!r} must hold one kind of value; got {sorted(kinds)}.")
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"hint {name!r} has {len(levels)} different values; at most {MOST_LEVELS} can be told "
            "apart."
        )
    return HintColumn(name, kinds.pop(), position, tuple(sorted(levels)), missing > 0)


def hint_matrix(frame: Sequence[Any], columns: Sequence[HintColumn]) -> FloatArray:
    """(n, m) hints as numbers, from one Series for each column."""
    return np.column_stack([hint_numbers(v, c) for v, c in zip(frame, columns, strict=True)])
