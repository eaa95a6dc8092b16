"""Is the mechanism of an effect the same everywhere?

An effect of the target is f(y) + noise. Where one mechanism made all rows, the size of that noise
follows y alone; where environments differ in how closely the effect follows, whatever else tells
the environments apart tells the size of the noise as well. So the *spread* of the effect,
|noise|, is set against *witnesses*: the other features, their squares, and the spreads of
other effects (environments that change several mechanisms at once make these rise and fall
together). All of them have their means given the target taken out.

Each witness has a robust score z. The test adds their squares up, ``Q = sum_i w_i z_i^2``, which
under one mechanism is a weighted sum of chi-squared variables. The weights may look at the
witnesses, not at the effect: rows of several environments that shift a feature leave it skewed, or
heavier or flatter than normal, so a feature is heard the more the farther it is from normal, by
the logarithm of Jarque and Bera's statistic; spreads, which shift with any of them, as the first of
them. The level does not depend on the weights.

All of this is sums over rows, in three passes: one test serves a sample and a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import chi2

from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import NEARLY_SINGULAR, TINY, TINY_ROOT
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray, IntArray, Rows, RowSource, Summed
from hetrisk.core.thresholds import THRESHOLDS

# Features, and spreads, that one effect is set against: those farthest from normal.
WITNESSES: Budget[int] = 50


@dataclass(frozen=True)
class Layout:
    """Rows as columns of the test: features, their squares, and the spreads of effects.

    Attributes
    ----------
    family : of the target.
    effects : (m,) columns.
    mean, deviation : (b, m) coefficients of the effects on the target, (m,) size of their noise.
    """

    family: Family
    effects: IntArray
    mean: FloatArray
    deviation: FloatArray

    def __call__(self, rows: Rows) -> FloatArray:
        """(n, 2 d + m) columns."""
        noise = rows.X[:, self.effects] - _known(rows, self.family) @ self.mean
        spreads = np.minimum(np.abs(noise) / self.deviation, THRESHOLDS.far)
        return np.column_stack([rows.X, np.minimum(np.abs(rows.X), THRESHOLDS.far) ** 2, spreads])


def mechanism_p_values(
    rows: RowSource, family: Family, groups: IntArray, effects: IntArray
) -> FloatArray:
    """(m,) p-values of one mechanism: the spread of an effect about its mean depends on y alone.

    Parameters
    ----------
    rows : standardised.
    family : of the target.
    groups : (d,) columns of one group are one feature.
    effects : (m,) columns, effects of the target.
    """
    if len(effects) == 0:
        return np.ones(0)
    first = rows.sum(partial(_first_pass, family=family, effects=effects))
    # Pass 1 gives the mean of each effect given the target, pass 2 that of every witness given the
    # target, pass 3 the products of what is left of both.
    mean = _solved(first.known, first.cross)
    square = np.maximum(first.square - (mean * first.cross).sum(axis=0), 0.0)
    deviation = np.sqrt(np.maximum(square / max(first.powers[0, 0], TINY), TINY))
    layout = Layout(family, effects, mean, deviation)
    products = rows.sum(partial(_second_pass, layout=layout))
    given = _solved(first.known, products)
    not_normal = _not_normal(first)
    witnesses = [_witnesses(not_normal, groups, effects, i) for i in range(len(effects))]
    chosen = tuple(columns for columns, _ in witnesses)
    scores = rows.sum(partial(_third_pass, layout=layout, given=given, chosen=chosen))
    return np.array(
        [
            _sum_test(total, outer, weight)
            for total, outer, (_, weight) in zip(scores.total, scores.outer, witnesses, strict=True)
        ]
    )


def weighted_chi_squared(q: float, weights: FloatArray) -> float:
    """Chance that ``sum_i weights_i chi^2_1`` exceeds q, the weights not negative.

    By a chi-squared variable of the same mean, variance and kurtosis (Liu, Tang and Zhang 2009, as
    Lee, Wu and Lin 2012 change it), which is exact for equal weights. A non-central one could have
    the same skewness, too, but no such sum is skewed enough for that.
    """
    mean, square, fourth = (float((weights**k).sum()) for k in (1, 2, 4))
    if square <= 0:
        return 1.0
    freedom = square**2 / fourth
    # The sum has the variance 2 square, the match 2 freedom: brought to that mean and scale.
    x = freedom + (q - mean) * np.sqrt(freedom / square)
    return float(chi2.sf(max(x, 0.0), freedom))


@dataclass(frozen=True)
class _First(Summed):
    """Products of the b functions of the target, with themselves and the effects; moments.

    ``powers`` (5, d) are sums of powers of the features, ``squared_weight`` of the weights.
    """

    known: FloatArray
    cross: FloatArray
    square: FloatArray
    powers: FloatArray
    squared_weight: float


@dataclass(frozen=True)
class _Scores:
    """For each effect, (q,) sum of the scores of its witnesses and (q, q) of their products."""

    total: tuple[FloatArray, ...]
    outer: tuple[FloatArray, ...]

    def __add__(self, other: _Scores) -> _Scores:
        total = (a + b for a, b in zip(self.total, other.total, strict=True))
        outer = (a + b for a, b in zip(self.outer, other.outer, strict=True))
        return _Scores(tuple(total), tuple(outer))


def _known(rows: Rows, family: Family) -> FloatArray:
    """(n, b) constant and functions of the target that a mean or a spread may follow."""
    return np.column_stack([np.ones(len(rows)), family.spread_basis(rows.y, THRESHOLDS.far)])


def _solved(gram: FloatArray, cross: FloatArray) -> FloatArray:
    """Coefficients from normal equations, the shortest where functions of the target coincide."""
    return np.asarray(np.linalg.lstsq(gram, cross, rcond=None)[0], dtype=np.float64)


def _first_pass(rows: Rows, family: Family, effects: IntArray) -> _First:
    """What the means of the effects, and the witnesses' distance from normal, are made of."""
    known, x = _known(rows, family), rows.X[:, effects]
    weighted = rows.weight[:, None] * known
    powers = [np.ones_like(rows.X)]
    for _ in range(4):
        powers.append(powers[-1] * rows.X)
    return _First(
        known=weighted.T @ known,
        cross=weighted.T @ x,
        square=rows.weight @ x**2,
        powers=np.array([rows.weight @ power for power in powers]),
        squared_weight=float((rows.weight**2).sum()),
    )


