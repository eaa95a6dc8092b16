"""Columns of time and of environments, in whatever form people write them.

A time is a date (days since 1970-01-01), a number (a year, an index), or a period that is counted
(weeks, months, quarters since 1970): one step is one period, however long its month is. What a
column showed when it was first read is a rule, and further columns are read by the same rule.
Dates in a zone are those of UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from hetrisk.columns import BoolArray, FloatArray, IntArray
from hetrisk.columns.dates import (
    COMPACT,
    MISSING,
    MISSING_IN_TARGET,
    are_dates,
    date_form,
    iso,
    plain,
    text_moments,
)
from hetrisk.columns.words import quoted
from hetrisk.tables.errors import TableError
from hetrisk.tables.frames import as_series
from hetrisk.tables.notation import parse_number
from hetrisk.tables.remedies import DAYFIRST, Remedy

DATE, NUMBER, PERIOD = "date", "number", "period"
MONTHS = "%Y%m"  # 202001 in a column of such: a month
ABSENT = "(missing)"
_MONTH_CODE = re.compile(r"(19|20)[0-9]{2}(0[1-9]|1[0-2])")
_ISO_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
PERIODS = {  # unit -> texts with a year and a number
    "Q": re.compile(
        r"(?P<year>[0-9]{4})[-_ /]?Q(?P<n>[1-4])|Q(?P<m>[1-4])[-_ /]?(?P<last>[0-9]{4})"
    ),
    "M": re.compile(r"(?P<year>[0-9]{4})[-_ ]?M(?P<n>0?[1-9]|1[0-2])"),
    "W": re.compile(r"(?P<year>[0-9]{4})[-_ ]?W(?P<n>0?[1-9]|[1-4][0-9]|5[0-3])"),
}
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")


@dataclass(frozen=True, eq=False)
class TimeColumn:
    """A column of time as numbers, and the rule by which it was read.

    Attributes
    ----------
    value : (n,) days since 1970, numbers, or periods since 1970; NaN where a value is missing.
    name : of the column.
    kind : "date", "number" or "period".
    form : the format of dates in text; "" where they came as dates, numbers or named periods.
    unit : of a period, "Q" (quarter), "M" (month) or "W" (week, from Monday); else "".
    """

    value: FloatArray
    name: str
    kind: str
    form: str = ""
    unit: str = ""

    def read(self, values: Any) -> FloatArray:
        """(n,) numbers of a further column, read in the same way; NaN where a value is missing.

        Raises
        ------
        TableError : where a value is none of its kind, with the row and what stands there.
        """
        series = _plain(as_series(values, self.name))
        missing = _missing(series)
        found = np.full(len(series), np.nan)
        held = series[~missing]
        if len(held):
            found[~missing] = self._numbers(held) if self.kind == NUMBER else self._counts(held)
        unread = np.flatnonzero(~missing & ~np.isfinite(found))
        if len(unread):
            raise TableError(
                f"{self._column}, row {unread[0] + 1}: {quoted(series.iloc[unread[0]])} is not "
                f"{self._what}"
            )
        return found

    def label(self, value: float) -> str:
        """Return a number of this column as people write it."""
        if not np.isfinite(value):
            return ABSENT
        if self.kind == NUMBER:  # five decimals of a year are five minutes
            return f"{round(value, 5) if abs(value) > 100 else value:.12g}"
        if self.kind == DATE:
            return iso(pd.Timestamp(np.datetime64(round(value * 86_400e6), "us")))
        count = int(np.floor(value))
        if self.unit == "Q":
            return f"{1970 + count // 4}Q{count % 4 + 1}"
        if self.unit == "M":
            return str(np.datetime64(count, "M"))
        year, week, _ = date.fromordinal(date(1970, 1, 1).toordinal() + 7 * count - 3).isocalendar()
        return f"{year}-W{week:02}"

    @property
    def _column(self) -> str:
        return f"time column {quoted(self.name)}"

    @property
    def _what(self) -> str:
        what = {DATE: "a date", NUMBER: "a finite number"}.get(self.kind, "a period")
        return f"{what} like those it held at first" if self.kind != NUMBER else what

    @staticmethod
    def _numbers(held: pd.Series) -> FloatArray:
        """Numbers, spans of time as days, years that came as periods, and numbers in text."""
        if pd.api.types.infer_dtype(held) == "period":
            return np.asarray([span.year for span in held], dtype=np.float64)
        held = plain(held)
        if pd.api.types.infer_dtype(held) in _NUMBERS:
            return pd.to_numeric(held, errors="coerce").to_numpy(np.float64, na_value=np.nan)
        codes, texts = _texts(held)
        return np.asarray([parse_number(text) for text in texts], dtype=np.float64)[codes]

    def _counts(self, held: pd.Series) -> FloatArray:
        """Days, or the periods of the unit, since 1970."""
        moments = self._moments(held).to_numpy("datetime64[us]")
        absent = np.isnat(moments)
        steps = moments.astype("datetime64[M]").astype(np.int64)
        since = (moments - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        counts = {"": since, "Q": steps // 3, "M": steps, "W": (since + 3) // 7}[self.unit]
        return np.where(absent, np.nan, counts)

    def _moments(self, held: pd.Series) -> pd.Series:
        values = plain(held)
        if are_dates(values):
            return values
        codes, texts = _texts(held)
        if self.unit and not self.form:
            found = pd.Series([_start(t, self.unit) for t in texts], dtype="datetime64[us]")
        elif self.form == MONTHS:
            coded = [f"{text}01" if _MONTH_CODE.fullmatch(text) else "" for text in texts]
            found = text_moments(coded, COMPACT)
        else:
            found = text_moments(texts, self.form or "ISO8601")
        return found.iloc[codes]


def read_time(values: Any, name: str = "time", dayfirst: bool | None = None) -> TimeColumn:
    """Read a column of time.

    Parameters
    ----------
    values : (n,) dates, periods, numbers or text (``2020-01-31``, ``2020Q1``, ``2020-01``,
        ``202001``, ``31.1.2020``): a numpy array, a list, or a Series or Index of pandas or polars.
    name : of the column, for messages.
    dayfirst : whether ``01/02/2020`` is the first of February; None where the column shows it.

    Raises
    ------
    TableError : a `ValueError`, where the column holds neither dates nor numbers, or dates that
        may be read in two ways.
    """
    series = _plain(as_series(values, name))
    held = series[~_missing(series)]
    if not len(held):
        raise TableError(f"time column {quoted(name)} has no value in any row")
    rule = _rule(held, name, dayfirst)
    return replace(rule, value=rule.read(series))


def read_environment(values: Any, name: str = "environment") -> tuple[IntArray, tuple[str, ...]]:
    """Read a column of environments.

    Returns
    -------
    codes : (n,) position of each row's environment among the levels; -1 where it is missing.
    levels : names of the environments, sorted as numbers or dates where they are that throughout:
        the same whatever the order of the rows. Numbers are spelled as in a CSV: 28, not 28.0.
    """
    series = _plain(as_series(values, name))
    missing = _missing(series, MISSING_IN_TARGET)  # a site may be called "none"
    held = series[~missing]
    if pd.api.types.infer_dtype(held) in ("bytes", "complex"):
        raise TableError(f"environment column {quoted(name)} does not hold single values")
    place, distinct = pd.factorize(held.astype(object), sort=False)
    spelled = [_spelled(value) for value in distinct]
    numbers = np.asarray([parse_number(text) for text in spelled])
    keys: list[Any] = spelled if np.isnan(numbers).any() else numbers.tolist()
    order = sorted(
        dict(zip(spelled, keys, strict=True)).items(), key=lambda item: (item[1], item[0])
    )
    levels = tuple(text for text, _ in order)
    position = {text: i for i, text in enumerate(levels)}
    codes = np.full(len(series), -1)
    codes[~missing] = np.asarray([position[text] for text in spelled], dtype=np.int64)[place]
    return codes, levels


def _rule(held: pd.Series, name: str, dayfirst: bool | None) -> TimeColumn:
    """Decide from the values, none missing, how a column of time is read."""
    rule = TimeColumn(np.empty(0), name, NUMBER)
    if pd.api.types.infer_dtype(held) == "period":
        return _of_periods(held, rule)
    held = plain(held)
    if are_dates(held):
        return replace(rule, kind=DATE)
    kind = pd.api.types.infer_dtype(held)
    if kind not in (*_NUMBERS, "string"):
        first = quoted(held.iloc[0])
        raise TableError(f"time column {quoted(name)} must hold dates or numbers; it holds {first}")
    _, texts = _texts(held)
    coded = _of_codes(texts, rule)
    if coded is not None:
        return coded
    if kind in _NUMBERS or all(np.isfinite(parse_number(text)) for text in texts):
        return rule
    return _of_texts(texts, rule, dayfirst)


def _of_periods(held: pd.Series, rule: TimeColumn) -> TimeColumn:
    letter = str(held.iloc[0].freqstr)[:1]
    if letter in ("Y", "A"):
        return rule
    unit = letter if letter in PERIODS else ""
    return replace(rule, kind=PERIOD if unit else DATE, unit=unit)


def _of_codes(texts: list[str], rule: TimeColumn) -> TimeColumn | None:
    """Dates and months written as one number: 20200131, 202001."""
    if len(texts) > 1 and all(_MONTH_CODE.fullmatch(text) for text in texts):
        return replace(rule, kind=PERIOD, form=MONTHS, unit="M")
    form, _ = date_form(texts, None)
    return replace(rule, kind=DATE, form=form) if form == COMPACT else None


def _of_texts(texts: list[str], rule: TimeColumn, dayfirst: bool | None) -> TimeColumn:
    for unit, pattern in PERIODS.items():
        if all(pattern.fullmatch(text) for text in texts):
            return replace(rule, kind=PERIOD, unit=unit)
    form, trouble = date_form(texts, dayfirst)
    column = f"time column {quoted(rule.name)}"
    if trouble:
        remedy: Remedy | None = DAYFIRST if dayfirst is None else None
        raise TableError(f"{column}: {trouble}", remedy)
    if not form:
        seen = " and ".join(quoted(text) for text in sorted(texts)[:2])
        raise TableError(f"{column} must hold dates or numbers, all in one form; it holds {seen}")
    if form not in ("ISO8601", COMPACT) and "%d" not in form:
        return replace(rule, kind=PERIOD, form=form, unit="M")
    if form == "ISO8601" and all(_ISO_MONTH.fullmatch(text) for text in texts):
        return replace(rule, kind=PERIOD, form=form, unit="M")
    return replace(rule, kind=DATE, form=form)


def _plain(series: pd.Series) -> pd.Series:
    """Categories as what they are categories of; everything else as it is, rows counted afresh."""
    series = series.reset_index(drop=True)
    if isinstance(series.dtype, pd.CategoricalDtype):
        return series.astype(series.cat.categories.dtype)
    return series


def _missing(series: pd.Series, words: frozenset[str] = MISSING) -> BoolArray:
    absent: BoolArray = np.asarray(series.isna(), dtype=bool)
    if pd.api.types.infer_dtype(series, skipna=True) not in ("string", "mixed", "mixed-integer"):
        return absent
    try:
        codes, texts = pd.factorize(series.astype(object))
    except TypeError:  # lists and other things that have no hash
        raise TableError(f"column {quoted(series.name)} does not hold single values") from None
    blank = [type(text) is str and text.strip().lower() in words for text in texts]
    return absent | np.asarray([*blank, True])[codes]


def _texts(held: pd.Series) -> tuple[IntArray, list[str]]:
    """Code of each row, and the distinct values as text without blanks; 2020.0 is 2020."""
    codes, distinct = pd.factorize(held.astype(object))
    return codes, [_spelled(value) for value in distinct]


def _spelled(value: Any) -> str:
    if isinstance(value, pd.Timestamp | np.datetime64):
        return iso(pd.Timestamp(value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _start(text: str, unit: str) -> np.datetime64:
    """Return the first day of a period that is written as a year and a number."""
    match = PERIODS[unit].fullmatch(text)
    if match is None:
        return np.datetime64("NaT")
    parts = match.groupdict()
    year, number = int(parts.get("last") or parts["year"]), int(parts.get("m") or parts["n"])
    if unit == "W":
        try:
            return np.datetime64(date.fromisocalendar(year, number, 1))
        except ValueError:  # most years have no week 53
            return np.datetime64("NaT")
    months = 12 * (year - 1970) + (number - 1) * (3 if unit == "Q" else 1)
    return np.datetime64(months, "M")
