"""Do several effects of the target answer to it by one gain that differs between rows?

Effects that one environment amplifies and another damps, V_j = g a_j y + noise with a gain g of the
environment's, share (g - mean g) y beyond the target: what two of them have in common grows with
its square. Noise that they merely share (a factor behind both) has the same size at any target. So
the product of what is left of an effect, the target taken out, and of what is left of the others of
its block is set against the square of the target. The target is taken out by splines, so that a
bend which all effects follow is not taken for a gain. All of this is sums over rows, in three
passes.

Within one population every row might have a gain of its own, and the table would be the same: as
for spreads that go along with each other (`hetrisk.core.sources.mechanism`), what several
mechanisms do at once is taken for what an environment does. Where the target is far from the zero
that a gain multiplies, what is shared grows along a line, too, which is taken out: there less of it
is seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.interpolate import BSpline
from scipy.special import ndtr

from hetrisk.core.numerics.ensemble import normalised
from hetrisk.core.numerics.floors import ROUNDING, TINY
from hetrisk.core.numerics.iteration import iterate
from hetrisk.core.numerics.linear import weighted_coefficients
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows, RowSource, Summed
from hetrisk.core.thresholds import THRESHOLDS

# Quantiles of the target between which the mean of an effect may bend, closer at either end.
KNOTS: Budget[FloatArray] = np.array([0.005, 0.02, *np.arange(1, 20) / 20, 0.98, 0.995])
ROWS_BEYOND: Budget[int] = 10  # a knot, at least
KINDS: Budget[int] = 3  # gains that the environments are given
TOL: Budget[float] = 1e-7  # of the mean log likelihood
MAX_ITER: Budget[int] = 100


@dataclass(frozen=True)
class SharedGain:
    """What the m effects of a block share beyond the target.

    Attributes
    ----------
    columns : (m,) of the table.
    apart : (m, m) pairs of effects that are heard where the other is asked about.
    knots : of splines of the target.
    mean : (b, m) coefficients of the effects on these splines.
    inverse : (b, b) of the Gram matrix of the splines: how far a row draws the mean to itself.
    deviation : (m,) size of what the mean leaves.
    slope : (m,) of the effects on the target, in units of that size.
    """

    columns: IntArray
    apart: BoolArray
    knots: FloatArray
    mean: FloatArray
    inverse: FloatArray
    deviation: FloatArray
    slope: FloatArray

    def left(self, rows: Rows) -> FloatArray:
        """(n, m) what the target leaves of the effects, in units of its size."""
        splines = _splines(rows.y, self.knots)
        left = rows.X[:, self.columns] - splines @ self.mean
        # Where rows are few, at either end, the mean follows them, and what is left is smaller than
        # the noise by the root of one less the leverage.
        leverage = rows.weight * ((splines @ self.inverse) * splines).sum(axis=1)
        left /= np.sqrt(np.maximum(1.0 - leverage, ROUNDING))[:, None] * self.deviation
        return np.clip(left, -THRESHOLDS.far, THRESHOLDS.far)

    def products(self, rows: Rows) -> FloatArray:
        """(n, m + 1) each effect times the others, on its side, and the square of the target."""
        left, far = self.left(rows), THRESHOLDS.far
        others = (left * self.slope) @ self.apart
        square = np.clip(rows.y, -far, far) ** 2
        return np.column_stack([np.sign(self.slope) * left * others, square])

    def p_values(self, rows: RowSource) -> FloatArray:
        """(m,) that what an effect shares with the others does not grow with the target."""
        line = rows.sum(partial(_line_pass, shared=self))
        given = np.linalg.lstsq(line[:, :2], line[:, 2:], rcond=None)[0].astype(np.float64)
        total, square = rows.sum(partial(_score_pass, shared=self, given=given))
        p_values: FloatArray = ndtr(-total / np.sqrt(np.maximum(square, TINY)))
        return p_values


def shared_gain(
    rows: RowSource, columns: IntArray, groups: IntArray, knots: FloatArray
) -> SharedGain:
    """Take the target out of effects; those of one group (d,) do not bear witness to each other."""
    sums = rows.sum(partial(_mean_pass, columns=columns, knots=knots))
    inverse: FloatArray = np.linalg.pinv(sums.gram, hermitian=True).astype(np.float64, copy=False)
    mean = inverse @ sums.cross
    square = (sums.square - (mean * sums.cross).sum(axis=0)) / max(sums.weight, TINY)
    deviation = np.sqrt(np.maximum(square, TINY))
    slope = sums.with_target / (max(sums.weight, TINY) * deviation)
    apart = groups[columns, None] != groups[columns]
    return SharedGain(columns, apart, knots, mean, inverse, deviation, slope)


def knots_of(y: FloatArray) -> FloatArray:
    """Where splines of the target are joined: quantiles that leave enough rows on either side."""
    inner = KNOTS[np.minimum(KNOTS, 1.0 - KNOTS) * len(y) >= ROWS_BEYOND]
    knots: FloatArray = np.unique(np.quantile(y, [0.0, *inner, 1.0]))
    return knots


@dataclass(frozen=True)
class GainPartition(Partition):
    """Rows parted by the gain with which effects answer to the target.

    Attributes
    ----------
    columns : (m,) effects.
    share : (K,) of the rows.
    coef : (K, 2, m) constants and slopes of the effects on the target.
    covariance : (m, m) of their noise.
    """

    columns: IntArray
    share: FloatArray
    coef: FloatArray
    covariance: FloatArray

    @property
    def n_environments(self) -> int:
        """Number of environments."""
        return len(self.share)

    def responsibilities(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """(n, K) probabilities of answering with that gain."""
        return self.likelihood(X[:, self.columns], y)[0]

    def likelihood(self, V: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, K) responsibilities and (n,) log likelihoods, up to a constant."""
        factor = np.linalg.cholesky(self.covariance)
        white = np.linalg.solve(factor, np.swapaxes(V - _line(y) @ self.coef, 1, 2))
        log = np.log(self.share)[:, None] - 0.5 * (white**2).sum(axis=1)
        each, likelihood = normalised(log)
        return each.T, likelihood - float(np.log(np.diag(factor)).sum())


