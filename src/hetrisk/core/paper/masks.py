"""The objective at gates of 0 and 1, weights at their minimum, and what carries over.

At a hard mask the effective weights are the weights v of the open features, and with the (p, p + 1)
matrices D_e = 2 (A_e, -b_e) less their mean over environments

    Var_e(grad_i) = (v, 1)' C_i (v, 1),      C_i = mean_e D_ei D_ei',

so J is a quadratic in v ("trace") or, squared ("masked"), a convex quartic; the first takes one
solve, the second a few of Newton's. Many masks are solved side by side.
"""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.floors import FLAT
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.core.paper.invariance import EnvironmentRisks, InvarianceProblem

NEWTON: Budget[int] = 12  # steps on the quartic


def penalty_curvature(problem: InvarianceProblem) -> FloatArray:
    """(p, p + 1, p + 1) the matrices C_i; those of intercepts are zero."""
    A, b = problem.risks.gram, problem.risks.cross
    gap = 2.0 * np.concatenate([A, -b[:, :, None]], axis=2)
    gap = (gap - gap.mean(axis=0)) * problem.gated[:, None]
    curvature: FloatArray = np.einsum("kij,kil->ijl", gap, gap, optimize=True) / len(A)
    return curvature


def mask_values(
    problem: InvarianceProblem, masks: BoolArray, curvature: FloatArray | None = None
) -> FloatArray:
    """(F,) objective at hard masks (F, G), weights at their minimum."""
    value: FloatArray = _solved(problem, masks, curvature)[1] + problem.price * masks.sum(axis=1)
    return value


def mask_weights(problem: InvarianceProblem, mask: BoolArray) -> FloatArray:
    """(p,) weights at the minimum for one hard mask (G,)."""
    weights: FloatArray = _solved(problem, mask[None], None)[0][0]
    return weights


def _solved(
    problem: InvarianceProblem, masks: BoolArray, curvature: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Weights (F, p) at the minimum, and risk plus penalty (F,) there."""
    C = penalty_curvature(problem) if curvature is None else curvature
    open_ = np.where(problem.gated, masks[:, problem.groups], True).astype(float)
    risk = _risk_matrix(problem.risks)
    if problem.penalty == "trace" or problem.invariance == 0.0:
        full = risk + np.tensordot(open_, problem.invariance * C, axes=1)
        v = _minimum(full, open_)
        return v, _form(full, v)
    v = _minimum(np.repeat(risk[None], len(masks), axis=0), open_)
    strength = problem.invariance * open_
    value = _quartic(risk, C, strength, v)
    for _ in range(NEWTON):
        step = _newton_step(risk, C, strength, open_, v)
        size = np.ones(len(v))
        # Convex, so that a short enough step always goes down; halves are tried a few times.
        for _ in range(4):
            tried = v - size[:, None] * step
            new = _quartic(risk, C, strength, tried)
            size = np.where(new > value, size / 2.0, size)
        v, value = np.where((new <= value)[:, None], tried, v), np.minimum(new, value)
    return v, value


def _risk_matrix(risks: EnvironmentRisks) -> FloatArray:
    """(p + 1, p + 1) matrix Q with mean risk (v, 1)' Q (v, 1)."""
    b = risks.cross.mean(axis=0)[:, None]
    square = np.array([[risks.square.mean()]])
    matrix: FloatArray = np.asarray(np.block([[risks.gram.mean(axis=0), -b], [-b.T, square]]))
    return matrix


def _minimum(full: FloatArray, open_: FloatArray) -> FloatArray:
    """(F, p) minima of (v, 1)' full (v, 1), closed weights at zero."""
    p = open_.shape[1]
    hessian = full[:, :p, :p] * open_[:, :, None] * open_[:, None, :]
    # A closed weight gets the equation v = 0, so that all masks are systems of one size.
    hessian[:, range(p), range(p)] += FLAT + (1.0 - open_)
    v = np.linalg.solve(hessian, (-full[:, :p, p] * open_)[..., None])[..., 0]
    return np.asarray(v, dtype=np.float64)


def _form(full: FloatArray, v: FloatArray) -> FloatArray:
    """(F,) (v, 1)' full (v, 1)."""
    u = np.column_stack([v, np.ones(len(v))])
    value: FloatArray = (u * (full @ u[:, :, None])[:, :, 0]).sum(axis=1)
    return value


def _quartic(risk: FloatArray, C: FloatArray, strength: FloatArray, v: FloatArray) -> FloatArray:
    """(F,) risk plus the squared variances, weighed by ``strength`` (F, p)."""
    u = np.column_stack([v, np.ones(len(v))])
    variance = np.einsum("fl,ijl,fj->fi", u, C, u, optimize=True)
    value: FloatArray = _form(risk, v) + (strength * variance**2).sum(axis=1)
    return value


def _newton_step(
    risk: FloatArray, C: FloatArray, strength: FloatArray, open_: FloatArray, v: FloatArray
) -> FloatArray:
    """(F, p) Newton's step: gradient 4 s q_i C_i u, curvature 8 s C_i u u' C_i + 4 s q_i C_i."""
    p = v.shape[1]
    u = np.column_stack([v, np.ones(len(v))])
    along = np.einsum("ijl,fl->fij", C, u, optimize=True)
    variance = np.einsum("fij,fj->fi", along, u)
    gradient = 2.0 * u @ risk + 4.0 * np.einsum("fi,fij->fj", strength * variance, along)
    hessian = 2.0 * risk + 4.0 * np.tensordot(strength * variance, C, axes=1)
    hessian = hessian + 8.0 * np.swapaxes(along, 1, 2) @ (strength[:, :, None] * along)
    hessian = hessian[:, :p, :p] * open_[:, :, None] * open_[:, None, :]
    hessian[:, range(p), range(p)] += FLAT + (1.0 - open_)
    step = np.linalg.solve(hessian, (gradient[:, :p] * open_)[..., None])[..., 0]
    return np.asarray(step, dtype=np.float64)
