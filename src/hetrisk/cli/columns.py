"""Columns as they are typed, and what was probably meant; which look like a time or a site."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import pandas as pd

TIME_NAME = re.compile(
    r"(^|[\W_])(year|yr|month|date|day|week|quarter|qtr|wave|season|period|time|visit|round|"
    r"session|decade|cohort|jahr|monat|datum|année|mois|fecha|año)s?($|[\W_0-9])",
    re.I,
)
SITE_NAME = re.compile(
    r"(^|[\W_])(site|state|country|region|school|hospital|cent(er|re)|clinic|city|district|"
    r"county|province|batch|lab|station|store|shop|farm|village|team|plant|location|group|"
    r"branch|machine|device|place|area|zone|market|ward|community|municipality|department|dept|"
    r"division|industry|sector|zone|island|block|species|farm|brand|make|race|occupation|sport|"
    r"airport|carrier|continent|stratum)s?($|[\W_0-9])",
    re.I,
)
FEWEST, MOST, ROWS_EACH = 3, 200, 5.0  # values of a column that looks like a time or a site
MOST_SUGGESTED = 3


def resolve(given: Sequence[str], names: Sequence[str], flag: str) -> tuple[str, ...]:
    """Return columns named by an option: repeated, separated by commas, or both."""
    found: list[str] = []
    for value in given:
        whole = _named(value, names)
        parts = [value] if whole is not None else [part.strip() for part in value.split(",")]
        found += [_or_refuse(part, names, flag) for part in parts if part]
    return tuple(dict.fromkeys(found))


def one(value: str | None, names: Sequence[str], flag: str) -> str | None:
    """Return the column named by an option that takes one."""
    return None if value is None else _or_refuse(value, names, flag)


def _named(value: str, names: Sequence[str]) -> str | None:
    if value in names:
        return value
    alike = [name for name in names if name.strip() == value.strip()]
    return alike[0] if len(alike) == 1 else None


def _or_refuse(value: str, names: Sequence[str], flag: str) -> str:
    from hetrisk.tables.errors import listed, quoted
    from hetrisk.tables.text import header_hint

    name = _named(value, names)
    if name is not None:
        return name
    raise click.BadParameter(
        f"there is no column {quoted(value)}; {close_to(value, names)}"
        f"the columns are {listed(list(names), 12)}{header_hint(list(names))}.",
        param_hint=flag,
    )


def close_to(value: str, names: Sequence[str]) -> str:
    """``did you mean 'price'? ``, where a name is close enough to what was typed."""
    from hetrisk.tables.errors import quoted

    lower = {n.lower(): n for n in names}
    close = difflib.get_close_matches(value.lower().strip(), list(lower), n=1, cutoff=0.6)
    return f"did you mean {quoted(lower[close[0]])}? " if close else ""


def suggestions(frame: pd.DataFrame, target: str) -> tuple[list[str], list[str]]:
    """Return columns that look like a time, and columns that look like a site."""
    import pandas as pd

    times, sites = [], []
    for name, column in frame.items():
        if str(name) == target:
            continue
        dated = pd.api.types.is_datetime64_any_dtype(column)
        if not dated and not (TIME_NAME.search(str(name)) or SITE_NAME.search(str(name))):
            continue
        values = column.nunique()
        if values < FEWEST:
            continue
        if dated or TIME_NAME.search(str(name)):
            if dated or _in_order(column):
                times.append(str(name))
        elif values <= MOST and column.notna().sum() >= ROWS_EACH * values:
            sites.append(str(name))
    return times[:MOST_SUGGESTED], sites[:MOST_SUGGESTED]


def _in_order(column: pd.Series) -> bool:
    """Whether a column named like a time can be read as one."""
    from hetrisk.tables import TableError
    from hetrisk.tables.time import read_time

    try:
        read_time(column.dropna().head(1000), str(column.name))
    except (TableError, ValueError):
        return False
    return True


def advice(frame: pd.DataFrame, target: str) -> list[str]:
    """Say which columns to name, and how."""
    from hetrisk.tables.errors import listed

    times, sites = suggestions(frame, target)
    said = []
    for kind, names, flag in (("a time", times, "--time"), ("a site", sites, "--environment")):
        if names:
            said.append(
                f"{listed(names)} looks like {kind}: add {flag} "
                f"{_typed(names[0])} and the models are tested there as they will be used."
            )
    if not said:
        said.append(
            "Name a column of time (--time) or of where rows come from (--environment), and the "
            "models are tested as they will be used."
        )
    return said


def ordered(frame: pd.DataFrame, environment: str) -> list[str]:
    """Say of environments that have an order what --time would promise instead."""
    names = [str(name) for name in frame.columns]
    column = frame.iloc[:, [names.index(environment)]]
    if not suggestions(column, "")[0]:
        return []
    return [
        f"Here each {environment} is predicted from all others; --time {_typed(environment)} "
        "predicts later ones from earlier ones alone."
    ]


def _typed(name: str) -> str:
    import shlex

    return shlex.quote(name)
