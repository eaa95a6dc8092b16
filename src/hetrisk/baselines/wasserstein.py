"""Distributionally robust optimisation in a Wasserstein ball (Sinha et al., arXiv:1710.10571).

Each row's features may move, at a cost of gamma per squared distance; the target stays put:

    minimise over (theta, a)   E[ max_x' loss(a + x'theta, y) - gamma |x' - x|^2 ].

With s = |theta|, moving along theta is all that matters, so the inner maximum is over one
number and both losses have it in closed or nearly closed form:

* squared loss: gamma r^2 / (gamma - s^2) for a residual r, if gamma > s^2 (infinite otherwise);
* logistic loss with margin m and c = s^2 / (2 gamma): log(1 + e^u) - c p(u)^2 / 2, where p is
  the logistic function and u solves u + m = c p(u).

The worst distribution within a 2-Wasserstein distance, the ``radius``, minimises gamma radius^2 +
(the above) over gamma too, which for squared loss gives (sqrt(E r^2) + radius s)^2 (Blanchet, Kang
and Murthy, arXiv:1610.05627). Distances are in the units of the columns: standardise columns whose
units differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy import optimize, special

from hetrisk.baselines.base import LinearClassifierBase, LinearRegressorBase, Tuned, Unlabelled
from hetrisk.baselines.problem import Problem
from hetrisk.baselines.risks import minimum
from hetrisk.core.numerics.floors import SINGULAR, TINY
from hetrisk.core.numerics.moments import moments
from hetrisk.core.numerics.rows import FloatArray, Rows

START_RIDGE = 1e-3
MAX_EVALUATIONS = 200  # separable classes put kinks into the robust risk, where steps get short
RADII = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class RidgePath:
    """theta(mu) = (S + mu I)^-1 s on centred columns, in the eigenbasis of S = V diag(l) V'."""

    values: FloatArray
    vectors: FloatArray
    cross: FloatArray  # V's
    mean: FloatArray  # of the columns (X, y)
    variance: float  # of y

    @classmethod
    def of(cls, problem: Problem) -> RidgePath:
        """Path of all rows of a problem, pooled."""
        d = problem.Z.shape[1] - 1
        m = moments(Rows(problem.Z[:, :d], problem.y, np.ones(len(problem.y))))
        values, vectors = np.linalg.eigh(m.covariance[:d, :d])
        values = np.maximum(values, 0.0)
        # Directions without spread carry no covariance either: drop what rounding left there.
        flat = values <= SINGULAR * max(values.max(initial=0.0), TINY)
        cross = np.where(flat, 0.0, vectors.T @ m.covariance[:d, d])
        return cls(np.where(flat, 1.0, values), vectors, cross, m.mean, float(m.covariance[d, d]))

    def norm2(self, mu: float) -> float:
        """|theta(mu)|^2."""
        return float(np.sum((self.cross / (self.values + mu)) ** 2))

    def risk(self, mu: float) -> float:
        """Mean squared residual of theta(mu)."""
        share = self.cross / (self.values + mu)
        fit = np.sum(share * (2 * self.cross - self.values * share))
        return max(self.variance - float(fit), 0.0)

    def weights(self, mu: float) -> FloatArray:
        """Coefficients theta(mu) and the intercept that goes with them, (d + 1,)."""
        theta = self.vectors @ (self.cross / (self.values + mu))
        return np.append(theta, self.mean[-1] - self.mean[:-1] @ theta)

    def root(self, balance: Callable[[float], float]) -> float:
        """Return the mu at which ``balance(mu)``, negative for little shrinkage, is zero."""
        unit = float(self.values.max())
        low, high = np.log(1e-13 * unit), np.log(1e13 * unit)
        if balance(np.exp(low)) >= 0:
            return 0.0
        if balance(np.exp(high)) <= 0:
            return np.inf
        return float(np.exp(optimize.brentq(lambda t: balance(np.exp(t)), low, high, xtol=1e-13)))


def radius_balance(mu: float, path: RidgePath, radius: float) -> float:
    """Zero where sqrt(E r^2) + radius |theta| is stationary along the ridge path."""
    return mu * math.sqrt(path.norm2(mu)) - radius * math.sqrt(path.risk(mu))


def worst_logit(m: FloatArray, c: float) -> FloatArray:
    """(n,) maximiser u of log(1 + e^u) - (u + m)^2 / (2 c), a root of u + m = c p(u).

    For c <= 4 there is one root. Beyond, the two outer roots are local maxima, one on each side
    of the stretch (-bend, bend) on which u - c p(u) falls; the better one is taken row by row.
    """
    if c <= 0:
        return -m
    if c <= 4:
        below = m > c / 2  # the one root is negative
        start = np.where(below, np.minimum(-m, 0.0), np.maximum(c - m, 0.0))
        return _root(m, c, start, np.where(below, -np.inf, 0.0), np.where(below, 0.0, np.inf))
    bend = -float(special.logit(2 / (c * (1 + math.sqrt(1 - 4 / c)))))
    left = _root(m, c, np.minimum(-m, -bend), -np.inf, -bend)
    right = _root(m, c, np.maximum(c - m, bend), bend, np.inf)
    gain = [np.logaddexp(0.0, u) - (u + m) ** 2 / (2 * c) for u in (left, right)]
    return np.where(gain[0] > gain[1], left, right)


