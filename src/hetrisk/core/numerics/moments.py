"""Weighted first and second moments of rows, and how the moments of parts merge.

Least squares, its risk in any environment and its standard errors need nothing else of the
data. Moments are kept centred (weight, mean, scatter about the mean), so a column with mean
1e6 and standard deviation 1 keeps its digits, and two sets of moments merge by the update of
Chan, Golub and LeVeque (1983).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from hetrisk.core.numerics.rows import BoolArray, FloatArray, Rows


@dataclass(frozen=True)
class Moments:
    """Moments of the p = d + 1 columns (X, y), the target last.

    Attributes
    ----------
    weight : total weight; the leading axes, if any, index environments.
    mean : (..., p) weighted means.
    scatter : (..., p, p) weighted sum of (z - mean)(z - mean)'.
    """

    weight: FloatArray
    mean: FloatArray
    scatter: FloatArray

    def __add__(self, other: Self) -> Self:
        weight = self.weight + other.weight
        share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)
        gap = other.mean - self.mean
        outer = gap[..., :, None] * gap[..., None, :]
        return type(self)(
            weight=weight,
            mean=self.mean + share[..., None] * gap,
            # Scatter within the parts, and that of the parts' means about the mean of both.
            scatter=self.scatter + other.scatter + (self.weight * share)[..., None, None] * outer,
        )

    def __getitem__(self, environment: int | BoolArray) -> Moments:
        """Return the moments of one environment, or of some."""
        return Moments(self.weight[environment], self.mean[environment], self.scatter[environment])

    @property
    def covariance(self) -> FloatArray:
        """Scatter divided by weight, (..., p, p); zero where the weight is zero."""
        positive = np.where(self.weight > 0, self.weight, 1.0)
        covariance: FloatArray = self.scatter / positive[..., None, None]
        return covariance

    def pooled(self) -> Moments:
        """Merge all environments (the leading axis) into one."""
        merged = self[0]
        for environment in range(1, len(self.weight)):
            merged = merged + self[environment]
        return merged


def moments(rows: Rows, responsibilities: FloatArray | None = None) -> Moments:
    """Moments of a block of rows, one set for each column of ``responsibilities``.

    Parameters
    ----------
    rows : block of n rows.
    responsibilities : (n, K) or None for one set over all rows.

    Returns
    -------
    Moments with shapes () or (K,), in one weighted Gram product a set. The block is first
    shifted by its own mean: the correction that is left is then of the order of the spread.
    """
    with np.errstate(invalid="ignore"):  # infinite rows give NaN moments, for callers to refuse
        return _moments(rows, responsibilities)


def _moments(rows: Rows, responsibilities: FloatArray | None) -> Moments:
    """Sums about the block's mean, then the correction to each set's own mean."""
    z = np.column_stack([rows.X, rows.y])
    shift = z.mean(axis=0) if len(z) else np.zeros(z.shape[1])
    # By the block's own mean: of a column at 1e6 with spread 1, squares about zero keep four
    # digits.
    z -= shift
    if responsibilities is None:
        weight, first, second = _weighted_sums(z, rows.weight)
    else:
        parts = [_weighted_sums(z, rows.weight * r) for r in responsibilities.T]
        weight, first, second = (np.stack(part) for part in zip(*parts, strict=True))
    positive = np.where(weight > 0, weight, 1.0)
    offset = first / positive[..., None]
    scatter = second - weight[..., None, None] * (offset[..., :, None] * offset[..., None, :])
    return Moments(weight=weight, mean=shift + offset, scatter=scatter)


def _weighted_sums(z: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    weighted = z * weight[:, None]
    return np.asarray(weight.sum()), weighted.sum(axis=0), z.T @ weighted
