"""Side columns as numbers: the same rule wherever the rows live.

Numbers stay as they are, spans of time among them as days; dates become days since 1970;
everything else becomes the position of its text among the levels of its column, and so do whole
numbers that are labels. What is missing is NaN; a level too rare to be told apart has position -1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from hetrisk.columns.dates import are_dates, days, plain
from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.core.result import SideColumn

_NUMBERS = ("integer", "floating", "decimal", "mixed-integer-float")
MOST_LEVELS = 10_000  # of a category that are told apart: those with the most rows
_CODES = "codes"  # whole numbers that are labels


def as_frame(aside: Any) -> pd.DataFrame:
    """Side columns as named columns, from an array, a Series or a frame (pandas or polars)."""
    if hasattr(aside, "to_pandas"):
        aside = aside.to_pandas()
    if isinstance(aside, pd.Index):
        aside = pd.Series(aside)
    if isinstance(aside, pd.Series):
        # A Series of polars without a name is called "".
        return aside.to_frame("side" if aside.name is None or aside.name == "" else aside.name)
    if isinstance(aside, pd.DataFrame):
        return aside
    array = np.asarray(aside)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2:
        raise ValueError(f"aside must be (n,) or (n, m); got {array.ndim} axes.")
    names = ["side"] if array.shape[1] == 1 else [f"side{j}" for j in range(array.shape[1])]
    return pd.DataFrame({name: array[:, j] for j, name in enumerate(names)})


def _held(values: pd.Series) -> pd.Series:
    """Dates and spans as `plain` has them, and numbers as numbers, whatever type holds them."""
    values = plain(values)
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iuf":
        return values.astype(np.float64)
    if pd.api.types.infer_dtype(values, skipna=True) in _NUMBERS:
        return pd.to_numeric(values.astype(object), errors="coerce").astype(np.float64)
    return values


def _kind(values: pd.Series, labels: bool) -> str:
    """What a part holds, of which `_held` has made something; text is a category."""
    if are_dates(values):
        return "date"
    if values.dtype != np.float64:
        return "category"
    held = values.dropna().to_numpy()
    return _CODES if labels and bool((held == np.rint(held)).all()) else "number"


def _levels(given: pd.Series, values: pd.Series) -> tuple[IntArray, list[str]]:
    """Place of each value that is not missing among the distinct ones, and these as text.

    Whole numbers have no point there, whatever type holds them; ``values`` are `_held`.
    """
    numbers = values.dtype == np.float64
    exact = given if pd.api.types.infer_dtype(given, skipna=True) in _NUMBERS else values
    place, found = pd.factorize(exact[values.notna().to_numpy()].astype(object))
    return place, [str(int(value)) if numbers else str(value) for value in found]


def side_numbers(values: pd.Series, column: SideColumn) -> FloatArray:
    """(n,) values of a side column as numbers."""
    given, values = values, _held(values)
    missing = values.isna().to_numpy()
    if missing.all():  # of whatever type: a part of a column may hold nothing
        return np.full(len(values), np.nan)
    if column.kind == "date":
        return days(values)
    if column.kind == "number":
        numbers = values.to_numpy(np.float64, na_value=np.nan)
        if np.isinf(numbers).any():
            raise ValueError(
                f"side column {column.name!r} must be finite or missing; got an infinite value."
            )
        return numbers
    place, texts = _levels(given, values)
    codes = np.full(len(values), np.nan)
    codes[~missing] = pd.Index(column.levels).get_indexer(pd.Index(texts))[place]
    return codes


def described(
    name: str,
    position: int,
    parts: Callable[[], Iterable[pd.Series]],
    n_rows: int,
    labels: bool = False,
) -> SideColumn:
    """Describe a side column from its parts; with ``labels`` whole numbers are names."""
    kinds: set[str] = set()
    levels, further, missing = Counter[str](), False, 0
    for given in parts():
        values = _held(given)
        missing += int(values.isna().sum())
        if values.isna().all():
            continue
        kinds.add(_kind(values, labels))
        if kinds in ({"category"}, {_CODES}):
            place, texts = _levels(given, values)
            for text, rows in zip(texts, np.bincount(place).tolist(), strict=True):
                levels[text] += rows
        # Twice as many are counted, so that most parts need not sort them.
        if len(levels) > 2 * MOST_LEVELS:
            levels, further = Counter(dict(_largest(levels))), True
    if missing == n_rows:
        raise ValueError(f"side column {name!r} holds no value: all {n_rows} are missing.")
    if len(kinds) > 1:  # where some numbers are not whole none is a name
        kinds = {"number" if kind == _CODES else kind for kind in kinds}
    if len(kinds) > 1:
        raise ValueError(f"side column {name!r} must hold one kind of value; got {sorted(kinds)}.")
    (kind,) = kinds
    if kind in ("number", "date"):
        return SideColumn(name, kind, position, (), missing > 0)
    known = tuple(sorted(level for level, _ in _largest(levels)))
    further = further or len(levels) > MOST_LEVELS
    return SideColumn(name, "category", position, known, missing > 0, further)


def _largest(levels: Counter[str]) -> list[tuple[str, int]]:
    """The levels with the most rows; of as many, in the order of their text."""
    return sorted(levels.items(), key=lambda level: (-level[1], level[0]))[:MOST_LEVELS]


def side_matrix(frame: Sequence[Any], columns: Sequence[SideColumn]) -> FloatArray:
    """(n, m) side columns as numbers, from one Series for each column."""
    return np.column_stack([side_numbers(v, c) for v, c in zip(frame, columns, strict=True)])
