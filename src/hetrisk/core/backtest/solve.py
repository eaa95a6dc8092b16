"""Least squares on weighted sums of cells' moments, with a ridge that cross-validation chooses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray

SINGULAR = 1e-11  # eigenvalues of a correlation matrix below this share of the largest are zero
CONSTANT = 1e-18  # variance over squared mean below which a column is one value and rounding
RIDGES: Budget[FloatArray] = np.logspace(-4, 2, 25)  # relative to the variance of a column


@dataclass(frozen=True)
class Pooled:
    """Mean (p,) and covariance (p, p) of columns, the target last, and the weight they rest on."""

    weight: float
    mean: FloatArray
    covariance: FloatArray

    def effective(self, rows: FloatArray, scale: FloatArray) -> float:
        """Rows that a weighting of cells is worth: (sum w)^2 / sum w^2 over rows (Kish)."""
        square = float((scale**2 * rows).sum())
        return self.weight**2 / square if square > 0 else 0.0


def combine(cells: Moments, scale: FloatArray) -> Pooled:
    """Moments of all rows, those of cell c counting ``scale[c]`` times."""
    weight = scale * cells.weight
    total = float(weight.sum())
    share = weight / (total or 1.0)
    mean = share @ cells.mean
    gap = cells.mean - mean
    used = scale > 0
    inner = np.tensordot(scale[used], cells.scatter[used], axes=1) / (total or 1.0)
    return Pooled(total, mean, inner + (gap.T * share) @ gap)


def within_environments(cells: Moments, scale: FloatArray, environment: IntArray) -> Pooled:
    """Moments in which differences between the means of environments count for nothing."""
    parts = [combine(cells, np.where(environment == e, scale, 0.0)) for e in np.unique(environment)]
    weight = np.array([p.weight for p in parts])
    inner = np.tensordot(weight, np.array([p.covariance for p in parts]), axes=1)
    total = float(weight.sum())
    mean = weight @ np.array([p.mean for p in parts]) / (total or 1.0)
    return Pooled(total, mean, inner / (total or 1.0))


def solve(m: Pooled, used: BoolArray, n_rows: float, shrink: bool) -> FloatArray:
    """(p - 1,) minimiser of E(y - x'b)^2 + r sum_j var_j b_j^2 over the used columns.

    r is 0, and the solution of least norm in standardised columns where they repeat each other; or
    with ``shrink`` the r of least generalised cross-validation error,
    risk(r) / (1 - df(r) / n)^2 with df(r) = 1 + sum_i s_i / (s_i + r) over the eigenvalues s of
    the correlation matrix (Golub, Heath and Wahba 1979).
    """
    covariance = m.covariance[:-1, :-1]
    variance = np.diagonal(covariance)
    keep = used & (variance > CONSTANT * m.mean[:-1] ** 2) & (variance > 0)
    coef = np.zeros(len(used))
    if not keep.any():
        return coef
    scale = np.sqrt(variance[keep])
    gram = covariance[np.ix_(keep, keep)] / np.outer(scale, scale)
    cross = m.covariance[:-1, -1][keep] / scale
    values, vectors = np.linalg.eigh(gram)
    real = values > SINGULAR * values[-1]
    values, vectors = values[real], vectors[:, real]
    projected = vectors.T @ cross
    ridge = _cross_validated(values, projected, m.covariance[-1, -1], n_rows) if shrink else 0.0
    coef[keep] = (vectors @ (projected / (values + ridge))) / scale
    return coef


def _cross_validated(
    values: FloatArray, projected: FloatArray, variance: float, n_rows: float
) -> float:
    kept = values / (values + RIDGES[:, None])
    # What is explained without a ridge, less what the shrinkage gives back.
    risk = variance - (projected**2 / values * (1.0 - (1.0 - kept) ** 2)).sum(axis=1)
    free = np.maximum(1.0 - (1.0 + kept.sum(axis=1)) / max(n_rows, 1.0), 1e-3)
    return float(RIDGES[int(np.argmin(np.maximum(risk, 0.0) / free**2))])
