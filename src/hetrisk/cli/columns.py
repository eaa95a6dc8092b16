"""Columns as they are typed, and what was probably meant; which look like a time or a site."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hetrisk.tables.errors import TableError, listed, quoted
from hetrisk.tables.text import header_hint

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
MOST_LISTED = 20


def resolve(
    given: Sequence[str], names: Sequence[str], flag: str, noun: str = "column"
) -> tuple[str, ...]:
    """Return names given to an option: repeated, separated by commas, or both."""
    found: list[str] = []
    for value in given:
        whole = _found(value, names) is not None  # a name may hold a comma itself
        parts = [value] if whole else [part.strip() for part in value.split(",")]
        found += [named(part, names, flag, noun) for part in parts if part]
    return tuple(dict.fromkeys(found))


def named(value: str, names: Sequence[str], flag: str, noun: str = "column") -> str:
    """Return what is called so; refuse what nothing is, and say what was probably meant."""
    name = _found(value, names)
    if name is not None:
        return name
    lower = {n.lower(): n for n in names}
    close = difflib.get_close_matches(value.lower().strip(), list(lower), n=1, cutoff=0.6)
    meant = f"did you mean {quoted(lower[close[0]])}? " if close else ""
    hint = header_hint(list(names)) if noun == "column" else ""
    raise click.BadParameter(
        f"there is no {noun} {quoted(value)}; {meant}"
        f"the {noun}s are {listed(names, MOST_LISTED)}{hint}.",
        param_hint=flag,
    )


def _found(value: str, names: Sequence[str]) -> str | None:
    if value in names:
        return value
    alike = [name for name in names if name.strip() == value.strip()]
    return alike[0] if len(alike) == 1 else None


def suggestions(frame: pd.DataFrame, target: str) -> tuple[list[str], list[str]]:
    """Return columns that look like a time, and columns that look like a site."""
    import pandas as pd

    times, sites = [], []
    for name, column in frame.items():
        dated = pd.api.types.is_datetime64_any_dtype(column)
        timely = dated or TIME_NAME.search(str(name)) is not None
        if str(name) == target or not (timely or SITE_NAME.search(str(name))):
            continue
        values = column.nunique()
        if values < FEWEST:
            continue
        if timely:
            if dated or _in_order(column):
                times.append(str(name))
        elif values <= MOST and column.notna().sum() >= ROWS_EACH * values:
            sites.append(str(name))
    return times[:MOST_SUGGESTED], sites[:MOST_SUGGESTED]


def _in_order(column: pd.Series) -> bool:
    """Whether a column named like a time can be read as one."""
    from hetrisk.tables.time import read_time

    try:
        read_time(column.dropna().head(1000), str(column.name))
    except (TableError, ValueError):
        return False
    return True


def advice(frame: pd.DataFrame, target: str) -> list[str]:
    """Say which columns to name, and how."""
    times, sites = suggestions(frame, target)
    said = [
        f"{listed(names)} {'looks' if len(names) == 1 else 'look'} like {kind}: add {flag} "
        f"{shlex.quote(names[0])} and the models are tested as they will be used, if it says "
        f"{what} a row was."
        for kind, names, flag, what in (
            ("a time", times, "--time", "when"),
            ("a site", sites, "--environment", "where"),
        )
        if names
    ]
    return said or [
        "Name a column of time (--time) or of where rows come from (--environment), and the "
        "models are tested as they will be used."
    ]


def ordered(frame: pd.DataFrame, environment: str) -> list[str]:
    """Say of environments that have an order what --time would promise instead."""
    if not suggestions(frame[[environment]], "")[0]:
        return []
    return [
        f"Here each {environment} is predicted from all others; --time {shlex.quote(environment)} "
        "predicts later ones from earlier ones alone."
    ]
