"""Between the user's columns and the standardised ones the searches work on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.blocks import Blocks
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import ROUNDING
from hetrisk.core.numerics.moments import moments
from hetrisk.core.numerics.rows import BoolArray, FloatArray


@dataclass(frozen=True)
class Scale:
    """Centre and spread of the p = d + 1 columns (X, y); 0 and 1 for a target of labels.

    ``constant`` marks columns that never vary: they carry nothing and are never selected.
    ``constant_target`` says the same of the target.
    """

    centre: FloatArray
    spread: FloatArray
    constant: BoolArray
    constant_target: bool = False

    @property
    def divisor(self) -> FloatArray:
        """(p,) what to divide by: the spread, infinite for features that never vary.

        Rounding is all that is left of such a feature; divided away, it cannot be fitted.
        """
        return np.where(np.append(self.constant, False), np.inf, self.spread)

    def features(self, X: FloatArray) -> FloatArray:
        """Return standardised features."""
        return (X - self.centre[:-1]) / self.spread[:-1]

    def target(self, y: FloatArray) -> FloatArray:
        """Return the standardised target."""
        return (y - self.centre[-1]) / self.spread[-1]

    def coef(self, coef: FloatArray) -> FloatArray:
        """(..., d) coefficients on the user's scale from those on the standardised one."""
        return coef * (self.spread[-1] / self.spread[:-1])

    def intercept(self, coef: FloatArray, intercept: FloatArray | float) -> FloatArray:
        """(...) intercepts that go with `coef` of the same standardised coefficients."""
        moved = self.centre[-1] + self.spread[-1] * np.asarray(intercept)
        return moved - self.coef(coef) @ self.centre[:-1]


def measure_scale(rows: Blocks, family: Family) -> Scale:
    """Mean and standard deviation of every column, in one pass over the rows."""
    m = rows.sum(moments)
    scale = scale_of(m.mean, np.sqrt(np.maximum(np.diag(m.covariance), 0.0)))
    scale.centre[-1], scale.spread[-1] = family.standardised(scale.centre[-1], scale.spread[-1])
    return scale


def scale_of(centre: FloatArray, spread: FloatArray) -> Scale:
    """Scale of columns (X, y) with these means and standard deviations."""
    # A column that varies by rounding alone is constant.
    constant = spread <= ROUNDING * np.abs(centre)
    return Scale(centre.copy(), np.where(constant, 1.0, spread), constant[:-1], bool(constant[-1]))
