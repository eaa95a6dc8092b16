"""Least squares: from moments, without the rows, with standard errors and risk; and by rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from hetrisk.core.numerics.floors import ROUNDING, SINGULAR, TINY
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray

RIDGES: Budget[FloatArray] = np.logspace(-3, 4, 57)  # relative to the mean variance of the columns


@dataclass(frozen=True)
class LinearFit:
    """A least squares fit: ``y = intercept + x @ coef``.

    ``variance`` is the residual mean square (divided by the weight) and ``coef_covariance``
    the usual covariance of the coefficients, ``variance * inverse(scatter)``. ``status`` says
    whether the system was solved by Cholesky or, being singular, by minimum-norm least squares.
    """

    coef: FloatArray
    intercept: float
    variance: float
    coef_covariance: FloatArray
    status: str


def least_squares(m: Moments, columns: BoolArray | None = None, ridge: float = 0.0) -> LinearFit:
    """Minimise E[(y - a - x'b)^2] + ridge * |b|^2 over the columns chosen, others held at zero.

    Solved by Cholesky on the covariance scaled to unit diagonal; where that is singular
    (duplicated or constant columns), by minimum-norm least squares.
    """
    d = m.mean.shape[-1] - 1
    keep = np.ones(d, dtype=bool) if columns is None else columns
    covariance = m.covariance
    gram = covariance[:d, :d][np.ix_(keep, keep)] + ridge * np.eye(int(keep.sum()))
    cross = covariance[:d, d][keep]
    scale = np.sqrt(np.maximum(np.diag(gram), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    # Unit diagonal: pivots can then be judged by one number, whatever the columns' units.
    scaled = gram / np.outer(scale, scale)
    inverse, status = _inverse(scaled)
    b = (inverse @ (cross / scale)) / scale
    inverse = inverse / np.outer(scale, scale)
    coef = np.zeros(d)
    coef[keep] = b
    variance = max(
        float(covariance[d, d] - 2 * b @ cross + b @ (gram - ridge * np.eye(len(b))) @ b), 0.0
    )
    # Divided by the weight, not by the degrees of freedom: weights need not count rows.
    coef_covariance = np.zeros((d, d))
    coef_covariance[np.ix_(keep, keep)] = variance * inverse / max(float(m.weight), TINY)
    intercept = float(m.mean[d] - m.mean[:d] @ coef)
    return LinearFit(coef, intercept, variance, coef_covariance, status)


def cross_validated_ridge(m: Moments, n_rows: int, columns: BoolArray | None = None) -> float:
    """The ridge of `least_squares` with the smallest generalised cross-validation error.

    GCV(r) = risk(r) / (1 - df(r) / n)^2 with df(r) = 1 + sum_i s_i / (s_i + r) over the
    eigenvalues s_i of the covariance of the columns (Golub, Heath and Wahba, 1979): from moments
    alone, for rows that are no more than columns, where least squares would repeat its rows.
    """
    d = m.mean.shape[-1] - 1
    keep = np.ones(d, dtype=bool) if columns is None else columns
    covariance = m.covariance
    values, vectors = np.linalg.eigh(covariance[:d, :d][np.ix_(keep, keep)])
    values = np.maximum(values, 0.0)
    cross = vectors.T @ covariance[:d, d][keep]
    ridges = max(float(values.mean()), TINY) * RIDGES if len(values) else np.zeros(1)
    shrunk = values / (values + ridges[:, None])
    # In the eigenvectors' axes every ridge is a factor a direction: all are tried at once.
    explained = np.where(values > 0, cross**2 / np.where(values > 0, values, 1.0), 0.0)
    error = covariance[d, d] - (explained * (2 * shrunk - shrunk**2)).sum(axis=1)
    freedom = np.maximum(1.0 - (1.0 + shrunk.sum(axis=1)) / n_rows, ROUNDING)
    return float(ridges[np.argmin(np.maximum(error, 0.0) / freedom**2)])


def _inverse(a: FloatArray) -> tuple[FloatArray, str]:
    """Inverse by Cholesky, or pseudo-inverse where a pivot vanishes; and which of the two."""
    if len(a) == 0:
        return a, "no columns"
    try:
        factor = linalg.cho_factor(a, lower=True)
    except linalg.LinAlgError:
        return _pseudo_inverse(a)
    if np.min(np.diag(factor[0])) ** 2 < SINGULAR:
        return _pseudo_inverse(a)
    inverse: FloatArray = linalg.cho_solve(factor, np.eye(len(a)))
    return inverse, "Cholesky"


def _pseudo_inverse(a: FloatArray) -> tuple[FloatArray, str]:
    inverse: FloatArray = np.asarray(linalg.pinvh(a, rtol=SINGULAR), dtype=np.float64)
    return inverse, "singular: minimum-norm least squares"


def least_squares_many(m: Moments) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Least squares for every leading index of the moments at once.

    Returns
    -------
    coef (..., d), intercept (...) and residual mean square (...). Systems are scaled to unit
    diagonal and solved together by Cholesky; if one of them is singular, all of them by
    minimum-norm least squares through their eigenvectors. A column that varies in one of them
    by rounding alone, beside what it does in the others, has coefficient zero there; moments
    that are not finite leave zero coefficients, and never an error for the others.
    """
    d = m.mean.shape[-1] - 1
    covariance = m.covariance
    sound = np.isfinite(covariance).all(axis=(-2, -1), keepdims=True)
    covariance = np.where(sound, covariance, 0.0)
    spread = np.diagonal(covariance, axis1=-2, axis2=-1)[..., :d]
    # A column that is constant in one component has a variance of rounding there, which scaling to
    # unit diagonal would blow up to a column of noise.
    most = spread.max(axis=tuple(range(spread.ndim - 1)), initial=0.0)
    varies = spread > ROUNDING**2 * most
    both = varies[..., :, None] & varies[..., None, :]
    gram = np.where(both, covariance[..., :d, :d], 0.0)
    cross = np.where(varies, covariance[..., :d, d], 0.0)
    scale = np.where(varies, np.sqrt(np.where(varies, spread, 1.0)), 1.0)
    # One division after the other: the product of two tiny scales would be zero. And what is
    # beyond 1 is rounding: these are correlations.
    scaled = np.clip(gram / scale[..., :, None] / scale[..., None, :], -1.0, 1.0)
    scaled = np.where(both | ~np.eye(d, dtype=bool), scaled, 1.0)
    coef = _solve_many(scaled, cross / scale) / scale
    intercept = m.mean[..., d] - (m.mean[..., :d] * coef).sum(axis=-1)
    fitted = (gram @ coef[..., None])[..., 0]
    variance = covariance[..., d, d] - (coef * (2 * cross - fitted)).sum(axis=-1)
    return coef, intercept, np.maximum(variance, 0.0)


def _solve_many(a: FloatArray, b: FloatArray) -> FloatArray:
    """Solve systems (..., d, d) together, as `least_squares_many` says."""
    try:
        factor = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        return _minimum_norm_many(a, b)
    pivots = np.diagonal(factor, axis1=-2, axis2=-1)
    if pivots.size and np.min(pivots) ** 2 < SINGULAR:
        return _minimum_norm_many(a, b)
    solution: FloatArray = np.asarray(np.linalg.solve(a, b[..., None])[..., 0], dtype=np.float64)
    return solution


def _minimum_norm_many(a: FloatArray, b: FloatArray) -> FloatArray:
    """The shortest solutions, through eigenvectors; directions of no variance get none."""
    values, vectors = np.linalg.eigh(a)
    # Relative to the largest eigenvalue, and never to one that is itself nothing.
    kept = values > SINGULAR * np.maximum(values[..., -1:], SINGULAR)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=kept)
    rotated = (np.swapaxes(vectors, -1, -2) @ b[..., None])[..., 0]
    solution: FloatArray = (vectors @ (inverse * rotated)[..., None])[..., 0]
    return solution
