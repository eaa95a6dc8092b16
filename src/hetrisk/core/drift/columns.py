"""What columns looked like when a model was fitted, and how far those of later rows lie from it.

Only summaries are kept, never a row: moments, extremes, the share of missing values, and each
distribution function at a hundred points. New rows are held against it column by column with the
Kolmogorov-Smirnov statistic at those points, which is at most the one over all points: its p-value
errs on the safe side. Columns of zeros and ones are held against it by their shares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from hetrisk.core.numerics.rows import BoolArray, FloatArray

N_POINTS = 101  # of a distribution function
STEPHENS = (0.12, 0.11)  # his correction for few rows (1970)
ROOM = 0.1  # of a column's range, how far beyond it a value is not yet called outside


@dataclass(frozen=True)
class Columns:
    """Summaries of n rows in d columns, missing values apart.

    Attributes
    ----------
    n_rows : rows.
    mean, sd, low, high : (d,); NaN where every value is missing.
    missing : (d,) share of rows without a value.
    points, cdf : (Q, d) values along each column, and the share of rows at most that large.
    indicator : (d,) columns that hold zeros and ones alone.
    """

    n_rows: int
    mean: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    missing: FloatArray
    points: FloatArray
    cdf: FloatArray
    indicator: BoolArray

    def outside(self, X: FloatArray) -> BoolArray:
        """(n, d) which values lie clearly outside what the columns held."""
        room = ROOM * (self.high - self.low)
        far: BoolArray = (self.low - room > X) | (self.high + room < X)
        return far


def summarise(X: FloatArray) -> Columns:
    """Return the summaries of rows (n, d); NaN where a value is missing."""
    known = ~np.isnan(X)
    n, d = X.shape
    points, cdf = np.full((N_POINTS, d), np.nan), np.full((N_POINTS, d), np.nan)
    mean, sd, low, high = (np.full(d, np.nan) for _ in range(4))
    indicator = np.zeros(d, dtype=bool)
    for j in np.flatnonzero(known.any(axis=0)):
        x = np.sort(X[known[:, j], j])
        # Values that occur, not interpolated ones: shares at ties are then exact.
        at = np.ceil((len(x) - 1) * np.linspace(0.0, 1.0, N_POINTS)).astype(np.int64)
        points[:, j] = x[at]
        cdf[:, j] = np.searchsorted(x, points[:, j], side="right") / len(x)
        mean[j], sd[j], low[j], high[j] = x.mean(), x.std(), x[0], x[-1]
        indicator[j] = bool(np.all((x == 0) | (x == 1)))
    return Columns(n, mean, sd, low, high, 1 - known.mean(axis=0), points, cdf, indicator)


def distances(reference: Columns, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far each of d columns has moved, and how easily that happens by chance.

    Parameters
    ----------
    reference : of the training rows.
    X : (n, d) new rows; NaN where a value is missing.

    Returns
    -------
    distance : (d,) largest difference of the distribution functions, in [0, 1]: at least this
        share of the rows is not where it was. 0 where there is nothing to compare.
    p_value : (d,) of the hypothesis that nothing moved, not corrected for the number of columns.
    """
    d = X.shape[1]
    distance, p_value = np.zeros(d), np.ones(d)
    for j in range(d):
        x = np.sort(X[~np.isnan(X[:, j]), j])
        was = round(reference.n_rows * (1 - reference.missing[j]))
        if not len(x) or not was:
            continue
        if reference.indicator[j]:
            distance[j] = abs(x.mean() - reference.mean[j])
            p_value[j] = shares_equal(reference.mean[j], x.mean(), was, len(x))
            continue
        now = np.searchsorted(x, reference.points[:, j], side="right") / len(x)
        distance[j] = np.max(np.abs(now - reference.cdf[:, j]))
        root = np.sqrt(len(x) * was / (len(x) + was))
        corrected = (root + STEPHENS[0] + STEPHENS[1] / root) * distance[j]
        p_value[j] = float(special.kolmogorov(corrected))
    return distance, p_value


def shares_equal(before: float, now: float, m: int, n: int) -> float:
    """Fisher's exact p-value of two shares (of m and n rows) being equal, two-sided."""
    ones, ones_now = round(before * m + now * n), round(now * n)
    chance = stats.hypergeom(m + n, ones, n)
    return float(min(2 * min(chance.cdf(ones_now), chance.sf(ones_now - 1)), 1.0))
