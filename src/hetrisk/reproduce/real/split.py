"""What is learned from and what is judged: half of the environments, and the others.

With a time the earlier half of the periods is learned from and each later one judged; with sites
a random half, and each other site; with both the earlier half of the periods at two sites of three,
and the later periods, site by site. At most 2,000 rows are learned from and 8,000 judged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.reproduce.real.lot import BOTH, LABELS, ROWS, TIME, Lot, prepare

MOST_LEARNED, MOST_JUDGED, FEWEST_LEARNED = 2_000, 8_000, 120
WHEN, WHERE = "when", "where"


@dataclass(frozen=True, eq=False)
class Half:
    """Rows of one side of a split.

    Attributes
    ----------
    X : (n, d) features.
    y : (n,) target.
    time, site : (n,) numbers, or None.
    environment : (n,) what an error is averaged over, and what peers are told.
    """

    X: FloatArray
    y: np.ndarray
    time: FloatArray | None
    site: FloatArray | None
    environment: np.ndarray

    def take(self, rows: np.ndarray) -> Half:
        """Some of the rows."""
        time, site = (None if v is None else v[rows] for v in (self.time, self.site))
        return Half(self.X[rows], self.y[rows], time, site, self.environment[rows])

    @property
    def frame(self) -> pd.DataFrame:
        """Features with the time and the site as columns of their own."""
        frame = pd.DataFrame(self.X, columns=[f"x{k}" for k in range(self.X.shape[1])])
        ways = {WHEN: self.time, WHERE: self.site}
        return frame.assign(**{name: v for name, v in ways.items() if v is not None})

    @property
    def timed(self) -> FloatArray:
        """(n, d + 1) features and the time."""
        assert self.time is not None
        return np.column_stack([self.X, self.time])


@dataclass(frozen=True, eq=False)
class Split:
    """A drawn table, parted."""

    name: str
    way: str
    labels: bool
    train: Half
    test: Half

    @property
    def classes(self) -> np.ndarray:
        """Classes seen in training."""
        return np.unique(self.train.y)

    def losses(self, predicted: FloatArray, test: Half | None = None) -> FloatArray:
        """(n,) squared errors, or log losses of (n, C) probabilities."""
        y = (self.test if test is None else test).y
        if not self.labels:
            return (predicted - y) ** 2
        code = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        right = predicted[np.arange(len(y)), code]
        return -np.log(np.clip(np.where(self.classes[code] == y, right, 0.0), 1e-3, 1.0))

    def errors(self, losses: FloatArray) -> dict[str, float]:
        """Error in each environment judged: root mean squared error, or mean log loss."""
        found = pd.Series(losses).groupby(self.test.environment).mean()
        return {str(name): float(v if self.labels else np.sqrt(v)) for name, v in found.items()}


def split(lot: Lot) -> Split | str:
    """Part a drawn table; a sentence where too little of it is left."""
    rows = prepare(lot)
    if rows is None:
        return "too few rows or columns after preparing"
    rng = np.random.default_rng(5)
    learned, judged = _parts(rows.time, rows.site, rng)
    site = None if rows.site is None else rows.site.astype(float)
    unit = rows.time if site is None else site
    assert unit is not None
    whole = Half(rows.X.to_numpy(float), rows.y, rows.time, site, unit)
    train = whole.take(rng.permutation(np.flatnonzero(learned))[:MOST_LEARNED])
    test = whole.take(rng.permutation(np.flatnonzero(judged))[:MOST_JUDGED])
    counts = pd.Series(test.environment).value_counts()
    test = test.take(np.isin(test.environment, counts[counts >= ROWS].index).nonzero()[0])
    varies = np.ptp(train.X, axis=0) > 0
    if len(train.y) < FEWEST_LEARNED or not len(test.y) or varies.sum() < 2 or np.ptp(train.y) == 0:
        return "too few rows to learn from or to judge"
    train, test = (
        Half(half.X[:, varies], half.y, half.time, half.site, half.environment)
        for half in (train, test)
    )
    return Split(lot.name, lot.way, lot.kind == LABELS, train, test)


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


__all__ = ["BOTH", "TIME", "Half", "Split", "split"]
