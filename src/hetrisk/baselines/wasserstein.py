"""Distributionally robust optimisation in a Wasserstein ball (Sinha et al., arXiv:1710.10571).

Each row's features may move, at a cost of gamma per squared distance; the target stays put:

    minimise over (theta, a)   E[ max_x' loss(a + x'theta, y) - gamma |x' - x|^2 ].

With s = |theta|, moving along theta is all that matters, so the inner maximum is over one
number and both losses have it in closed or nearly closed form:

* squared loss: gamma r^2 / (gamma - s^2) for a residual r, if gamma > s^2 (infinite otherwise);
* logistic loss with margin m and c = s^2 / (2 gamma): log(1 + e^u) - c p(u)^2 / 2, where p is
  the logistic function and u solves u + m = c p(u).

A ``radius`` instead of gamma asks for the worst distribution within that 2-Wasserstein distance;
it minimises gamma radius^2 + (the above) over gamma too, which for squared loss gives
(sqrt(E r^2) + radius s)^2 (Blanchet, Kang and Murthy, arXiv:1610.05627). Distances are in the
units of the columns: standardise columns whose units differ.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, Literal

import numpy as np
from scipy import optimize, special
from sklearn.utils._param_validation import Interval

from hetrisk.baselines.base import LinearClassifierBase, LinearRegressorBase, Unlabelled
from hetrisk.baselines.choice import Choice
from hetrisk.baselines.problem import Problem
from hetrisk.baselines.risks import minimum
from hetrisk.core.numerics.floors import SINGULAR, TINY
from hetrisk.core.numerics.moments import moments
from hetrisk.core.numerics.rows import FloatArray, Rows

START_RIDGE = 1e-3
MAX_EVALUATIONS = 200  # separable classes put kinks into the robust risk, where steps get short
MAX_COST = 1e100  # a cost beyond it moves no row; below its inverse, every row
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


def gamma_balance(mu: float, path: RidgePath, gamma: float) -> float:
    """Zero where gamma E r^2 / (gamma - |theta|^2) is stationary along the ridge path."""
    return mu * (gamma - path.norm2(mu)) - path.risk(mu)


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


def robust_logistic(
    v: FloatArray, problem: Problem, radius: float, gamma: float | None
) -> tuple[float, FloatArray]:
    """Robust risk and gradient at v = (theta, a), or (theta, a, log gamma) for a radius."""
    d = problem.Z.shape[1] - 1
    theta = v[:d]
    cost = float(np.exp(v[-1])) if gamma is None else gamma
    sign = 2 * problem.y - 1
    c = float(theta @ theta) / (2 * cost)
    m = sign * (problem.Z @ v[: d + 1])
    u = worst_logit(m, c)
    p = special.expit(u)
    half = float(np.mean(p**2)) / 2
    value = float(np.mean(np.logaddexp(0.0, u))) - c * half
    gradient = np.zeros_like(v)
    gradient[: d + 1] = -(sign * p) @ problem.Z / len(m)
    gradient[:d] += half * theta / cost
    if gamma is None:
        value += cost * radius**2
        gradient[-1] = cost * radius**2 - half * c
    return value, gradient


def logistic_weights(
    problem: Problem, radius: float, gamma: float | None, start: FloatArray
) -> FloatArray:
    """Weights of least robust logistic risk, from ``start``."""
    objective = partial(robust_logistic, problem=problem, radius=radius, gamma=gamma)
    if gamma is not None:
        return minimum(objective, start, max_evaluations=MAX_EVALUATIONS)
    p = special.expit(-(2 * problem.y - 1) * (problem.Z @ start))
    reach = np.sqrt(np.mean(p**2)) * np.linalg.norm(start[:-1]) / (2 * radius)
    v = np.append(start, np.log(np.clip(float(reach), 1e-6, 1e6)))
    # As theta shrinks to nothing so does the best gamma: keep its logarithm finite.
    bounds = [*[(None, None)] * len(start), (-20.0, 20.0)]
    return minimum(objective, v, bounds, MAX_EVALUATIONS)[:-1]


def scaled_radius(problem: Problem, radius: float) -> float:
    """Return a radius in the user's units as one in those of the problem.

    From the size of the rows on theta = 0 is best whatever y is (Cauchy-Schwarz: |E r x| is at
    most sqrt(E r^2 E |x|^2)): a larger radius changes nothing, and may be too large to square.
    """
    size = math.sqrt(float(np.mean(np.sum(problem.Z**2, axis=1))))  # at least 1: Z holds ones
    return min(radius / problem.unit, 2 * size)


def scaled_gamma(problem: Problem, gamma: float) -> float:
    """Return a cost in the user's units as one in those of the problem; infinite if too large."""
    with np.errstate(over="ignore", under="ignore"):
        cost = np.float64(gamma) * np.float64(problem.unit / problem.target_unit) ** 2
    return math.inf if cost > MAX_COST else max(float(cost), 1 / MAX_COST)