def _root(m: FloatArray, c: float, u: FloatArray, low: Any, high: Any) -> FloatArray:
    """Root of u + m - c p(u) by Newton's method from the outer side of [low, high].

    The function rises there and bends towards the start, so the steps are monotone. A row
    without a root in the interval ends at the interval's inner edge.
    """
    settled = 1e-12 * max(1.0, c, float(np.max(np.abs(m), initial=0.0)))
    for _ in range(40):
        p = special.expit(u)
        slope = np.maximum(1 - c * p * (1 - p), 1e-12)
        following = np.clip(u - (u + m - c * p) / slope, low, high)
        moved = np.max(np.abs(following - u), initial=0.0)
        u = following
        if moved <= settled:
            break
    return u


def robust_logistic(v: FloatArray, problem: Problem, radius: float) -> tuple[float, FloatArray]:
    """Robust risk and gradient at v = (theta, a, log gamma)."""
    d = problem.Z.shape[1] - 1
    theta = v[:d]
    gamma = float(np.exp(v[-1]))
    sign = 2 * problem.y - 1
    c = float(theta @ theta) / (2 * gamma)
    m = sign * (problem.Z @ v[:-1])
    u = worst_logit(m, c)
    p = special.expit(u)
    half = float(np.mean(p**2)) / 2
    gradient = np.append(-(sign * p) @ problem.Z / len(m), gamma * radius**2 - half * c)
    gradient[:d] += half * theta / gamma
    value = float(np.mean(np.logaddexp(0.0, u))) - c * half + gamma * radius**2
    return value, gradient


def logistic_weights(problem: Problem, radius: float, start: FloatArray) -> FloatArray:
    """Weights of least robust logistic risk, from ``start``."""
    objective = partial(robust_logistic, problem=problem, radius=radius)
    p = special.expit(-(2 * problem.y - 1) * (problem.Z @ start))
    reach = np.sqrt(np.mean(p**2)) * np.linalg.norm(start[:-1]) / (2 * radius)
    v = np.append(start, np.log(np.clip(float(reach), 1e-6, 1e6)))
    # As theta shrinks to nothing so does the best gamma: keep its logarithm finite.
    bounds = [*[(None, None)] * len(start), (-20.0, 20.0)]
    return minimum(objective, v, bounds, MAX_EVALUATIONS)[:-1]


def bounded_radius(problem: Problem, radius: float) -> float:
    """Return the radius, or what is as good and may be squared.

    From the size of the rows on theta = 0 is best whatever y is (Cauchy-Schwarz: |E r x| is at
    most sqrt(E r^2 E |x|^2)): a larger radius changes nothing.
    """
    size = math.sqrt(float(np.mean(np.sum(problem.Z**2, axis=1))))
    return min(radius, 2 * size)


class _WassersteinDRO(Tuned, Unlabelled):
    strength = "radius"
    values = RADII
    standardise = False

    def __init__(
        self,
        radius: float | Literal["auto"] = "auto",
        *,
        random_state: int | None = 0,
    ) -> None:
        self.radius = radius
        self.random_state = random_state


class WassersteinDRORegressor(_WassersteinDRO, LinearRegressorBase):
    """Linear regression that is robust to small moves of the features.

    Parameters
    ----------
    radius : of the 2-Wasserstein ball, in the units of the columns; 0 is least squares. "auto"
        chooses it on held-out training rows (see `hetrisk.baselines.choice`).
    random_state : seed of the folds that "auto" deals.
    """

    def _path(self, problem: Problem, values: Sequence[float]) -> list[FloatArray]:
        path = RidgePath.of(problem)
        radii = [bounded_radius(problem, radius) for radius in values]
        balances = [partial(radius_balance, path=path, radius=radius) for radius in radii]
        return [path.weights(path.root(balance)) for balance in balances]


class WassersteinDROClassifier(_WassersteinDRO, LinearClassifierBase):
    """Logistic regression that is robust to small moves of the features.

    Parameters
    ----------
    radius : of the 2-Wasserstein ball, in the units of the columns; 0 is logistic regression.
        "auto" chooses it on held-out training rows (see `hetrisk.baselines.choice`).
    random_state : seed of the folds that "auto" deals.
    """

    def _path(self, problem: Problem, values: Sequence[float]) -> list[FloatArray]:
        risks, path = problem.pooled(), []
        # The problem is convex: the start only has to be near. A ridge fit is, where classes
        # that can be separated send plain logistic regression towards infinity.
        w = risks.minimiser(risks.share, ridge=START_RIDGE)
        for radius in (bounded_radius(problem, value) for value in values):
            w = logistic_weights(problem, radius, w) if radius > 0 else w
            path.append(w if radius > 0 else risks.erm())
        return path
