"""One column of a table as it was read, before anyone decides what it means.

A column arrives as text (CSV), as numbers or as dates (Parquet, data frames). `Cells` gives
every reading the same questions: which cells are missing, what are they as numbers, as days,
as levels of a category. Text is kept as each distinct value once plus a code per row, so a
question about a million rows is asked of a handful of values.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from copy import copy
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from hetrisk.columns import BoolArray, FloatArray, IntArray
from hetrisk.columns.dates import MISSING, are_dates, days, iso, plain, text_days
from hetrisk.tables.notation import Notation, Reading, clock, notation_of

_LONGEST_WORD = max(len(word) for word in MISSING)
# What the type of a column may say that it holds.
CATEGORY, TEXT, NUMBER, TRUTH, DATE = "category", "text", "number", "truth", "date"
LARGEST = 1e100  # squares of larger numbers overflow; nobody measures anything this large

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)\.0+")


def canonical(value: str) -> str:
    """Spell a level one way: ``28.0`` in a CSV and the integer 28 in Parquet are both ``28``."""
    # The quick look first: a column may hold a million of them.
    return value.split(".")[0] if value[-1:] == "0" and _WHOLE.fullmatch(value) else value


class Cells(ABC):
    """The cells of one column, which may have been read as text or have arrived as dates."""

    is_text: ClassVar[bool] = False
    is_dates: ClassVar[bool] = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.declared = ""  # what the type of the column says it holds; "" where it says nothing

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def missing(self) -> BoolArray:
        """Which cells hold nothing."""

    @abstractmethod
    def numbers(self, notation: Notation | None = None) -> FloatArray:
        """Each cell as a number; NaN where it is missing, not a number, or not finite.

        Text is read in the given notation, or, with None, in the one its own values show.
        """

    @abstractmethod
    def levels(self) -> tuple[IntArray, list[str]]:
        """A code per row (-1: missing) into the list of distinct values as text."""

    @abstractmethod
    def days(self, form: str) -> FloatArray:
        """Each cell as days since 1970-01-01, read in the given format; NaN where it is not."""

    def hours(self) -> FloatArray:
        """Each cell as a time of day in hours; NaN where it is not one."""
        return np.full(len(self), np.nan)

    @property
    def distinct(self) -> FloatArray:
        """The different numbers, sorted."""
        values = self.numbers()
        return np.unique(values[np.isfinite(values)])

    @property
    def reading(self) -> Reading:
        """How the column writes its numbers; plainly, unless it is text."""
        return Reading()

    def with_decimal(self, decimal: str | None) -> Cells:
        """Return the same cells, told the decimal mark of numbers that do not show it."""
        return self


class TextCells(Cells):
    """Cells read as text: surrounding blanks dropped, the usual words for missing recognised.

    Parameters
    ----------
    name : of the column.
    texts : the cells.
    missing : words that mean there is no value.
    decimal : the decimal mark, "." or ",", for numbers that do not show it themselves.
    """

    is_text = True

    def __init__(
        self,
        name: str,
        texts: Any,
        missing: frozenset[str] = MISSING,
        decimal: str | None = None,
    ) -> None:
        super().__init__(name)
        self.decimal = decimal
        if not isinstance(getattr(texts, "dtype", None), pd.StringDtype):
            texts = np.asarray(texts, dtype=object)
        codes, raw = pd.factorize(texts, use_na_sentinel=True)
        texts = [str(value) for value in np.asarray(raw, dtype=object)]
        stripped = [text.strip() for text in texts]
        if any("\0" in text for text in stripped):  # numpy's text forgets one at the end
            stripped = [text.replace("\0", r"\x00") for text in stripped]
        absent = [len(text) <= _LONGEST_WORD and text.lower() in missing for text in stripped]
        if stripped == texts and not any(absent):  # as most columns of a million numbers are
            self.codes: IntArray = np.asarray(codes, dtype=np.int64)
            self.values: list[str] = texts
            return
        known = dict.fromkeys(text for text, gone in zip(stripped, absent, strict=True) if not gone)
        index = {text: i for i, text in enumerate(known)}
        # Code -1 (a missing cell) must pick the last entry of the lookup.
        recode = [*(index.get(text, -1) for text in stripped), -1]
        self.codes = np.asarray(recode, dtype=np.int64)[codes]
        self.values = list(index)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def missing(self) -> BoolArray:
        return self.codes < 0

    @cached_property
    def reading(self) -> Reading:
        """How the values write numbers, decided from all of them."""
        return notation_of(self.values, self.decimal)

    def with_decimal(self, decimal: str | None) -> TextCells:
        if decimal is None or not self.reading.open:
            return self
        marked = copy(self)
        for answer in ("reading", "_own_numbers"):
            vars(marked).pop(answer, None)
        marked.decimal = decimal
        return marked

    def numbers(self, notation: Notation | None = None) -> FloatArray:
        """Each distinct value read once; nothing is read where the notation cannot be told."""
        if notation is None or notation == self.reading.notation:
            return self._own_numbers
        return self._numbers(notation)

    @cached_property
    def _own_numbers(self) -> FloatArray:
        if self.reading.trouble:
            return np.full(len(self), np.nan)
        return self._numbers(self.reading.notation)

    def _numbers(self, notation: Notation) -> FloatArray:
        return self._spread(_finite(notation.numbers(self.values)))

    def hours(self) -> FloatArray:
        return self._spread(np.asarray([clock(text) for text in self.values], dtype=float))

    def levels(self) -> tuple[IntArray, list[str]]:
        """Return the codes and values as read, but for numbers spelled two ways."""
        return self._levels

    @cached_property
    def _levels(self) -> tuple[IntArray, list[str]]:
        spelled = [canonical(value) for value in self.values]
        if spelled == self.values:
            return self.codes, self.values
        index = {level: i for i, level in enumerate(dict.fromkeys(spelled))}
        recode = [*(index[level] for level in spelled), -1]
        return np.asarray(recode, dtype=np.int64)[self.codes], list(index)

    def days(self, form: str) -> FloatArray:
        return self._spread(text_days(self.values, form))

    def _spread(self, per_value: FloatArray) -> FloatArray:
        return np.append(per_value, np.nan)[self.codes]


class _Measured(Cells):
    """Cells that arrived as numbers of some kind, NaN where they hold nothing."""

    def __init__(self, name: str, values: FloatArray) -> None:
        super().__init__(name)
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> BoolArray:
        """NaN; infinities are present but not usable."""
        return np.isnan(self.values)


class NumberCells(_Measured):
    """Cells that arrived as numbers or booleans."""

    def numbers(self, notation: Notation | None = None) -> FloatArray:
        return _finite(self.values)

    @cached_property
    def distinct(self) -> FloatArray:  # type: ignore[override]
        """The different numbers, sorted, found once."""
        return super().distinct

    def levels(self) -> tuple[IntArray, list[str]]:
        """Return each distinct number spelled as in a CSV."""
        codes, distinct = pd.factorize(self.values, use_na_sentinel=True, sort=True)
        return codes.astype(np.int64), [canonical(repr(float(value))) for value in distinct]

    def days(self, form: str) -> FloatArray:
        """Read the numbers through their text: 20141013 is a date in the format %Y%m%d."""
        codes, levels = self.levels()
        return TextCells(self.name, np.asarray([*levels, None], dtype=object)[codes]).days(form)


class DateCells(_Measured):
    """Cells that arrived as dates: days since 1970-01-01."""

    is_dates = True

    def numbers(self, notation: Notation | None = None) -> FloatArray:
        """Return no numbers: a date is not one until it is asked for as days."""
        return np.full(len(self), np.nan)

    def levels(self) -> tuple[IntArray, list[str]]:
        codes, distinct = pd.factorize(self.values, use_na_sentinel=True)
        moments = (np.asarray(distinct) * 86_400e6).round().astype("datetime64[us]")
        return codes.astype(np.int64), [iso(pd.Timestamp(moment)) for moment in moments]

    def days(self, form: str) -> FloatArray:
        """Return the days; the format is that of text and does not matter here."""
        return self.values


def cells_of(
    name: object,
    column: pd.Series,
    missing: frozenset[str] | None = None,
    decimal: str | None = None,
    spelled: bool = False,
) -> Cells | None:
    """Return the cells of a data frame's column; None when it holds lists or other objects.

    Parameters
    ----------
    name, column : of the table.
    missing : words for a missing value; None for the usual ones in text of unknown type, and none
        in a column whose type says that it holds text or categories: a level may be "none".
    decimal : the decimal mark, "." or ",", for numbers that do not show it themselves.
    spelled : whether text is of unknown type whatever the column says, as in a text file.
    """
    typed = isinstance(column.dtype, pd.CategoricalDtype | pd.StringDtype) and not spelled
    words = (frozenset({""}) if typed else MISSING) if missing is None else missing
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _declared(_category_cells(str(name), column, words), CATEGORY)
    cells = _cells(str(name), column, words, decimal)
    return _declared(cells, "") if spelled and cells and cells.declared == TEXT else cells


def shown_decimal(frame: pd.DataFrame) -> str | None:
    """Return the decimal mark that columns of a table prove, where they agree."""
    marks = set()
    for place, name in enumerate(frame.columns):
        cells = cells_of(name, frame.iloc[:, place])
        if cells is not None and cells.reading.proven:
            marks.add(cells.reading.notation.decimal)
    return marks.pop() if len(marks) == 1 else None


def _declared(cells: Cells, what: str) -> Cells:
    cells.declared = what
    return cells


def _category_cells(name: str, column: pd.Series, missing: frozenset[str]) -> TextCells:
    """Levels as text, spelled as in a CSV: 1 and not 1.0."""
    kind = column.cat.categories
    spelled = [canonical(iso(v) if isinstance(v, pd.Timestamp) else str(v)) for v in kind]
    codes = column.cat.codes.to_numpy()
    return TextCells(name, np.asarray([*spelled, None], dtype=object)[codes], missing)


def _cells(
    label: str, column: pd.Series, missing: frozenset[str], decimal: str | None
) -> Cells | None:
    column = plain(column)
    dtype = column.dtype
    truths = pd.api.types.is_bool_dtype(dtype)
    if truths or pd.api.types.is_numeric_dtype(dtype):
        if pd.api.types.is_complex_dtype(dtype):
            return None
        cells = NumberCells(label, column.to_numpy(dtype=float, na_value=np.nan))
        return _declared(cells, TRUTH if truths else NUMBER)
    if are_dates(column):
        return _declared(DateCells(label, days(column)), DATE)
    if isinstance(dtype, pd.StringDtype):
        return _declared(TextCells(label, column.array, missing, decimal), TEXT)
    return _object_cells(label, column, missing, decimal)


def _object_cells(
    name: str, column: pd.Series, missing: frozenset[str], decimal: str | None
) -> Cells | None:
    values = column.astype(object)
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if kind in ("boolean", "integer", "floating", "decimal", "mixed-integer-float"):
        numbers = np.asarray([_float(value) for value in values], dtype=np.float64)
        return _declared(NumberCells(name, numbers), TRUTH if kind == "boolean" else NUMBER)
    if kind == "time":
        texts = [None if pd.isna(value) else value.isoformat() for value in values]
        return TextCells(name, texts, missing)
    if any(
        not isinstance(value, (str, int, float, bool, type(pd.NaT), type(pd.NA)))
        for value in values
        if value is not None
    ):
        return None
    spelled = [None if pd.isna(value) else str(value) for value in values]
    return TextCells(name, spelled, missing, decimal)


def _float(value: Any) -> float:
    if pd.isna(value):
        return np.nan
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        return np.inf


def _finite(values: FloatArray) -> FloatArray:
    return np.where(np.abs(values) <= LARGEST, values, np.nan)
