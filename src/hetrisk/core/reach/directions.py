"""Shrinking directions: for tables whose columns are mixtures of causes.

    beta_k = argmin R(beta) + k^2 sum_e share_e |(A_e - A) beta - (b_e - b)|^2 in the metric A^-1.

The gradient of an environment's risk, A_e beta - b_e, is what that environment would change about
beta; the penalty asks it to be the same in all. It is a linear system, and does not depend on the
axes. Where only means shift it is anchor regression (Rothenhaeusler et al. 2021); k to infinity is
the causal Dantzig (Rothenhaeusler, Buhlmann and Meinshausen 2019).

The differences A_e - A and b_e - b are known up to sampling noise, and the noise is shrunk too.
k stops growing where what it takes away is noise rather than difference
(`hetrisk.core.reach.strength`).
"""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.numerics.thresholds import Budget
from hetrisk.core.reach.regret import Environments

# Of the path that orders columns.
STRENGTHS: Budget[tuple[float, ...]] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


def fit_directions(environments: Environments, reach: float) -> FloatArray:
    """(p, t) coefficients at a reach, constant first; one for each resample, if there are any."""
    left, right = _penalty(environments)
    A, b, _ = environments.stacked
    left, right = A[..., 0, :, :] + reach**2 * left, b[..., 0, :, :] + reach**2 * right
    coef: FloatArray = np.linalg.solve(left, right).astype(np.float64, copy=False)
    return coef


def _penalty(environments: Environments) -> tuple[FloatArray, FloatArray]:
    """The two sides of the normal equations of the penalty: (p, p) and (p, t)."""
    A, b, _ = environments.stacked
    every = np.concatenate([A, b], axis=-1)
    gap = every[..., 1:, :, :] - every[..., :1, :, :]
    metric = np.linalg.solve(A[..., :1, :, :], gap)
    p = A.shape[-1]
    weighted = environments.share[..., None, None] * gap[..., :p]
    both = (weighted @ metric).sum(axis=-3)
    return both[..., :p], both[..., p:]


def direction_path(environments: Environments) -> list[FloatArray]:
    """How much each column (d,) still says as directions are shrunk: a row for each strength."""
    spread = np.sqrt(np.maximum(_variances(environments), 0.0))
    path = []
    for strength in STRENGTHS:
        coef = fit_directions(environments, strength)[1:]
        path.append(np.sqrt((coef**2).sum(axis=1)) * spread)
    return path


def _variances(environments: Environments) -> FloatArray:
    d = environments.n_columns
    mean = environments.pooled[0, 1 : d + 1]
    variance: FloatArray = np.diag(environments.pooled)[1 : d + 1] - mean**2
    return variance
