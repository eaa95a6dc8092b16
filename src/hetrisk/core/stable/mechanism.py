"""Is the mechanism of an effect of the target the same in all rows?

An effect is f(y) + noise. Where one mechanism made all rows, the size of that noise follows y
alone; where environments differ in how closely the effect follows, whatever else tells the
environments apart tells the size of the noise as well. So the spread of the effect, |noise|, is set
against *witnesses*: the other columns, their squares, and the spreads of other effects, all with
their means given the target taken out.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from hetrisk.core.numerics.floors import NEARLY_SINGULAR, TINY, TINY_ROOT
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.core.stable.two_slopes import FAR

WITNESSES: Budget[int] = 50  # columns, and spreads, that an effect is set against


def mechanisms_differ(
    X: FloatArray, known: FloatArray, effects: IntArray, groups: IntArray, weight: FloatArray
) -> FloatArray:
    """(m,) p-values of H0: the spread of an effect about its mean follows the target alone.

    Each witness has a robust score z; ``Q = sum_i w_i z_i^2`` is, under one mechanism, a weighted
    sum of chi-squared variables (`weighted_chi_squared`). The weights may look at the witnesses but
    not at the effect: rows of several environments that shift a column leave it skewed, or heavier
    or flatter than normal, so a column is heard the more the farther it is from that, by the
    logarithm of Jarque and Bera's statistic (1987); spreads as the first of them.

    Parameters
    ----------
    X : (n, d) standardised columns.
    known : (n, b) the constant and functions of the target that a mean or a spread may follow.
    effects : (m,) which columns of X are effects.
    groups : (d,) columns of one group are no witnesses of each other.
    weight : (n,) counts of rows.
    """
    d, far_from_normal = X.shape[1], _not_normal(X, weight)
    spreads = np.abs(_unknown(X[:, effects], known, weight))
    size = np.sqrt(weight @ spreads**2 / weight.sum())
    spreads = np.minimum(spreads / np.maximum(size, TINY), FAR)
    squares = np.minimum(np.abs(X), FAR) ** 2
    left = _unknown(np.column_stack([X, squares, spreads]), known, weight)
    p_values = np.ones(len(effects))
    for i, j in enumerate(effects):
        outside = groups != groups[j]
        features = np.argsort(-far_from_normal, kind="stable")
        features = features[outside[features]][:WITNESSES]
        others = np.flatnonzero(outside[effects])[:WITNESSES]
        # The logarithm: one witness must not outvote all others because there are many rows.
        own = 1.0 + np.log1p(far_from_normal[features])
        heard = np.concatenate([own, own, np.full(len(others), own.max(initial=1.0))])
        columns = np.concatenate([features, d + features, 2 * d + others])
        p_values[i] = _sum_test(left[:, 2 * d + i], left[:, columns], heard, weight)
    return p_values


def weighted_chi_squared(q: float, weights: FloatArray) -> float:
    """Chance that ``sum_i weights_i chi^2_1`` exceeds q, the weights not negative.

    By a chi-squared variable of the same mean, variance and kurtosis (Liu, Tang and Zhang 2009, as
    Lee, Wu and Lin 2012 change it), which is exact for equal weights.
    """
    mean, square, fourth = (float((weights**k).sum()) for k in (1, 2, 4))
    if square <= 0:
        return 1.0
    freedom = square**2 / fourth
    x = freedom + (q - mean) * np.sqrt(freedom / square)
    return float(chi2.sf(max(x, 0.0), freedom))


def _sum_test(
    spread: FloatArray, witnesses: FloatArray, heard: FloatArray, weight: FloatArray
) -> float:
    score = spread[:, None] * witnesses
    total, outer = weight @ score, score.T @ (weight[:, None] * score)
    size = np.sqrt(np.diag(outer))
    some = size > NEARLY_SINGULAR * size.max(initial=0.0)
    scale = np.sqrt(heard[some]) / size[some]
    statistic = float(((scale * total[some]) ** 2).sum())
    # Witnesses go along with each other: the weights of the sum are eigenvalues.
    values = np.linalg.eigvalsh(outer[np.ix_(some, some)] * np.outer(scale, scale))
    return weighted_chi_squared(statistic, np.maximum(values, 0.0))


def _unknown(columns: FloatArray, known: FloatArray, weight: FloatArray) -> FloatArray:
    """Columns less what functions of the target say of them."""
    weighted = known.T * weight
    coef = np.linalg.lstsq(weighted @ known, weighted @ columns, rcond=None)[0]
    return np.asarray(columns - known @ coef, dtype=np.float64)


def _not_normal(X: FloatArray, weight: FloatArray) -> FloatArray:
    """(d,) statistic of Jarque and Bera: squared scores of skewness and kurtosis."""
    share = weight / weight.sum()
    off = X - share @ X
    variance = np.maximum(share @ off**2, TINY_ROOT)
    skew = share @ off**3 / variance**1.5
    tail = share @ off**4 / variance**2 - 3.0
    statistic: FloatArray = weight.sum() * (skew**2 / 6 + tail**2 / 24)
    return statistic
