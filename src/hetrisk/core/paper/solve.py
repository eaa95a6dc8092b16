"""Finding the gates: minimise the objective of `hetrisk.core.paper.invariance`.

The gates are 0 or 1 in the end, and J over hard masks has many local minima that a gradient in
mu cannot leave (a gate with little noise feels neither its price nor its penalty until it is
nearly shut). So the masks are searched by flipping one gate at a time, weights profiled out,
which is exact and cheap; L-BFGS then settles the soft gates from there.

The penalty alone never shuts the last gate: where some feature is worth its price, predicting
nothing is no invariant prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy import linalg, optimize

from hetrisk.core.numerics.floors import FLAT, ROUNDING, TINY
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.core.paper.gates import GateMoments
from hetrisk.core.paper.invariance import InvarianceProblem, objective

MAX_ITER: Budget[int] = 60  # of L-BFGS on the gates


@dataclass(frozen=True)
class GateFit:
    """A minimum of the objective.

    Attributes
    ----------
    mu, gates : (G,) gate centres, and E[m].
    theta : (p,) weights behind the gates.
    support : (G,) gates that are open: E[m] above one half.
    objective : J.
    """

    mu: FloatArray
    gates: FloatArray
    theta: FloatArray
    support: BoolArray
    objective: float


def fit_gates(
    problem: InvarianceProblem,
    start: BoolArray | None = None,
    allowed: BoolArray | None = None,
    soft: bool = True,
) -> GateFit:
    """Minimise J over gates and weights.

    Parameters
    ----------
    problem : the objective.
    start : (G,) mask the flips start from, such as the support at a neighbouring lambda; None
        for all gates open.
    allowed : (G,) gates that may open; None for all.
    soft : settle the soft gates after the search over hard masks.
    """
    free = np.ones(problem.n_gates, dtype=bool) if allowed is None else allowed
    mask = flip(problem, free if start is None else start & free, free)
    low, high = -3.0 * problem.noise, 1.0 + 3.0 * problem.noise  # beyond, slopes vanish
    shut = np.full(problem.n_gates, low)
    mu = np.where(mask, 1.0, np.where(free, -problem.noise, low))
    top = np.where(free, high, shut)
    if not soft:
        return _gate_fit(problem, weights(problem, problem.gates(mu)), mu)
    # Hard masks first, soft gates after: from a mask the slopes in mu point the right way.
    theta, mu = _settle(problem, mu, list(zip(shut, top, strict=True)))
    fit = _gate_fit(problem, theta, mu)
    if mask.any() and not fit.support.any():
        mu = np.where(mask, 1.0, low)
        return _gate_fit(problem, weights(problem, problem.gates(mu)), mu)
    return fit


def flip(problem: InvarianceProblem, mask: BoolArray, free: BoolArray) -> BoolArray:
    """Flip the gate that lowers the objective over hard masks most, until none does."""
    # Everything that does not depend on the mask is computed once: a flip is then a small solve.
    curvature = _penalty_curvature(problem)
    value = _hard_values(problem, mask[None], curvature)[0]
    nothing = _worth_something(problem, free)
    candidates = np.flatnonzero(free)
    # A descent cannot cycle; the bound is for ties that rounding keeps alive.
    for _ in range(4 * len(mask)):
        flipped = np.repeat(mask[None], len(candidates), axis=0)
        flipped[np.arange(len(candidates)), candidates] ^= True
        values = _hard_values(problem, flipped, curvature)
        # The penalty is nothing where nothing is open: without this it would always win at a large
        # lambda.
        values[~flipped.any(axis=1) & nothing] = np.inf
        best = int(np.argmin(values)) if len(values) else 0
        if not len(values) or values[best] >= value - ROUNDING:
            break
        mask, value = flipped[best], values[best]
    return mask


def mask_values(problem: InvarianceProblem, masks: BoolArray) -> FloatArray:
    """(F,) objective at hard masks (F, G), weights at their minimum."""
    return _hard_values(problem, masks, _penalty_curvature(problem))


def left_out_risk(problem: InvarianceProblem, mask: BoolArray) -> float:
    """Mean risk of a row when the weights are fitted on the rows of other environments.

    Relative to predicting nothing; with one environment, its own risk. Rows are counted alike,
    not environments: a few rows that no selection predicts must not hide what all others say,
    nor decide the weights.
    """
    risks = problem.risks
    keep = np.flatnonzero(np.where(problem.gated, mask[problem.groups], True))
    A, b = risks.gram[:, keep[:, None], keep], risks.cross[:, keep]
    other = np.tile(risks.weight, (len(A), 1))
    # Row k of ``other`` weighs the environments that k's fit may see: all but k.
    if len(A) > 1:
        np.fill_diagonal(other, 0.0)
    share = other / np.maximum(other.sum(axis=1, keepdims=True), TINY)
    curvature = np.tensordot(share, A, axes=1) + FLAT * np.eye(len(keep))
    v = np.linalg.solve(curvature, (share @ b)[..., None])[..., 0]
    fitted = np.einsum("ki,kij,kj->k", v, A, v) - 2.0 * np.einsum("ki,ki->k", v, b)
    return float(risks.weight @ (risks.square + fitted) / (risks.weight @ risks.square))


def weights(problem: InvarianceProblem, g: GateMoments) -> FloatArray:
    """(p,) minimum of the "trace" objective in theta for given moments of the gates."""
    A, b = problem.risks.gram, problem.risks.cross
    slack = g.variance
    a = np.diagonal(A, axis1=1, axis2=2)
    # The two relaxations differ in what the gradient is taken in: effective weights, or weights.
    if problem.gradient == "effective":
        curvature, right, mask = 2.0 * A * g.mean, 2.0 * b, g.open
    else:
        curvature = 2.0 * g.mean[:, None] * A * g.mean
        curvature[:, range(len(g.mean)), range(len(g.mean))] += 2.0 * slack * a
        right, mask = 2.0 * g.mean * b, np.ones_like(g.mean)
    # The penalty is the variance of gradients that are linear in theta: quadratic in theta, with
    # the centred gradients as its square root.
    curvature, right = curvature - curvature.mean(axis=0), right - right.mean(axis=0)
    strength = problem.gated * mask * (2.0 * problem.invariance / len(A))
    hessian = 2.0 * (g.mean[:, None] * A.mean(axis=0) * g.mean + np.diag(slack * a.mean(axis=0)))
    weighted = curvature * strength[:, None]
    hessian += np.einsum("kij,kil->jl", weighted, curvature, optimize=True)
    total = 2.0 * g.mean * b.mean(axis=0) + np.einsum("kij,ki->j", weighted, right)
    hessian[np.diag_indices(len(total))] += FLAT
    theta: FloatArray = linalg.solve(hessian, total, assume_a="pos")
    return theta


def _settle(
    problem: InvarianceProblem, mu: FloatArray, bounds: list[tuple[float, float]]
) -> tuple[FloatArray, FloatArray]:
    """L-BFGS on the soft gates: on mu alone where theta has a closed form, else on both."""
    if problem.penalty == "trace":
        result = optimize.minimize(
            partial(_profiled, problem),
            mu,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": MAX_ITER},
        )
        return weights(problem, problem.gates(result.x)), result.x
    theta = weights(replace(problem, penalty="trace"), problem.gates(mu))
    result = optimize.minimize(
        partial(_joint, problem),
        np.concatenate([theta, mu]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-np.inf, np.inf)] * len(theta) + bounds,
        options={"maxiter": 10 * MAX_ITER, "maxfun": 20 * MAX_ITER},
    )
    return result.x[: len(theta)], result.x[len(theta) :]


def _profiled(problem: InvarianceProblem, mu: FloatArray) -> tuple[float, FloatArray]:
    # The slope of the profile is the partial slope at its minimum in theta (envelope theorem).
    value, _, slope = objective(problem, weights(problem, problem.gates(mu)), mu)
    return value, slope


def _joint(problem: InvarianceProblem, both: FloatArray) -> tuple[float, FloatArray]:
    n_weights = len(both) - problem.n_gates
    value, in_theta, in_mu = objective(problem, both[:n_weights], both[n_weights:])
    return value, np.concatenate([in_theta, in_mu])


def _penalty_curvature(problem: InvarianceProblem) -> FloatArray:
    """(p, p + 1, p + 1) curvature of the penalty in (v, 1), one slice for each gradient entry."""
    A, b = problem.risks.gram, problem.risks.cross
    gap = 2.0 * np.concatenate([A, -b[:, :, None]], axis=2)
    gap = (gap - gap.mean(axis=0)) * problem.gated[:, None]
    curvature: FloatArray = np.einsum("kij,kil->ijl", gap, gap, optimize=True) / len(A)
    return curvature


def _hard_values(problem: InvarianceProblem, masks: BoolArray, curvature: FloatArray) -> FloatArray:
    """(F,) objective at hard masks (F, G), theta at its minimum, the penalty in its trace form."""
    p = len(problem.groups)
    # At a hard mask the effective weights are the weights: J is quadratic, and its minimum a solve.
    open_ = np.where(problem.gated, masks[:, problem.groups], True).astype(float)
    full = np.tensordot(open_, problem.invariance * curvature, axes=1)
    risks = problem.risks
    full[:, :p, :p] += risks.gram.mean(axis=0)
    full[:, :p, p] -= risks.cross.mean(axis=0)
    hessian = full[:, :p, :p] * open_[:, :, None] * open_[:, None, :]
    # A closed weight gets the equation v = 0, so that all masks are systems of one size.
    hessian[:, range(p), range(p)] += FLAT + (1.0 - open_)
    right = -full[:, :p, p] * open_
    v = np.linalg.solve(hessian, right[..., None])[..., 0]
    value: FloatArray = risks.square.mean() + full[:, p, p] - np.einsum("fi,fi->f", right, v)
    value += problem.price * masks.sum(axis=1)
    return value


def _worth_something(problem: InvarianceProblem, free: BoolArray) -> bool:
    """Whether some single gate lowers the risk by more than its price."""
    plain = replace(problem, invariance=0.0)
    nothing = np.zeros((1, problem.n_gates), dtype=bool)
    single = np.eye(problem.n_gates, dtype=bool)[free]
    if not len(single):
        return False
    curvature = _penalty_curvature(plain)
    empty = _hard_values(plain, nothing, curvature)[0]
    return bool(_hard_values(plain, single, curvature).min() < empty)


def _gate_fit(problem: InvarianceProblem, theta: FloatArray, mu: FloatArray) -> GateFit:
    """Weights and gate centres as a `GateFit`."""
    g = problem.gates(mu)
    value, _, _ = objective(problem, theta, mu)
    gates = np.array([g.mean[problem.groups == i][0] for i in range(problem.n_gates)])
    return GateFit(
        mu=mu,
        gates=gates,
        theta=theta,
        support=gates > 0.5,
        objective=value,
    )
