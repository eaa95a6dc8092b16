"""Centre and spread of every column, near zero or far from it; parts of the rows merge.

Two parts merge by the update of Chan, Golub and LeVeque (1983).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from hetrisk.core.numerics.named_numbers import Constant
from hetrisk.core.numerics.rows import WIDE_ROWS, BoolArray, FloatArray, Rows, wide_view

# Numbers closer than this, relatively, differ by rounding.
SAME: Constant[float] = 16 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class ColumnSpread:
    """Weighted mean and scatter of the p = d + 1 columns (X, y).

    Attributes
    ----------
    weight : total weight.
    centre : (p,) weighted means.
    scatter : (p,) weighted sums of squares about the mean.
    low, high : (p,) smallest and largest number among the rows with weight.
    """

    weight: float
    centre: FloatArray
    scatter: FloatArray
    low: FloatArray
    high: FloatArray

    def __add__(self, other: Self) -> Self:
        weight = self.weight + other.weight
        share = other.weight / weight if weight > 0 else 0.0
        gap = other.centre - self.centre
        return type(self)(
            weight=weight,
            centre=self.centre + share * gap,
            scatter=self.scatter + other.scatter + self.weight * share * gap**2,
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
        )

    @property
    def spread(self) -> FloatArray:
        """(p,) standard deviations."""
        variance = np.maximum(self.scatter, 0.0) / (self.weight if self.weight > 0 else 1.0)
        return np.sqrt(variance)

    @property
    def constant(self) -> BoolArray:
        """(p,) columns whose numbers differ by rounding alone."""
        same: BoolArray = self.high - self.low <= SAME * self.largest
        return same

    @property
    def largest(self) -> FloatArray:
        """(p,) size of the largest number."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


def column_spread(rows: Rows) -> ColumnSpread:
    """Measure a block of rows; what is infinite or too large is for callers to refuse."""
    X, y, weight = rows.X, rows.y[:, None], rows.weight
    weighted = weight > 0
    if not weighted.all():
        X, y, weight = X[weighted], y[weighted], weight[weighted]
    total = float(weight.sum())
    if not len(y):
        nothing = np.zeros(X.shape[1] + 1)
        return ColumnSpread(0.0, nothing, nothing, nothing + np.inf, nothing - np.inf)
    of_X, of_y = _measured(X, weight, total), _measured(y, weight, total)
    return ColumnSpread(total, *(np.append(a, b) for a, b in zip(of_X, of_y, strict=True)))


def _measured(z: FloatArray, weight: FloatArray, total: float) -> tuple[FloatArray, ...]:
    """Mean, scatter, low and high of some columns (`ColumnSpread`)."""
    wide, n_wide = wide_view(z)
    low = wide.min(axis=0).reshape(n_wide, -1).min(axis=0)
    high = wide.max(axis=0).reshape(n_wide, -1).max(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        # Near enough to the mean: of n rows, that of m is at most sqrt(n / m) spreads from it.
        shift = z[:WIDE_ROWS].mean(axis=0)
        # About a rough mean first: sums of squares about zero would cancel where columns are far
        # from it.
        wide = wide - np.tile(shift, n_wide)
        offset = weight @ wide.reshape(z.shape) / total
        wide *= wide
        scatter = weight @ wide.reshape(z.shape) - total * offset**2
    return shift + offset, scatter, low, high
