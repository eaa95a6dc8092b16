"""Dates, however a column holds them: one reader for rows in memory, in files and on a cluster.

Dates and times of any library (numpy, Python, pandas and its periods, Arrow) are one kind of
value, spans of time are numbers of days, and text is a date where one format of `DATE_FORMATS`
reads all of it. Zones are turned into UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from hetrisk.columns import FloatArray

DAY = np.timedelta64(1, "D")
MISSING_IN_TARGET = frozenset(
    {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "?", "nat", "#na", "."}
)
# "None" is a common class ("none, mild, severe") but, elsewhere, mostly a missing value.
MISSING = MISSING_IN_TARGET | {"none", "-"}
LONGEST_DATE = 40
FEWEST_DATE_DIGITS = 4  # a month by name and a year
FEW = 20  # texts that are looked at first: most columns are no dates
COMPACT = "%Y%m%d"
DATE_FORMATS = {  # in the order in which they are tried
    COMPACT: "yearmonthday",
    "ISO8601": "year-month-day",
    "%m/%d/%Y": "month/day/year",
    "%d/%m/%Y": "day/month/year",
    "%d.%m.%Y": "day.month.year",
    "%Y/%m/%d": "year/month/day",
    "%d-%m-%Y": "day-month-year",
    "%m-%d-%Y": "month-day-year",
    "%d %b %Y": "day month year",
    "%d-%b-%Y": "day-month-year",
    "%b %d, %Y": "month day, year",
    "%d %B %Y": "day month year",
    "%B %d, %Y": "month day, year",
    "%m/%Y": "month/year",
    "%m.%Y": "month.year",
    "%b %Y": "month year",
    "%b-%Y": "month-year",
    "%B %Y": "month year",
    "%m/%d/%y": "month/day/year",
    "%d/%m/%y": "day/month/year",
    "%d.%m.%y": "day.month.year",
    "%d-%b-%y": "day-month-year",
    "%m/%d/%Y %H:%M": "month/day/year hour:minute",
    "%d/%m/%Y %H:%M": "day/month/year hour:minute",
    "%d.%m.%Y %H:%M": "day.month.year hour:minute",
    "%m/%d/%Y %I:%M %p": "month/day/year hour:minute",
    "%d/%m/%Y %I:%M %p": "day/month/year hour:minute",
    "%m/%d/%Y %H:%M:%S": "month/day/year hour:minute:second",
    "%d/%m/%Y %H:%M:%S": "day/month/year hour:minute:second",
}
_COMPACT_DATE = re.compile(r"(19|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])")
_DATES = ("date", "datetime", "datetime64")
_SPANS = ("timedelta", "timedelta64")


def is_period(kind: Any) -> bool:
    """Whether a type of Arrow holds periods of pandas."""
    return getattr(kind, "extension_name", "") == "pandas.period"


def plain(values: pd.Series) -> pd.Series:
    """Dates of any library as datetime64 without a zone, spans of time as days; others as given."""
    if isinstance(values.dtype, pd.ArrowDtype) and is_period(values.dtype.pyarrow_dtype):
        # Of pandas' own periods Arrow knows only that they are integers.
        periods = values.array.__arrow_array__().to_pandas()
        values = periods.set_axis(values.index).rename(values.name)
    held = values
    if isinstance(values.dtype, pd.CategoricalDtype):
        held = pd.Series(values.dtype.categories)
    kind = pd.api.types.infer_dtype(held, skipna=True)
    if kind in _SPANS:
        spans = pd.to_timedelta(values.astype(object))
        return (spans / pd.Timedelta(1, "D")).astype(np.float64)
    if kind == "period":
        starts = {span: span.start_time for span in values.dropna().unique()}
        values = values.astype(object).map(starts)
    elif kind not in _DATES:
        return values
    moments = pd.to_datetime(values, errors="coerce", utc=True).dt.tz_convert(None)
    return pd.Series(moments.to_numpy("datetime64[us]"), index=values.index, name=values.name)


def are_dates(values: pd.Series) -> bool:
    """Whether a column that `plain` has returned holds dates."""
    return pd.api.types.is_datetime64_any_dtype(values.dtype)


def _forms(texts: Sequence[str], among: Iterable[str] = DATE_FORMATS) -> tuple[str, ...]:
    """Formats that read each of these texts as a date, words for a missing value aside."""
    left = tuple(among)
    if len(texts) > FEW:
        left = _forms(texts[:FEW], left)
    told = _told(texts) if left else []
    if not told:
        return ()
    compact = all(_COMPACT_DATE.fullmatch(text) for text in told)
    if not compact and (any(map(_is_number, told)) or not any(map(_looks_dated, told))):
        return ()
    left = tuple(form for form in left if (form == COMPACT) == compact)
    return tuple(form for form in left if not np.isnan(text_days(told, form)).any())


def date_form(texts: Sequence[str], dayfirst: bool | None) -> tuple[str, str]:
    """Return the format that reads distinct texts as dates, and what cannot be told, as a clause.

    Parameters
    ----------
    texts : the distinct values of a column.
    dayfirst : whether the day comes before the month where both may; None where nobody said.

    Returns
    -------
    form, trouble : ("", "") for texts that are no dates; a form alone where it is clear; the
        trouble alone where day and month may be either, or are not as they were said to be.
    """
    forms = _forms(texts)
    slashed = {form: _swapped(form) for form in forms if _swapped(form) in DATE_FORMATS}
    if not slashed:
        return next(iter(forms), ""), ""
    if dayfirst is not None:
        said = [form for form in slashed if _is_dayfirst(form) == dayfirst]
        if said:
            return said[0], ""
        proof = next(text for text in _told(texts) if _proves(text, not dayfirst))
        order = "day" if dayfirst else "month"
        return "", f"'{proof}' cannot have the {order} first"
    proven = [form for form in slashed if slashed[form] not in forms]
    if proven:
        return proven[0], ""
    text = min(_told(texts))
    month = text_moments([text], next(f for f in slashed if not _is_dayfirst(f))).iloc[0]
    day = text_moments([text], next(f for f in slashed if _is_dayfirst(f))).iloc[0]
    ways = f"{day.day} {day:%B} or {month.day} {month:%B}"
    return "", f"it cannot be told whether '{text}' is {ways}: say which with"


def _swapped(form: str) -> str:
    """Return the format with day and month in each other's place; "" where it has not both."""
    if "%d" not in form or "%m" not in form:
        return ""
    return form.replace("%d", "%x").replace("%m", "%d").replace("%x", "%m")


