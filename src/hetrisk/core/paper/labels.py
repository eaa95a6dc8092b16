"""Invariant prediction for labels: the log loss expected over gates by quasi-random draws.

The objective is that of `hetrisk.core.paper.invariance` with L^e the mean log loss of
environment e. No closed form exists for its expectation over the gates, so it is the mean over
a fixed set of draws m_d = clip(mu + s z_d, 0, 1), z_d from `hetrisk.core.paper.gates.gate_draws`:
a deterministic, almost everywhere differentiable function of the weights and of mu.

The gradient whose variance over environments is penalised is taken with respect to the
effective weights at the mean gate and weighed with P(m > 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import optimize

from hetrisk.core.numerics.families import NewtonFamily
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.paper.gates import gate_draws
from hetrisk.core.paper.invariance import InvarianceProblem, penalty_shape

MAX_ITER: Budget[int] = 25  # of L-BFGS on weights and gates
DRAWS: Budget[int] = 8  # of the gates' noise, that the loss is the mean over


@dataclass(frozen=True)
class LabelProblem:
    """Rows of labels behind an `InvarianceProblem`.

    Attributes
    ----------
    gates : groups, noise, strengths and form of the objective (its risks are not used).
    X : (n, 1 + d) columns (1, x).
    y : (n,) class codes.
    share : (K, n) weights of the rows in every environment, each summing to one.
    family : of the labels.
    draws : (D, G) standard normal noises.
    """

    gates: InvarianceProblem
    X: FloatArray
    y: FloatArray
    share: FloatArray
    family: NewtonFamily
    draws: FloatArray


def label_problem(
    gates: InvarianceProblem,
    X: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    family: NewtonFamily,
    n_draws: int = DRAWS,
) -> LabelProblem:
    """Lay rows (n, d) with weights (n, K) out for `label_objective`."""
    # Environments count alike, whatever their size: that is the paper's E_e.
    share = (weight / np.maximum(weight.sum(axis=0), TINY)).T
    design = np.column_stack([np.ones(len(X)), X])
    draws = gate_draws(n_draws, gates.n_gates)
    return LabelProblem(gates, design, y, np.ascontiguousarray(share), family, draws)


def label_objective(
    problem: LabelProblem, theta: FloatArray, mu: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """J(theta, mu) and its gradients in theta (p,), p = o (1 + d), and mu (G,)."""
    p = problem.gates
    g = p.gates(mu)
    raw = mu + p.noise * problem.draws
    m = _columns(p, np.clip(raw, 0.0, 1.0), 1.0)
    # A clipped gate does not move with its mu: its slope is zero there.
    inside = _columns(p, ((raw > 0.0) & (raw < 1.0)).astype(float), 0.0)
    value, in_theta, in_m = _mean_risk(problem, theta, m)
    slope = (in_m * inside).sum(axis=0)
    if p.invariance > 0.0:
        spread, by_theta, by_m, size = _spread(problem, theta, g.mean, g.open)
        slope += p.invariance * (by_m * g.d_mean + size * g.d_open)
        value += p.invariance * spread
        in_theta = in_theta + p.invariance * by_theta
    price = p.price_of(mu)
    return value + price[0], in_theta, p.by_gate(slope) + price[1]


def settle(
    problem: LabelProblem, theta: FloatArray, mu: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """L-BFGS on weights and gates together; returns both and the objective."""
    bounds = [(-np.inf, np.inf)] * len(theta) + list(zip(low, high, strict=True))
    result = optimize.minimize(
        partial(_joint, problem),
        np.concatenate([theta, mu]),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": MAX_ITER},
    )
    return result.x[: len(theta)], result.x[len(theta) :], float(result.fun)


def _joint(problem: LabelProblem, both: FloatArray) -> tuple[float, FloatArray]:
    split = len(both) - problem.gates.n_gates
    value, in_theta, in_mu = label_objective(problem, both[:split], both[split:])
    return value, np.concatenate([in_theta, in_mu])


def _columns(p: InvarianceProblem, by_gate: FloatArray, free: float) -> FloatArray:
    """(D, p) a value for every weight from one for every gate (D, G)."""
    return np.where(p.gated, by_gate[:, p.groups], free)


def _scores(problem: LabelProblem, v: FloatArray) -> FloatArray:
    """Eta (n,) or (n, C) of effective weights (p,)."""
    return problem.family.predictor_of(v.reshape(-1, problem.X.shape[1]) @ problem.X.T)


def _mean_risk(
    problem: LabelProblem, theta: FloatArray, m: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Mean log loss over environments and draws, with slopes in theta and in every draw."""
    weight = problem.share.mean(axis=0)
    value, in_theta, in_m = 0.0, np.zeros_like(theta), np.zeros_like(m)
    for d, mask in enumerate(m):
        eta = _scores(problem, mask * theta)
        slope, _ = problem.family.coded_derivatives(problem.y, eta)
        gradient = -((slope * weight) @ problem.X).ravel() / len(m)
        value -= float(weight @ problem.family.log_density(problem.y, eta)) / len(m)
        in_theta += mask * gradient
        in_m[d] = theta * gradient
    return value, in_theta, in_m


def _spread(
    problem: LabelProblem, theta: FloatArray, m: FloatArray, open_: FloatArray
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Variance over environments of the gradient at the mean gates m (p,), weighed with P(m > 0).

    Returns the penalty, its slopes in theta and m (p,), and what each entry counts for.
    """
    p, K = problem.gates, len(problem.share)
    slope, curvature = problem.family.coded_derivatives(problem.y, _scores(problem, m * theta))
    gradient = -np.einsum("on,kn,np->kop", slope, problem.share, problem.X, optimize=True)
    gradient = gradient.reshape(K, -1)
    centred = (gradient - gradient.mean(axis=0)) * p.gated
    size, rate = penalty_shape(p.penalty, (centred**2).mean(axis=0))
    # The slope of the penalty in the gradients; the chain rule then goes through the curvature of
    # the loss, since gradients move with the weights.
    curved = _curved(problem, curvature, 2.0 * open_ * rate * centred / K)
    return float(open_ @ size), m * curved, theta * curved, size


def _curved(problem: LabelProblem, curvature: FloatArray, direction: FloatArray) -> FloatArray:
    """Sum over environments of the curvature of the loss times a direction (K, p)."""
    K, width = len(direction), problem.X.shape[1]
    along = direction.reshape(K, -1, width) @ problem.X.T
    along_curvature = np.einsum("oqn,kqn,kn->on", curvature, along, problem.share, optimize=True)
    return np.asarray(along_curvature @ problem.X).ravel()
