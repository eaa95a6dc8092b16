"""Environments in which effects follow the target closely, and loosely.

Once an effect is known to follow the target more closely in some rows than in others
(`hetrisk.core.sources.mechanism`), its noise given the target is that of several environments: a
mixture of normals of different size. Several effects share their environments, so their
noise is looked at together. What other columns say of the environments is enough for a test, and
a blurred picture of them; the noise itself parts them more sharply, on the assumption that it is
normal within an environment. With it, the reach from which on leaving effects out pays comes out
close to what named environments say (docs/research/hidden.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erfc

from hetrisk.core.numerics.ensemble import normalised
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import TIED_VARIANCE, TINY
from hetrisk.core.numerics.iteration import iterate
from hetrisk.core.numerics.linear import weighted_coefficients
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import FloatArray, IntArray, Rows
from hetrisk.core.thresholds import THRESHOLDS

# Variances that EM starts from, times that of all rows. With three environments the price is within
# a tenth of that with four; with two it is up to a third higher (docs/research/hidden.md).
START: Budget[FloatArray] = np.geomspace(0.4, 4.0, 3)
TOL: Budget[float] = 1e-7  # of the mean log likelihood
MAX_ITER: Budget[int] = 500


@dataclass(frozen=True)
class SpreadPartition(Partition):
    """Rows parted by how closely effects follow the target.

    Attributes
    ----------
    effects : (m,) columns.
    family : of the target.
    mean : (b, m) coefficients of the effects on functions of the target.
    share : (K,) of the rows; variance : (K, m) of the noise, smallest first.
    """

    effects: IntArray
    family: Family
    mean: FloatArray
    share: FloatArray
    variance: FloatArray

    @property
    def n_environments(self) -> int:
        """Number of environments."""
        return len(self.share)

    def responsibilities(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """(n, K) probabilities of following that closely."""
        noise = X[:, self.effects] - _known(y, self.family) @ self.mean
        return _responsibilities(noise**2, self.share, self.variance)[0]


def by_spread(rows: Rows, family: Family, effects: IntArray) -> SpreadPartition:
    """Fit the environments by EM."""
    weight = rows.weight / rows.weight.sum()
    known = _known(rows.y, family)
    mean = weighted_coefficients(known, rows.X[:, effects], weight)
    square = (rows.X[:, effects] - known @ mean) ** 2
    # Without a floor the likelihood has no maximum: a component would close in on one row.
    least = TINY + TIED_VARIANCE * (weight @ square)

    def step(
        state: tuple[FloatArray, FloatArray],
    ) -> tuple[tuple[FloatArray, FloatArray], float]:
        """E-step, then shares and variances given the responsibilities."""
        each, likelihood = _responsibilities(square, *state)
        counted = weight[:, None] * each
        share = np.maximum(counted.sum(axis=0), TINY)
        variance = np.maximum(counted.T @ square / share[:, None], least)
        return (share / share.sum(), variance), float(weight @ likelihood)

    sizes = START[:, None] * np.maximum(weight @ square, least)
    start = (np.full(len(START), 1.0 / len(START)), sizes)
    share, variance = iterate(step, start, tol=TOL, max_iter=MAX_ITER).value
    return SpreadPartition(effects, family, mean, share, variance)


def spread_p_values(rows: Rows, family: Family, shifting: IntArray, others: IntArray) -> FloatArray:
    """(m,) p-values of one mechanism of other effects, the environments of some being known.

    How closely effects that shift follow the target, row by row, is the sharpest witness there is
    of environments in which others may shift, too: the correlation of their spreads with it, what
    the target says of either taken out. The witness does not look at the effect it is held against.
    """
    environments = by_spread(rows, family, shifting)
    share = environments.responsibilities(rows.X, rows.y)
    closely = share @ np.log(environments.variance).mean(axis=1)
    known = np.column_stack([_known(rows.y, family), np.abs(rows.y)])

    def unknown(columns: FloatArray) -> FloatArray:
        left: FloatArray = columns - known @ weighted_coefficients(known, columns, rows.weight)
        return left

    noise = unknown(rows.X[:, others])
    size = np.abs(noise) / np.maximum(noise.std(axis=0), TINY)
    product = unknown(np.minimum(size, THRESHOLDS.far)) * unknown(closely[:, None])
    total = rows.weight @ product
    error = np.sqrt(np.maximum(rows.weight**2 @ product**2, TINY))
    p_values: FloatArray = erfc(np.abs(total) / error / np.sqrt(2.0))
    return p_values


def _known(y: FloatArray, family: Family) -> FloatArray:
    return np.column_stack([np.ones(len(y)), family.mean_basis(y, THRESHOLDS.far)])


def _responsibilities(
    square: FloatArray, share: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(n, K) responsibilities and (n,) log likelihoods of squared noise (n, m)."""
    log = np.log(share) - 0.5 * (square @ (1.0 / variance.T) + np.log(variance).sum(axis=1))
    each, likelihood = normalised(np.ascontiguousarray(log.T))
    return each.T, likelihood