def by_gain(rows: Rows, shared: SharedGain) -> GainPartition:
    """A mixture of regressions of several effects on the target, with one noise for all, by EM.

    It starts from thirds of the rows by what the effects share, on the side of the target.
    """
    columns, y = shared.columns, rows.y
    weight, V, line = rows.weight / rows.weight.sum(), rows.X[:, columns], _line(y)
    gain = shared.left(rows) @ shared.slope * np.sign(y)
    rank = np.argsort(np.argsort(gain, kind="stable"), kind="stable")
    floor = ROUNDING * np.diag(np.maximum(weight @ V**2, TINY))

    def maximised(each: FloatArray) -> GainPartition:
        counted = weight[:, None] * each
        share = np.maximum(counted.sum(axis=0), TINY)
        coef = np.stack([weighted_coefficients(line, V, own) for own in counted.T])
        left = (np.sqrt(counted.T)[:, :, None] * (V - line @ coef)).reshape(-1, V.shape[1])
        covariance = left.T @ left + floor
        return GainPartition(columns, share / share.sum(), coef, covariance)

    def step(state: GainPartition) -> tuple[GainPartition, float]:
        each, likelihood = state.likelihood(V, y)
        return maximised(each), float(weight @ likelihood)

    start = maximised(np.eye(KINDS)[np.minimum(rank * KINDS // len(y), KINDS - 1)])
    return iterate(step, start, tol=TOL, max_iter=MAX_ITER).value


@dataclass(frozen=True)
class _Mean(Summed):
    """Products of the splines with themselves and the effects, and of the effects."""

    gram: FloatArray
    cross: FloatArray
    square: FloatArray
    with_target: FloatArray
    weight: float


def _mean_pass(rows: Rows, columns: IntArray, knots: FloatArray) -> _Mean:
    splines, V = _splines(rows.y, knots), rows.X[:, columns]
    weight = _between(rows, knots)
    weighted = weight[:, None] * splines
    return _Mean(
        weighted.T @ splines,
        weighted.T @ V,
        weight @ V**2,
        (weight * rows.y) @ V,
        float(weight.sum()),
    )


def _line_pass(rows: Rows, shared: SharedGain) -> FloatArray:
    """(2, 2 + m + 1) products of a line in the target with itself and with the products."""
    line = _line(rows.y)
    weighted = _between(rows, shared.knots)[:, None] * line
    products: FloatArray = weighted.T @ np.column_stack([line, shared.products(rows)])
    return products


def _score_pass(rows: Rows, shared: SharedGain, given: FloatArray) -> FloatArray:
    """(2, m) sums of scores and of their squares.

    A score is the product of an effect and the others times the square of the target, both less
    what the target itself says of them: in one population its mean is zero.
    """
    left = shared.products(rows) - _line(rows.y) @ given
    # A score a row, so that their sum of squares is a variance, whatever the unit of the weights.
    scores = _between(rows, shared.knots)[:, None] * left[:, :-1] * left[:, -1:]
    return np.stack([scores.sum(axis=0), (scores**2).sum(axis=0)])


def _between(rows: Rows, knots: FloatArray) -> FloatArray:
    """(n,) weights; beyond the knots, where no mean is known, a row does not count."""
    weight: FloatArray = rows.weight * ((rows.y >= knots[0]) & (rows.y <= knots[-1]))
    return weight


def _splines(y: FloatArray, knots: FloatArray) -> FloatArray:
    """(n, b) cubic splines of the target."""
    if len(y) == 0:
        return np.zeros((0, len(knots) + 2))
    inside = np.clip(y, knots[0], knots[-1])
    padded = np.concatenate([knots[[0, 0, 0]], knots, knots[[-1, -1, -1]]])
    return np.asarray(BSpline.design_matrix(inside, padded, 3).toarray())


def _line(y: FloatArray) -> FloatArray:
    """(n, 2) a constant and the target."""
    return np.column_stack([np.ones(len(y)), y])
