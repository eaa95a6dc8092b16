"""What the training rows looked like, kept with the model so that later rows can be compared.

Only summaries are kept, never a row: moments and extremes of every column from one pass over the
rows, and its distribution function at a hundred points from a bounded sample. New rows are held
against it column by column with the Kolmogorov-Smirnov statistic at those points, which is at
most the one over all points: its p-value errs on the safe side, for columns of few values too.
A column of zeros and ones is held against it by its share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import special, stats

from hetrisk.core.numerics.named_numbers import Budget, Constant
from hetrisk.core.numerics.rows import BoolArray, FloatArray, Rows, RowSource
from hetrisk.core.numerics.spread import ColumnSpread, column_spread

N_POINTS: Budget[int] = 101  # of a distribution function
CDF_ROWS: Budget[int] = 20_000  # that it is taken from
STEPHENS: Constant[tuple[float, float]] = (0.12, 0.11)  # his correction for few rows (1970)


@dataclass(frozen=True)
class Reference:
    """Summaries of n rows in p = d + 1 columns: the features, and the target last.

    Attributes
    ----------
    n_rows : rows of positive weight.
    mean, sd : (p,).
    low, high : (p,) smallest and largest value.
    points, cdf : (Q, p) values along each column, and the share of rows at most that large.
    n_sampled : rows behind ``cdf``.
    indicator : (p,) columns that hold zeros and ones alone.
    environments : name and share of each environment the user named; empty if none were.
    """

    n_rows: int
    mean: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    points: FloatArray
    cdf: FloatArray
    n_sampled: int
    indicator: BoolArray
    environments: tuple[tuple[str, float], ...] = ()

    def outside(self, values: FloatArray, columns: slice | BoolArray) -> BoolArray:
        """Return which of ``values`` (n, m) lie clearly outside what ``columns`` held."""
        low, high = self.low[columns], self.high[columns]
        room = 0.1 * (high - low)
        far: BoolArray = (values < low - room) | (values > high + room)
        return far


@dataclass(frozen=True)
class Profile:
    """What one pass over rows says of the p columns; two of them merge into that of both.

    Attributes
    ----------
    n : rows of positive weight.
    weighted : spread of the columns, rows counting by their weight.
    columns : the same, every row counting once.
    indicator : (p,) columns that hold zeros and ones alone.
    environments : (K,) rows of each environment, where rows carry them.
    """

    n: int
    weighted: ColumnSpread
    columns: ColumnSpread
    indicator: BoolArray
    environments: FloatArray

    def __add__(self, other: Profile) -> Profile:
        return Profile(
            self.n + other.n,
            self.weighted + other.weighted,
            self.columns + other.columns,
            self.indicator & other.indicator,
            self.environments + other.environments,
        )


def profile(rows: Rows) -> Profile:
    """The profile of a block of rows."""
    weighted, counts = column_spread(rows), rows.weight > 0
    columns = weighted
    if not np.all(rows.weight == 1.0):
        columns = column_spread(replace(rows, weight=counts.astype(np.float64)))
    indicator = indicators(rows, columns.low, columns.high)
    carried = np.zeros(0) if rows.environments is None else rows.environments.sum(axis=0)
    return Profile(int(counts.sum()), weighted, columns, indicator, carried)


def indicators(rows: Rows, low: FloatArray, high: FloatArray) -> BoolArray:
    """(p,) columns that hold zeros and ones alone; ``low`` and ``high`` (p,) are their extremes."""
    indicator: BoolArray = ((low == 0.0) | (low == 1.0)) & ((high == 0.0) | (high == 1.0))
    if indicator.any():
        kinds = _columns(rows)[:, indicator]
        # Extremes rule out most columns; only the rest are read value by value.
        indicator[indicator] = np.all((kinds == 0) | (kinds == 1), axis=0)
    return indicator


def measure(
    rows: RowSource,
    environments: tuple[tuple[str, float], ...] = (),
    known: Profile | None = None,
) -> Reference:
    """Return the reference of training rows: one pass over them, and one sample.

    ``environments`` are name and share of those the user named, kept as they are; ``known`` is
    the profile of the rows, where they have been passed over already.
    """
    seen = rows.sum(profile) if known is None else known
    ordered = _ordered(_columns(rows.sample(CDF_ROWS, 0)))
    n_sampled = ordered.shape[1]
    levels = np.linspace(0.0, 1.0, N_POINTS)
    # Values that occur, not interpolated ones: shares at ties are then exact.
    points = ordered[:, np.ceil((n_sampled - 1) * levels).astype(np.int64)].T
    return Reference(
        n_rows=seen.n,
        mean=seen.columns.centre,
        sd=seen.columns.spread,
        low=seen.columns.low,
        high=seen.columns.high,
        points=points,
        cdf=_shares_below(ordered, points),
        n_sampled=n_sampled,
        indicator=seen.indicator,
        environments=environments,
    )


def _columns(rows: Rows) -> FloatArray:
    """(n, d + 1) features and target of the rows that count."""
    Z = np.column_stack([rows.X, rows.y])
    counts = rows.weight > 0
    return Z if counts.all() else Z[counts]


def _ordered(Z: FloatArray) -> FloatArray:
    """(m, n) the values of each of m columns, sorted."""
    return np.sort(np.ascontiguousarray(Z.T), axis=1)


def _shares_below(ordered: FloatArray, points: FloatArray) -> FloatArray:
    """(Q, m) share of each column's sorted values (m, n) at most as large as each of its points."""
    counts = [np.searchsorted(o, p, side="right") for o, p in zip(ordered, points.T, strict=True)]
    shares: FloatArray = np.column_stack(counts) / ordered.shape[1]
    return shares


def distances(reference: Reference, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far each of d columns has moved, and how easily that happens by chance.

    Parameters
    ----------
    reference : of the training rows.
    X : (n, d) new rows.

    Returns
    -------
    distance : (d,) largest difference of the distribution functions, in [0, 1]: at least this
        share of the rows is not where it was.
    p_value : (d,) of the hypothesis that nothing moved, not corrected for the number of columns.
    """
    d = X.shape[1]
    now = _shares_below(_ordered(X), reference.points[:, :d])
    distance = np.max(np.abs(now - reference.cdf[:, :d]), axis=0)
    p_value = _kolmogorov(distance, len(X), reference.n_sampled)
    share = np.flatnonzero(reference.indicator[:d])
    before, after = reference.mean[share], X[:, share].mean(axis=0)
    distance[share] = np.abs(after - before)
    p_value[share] = _proportions(before, after, reference.n_rows, len(X))
    return distance, p_value


def _kolmogorov(distance: FloatArray, n: int, m: int) -> FloatArray:
    """p-value of the two-sample statistic, with Stephens' correction for few rows."""
    # Effective rows of two samples: with a large reference, those of the new rows alone.
    root = np.sqrt(n * m / (n + m))
    p: FloatArray = special.kolmogorov((root + STEPHENS[0] + STEPHENS[1] / root) * distance)
    return p


def _proportions(before: FloatArray, after: FloatArray, m: int, n: int) -> FloatArray:
    """Fisher's exact p-value of two shares being equal, twice the smaller side."""
    ones, now = np.rint(before * m + after * n), np.rint(after * n)
    chance = stats.hypergeom(m + n, ones.astype(int), n)
    p: FloatArray = np.minimum(2 * np.minimum(chance.cdf(now), chance.sf(now - 1)), 1.0)
    return p
