"""Which environment a row most probably belongs to, by how its target answers to its columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.environments.levels import design
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import NEARLY_SINGULAR, SHARED_VARIANCE, TINY
from hetrisk.core.numerics.rows import FloatArray, Rows


@dataclass(frozen=True)
class Memberships:
    """p(e | x, y) from a normal regression of the t targets in each of K environments.

    Attributes
    ----------
    family : of the target.
    share : (K,) of the rows.
    coef : (K, 1 + d, t).
    variance : (K,) of the noise, the targets together.
    """

    family: Family
    share: FloatArray
    coef: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, sums: FloatArray, family: Family, d: int) -> Memberships:
        """Fit each environment, from its sums (K, q, q) of z z'."""
        p, rows = 1 + d, sums[:, 0, 0]
        pooled = sums.sum(axis=0) / max(float(rows.sum()), TINY)
        # A row of the pooled table: environments thinner than their columns have a fit as well.
        own = sums[:, :p, :p] + pooled[:p, :p] + NEARLY_SINGULAR * np.eye(p)
        cross = sums[:, :p, p:] + pooled[:p, p:]
        coef = np.linalg.solve(own, cross)
        square = np.einsum("kii->k", sums[:, p:, p:] + pooled[p:, p:])
        left = (square - (coef * cross).sum(axis=(1, 2))) / (rows + 1.0)
        least = SHARED_VARIANCE * max(float(np.trace(pooled[p:, p:])), TINY)
        return cls(family, rows / max(float(rows.sum()), TINY), coef, np.maximum(left, least))

    def __call__(self, rows: Rows) -> FloatArray:
        """(n, K) probabilities."""
        if len(self.share) == 1:
            return np.ones((len(rows), 1))
        Z, p = design(rows, self.family), self.coef.shape[1]
        residual = Z[:, None, p:] - np.einsum("ni,kit->nkt", Z[:, :p], self.coef)
        square = (residual**2).sum(axis=2) / self.variance
        log = np.log(np.maximum(self.share, TINY)) - 0.5 * (square + np.log(self.variance))
        density = np.exp(log - log.max(axis=1, keepdims=True))
        shares: FloatArray = density / density.sum(axis=1, keepdims=True)
        return shares
