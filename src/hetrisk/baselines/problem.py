"""The rows of a linear problem in convenient units, and the way back to the user's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from hetrisk.baselines.risks import Risks
from hetrisk.core.numerics.rows import FloatArray, IntArray, Rows
from hetrisk.core.numerics.spread import column_spread
from hetrisk.estimators.scales import Scale, scale_of

FAR = 1e100  # squares of numbers beyond it, or below its inverse, are soon no numbers


@dataclass(frozen=True)
class Problem:
    """Rows with their environments.

    Attributes
    ----------
    Z : (n, d + 1) features, the last column 1.
    y : (n,) targets; 0 or 1 for labels.
    environments : (n, K) memberships.
    family : the loss, as a class of `Risks`.
    unit, target_unit : what the columns and the target were divided by, in the user's units,
        where the objective has a length in it and all columns share one unit.
    """

    Z: FloatArray
    y: FloatArray
    environments: FloatArray
    family: type[Risks]
    unit: float = 1.0
    target_unit: float = 1.0

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


def problem_scale(X: FloatArray, y: FloatArray | None, *, standardise: bool) -> Scale:
    """Scale of the rows of a baseline; labels (None) keep their unit.

    Without ``standardise`` columns keep their units, or are all divided by the spread of the
    widest where its square would be no number, and so is a target.
    """
    target = np.zeros(len(X)) if y is None else y
    scale = scale_of(column_spread(Rows(X, target, np.ones(len(X)))))
    if standardise:
        return scale
    widest = scale.spread[:-1].max(initial=0.0, where=~scale.constant)
    units = [1.0 if 1 / FAR < unit < FAR else unit for unit in (widest or 1.0, scale.spread[-1])]
    return replace(scale, spread=np.repeat(units, [X.shape[1], 1]))


def with_ones(X: FloatArray) -> FloatArray:
    """(n, d + 1) features with a last column of ones."""
    return np.column_stack([X, np.ones(len(X))])
