"""The rows of a linear problem in convenient units, and the way back to the user's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from hetrisk.baselines.risks import Risks
from hetrisk.core.numerics.rows import FloatArray, IntArray


@dataclass(frozen=True)
class Problem:
    """Rows with their environments.

    Attributes
    ----------
    Z : (n, d + 1) features, the last column 1.
    y : (n,) targets; 0 or 1 for labels.
    environments : (n, K) memberships.
    family : the loss, as a class of `Risks`.
    """

    Z: FloatArray
    y: FloatArray
    environments: FloatArray
    family: type[Risks]

    def take(self, rows: IntArray) -> Self:
        """Return the problem on some of the rows."""
        return replace(self, Z=self.Z[rows], y=self.y[rows], environments=self.environments[rows])

    def risks(self) -> Risks:
        """Risks of the environments that have rows."""
        occupied = self.environments.sum(axis=0) > 0
        return self._risks_of(self.environments[:, occupied])

    def pooled(self) -> Risks:
        """Return the risk of all rows as one environment."""
        return self._risks_of(np.ones((len(self.y), 1)))

    def _risks_of(self, environments: FloatArray) -> Risks:
        return self.family(self.Z, self.y, environments)  # type: ignore[call-arg]

    def held_out_risks(self, weights: list[FloatArray]) -> FloatArray:
        """(n_weights, K) risks here of models fitted elsewhere; NaN where there are no rows."""
        occupied = self.environments.sum(axis=0) > 0
        risks = self.risks()
        values = np.full((len(weights), len(occupied)), np.nan)
        values[:, occupied] = [risks.evaluate(w).risk for w in weights]
        return values


@dataclass(frozen=True)
class Units:
    """Centres and scales of the columns, taken from all training rows."""

    centre: FloatArray
    scale: FloatArray
    target_centre: float
    target_scale: float

    @classmethod
    def of(cls, X: FloatArray, y: FloatArray | None, *, standardise: bool) -> Units:
        """Means (and standard deviations, if ``standardise``) of X, and of y unless None."""
        centre, spread = X.mean(axis=0), X.std(axis=0)
        # A column constant but for rounding has no scale of its own.
        constant = spread <= 1e-12 * np.maximum(np.abs(centre), 1e-300)
        scale = np.where(constant | (not standardise), 1.0, spread)
        if y is None:
            return cls(centre, scale, 0.0, 1.0)
        target_scale = float(y.std()) if standardise else 1.0
        return cls(centre, scale, float(y.mean()), target_scale if target_scale > 0 else 1.0)

    def features(self, X: FloatArray) -> FloatArray:
        """(n, d + 1) features in these units, with the column of ones."""
        Z = (X - self.centre) / self.scale
        return np.column_stack([Z, np.ones(len(X))])

    def target(self, y: FloatArray) -> FloatArray:
        """(n,) targets in these units."""
        return (y - self.target_centre) / self.target_scale

    def original(self, w: FloatArray) -> tuple[FloatArray, float]:
        """Coefficients and intercept in the user's units."""
        coef = self.target_scale * w[:-1] / self.scale
        intercept = self.target_centre + self.target_scale * w[-1] - self.centre @ coef
        return coef, float(intercept)
