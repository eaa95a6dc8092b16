"""Shrinking directions: for tables whose columns are mixtures of causes.

    beta_k = argmin R(beta) + k^2 sum_e share_e |(A_e - A) beta - (b_e - b)|^2 in the metric A^-1.

The gradient of an environment's risk, A_e beta - b_e, is what that environment would change about
beta; the penalty asks it to be the same in all. It is a linear system, and does not depend on the
axes. Where only means shift it is anchor regression (Rothenhaeusler et al. 2021); k to infinity is
the causal Dantzig (Rothenhaeusler, Buhlmann and Meinshausen 2019).

The differences A_e - A and b_e - b are known up to sampling noise, and a strong penalty follows the
noise. Two things keep it from that. Of the differences, only what stands out of the noise is used
(`significant`). And a strength is judged on rows it was not fitted to (`choose_strength`): beta_s
from either half of the folds, its risk and the shifts of its gradient on the other; where these no
longer fall, it stops.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.floors import SINGULAR
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.reach.curve import Line
from hetrisk.core.reach.regret import Environments, gradient_shift, risk_of
from hetrisk.core.reach.resampling import halves, other_half, resamples

# Of the path that orders columns.
PATH_STRENGTHS: Budget[tuple[float, ...]] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
# Times the reach, of which the best is chosen.
TRIED_STRENGTHS: Budget[tuple[float, ...]] = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


def fit_directions(environments: Environments, reach: float) -> FloatArray:
    """(p, t) coefficients at a reach, constant first; one for each resample, if there are any."""
    return _fit_strengths(environments, (reach,))[0]


def _fit_strengths(environments: Environments, strengths: Iterable[float]) -> list[FloatArray]:
    """The same for several strengths, which share their penalty."""
    left, right = _penalty(significant(environments))
    A, b, _ = environments.stacked
    A, b = A[..., 0, :, :], b[..., 0, :, :]
    solved = [np.linalg.solve(A + k**2 * left, b + k**2 * right) for k in strengths]
    return [coef.astype(np.float64, copy=False) for coef in solved]


def significant(environments: Environments) -> Environments:
    """The environments as far as their moments differ from those of all rows beyond noise.

    With G = L L' the mean of z z', z = (1, x, y), over all rows, an environment differs by L N L'.
    Were there no difference, N would be a symmetric matrix of noise of variance
    v = phi (1 - share_e) / n_e, whose eigenvalues lie within 2 sqrt(q v) of zero (the semicircle
    law). An eigenvalue beyond is part of the difference, and the noise has drawn it outward:
    sqrt(lambda^2 - 4 q v) is the shrinkage of least squared error (Gavish and Donoho 2017).
    """
    pooled = environments.pooled.copy()
    diagonal = np.einsum("...ii->...i", pooled)
    diagonal += SINGULAR * np.where(diagonal > 0, diagonal, 1.0)
    factor = np.linalg.cholesky(pooled)[..., None, :, :]
    gap = np.linalg.solve(factor, environments.gram - environments.pooled[..., None, :, :])
    noise = np.linalg.solve(factor, np.swapaxes(gap, -1, -2))
    size, turn = np.linalg.eigh((noise + np.swapaxes(noise, -1, -2)) / 2.0)
    variance = environments.phi * np.maximum(1.0 - environments.share, 0.0) / environments.rows
    edge = 4.0 * environments.gram.shape[-1] * variance[..., None]
    shrunk = np.sign(size) * np.sqrt(np.maximum(size**2 - edge, 0.0))
    whole = factor @ turn
    beyond = (whole * shrunk[..., None, :]) @ np.swapaxes(whole, -1, -2)
    return replace(environments, gram=environments.pooled[..., None, :, :] + beyond)


def _penalty(environments: Environments) -> tuple[FloatArray, FloatArray]:
    """The two sides of the normal equations of the penalty: (p, p) and (p, t)."""
    A, b, _ = environments.stacked
    every = np.concatenate([A, b], axis=-1)
    gap = every[..., 1:, :, :] - every[..., :1, :, :]
    # In the metric of A^-1 a gradient is measured by the risk it could save, which makes the
    # penalty the same on any axes.
    metric = np.linalg.solve(A[..., :1, :, :], gap)
    p = A.shape[-1]
    # Both sides at once: (A_e - A)'A^-1 (A_e - A, b_e - b), summed over the environments.
    weighted = environments.share[..., None, None] * gap[..., :p]
    both = (weighted @ metric).sum(axis=-3)
    return both[..., :p], both[..., p:]


def direction_path(environments: Environments) -> list[FloatArray]:
    """How much each column (d,) still says as directions are shrunk: a row for each strength."""
    spread = np.sqrt(np.maximum(_variances(environments), 0.0))
    fits = _fit_strengths(environments, PATH_STRENGTHS)
    return [np.sqrt((coef[1:] ** 2).sum(axis=1)) * spread for coef in fits]


def _variances(environments: Environments) -> FloatArray:
    d = environments.n_columns
    mean = environments.pooled[0, 1 : d + 1]
    variance: FloatArray = np.diag(environments.pooled)[1 : d + 1] - mean**2
    return variance


def choose_strength(cells: list[CellMoments], environments: Environments, reach: float) -> float:
    """The strength whose risk and shifts at the reach are least on rows it was not fitted to.

    Noise is left out: strengths hardly differ in it, and halves of the rows say little about it.
    """
    # The worst over environments of the mean over halves: the mean first, or noise would look
    # like a shift.
    sides, losses = halves(cells, environments), []
    for fitted in _fit_strengths(sides, [times * reach for times in TRIED_STRENGTHS]):
        coef = other_half(fitted)
        risk = risk_of(sides, coef)[:, 0]
        worst = max(float(gradient_shift(sides, coef).mean(axis=0).max()), 0.0)
        losses.append(float(risk.mean()) + reach**2 * worst)
    return TRIED_STRENGTHS[int(np.argmin(losses))] * reach


def direction_line(environments: Environments, coef: FloatArray) -> Line:
    """E_k of a linear model (p, t) of all columns, shifts of its gradient in place of regrets.

    For each resample, if there are any.
    """
    risk = risk_of(environments, coef)
    shifts = np.maximum(gradient_shift(environments, coef), 0.0)
    # What an environment errs by beside the shift of its gradient is its noise.
    gap = environments.noise_gap((risk[..., 1:] - shifts)[..., None], 0)[..., 0]
    return Line(risk[..., 0], gap, shifts, risk[..., 1:])


def direction_lines(cells: list[CellMoments], environments: Environments, strength: float) -> Line:
    """The same of directions shrunk so far, in each resample."""
    batches = [
        direction_line(drawn, fit_directions(drawn, strength))
        for drawn in resamples(cells, environments)
    ]
    names = ("risk", "noise_gap", "regrets", "own")
    return Line(*(np.concatenate([getattr(batch, name) for batch in batches]) for name in names))