def _is_dayfirst(form: str) -> bool:
    return form.index("%d") < form.index("%m")


def _proves(text: str, dayfirst: bool) -> bool:
    """Whether a date has its day first, or its month first, and not the other way round."""
    forms = [form for form in DATE_FORMATS if _swapped(form) in DATE_FORMATS]
    ways = [f for f in forms if not np.isnan(text_days([text], f)).any()]
    return bool(ways) and all(_is_dayfirst(form) == dayfirst for form in ways)


def _told(texts: Iterable[str]) -> list[str]:
    """Texts without blanks around them and without those that mean a value is missing."""
    stripped = (text.strip() for text in texts)
    return [text for text in stripped if text.lower() not in MISSING]


def text_moments(texts: Sequence[str], form: str) -> pd.Series:
    """(n,) datetime64 in UTC of texts in a format; NaT where one is no date in it."""
    held = pd.Series(texts, dtype=object)
    return pd.to_datetime(held, format=form, errors="coerce", utc=True).dt.tz_convert(None)


def text_days(texts: Sequence[str], form: str) -> FloatArray:
    """(n,) days since 1970-01-01 of texts in a format; NaN where one is no date in it."""
    return days(text_moments(texts, form))


def days(moments: pd.Series) -> FloatArray:
    """(n,) days since 1970-01-01 of datetime64; NaN where there is none."""
    values = moments.to_numpy(dtype="datetime64[us]")
    since = (values - np.datetime64(0, "us")) / DAY
    return np.where(np.isnat(values), np.nan, since)


def iso(moment: pd.Timestamp) -> str:
    """Return a moment as ISO 8601 has it, the date alone where there is no time of day."""
    return str(moment.date() if moment == moment.normalize() else moment)


def _looks_dated(text: str) -> bool:
    """Whether the text could be a date at all."""
    return len(text) <= LONGEST_DATE and sum(c.isdigit() for c in text) >= FEWEST_DATE_DIGITS


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
