"""Hints as numbers: the same rule wherever the rows live.

Numbers stay as they are, spans of time among them as days; dates, also those written as text in
one format (`hetrisk.blocks.dates`), become days since 1970; everything else becomes the position
of its text among the levels of its column. What is missing is NaN; a level too rare to be told
apart has position -1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from hetrisk.blocks.dates import (
    DATE_FORMATS,
    are_dates,
    days,
    forms_of,
    plain,
    text_days,
    told_of,
)
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.result import HintColumn

_NUMBERS = ("integer", "floating", "decimal", "mixed-integer-float")
MOST_LEVELS = 10_000  # of a category that are told apart: those with the most rows


def as_frame(hints: Any) -> pd.DataFrame:
    """Hints as named columns, from an array, a Series or a frame (pandas or polars)."""
    if hasattr(hints, "to_pandas"):
        hints = hints.to_pandas()
    if isinstance(hints, pd.Series):
        # A Series of polars without a name is called "".
        return hints.to_frame("hint" if hints.name is None or hints.name == "" else hints.name)
    if isinstance(hints, pd.DataFrame):
        return hints
    array = np.asarray(hints)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2:
        raise ValueError(f"hints must be (n,) or (n, m); got {array.ndim} axes.")
    names = ["hint"] if array.shape[1] == 1 else [f"hint{j}" for j in range(array.shape[1])]
    return pd.DataFrame({name: array[:, j] for j, name in enumerate(names)})


def hint_kind(values: pd.Series) -> str:
    """What a column of hints holds: "date", "number" or "category"; text is a category."""
    if are_dates(values):
        return "date"
    if pd.api.types.is_bool_dtype(values.dtype):
        return "category"
    return "number" if pd.api.types.is_numeric_dtype(values.dtype) else "category"


def _held(values: pd.Series) -> pd.Series:
    """Dates and spans as `plain` has them, and numbers as numbers, whatever type holds them."""
    values = plain(values)
    if pd.api.types.infer_dtype(values, skipna=True) in _NUMBERS:
        return pd.to_numeric(values.astype(object), errors="coerce").astype(np.float64)
    return values


def hint_levels(values: pd.Series) -> Counter[str]:
    """The levels of a category, as text, and the rows of each."""
    counts = values.dropna().astype("string").value_counts()
    return Counter(dict(zip(counts.index.astype(str), counts.tolist(), strict=True)))


def hint_numbers(values: pd.Series, column: HintColumn) -> FloatArray:
    """(n,) values of a hint as numbers."""
    values = _held(values)
    if column.kind == "date" and are_dates(values):
        return days(values)
    missing = values.isna().to_numpy()
    if missing.all():  # of whatever type: a part of a column may hold nothing
        return np.full(len(values), np.nan)
    if column.kind == "number":
        numbers = values.to_numpy(np.float64, na_value=np.nan)
        if np.isinf(numbers).any():
            raise ValueError(
                f"hint {column.name!r} must be finite or missing; got an infinite value."
            )
        return numbers
    text = values.astype("string").fillna("").to_numpy(object)
    if column.kind == "date":
        place, texts = pd.factorize(text)
        return text_days([t.strip() for t in texts], column.form)[place]
    place = pd.Index(column.levels).get_indexer(pd.Index(text))
    return np.where(missing, np.nan, place.astype(np.float64))


def described(
    name: str, position: int, parts: Callable[[], Iterable[pd.Series]], n_rows: int
) -> HintColumn:
    """Describe a column of hints from its parts, visited once."""
    kinds: set[str] = set()
    levels, forms, further = Counter[str](), tuple(DATE_FORMATS), False
    missing = 0
    for values in map(_held, parts()):
        missing += int(values.isna().sum())
        if values.isna().all():
            continue
        kinds.add(hint_kind(values))
        if kinds == {"category"}:
            own = hint_levels(values)
            forms = forms_of(list(own), forms)
            levels.update(own)
            # Twice as many are counted, so that most parts need not sort them.
            if len(levels) > 2 * MOST_LEVELS:
                levels, further = Counter(dict(_largest(levels))), True
    if missing == n_rows:
        raise ValueError(f"hint {name!r} holds no value: all {n_rows} are missing.")
    if len(kinds) > 1:
        raise ValueError(f"hint {name!r} must hold one kind of value; got {sorted(kinds)}.")
    kind = kinds.pop()
    dated = told_of(levels)
    if dated and forms:
        absent = missing > 0 or len(dated) < len(levels)
        return HintColumn(name, "date", position, (), absent, form=forms[0])
    further = further or len(levels) > MOST_LEVELS
    known = tuple(sorted(level for level, _ in _largest(levels)))
    return HintColumn(name, kind, position, known, missing > 0, further)


def _largest(levels: Counter[str]) -> list[tuple[str, int]]:
    """The levels with the most rows; of as many, in the order of their text."""
    return sorted(levels.items(), key=lambda level: (-level[1], level[0]))[:MOST_LEVELS]


def hint_matrix(frame: Sequence[Any], columns: Sequence[HintColumn]) -> FloatArray:
    """(n, m) hints as numbers, from one Series for each column."""
    return np.column_stack([hint_numbers(v, c) for v, c in zip(frame, columns, strict=True)])
