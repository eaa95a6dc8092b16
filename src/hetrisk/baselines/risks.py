"""The risk of a linear model in each environment, with its gradient and its curvature.

Every baseline here minimises a function of the risks R_e(w), e = 1..K, of one linear
predictor f = z'w (the last entry of z is 1, for the intercept). For squared loss risks and
derivatives come from moments: once they are summed, a step of an optimiser costs O(K d^2),
however many rows there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import linalg, optimize, special

from hetrisk.blocks import ArrayBlocks
from hetrisk.core.numerics.families import Bernoulli
from hetrisk.core.numerics.floors import SINGULAR
from hetrisk.core.numerics.glm import fit_glm
from hetrisk.core.numerics.moments import moments
from hetrisk.core.numerics.rows import FloatArray, Rows

Objective = Callable[[FloatArray], tuple[float, FloatArray]]

RIDGE = 1e-6  # on logistic coefficients: separable classes have no minimiser without it
DAMPING = 1e-10


@dataclass(frozen=True)
class RiskValues:
    """Risks of K environments at one w, with p = d + 1 weights.

    Attributes
    ----------
    risk : (K,) R_e(w).
    gradient : (K, p) gradient of R_e.
    """

    risk: FloatArray
    gradient: FloatArray


class Risks(ABC):
    """Risks of K environments as functions of the weights of one linear predictor."""

    weight: FloatArray
    n_weights: int
    labels: ClassVar[bool]  # whether y holds classes 0 and 1

    @staticmethod
    @abstractmethod
    def slope(f: FloatArray, y: FloatArray) -> FloatArray:
        """(n,) derivative of each row's loss in its prediction f."""

    @abstractmethod
    def evaluate(self, w: FloatArray) -> RiskValues:
        """Risks and their gradients at ``w``."""

    @abstractmethod
    def curvature(self, w: FloatArray, v: FloatArray) -> FloatArray:
        """(K, p) products H_e v_e of the Hessians of R_e at ``w`` with the rows of v (K, p)."""

    @abstractmethod
    def minimiser(self, share: FloatArray, ridge: float = 0.0) -> FloatArray:
        """Weights that minimise sum_e share_e R_e(w) + ridge |coef|^2 (the intercept is free)."""

    @property
    def share(self) -> FloatArray:
        """(K,) share of the rows in each environment: weighted by it, R_e is the pooled risk."""
        share: FloatArray = self.weight / self.weight.sum()
        return share

    @property
    def even(self) -> FloatArray:
        """(K,) equal shares: every environment counts once, whatever its size."""
        return np.full(len(self.weight), 1 / len(self.weight))

    def erm(self) -> FloatArray:
        """Weights that minimise the risk over all rows pooled."""
        return self.minimiser(self.share)


class SquaredRisks(Risks):
    """R_e(w) = E_e[(y - z'w)^2] = w'A_e w - 2 w'b_e + c_e."""

    labels = False

    def __init__(self, Z: FloatArray, y: FloatArray, environments: FloatArray) -> None:
        m = moments(Rows(Z, y, np.ones(len(y))), environments)
        second = m.covariance + m.mean[:, :, None] * m.mean[:, None, :]
        self.weight = m.weight
        self.n_weights = Z.shape[1]
        self.A = second[:, :-1, :-1]
        self.b = second[:, :-1, -1]
        self.c = second[:, -1, -1]

    @staticmethod
    def slope(f: FloatArray, y: FloatArray) -> FloatArray:
        """2 (f - y)."""
        return 2 * (f - y)

    def evaluate(self, w: FloatArray) -> RiskValues:
        """Risks and their gradients at ``w``."""
        Aw = self.A @ w
        risk = Aw @ w - 2 * self.b @ w + self.c
        return RiskValues(
            risk=np.maximum(risk, 0.0),
            gradient=2 * (Aw - self.b),
        )

    def curvature(self, w: FloatArray, v: FloatArray) -> FloatArray:
        """2 A_e v_e."""
        product: FloatArray = 2 * np.einsum("kij,kj->ki", self.A, v)
        return product

    def minimiser(self, share: FloatArray, ridge: float = 0.0) -> FloatArray:
        """Least squares; of minimum norm where the columns are dependent."""
        shrink = np.append(np.full(self.n_weights - 1, ridge), 0.0)
        A = np.tensordot(share, self.A, axes=1) + np.diag(shrink)
        minimum: FloatArray = linalg.pinvh(A, rtol=SINGULAR) @ (share @ self.b)
        return minimum


class LogisticRisks(Risks):
    """R_e(w) = E_e[log(1 + exp(z'w)) - y z'w] + RIDGE |coef|^2 for labels y in {0, 1}."""

    labels = True

    def __init__(self, Z: FloatArray, y: FloatArray, environments: FloatArray) -> None:
        self.Z, self.y = Z, y
        self.weight = environments.sum(axis=0)
        self.n_weights = Z.shape[1]
        self._rows = environments / np.where(self.weight > 0, self.weight, 1.0)
        self._ridge = np.append(np.full(Z.shape[1] - 1, RIDGE), 0.0)

    @staticmethod
    def slope(f: FloatArray, y: FloatArray) -> FloatArray:
        """Probability minus label."""
        slope: FloatArray = special.expit(f) - y
        return slope

    def evaluate(self, w: FloatArray) -> RiskValues:
        """Risks and their gradients at ``w``."""
        f = self.Z @ w
        p = special.expit(f)
        loss = np.logaddexp(0.0, f) - self.y * f
        return RiskValues(
            risk=loss @ self._rows + self._ridge @ w**2,
            gradient=(self._rows * (p - self.y)[:, None]).T @ self.Z + 2 * self._ridge * w,
        )

    def curvature(self, w: FloatArray, v: FloatArray) -> FloatArray:
        """Z' diag(rows of e * p (1 - p)) Z v_e, and the ridge."""
        p = special.expit(self.Z @ w)
        bent = self._rows * (p * (1 - p))[:, None] * (self.Z @ v.T)
        product: FloatArray = bent.T @ self.Z + 2 * self._ridge * v
        return product

    def minimiser(self, share: FloatArray, ridge: float = 0.0) -> FloatArray:
        """Logistic regression by Newton's steps (`hetrisk.core.numerics.glm`)."""
        weight = self._rows @ share
        shrink = self._ridge * share.sum() + np.append(np.full(self.n_weights - 1, ridge), 0.0)
        # Saturated predictions leave the intercept without curvature: damp its step.
        penalty = np.roll(np.maximum(2.0 * shrink, DAMPING), 1) / weight.sum()
        fit = fit_glm(ArrayBlocks(self.Z[:, :-1], self.y, weight), Bernoulli(), ridge=penalty)
        return np.append(fit.coef[0], fit.intercept)


def minimum(
    objective: Objective,
    start: FloatArray,
    bounds: list[tuple[float | None, float | None]] | None = None,
    max_evaluations: int = 1000,
) -> FloatArray:
    """Where L-BFGS ends from ``start``; ``objective`` returns a value and its gradient."""
    options: Any = {"maxfun": max_evaluations, "gtol": 1e-8, "ftol": 1e-13, "maxcor": 20}
    found: Any = optimize.minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return np.asarray(found.x, dtype=np.float64)


def minima(objectives: Sequence[Objective | None], start: FloatArray) -> list[FloatArray]:
    """Minima one after the other, each looked for from the one before; None stays where it is."""
    path, w = [], start
    for objective in objectives:
        w = w if objective is None else minimum(objective, w)
        path.append(w)
    return path
