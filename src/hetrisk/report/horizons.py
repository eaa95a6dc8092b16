"""How far ahead something is, in the words of the column of time."""

from __future__ import annotations

import re
from dataclasses import replace

from hetrisk.core.result import Forecast
from hetrisk.report.labels import number
from hetrisk.tables.time import DATE, PERIOD, TimeColumn

DAYS = {"day": 1.0, "week": 7.0, "month": 30.4375, "year": 365.25}
FEWEST = 2.0  # of a unit before it is counted in
PERIOD_DAYS = {"W": DAYS["week"], "M": DAYS["month"], "Q": 3 * DAYS["month"]}
COUNTED = re.compile(r"(year|month|week|day|quarter|wave|visit|round|season)s?$", re.I)


def in_words(forecast: Forecast, time: TimeColumn, period: float) -> Forecast:
    """Return the forecast with horizons called ``3 years ahead``, where time has such a unit.

    Parameters
    ----------
    forecast : by periods ahead.
    time : the column of time.
    period : its units a period.
    """
    named = [(h, ahead(h.horizon * period, time)) for h in forecast.by_horizon]
    horizons = tuple(replace(h, label=words) if words else h for h, words in named)
    return replace(forecast, by_horizon=horizons)


def ahead(span: float, time: TimeColumn) -> str:
    """A span of time, in the column's own units, in words; "" where it has no unit."""
    if time.kind in (DATE, PERIOD):
        return _of_days(span * PERIOD_DAYS.get(time.unit, 1.0))
    found = COUNTED.search(time.name)
    return f"{_counted(span, found[1].lower())} ahead" if found else ""


def _of_days(days: float) -> str:
    units = [name for name, size in DAYS.items() if days >= FEWEST * size]
    unit = units[-1] if units else "day"
    count = days / DAYS[unit]
    return f"{_counted(round(count), unit)} ahead"


def _counted(count: float, unit: str) -> str:
    shown = f"{count:,.0f}" if abs(count - round(count)) < 0.05 else number(count, 2)
    return f"{shown} {unit}{'' if shown == '1' else 's'}"
