"""What is learned from and what is judged: half of the environments, and the others.

A drawn table becomes numbers: missing ones the median, words 0/1 columns. With a time the earlier
half of the periods is learned from and each later one judged; with sites a random half, and each
other site; with both the earlier half of the periods at two sites of three, and the later periods,
site by site. At most 2,000 rows are learned from and 8,000 judged, drawn by seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import skew

from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.reproduce.real.lot import FEWEST, LABELS, NAMES, Lot, frequent, read

MOST_LEARNED, MOST_JUDGED, FEWEST_LEARNED = 2_000, 8_000, 120
MISSING = 0.3  # a column with more missing is dropped
LEVELS = 15  # words with more values are names
COPY = 0.98  # what says more of the target is the target
WHEN, WHERE = "when", "where"


@dataclass(frozen=True, eq=False)
class Half:
    """Rows of one side of a split.

    Attributes
    ----------
    X : (n, d) features.
    y : (n,) target: numbers, or codes of classes.
    time, site : (n,) numbers, or None.
    """

    X: FloatArray
    y: np.ndarray
    time: FloatArray | None
    site: FloatArray | None

    def take(self, rows: np.ndarray) -> Half:
        """Some of the rows."""
        time, site = (None if v is None else v[rows] for v in (self.time, self.site))
        return Half(self.X[rows], self.y[rows], time, site)

    @property
    def environment(self) -> FloatArray:
        """(n,) what an error is averaged over, and what peers are told: the site, else the time."""
        unit = self.time if self.site is None else self.site
        assert unit is not None
        return unit

    @property
    def frame(self) -> pd.DataFrame:
        """Features with the time and the site as columns of their own."""
        frame = pd.DataFrame(self.X, columns=[f"x{k}" for k in range(self.X.shape[1])])
        ways = {WHEN: self.time, WHERE: self.site}
        return frame.assign(**{name: v for name, v in ways.items() if v is not None})

    @property
    def timed(self) -> FloatArray:
        """(n, d + 1) features and the time; features alone where there is none."""
        return self.X if self.time is None else np.column_stack([self.X, self.time])


@dataclass(frozen=True, eq=False)
class Table:
    """A drawn table, parted in what is learned from and what is judged."""

    labels: bool
    train: Half
    test: Half

    @property
    def classes(self) -> np.ndarray:
        """Classes seen in training."""
        return np.unique(self.train.y)

    def predicted(self, model: Any, X: Any) -> FloatArray:
        """Numbers, or probabilities of all classes."""
        if not self.labels:
            return np.asarray(model.predict(X), dtype=float)
        found = np.zeros((len(X), len(self.classes)))
        found[:, np.searchsorted(self.classes, model.classes_)] = model.predict_proba(X)
        return found

    def losses(self, predicted: FloatArray, test: Half) -> FloatArray:
        """(n,) squared errors, or log losses of (n, C) probabilities."""
        if not self.labels:
            return (predicted - test.y) ** 2
        code = np.minimum(np.searchsorted(self.classes, test.y), len(self.classes) - 1)
        right = predicted[np.arange(len(test.y)), code]
        return -np.log(np.clip(np.where(self.classes[code] == test.y, right, 0.0), 1e-3, 1.0))

    def errors(self, losses: FloatArray) -> FloatArray:
        """(E,) error in each environment judged: root mean squared error, or mean log loss."""
        codes = np.unique(self.test.environment, return_inverse=True)[1]
        found = np.bincount(codes, losses) / np.bincount(codes)
        return found if self.labels else np.sqrt(found)


class LeftOutError(Exception):
    """A table that takes no part; the message says why."""


def split(lot: Lot) -> Table:
    """Part a drawn table."""
    whole = prepare(lot)
    rng = np.random.default_rng(5)
    learned, judged = _parts(whole.time, whole.site, rng)
    train = whole.take(rng.permutation(np.flatnonzero(learned))[:MOST_LEARNED])
    test = whole.take(rng.permutation(np.flatnonzero(judged))[:MOST_JUDGED])
    test = test.take(np.isin(test.environment, frequent(pd.Series(test.environment))).nonzero()[0])
    varies = np.ptp(train.X, axis=0) > 0
    if len(train.y) < FEWEST_LEARNED or not len(test.y) or varies.sum() < 2 or np.ptp(train.y) == 0:
        raise LeftOutError("too few rows to learn from or to judge")
    train, test = (Half(h.X[:, varies], h.y, h.time, h.site) for h in (train, test))
    return Table(lot.kind == LABELS, train, test)


def _parts(
    time: FloatArray | None, site: np.ndarray | None, rng: np.random.Generator
) -> tuple[BoolArray, BoolArray]:
    """Which rows are learned from, and which judged."""
    if time is not None:
        periods = np.unique(time)
        early = time < periods[len(periods) // 2]
        if site is None:
            return early, ~early
        sites = rng.permutation(np.unique(site))
        return early & np.isin(site, sites[: max(2, 2 * len(sites) // 3)]), ~early
    assert site is not None
    sites = rng.permutation(np.unique(site))
    seen = np.isin(site, sites[: len(sites) // 2])
    return seen, ~seen


def prepare(lot: Lot) -> Half:
    """Read a table as numbers."""
    table = read(lot.package, lot.item)
    assert table is not None  # it was drawn
    named = [column for column in (lot.time, lot.site) if column]
    table = table.dropna(subset=[lot.target, *named])
    y = _target(table[lot.target], lot.kind)
    ways: list[FloatArray] = []
    if lot.time:
        ways.append(pd.to_numeric(table[lot.time], errors="coerce").to_numpy(float))
    if lot.site:
        ways.append(pd.factorize(table[lot.site].astype(str), sort=True)[0].astype(float))
    kept = np.isfinite(y)
    for values in ways:
        kept &= np.isfinite(values) & np.isin(values, frequent(pd.Series(values[kept])))
    if kept.sum() < FEWEST:
        raise LeftOutError("too few rows")
    y, ways = y[kept], [values[kept] for values in ways]
    X = _features(table.drop(columns=[lot.target, *named])[kept], y, ways)
    if any(_share_between(y, values) > COPY for values in ways):
        raise LeftOutError("the time or the site says all of the target")
    return Half(X, y, ways[0] if lot.time else None, ways[-1] if lot.site else None)


def _target(values: pd.Series, kind: str) -> np.ndarray:
    if kind == LABELS:
        return np.unique(values.astype(str), return_inverse=True)[1].astype(float)
    y = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float)
    known = y[np.isfinite(y)]
    return np.log(y) if (known > 0).all() and float(skew(known)) > 2 else y


def _features(table: pd.DataFrame, y: np.ndarray, ways: list[FloatArray]) -> FloatArray:
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
    X.columns = [str(c) for c in X.columns]
    X = X.loc[:, ~X.columns.duplicated()]
    ranks = [pd.Series(values).rank() for values in ways]
    return X[[c for c in X if _is_feature(X[c].to_numpy(), y, ranks)]].to_numpy()


def _share_between(y: np.ndarray, values: np.ndarray) -> float:
    """Share of the variance of the target that lies between the values of a way."""
    means = pd.Series(y).groupby(values).transform("mean")
    return float(means.var(ddof=0) / y.var())


def _is_feature(x: np.ndarray, y: np.ndarray, ways: list[pd.Series]) -> bool:
    if not np.isfinite(x).all() or np.ptp(x) == 0 or (np.diff(x) > 0).all():
        return False  # one that rises throughout numbers the rows
    rank = pd.Series(x).rank()
    repeats = [abs(np.corrcoef(x, y)[0, 1]), *(abs(np.corrcoef(rank, w)[0, 1]) for w in ways)]
    return max(repeats) <= COPY
