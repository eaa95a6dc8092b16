"""Invariant prediction: features whose relation to the target is alike in every environment.

The paper's objective for a linear model, expected over the stochastic gates m of
`hetrisk.core.paper.gates`, is::

    J(theta, mu) = E_e[L^e] + alpha sum_i P(m_i > 0) + lambda penalty
    L^e          = E^e E_m (y - theta_0 - sum_i theta_i m_i x_i)^2
    penalty      = trace Var_e(grad_theta L^e)              ("trace")
                 or |Var_e(grad_theta L^e) * M|^2            ("masked", for linear models)

with every environment e counted alike. For the squared loss L^e needs only the moments
A = E^e[x x'], b = E^e[x y], c = E^e[y^2] of each environment: with v = theta E[m],

    L^e = c - 2 v.b + v'A v + sum_i theta_i^2 A_ii Var(m_i),

so a step of the optimiser costs O(K d^2) whatever the number of rows.

**Shrinking gates.** L^e stays put when a gate shrinks and its weight grows in proportion, but
grad_theta L^e shrinks with the gate: the penalty could be escaped without letting go of the
feature. For gates of 0 and 1, where the paper defines it, grad_theta is the gradient in the
effective weights v on the open features and zero elsewhere. So it is taken in v here and weighed
with P(m_i > 0), which no shrinking short of closing can lower; on hard masks nothing changes.

The intercept theta_0 has no gate and no share in the penalty: environments may differ in level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.paper.gates import GateMoments, gate_moments

PENALTIES = ("trace", "masked")


class EnvironmentRisks(NamedTuple):
    """Squared loss in each of K environments as quadratics in the weights of (1, x).

    Attributes
    ----------
    gram : (K, d + 1, d + 1) E^e[(1, x)(1, x)'].
    cross : (K, d + 1) E^e[(1, x) y].
    square : (K,) E^e[y^2].
    weight : (K,) total weight of the rows.
    """

    gram: FloatArray
    cross: FloatArray
    square: FloatArray
    weight: FloatArray


def environment_risks(m: Moments) -> EnvironmentRisks:
    """Raw second moments of (1, x, y) from the centred moments of each environment."""
    d = m.mean.shape[-1] - 1
    ones = np.ones((len(m.weight), 1))
    first = np.concatenate([ones, m.mean], axis=1)
    raw = first[:, :, None] * first[:, None, :]
    raw[:, 1:, 1:] += m.covariance
    gram, cross, square = raw[:, : d + 1, : d + 1], raw[:, : d + 1, -1], raw[:, -1, -1]
    return EnvironmentRisks(gram, cross, square, m.weight)


@dataclass(frozen=True)
class InvarianceProblem:
    """The objective above for given environments: immutable, shared by every solve.

    Attributes
    ----------
    risks : of the environments.
    groups : (p,) gate of each weight, 0 to G - 1, or -1 for an intercept.
    noise : standard deviation of the gates.
    invariance, price : lambda and alpha.
    penalty : one of `PENALTIES`.
    """

    risks: EnvironmentRisks
    groups: IntArray
    noise: float
    invariance: float
    price: float
    penalty: str = "trace"

    @property
    def n_gates(self) -> int:
        """Number of gates G."""
        return int(self.groups.max()) + 1

    @property
    def gated(self) -> BoolArray:
        """(p,) weights behind a gate: all but intercepts."""
        return self.groups >= 0

    def gates(self, mu: FloatArray) -> GateMoments:
        """Moments of the gate of every weight; intercepts pass freely."""
        g = gate_moments(mu, self.noise)
        parts = (g.mean, g.second, g.open, g.d_mean, g.d_second, g.d_open)
        free = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
        pairs = zip(parts, free, strict=True)
        return GateMoments(*(np.where(self.gated, p[self.groups], f) for p, f in pairs))

    def price_of(self, mu: FloatArray) -> tuple[float, FloatArray]:
        """Alpha times the expected number of open gates, and its slope in mu."""
        g = gate_moments(mu, self.noise)
        return self.price * float(g.open.sum()), self.price * g.d_open

    def by_gate(self, slope: FloatArray) -> FloatArray:
        """Sum the slopes (p,) of the weights behind each gate."""
        total: FloatArray = np.zeros(self.n_gates)
        np.add.at(total, self.groups[self.gated], slope[self.gated])
        return total


class Slopes(NamedTuple):
    """Value of a term of the objective and its derivatives.

    ``theta`` is the derivative in the weights; ``mean``, ``second`` and ``open`` those in E[m],
    E[m^2] and P(m > 0) of every column.
    """

    value: float
    theta: FloatArray
    mean: FloatArray
    second: FloatArray
    open: FloatArray


def objective(
    problem: InvarianceProblem, theta: FloatArray, mu: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """J(theta, mu) and its gradients in theta (p,) and mu (G,)."""
    g = problem.gates(mu)
    mean_risk = risk(problem.risks, theta, g)
    spread = penalty(problem, theta, g)
    strength = problem.invariance
    price, in_price = problem.price_of(mu)
    by_column = (
        (mean_risk.mean + strength * spread.mean) * g.d_mean
        + (mean_risk.second + strength * spread.second) * g.d_second
        + strength * spread.open * g.d_open
    )
    in_mu = problem.by_gate(by_column) + in_price
    value = mean_risk.value + strength * spread.value + price
    return value, mean_risk.theta + strength * spread.theta, in_mu


def risk(risks: EnvironmentRisks, theta: FloatArray, g: GateMoments) -> Slopes:
    """Mean over environments of L^e = c - 2 v.b + v'A v + sum theta^2 A_ii (E[m^2] - E[m]^2)."""
    A, b = risks.gram.mean(axis=0), risks.cross.mean(axis=0)
    a, v = np.diag(A), g.mean * theta
    slack = g.variance
    residual = 2.0 * (A @ v - b)
    value = float(risks.square.mean() - 2.0 * v @ b + v @ A @ v + (theta**2 * a) @ slack)
    return Slopes(
        value,
        theta=g.mean * residual + 2.0 * theta * a * slack,
        mean=theta * residual - 2.0 * theta**2 * a * g.mean,
        second=theta**2 * a,
        open=np.zeros_like(theta),
    )


def penalty(problem: InvarianceProblem, theta: FloatArray, g: GateMoments) -> Slopes:
    """Variance over environments of 2 (A v - b), weighed with P(m > 0); before lambda."""
    A, b = problem.risks.gram, problem.risks.cross
    centred, variance = _spread(2.0 * (A @ (g.mean * theta) - b), problem.gated)
    size, slope = penalty_shape(problem.penalty, variance)
    direction = 2.0 * (g.open * slope) * centred / len(A)
    curved = 2.0 * np.einsum("kij,kj->i", A, direction)
    # v = E[m] theta: one product with the slope of the gradient, 2 A, serves both factors.
    zero = np.zeros_like(theta)
    return Slopes(float(g.open @ size), g.mean * curved, theta * curved, zero, size)


def _spread(gradient: FloatArray, gated: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Gradients (K, p) about their mean, and their variance, none for intercepts."""
    centred = (gradient - gradient.mean(axis=0)) * gated
    return centred, (centred**2).mean(axis=0)


def penalty_shape(penalty: str, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What a variance counts for, and its derivative: itself (trace) or its square (masked)."""
    if penalty == "trace":
        return variance, np.ones_like(variance)
    return variance**2, 2.0 * variance
