"""Finding the gates: minimise the objective of `hetrisk.core.paper.invariance`.

The gates are 0 or 1 in the end, and J over hard masks has many local minima that a gradient in
mu cannot leave (a gate with little noise feels neither its price nor its penalty until it is
nearly shut). So the masks are searched by flipping one gate at a time, weights profiled out
(`hetrisk.core.paper.masks`), which is exact and cheap; L-BFGS then settles the soft gates from
there.

The penalty alone never shuts the last gate: where some feature is worth its price, predicting
nothing is no invariant prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg, optimize

from hetrisk.core.numerics.floors import EQUAL, FLAT
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.core.paper.gates import GateMoments
from hetrisk.core.paper.invariance import InvarianceProblem, objective
from hetrisk.core.paper.masks import mask_values, mask_weights, penalty_curvature

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


def fit_gates(problem: InvarianceProblem) -> GateFit:
    """Minimise J over gates and weights, from all gates open."""
    mask = flip(problem, np.ones(problem.n_gates, dtype=bool))
    low, high = -3.0 * problem.noise, 1.0 + 3.0 * problem.noise  # beyond, slopes vanish
    # Hard masks first, soft gates after: from a mask the slopes in mu point the right way.
    mu = np.where(mask, 1.0, -problem.noise)
    fit = _gate_fit(problem, *_settle(problem, mu, mask, [(low, high)] * len(mask)))
    return fit_at(problem, mask) if mask.any() and not fit.support.any() else fit


def fit_at(problem: InvarianceProblem, mask: BoolArray) -> GateFit:
    """Weights at their minimum for gates that are open or shut as told."""
    mu = np.where(mask, 1.0, -3.0 * problem.noise)
    return _gate_fit(problem, mask_weights(problem, mask), mu)


def flip(problem: InvarianceProblem, mask: BoolArray) -> BoolArray:
    """Flip the gate that lowers the objective over hard masks most, until none does."""
    # Everything that does not depend on the mask is computed once: a flip is then a small solve.
    curvature = penalty_curvature(problem)
    value = mask_values(problem, mask[None], curvature)[0]
    nothing = _worth_something(problem)
    # A descent cannot cycle; the bound is for ties that rounding keeps alive.
    for _ in range(4 * len(mask)):
        flipped = mask ^ np.eye(len(mask), dtype=bool)
        values = mask_values(problem, flipped, curvature)
        # The penalty is nothing where nothing is open: without this it would always win at a large
        # lambda.
        values[~flipped.any(axis=1) & nothing] = np.inf
        # Of equals the first: which of two copies of a column is shut is not for rounding to say.
        best = int(np.argmax(values <= values.min() + EQUAL))
        if values[best] >= value - EQUAL:
            break
        mask, value = flipped[best], values[best]
    return mask


def weights(problem: InvarianceProblem, g: GateMoments) -> FloatArray:
    """(p,) minimum of the "trace" objective in theta for given moments of the gates."""
    A, b = problem.risks.gram, problem.risks.cross
    # The penalty is the variance of gradients that are linear in theta: quadratic in theta, with
    # the centred gradients as its square root.
    curvature, right = 2.0 * A * g.mean, 2.0 * b
    curvature, right = curvature - curvature.mean(axis=0), right - right.mean(axis=0)
    slack = np.diag(g.variance * np.diagonal(A, axis1=1, axis2=2).mean(axis=0))
    hessian = 2.0 * (g.mean[:, None] * A.mean(axis=0) * g.mean + slack)
    weighted = curvature * (problem.gated * g.open * (2.0 * problem.invariance / len(A)))[:, None]
    hessian += np.einsum("kij,kil->jl", weighted, curvature, optimize=True)
    total = 2.0 * g.mean * b.mean(axis=0) + np.einsum("kij,ki->j", weighted, right)
    hessian[np.diag_indices(len(total))] += FLAT
    theta: FloatArray = linalg.solve(hessian, total, assume_a="pos")
    return theta


def _settle(
    problem: InvarianceProblem, mu: FloatArray, mask: BoolArray, bounds: list[tuple[float, float]]
) -> tuple[FloatArray, FloatArray]:
    """L-BFGS on the soft gates: on mu alone where theta has a closed form, else on both."""
    options: dict[str, Any] = {"jac": True, "method": "L-BFGS-B", "options": {"maxiter": MAX_ITER}}
    if problem.penalty == "trace":
        result = optimize.minimize(partial(_profiled, problem), mu, bounds=bounds, **options)
        return weights(problem, problem.gates(result.x)), result.x
    theta = mask_weights(problem, mask)
    free = [(-np.inf, np.inf)] * len(theta)
    both = np.concatenate([theta, mu])
    result = optimize.minimize(partial(_joint, problem), both, bounds=free + bounds, **options)
    return result.x[: len(theta)], result.x[len(theta) :]


def _profiled(problem: InvarianceProblem, mu: FloatArray) -> tuple[float, FloatArray]:
    # The slope of the profile is the partial slope at its minimum in theta (envelope theorem).
    value, _, slope = objective(problem, weights(problem, problem.gates(mu)), mu)
    return value, slope


def _joint(problem: InvarianceProblem, both: FloatArray) -> tuple[float, FloatArray]:
    n_weights = len(both) - problem.n_gates
    value, in_theta, in_mu = objective(problem, both[:n_weights], both[n_weights:])
    return value, np.concatenate([in_theta, in_mu])


def _worth_something(problem: InvarianceProblem) -> bool:
    """Whether some single gate lowers the risk by more than its price."""
    plain = replace(problem, invariance=0.0)
    nothing, single = np.zeros((1, problem.n_gates), dtype=bool), np.eye(problem.n_gates)
    return bool(mask_values(plain, single > 0).min() < mask_values(plain, nothing)[0])


def _gate_fit(problem: InvarianceProblem, theta: FloatArray, mu: FloatArray) -> GateFit:
    """Weights and gate centres as a `GateFit`."""
    g = problem.gates(mu)
    value, _, _ = objective(problem, theta, mu)
    gates = np.array([g.mean[problem.groups == i][0] for i in range(problem.n_gates)])
    return GateFit(mu=mu, gates=gates, theta=theta, support=gates > 0.5, objective=value)