class _WassersteinDRO(Unlabelled):
    strength = "radius"
    values = RADII
    standardise = False

    def __init__(
        self,
        radius: float | Literal["auto"] = "auto",
        *,
        gamma: float | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.radius = radius
        self.gamma = gamma
        self.random_state = random_state

    @property
    def _parameter_constraints(self) -> dict[str, list[Any]]:
        above_zero = Interval(Real, 0, None, closed="right")
        return {**super()._parameter_constraints, "gamma": [above_zero, None]}

    def _check(self) -> None:
        super()._check()
        if self.gamma is not None and self.radius != "auto":
            raise ValueError(
                f"radius must be left at 'auto' when gamma is given; got radius={self.radius!r} "
                f"and gamma={self.gamma!r}."
            )

    def _solve(self, problem: Problem) -> tuple[FloatArray, Choice]:
        if self.gamma is None:
            return super()._solve(problem)
        nothing = Choice(np.nan, np.empty(0), np.empty(0), 0.0)
        return self._gamma_weights(problem, float(self.gamma)), nothing

    @abstractmethod
    def _gamma_weights(self, problem: Problem, gamma: float) -> FloatArray:
        """Weights for a cost instead of a radius."""


class WassersteinDRORegressor(_WassersteinDRO, LinearRegressorBase):
    """Linear regression that is robust to small moves of the features.

    Parameters
    ----------
    radius : of the 2-Wasserstein ball, in the units of the columns; 0 is least squares. "auto"
        chooses it on held-out training rows (see `hetrisk.baselines.choice`).
    gamma : cost of moving a row by one unit, squared, in place of a radius; large is least
        squares.
    random_state : seed of the folds that "auto" deals.
    """

    def _path(self, problem: Problem, values: Sequence[float]) -> list[FloatArray]:
        path = RidgePath.of(problem)
        radii = [scaled_radius(problem, radius) for radius in values]
        balances = [partial(radius_balance, path=path, radius=radius) for radius in radii]
        return [path.weights(path.root(balance)) for balance in balances]

    def _gamma_weights(self, problem: Problem, gamma: float) -> FloatArray:
        path, gamma = RidgePath.of(problem), scaled_gamma(problem, gamma)
        balance = partial(gamma_balance, path=path, gamma=gamma)
        return path.weights(path.root(balance) if np.isfinite(gamma) else 0.0)


class WassersteinDROClassifier(_WassersteinDRO, LinearClassifierBase):
    """Logistic regression that is robust to small moves of the features.

    Parameters
    ----------
    radius : of the 2-Wasserstein ball, in the units of the columns; 0 is logistic regression.
        "auto" chooses it on held-out training rows (see `hetrisk.baselines.choice`).
    gamma : cost of moving a row by one unit, squared, in place of a radius; large is logistic
        regression.
    random_state : seed of the folds that "auto" deals.
    """

    def _path(self, problem: Problem, values: Sequence[float]) -> list[FloatArray]:
        risks, path = problem.pooled(), []
        # The problem is convex: the start only has to be near. A ridge fit is, where classes
        # that can be separated send plain logistic regression towards infinity.
        w = risks.minimiser(risks.share, ridge=START_RIDGE)
        for radius in (scaled_radius(problem, value) for value in values):
            w = logistic_weights(problem, radius, None, w) if radius > 0 else w
            path.append(w if radius > 0 else risks.erm())
        return path

    def _gamma_weights(self, problem: Problem, gamma: float) -> FloatArray:
        risks, gamma = problem.pooled(), scaled_gamma(problem, gamma)
        if not np.isfinite(gamma):
            return risks.erm()
        start = risks.minimiser(risks.share, ridge=START_RIDGE)
        return logistic_weights(problem, 0.0, gamma, start)
