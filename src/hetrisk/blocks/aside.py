"""Side columns as numbers: the same rule wherever the rows live.

Numbers stay as they are, spans of time among them as days; dates, also those written as text in
one format (`hetrisk.columns.dates`), become days since 1970; everything else becomes the position
of its text among the levels of its column, and so do whole numbers that are names, by what the
column is called (`hetrisk.columns.names`). What is missing is NaN; a level too rare to be told
apart has position -1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from hetrisk.columns.dates import (
    DATE_FORMATS,
    are_dates,
    days,
    form_among,
    forms_of,
    plain,
    text_days,
    told_of,
)
from hetrisk.columns.names import are_codes
from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.core.result import SideColumn

_NUMBERS = ("integer", "floating", "decimal", "mixed-integer-float")
MOST_LEVELS = 10_000  # of a category that are told apart: those with the most rows
_CODES = "codes"  # whole numbers that are a category, by what their column is called


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


def side_kind(values: pd.Series) -> str:
    """What a side column holds: "date", "number" or "category"; text is a category."""
    if are_dates(values):
        return "date"
    if pd.api.types.is_bool_dtype(values.dtype):
        return "category"
    return "number" if pd.api.types.is_numeric_dtype(values.dtype) else "category"


def _is_number(values: pd.Series) -> bool:
    """Whether a column holds numbers, of whatever type."""
    return pd.api.types.infer_dtype(values, skipna=True) in _NUMBERS


def _held(values: pd.Series) -> pd.Series:
    """Dates and spans as `plain` has them, and numbers as numbers, whatever type holds them."""
    values = plain(values)
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iuf":
        return values.astype(np.float64)
    if _is_number(values):
        return pd.to_numeric(values.astype(object), errors="coerce").astype(np.float64)
    return values


def side_levels(values: pd.Series) -> Counter[str]:
    """The levels of a category, as text, and the rows of each."""
    counts = values.dropna().astype("string").value_counts()
    return Counter(dict(zip(counts.index.astype(str), counts.tolist(), strict=True)))


def _spelled(given: pd.Series, values: pd.Series) -> tuple[IntArray, list[str]]:
    """Whole numbers as text without a point, whatever type holds them; ``values`` are `_held`.

    Returns the place of each number that is not missing among the distinct ones, and these as text.
    """
    exact = given if _is_number(given) else values
    place, found = pd.factorize(exact[values.notna().to_numpy()])
    return place, [str(int(number)) for number in found.tolist()]


def side_numbers(values: pd.Series, column: SideColumn) -> FloatArray:
    """(n,) values of a side column as numbers."""
    given, values = values, _held(values)
    if column.kind == "date" and are_dates(values):
        return days(values)
    missing = values.isna().to_numpy()
    if missing.all():  # of whatever type: a part of a column may hold nothing
        return np.full(len(values), np.nan)
    if column.kind == "number":
        numbers = values.to_numpy(np.float64, na_value=np.nan)
        if np.isinf(numbers).any():
            raise ValueError(
                f"side column {column.name!r} must be finite or missing; got an infinite value."
            )
        return numbers
    if side_kind(values) == "number":  # it is a category by its name
        among, spelled = _spelled(given, values)
        codes = np.full(len(values), np.nan)
        codes[~missing] = pd.Index(column.levels).get_indexer(pd.Index(spelled))[among]
        return codes
    text = values.astype("string").fillna("").to_numpy(object)
    if column.kind == "date":
        place, texts = pd.factorize(text)
        return text_days([t.strip() for t in texts], column.form)[place]
    place = pd.Index(column.levels).get_indexer(pd.Index(text))
    return np.where(missing, np.nan, place.astype(np.float64))


def described(
    name: str,
    position: int,
    parts: Callable[[], Iterable[pd.Series]],
    n_rows: int,
    labels: bool = False,
) -> SideColumn:
    """Describe a side column from its parts, visited once.

    With ``labels`` whole numbers are names, whatever the column is called.
    """
    seen = _Seen(name, labels)
    for values in parts():
        seen.add(values)
    if seen.missing == n_rows:
        raise ValueError(f"side column {name!r} holds no value: all {n_rows} are missing.")
    kind, levels, missing = seen.kind(), seen.levels, seen.missing > 0
    if kind not in ("category", _CODES):
        return SideColumn(name, kind, position, (), missing)
    dated = told_of(levels)
    if kind == "category" and dated and seen.forms:
        form, trouble = form_among(seen.forms, dated, None)
        if trouble:
            raise ValueError(
                f"side column {name!r}: {trouble.split(':')[0]}: write year-month-day."
            )
        absent = missing or len(dated) < len(levels)
        return SideColumn(name, "date", position, (), absent, form=form)
    further = seen.further or len(levels) > MOST_LEVELS
    known = tuple(sorted(level for level, _ in _largest(levels)))
    return SideColumn(name, "category", position, known, missing, further)


class _Seen:
    """What the parts of a side column hold, added one after the other."""

    def __init__(self, name: str, labels: bool = False) -> None:
        self.name, self.labels, self.missing = name, labels, 0
        self.kinds: set[str] = set()
        self.levels, self.further = Counter[str](), False
        self.forms = tuple(DATE_FORMATS)

    def add(self, given: pd.Series) -> None:
        """Look at a further part."""
        values = _held(given)
        self.missing += int(values.isna().sum())
        if values.isna().all():
            return
        kind = side_kind(values)
        if kind == "number":
            held = values.dropna().to_numpy(np.float64)
            if are_codes(self.name, held) or (self.labels and bool((held == np.rint(held)).all())):
                kind = _CODES
        self.kinds.add(kind)
        if self.kinds == {"category"}:
            own = side_levels(values)
            self.forms = forms_of(list(own), self.forms)
            self._count(own)
        elif self.kinds == {_CODES}:
            place, texts = _spelled(given, values)
            self._count(Counter(dict(zip(texts, np.bincount(place).tolist(), strict=True))))

    def _count(self, own: Counter[str]) -> None:
        self.levels.update(own)
        # Twice as many are counted, so that most parts need not sort them.
        if len(self.levels) > 2 * MOST_LEVELS:
            self.levels, self.further = Counter(dict(_largest(self.levels))), True

    def kind(self) -> str:
        """What all parts hold together."""
        kinds = self.kinds
        if len(kinds) > 1:  # where some numbers are not whole none is a name
            kinds = {"number" if kind == _CODES else kind for kind in kinds}
        if len(kinds) > 1:
            raise ValueError(
                f"side column {self.name!r} must hold one kind of value; got {sorted(kinds)}."
            )
        (kind,) = kinds
        return kind


def _largest(levels: Counter[str]) -> list[tuple[str, int]]:
    """The levels with the most rows; of as many, in the order of their text."""
    return sorted(levels.items(), key=lambda level: (-level[1], level[0]))[:MOST_LEVELS]


def side_matrix(frame: Sequence[Any], columns: Sequence[SideColumn]) -> FloatArray:
    """(n, m) side columns as numbers, from one Series for each column."""
    return np.column_stack([side_numbers(v, c) for v, c in zip(frame, columns, strict=True)])
