"""The rows of a linear problem."""

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