def _second_pass(rows: Rows, layout: Layout) -> FloatArray:
    known = rows.weight[:, None] * _known(rows, layout.family)
    products: FloatArray = known.T @ layout(rows)
    return products


def _third_pass(
    rows: Rows, layout: Layout, given: FloatArray, chosen: tuple[IntArray, ...]
) -> _Scores:
    """Scores: the spread of each effect times each of its witnesses, the target taken out."""
    residual = layout(rows) - _known(rows, layout.family) @ given
    spreads = residual[:, -len(chosen) :]
    scores = [
        # A score a row, so that their sum of squares is a variance that holds for any noise.
        (rows.weight * spread)[:, None] * residual[:, columns]
        for spread, columns in zip(spreads.T, chosen, strict=True)
    ]
    return _Scores(tuple(s.sum(axis=0) for s in scores), tuple(s.T @ s for s in scores))


def _witnesses(
    not_normal: FloatArray, groups: IntArray, effects: IntArray, i: int
) -> tuple[IntArray, FloatArray]:
    """Columns of the layout that the spread of effect i is set against, and their weights."""
    d, outside = len(groups), groups != groups[effects[i]]
    features = np.argsort(-not_normal, kind="stable")
    features = features[outside[features]][:WITNESSES]
    spreads = np.argsort(-not_normal[effects], kind="stable")
    spreads = spreads[outside[effects[spreads]]][:WITNESSES]
    # The logarithm: the statistic grows with the rows, and one witness must not outvote all others
    # because there are many of them.
    own = 1.0 + np.log1p(not_normal[features])
    weight = np.concatenate([own, own, np.full(len(spreads), own.max(initial=1.0))])
    return np.concatenate([features, d + features, 2 * d + spreads]), weight


def _not_normal(first: _First) -> FloatArray:
    """(d,) statistic of Jarque and Bera: squared scores of skewness and kurtosis."""
    total = max(float(first.powers[0, 0]), TINY)
    m1, m2, m3, m4 = first.powers[1:] / total
    variance = np.maximum(m2 - m1**2, TINY_ROOT)
    skew = (m3 - 3 * m1 * m2 + 2 * m1**3) / variance**1.5
    tail = (m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4) / variance**2 - 3.0
    rows = total**2 / max(first.squared_weight, TINY)
    statistic: FloatArray = rows * (skew**2 / 6 + tail**2 / 24)
    return statistic


def _sum_test(total: FloatArray, outer: FloatArray, weight: FloatArray) -> float:
    """p-value of the weighted squared scores, from their sums (q,) and sums of products (q, q)."""
    size = np.sqrt(np.diag(outer))
    identifiable = size > NEARLY_SINGULAR * size.max(initial=0.0)
    scale = np.sqrt(weight[identifiable]) / size[identifiable]
    statistic = float(((scale * total[identifiable]) ** 2).sum())
    # Witnesses go along with each other: the weights of the sum are the eigenvalues of their
    # scores' covariance, each score scaled to size one.
    values = np.linalg.eigvalsh(outer[np.ix_(identifiable, identifiable)] * np.outer(scale, scale))
    return weighted_chi_squared(statistic, np.maximum(values, 0.0))
