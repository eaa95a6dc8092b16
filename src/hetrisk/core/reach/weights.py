"""Weights of environments: a fit that answers to the half of the rows that suffers most.

On a set of columns, plain least squares sides with the environment that has most rows. The fit

    beta = argmin R(beta) + k^2 CVaR_e(rho_e(beta))

does not: CVaR (conditional value at risk; Rockafellar and Uryasev 2000) is the mean regret of the
environments that suffer most, as many as hold ``tail`` of the rows. With a tail of all rows it is
least squares, with a tail of none the environment that suffers most alone counts (minimax regret;
Agarwal and Zhang 2022), and one odd environment of twenty owns the fit.

By duality it is least squares with the rows of environment e counted 1 + k^2 w_e / share_e times,
w_e <= share_e / tail the multipliers (they sum to at most one), so any model that takes sample
weights can be fitted the same way. They are used where they pay on rows they were not fitted to
(`weight_gains`): weights that follow the noise of a few rows do not. Because regret, not risk, is
compared, an environment that is merely noisy gets no weight (compare group DRO). Regret within
chance counts as none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.numerics.thresholds import Budget
from hetrisk.core.reach.regret import Environments, Fits, fit_set, regret_of, risk_of
from hetrisk.core.reach.settings import SETTINGS

STEPS: Budget[int] = 60  # of the ascent on the multipliers
# Of the mean square of what is fitted: a duality gap below which it stops.
TOL: Budget[float] = 1e-4


@dataclass(frozen=True)
class WeightedFit:
    """A linear model and the environments it answers to.

    Attributes
    ----------
    coef : (p, t) coefficients, constant first, zero off the set.
    multipliers : (K,) w_e; zero where the plain fit is within chance everywhere.
    """

    coef: FloatArray
    multipliers: FloatArray


def fit_weighted(environments: Environments, columns: BoolArray, reach: float) -> WeightedFit:
    """Minimise risk plus k^2 times the tail of the regrets beyond chance, on some columns."""
    fits = fit_set(environments, columns)
    best = WeightedFit(fits.coef[0], np.zeros(len(environments.rows)))
    if reach == 0 or not fits.excess.any():
        return best
    chosen = np.flatnonzero(np.append(True, columns))
    A, b = (m[:, chosen] for m in environments.stacked[:2])
    problem = _Problem(A[:, :, chosen], b, fits.coef[1:, chosen], fits.chance)
    most, strength = environments.share / SETTINGS.tail, reach**2
    coef, multipliers, least = fits.coef[0, chosen], np.zeros(len(most)), np.inf
    for step in range(STEPS):
        beyond = problem.beyond(coef)
        tail = heaviest(beyond, most)
        value = problem.risk(coef) + strength * float(tail @ beyond)
        if value < least:
            least, best = value, WeightedFit(_spread(coef, chosen, best.coef), multipliers)
        if step and strength * float((tail - multipliers) @ beyond) <= TOL * problem.scale:
            break  # the duality gap: no weights could raise the least value by more
        # Frank and Wolfe 1956: towards the weights that are the worst for this fit.
        multipliers = multipliers + 2.0 / (step + 2.0) * (tail - multipliers)
        coef = problem.solved(strength * multipliers)
    return best


@dataclass(frozen=True)
class _Problem:
    """Moments A (K + 1, s, s) and b (K + 1, s, t), all rows first; fits of the environments."""

    A: FloatArray
    b: FloatArray
    own: FloatArray
    chance: FloatArray

    @property
    def scale(self) -> float:
        """What the target's moments are about: sums of squares that gaps are compared with."""
        return float((self.own * self.b[1:]).sum(axis=(1, 2)).max())

    def beyond(self, coef: FloatArray) -> FloatArray:
        """(K,) regret beyond chance."""
        gap = coef - self.own
        beyond: FloatArray = (gap * (self.A[1:] @ gap)).sum(axis=(1, 2)) - self.chance
        return beyond

    def risk(self, coef: FloatArray) -> float:
        """Squared error over all rows, less the sum of squares of the target."""
        return float((coef * (self.A[0] @ coef - 2.0 * self.b[0])).sum())

    def solved(self, extra: FloatArray) -> FloatArray:
        """(s, t) least squares with environments counted ``extra`` times more."""
        weight = np.append(1.0, extra)
        left, right = (np.tensordot(weight, m, axes=1) for m in (self.A, self.b))
        solved: FloatArray = np.linalg.solve(left, right)
        return solved


def _spread(coef: FloatArray, chosen: IntArray, like: FloatArray) -> FloatArray:
    """Coefficients of the set among those of all columns."""
    spread = np.zeros_like(like)
    spread[chosen] = coef
    return spread


def weight_gains(
    pairs: list[tuple[Environments, Environments]], columns: BoolArray, reach: float
) -> FloatArray:
    """(m,) what weights fitted to one half of the rows gain on the other, for m pairs of halves."""
    gains = []
    for fitted, other in pairs:
        fits = fit_set(other, columns)
        models = (fit_weighted(fitted, columns, reach).coef, fit_set(fitted, columns).coef[0])
        weighted, plain = (_objective(other, fits, coef, reach) for coef in models)
        gains.append(plain - weighted)
    return np.array(gains)


def _objective(environments: Environments, fits: Fits, coef: FloatArray, reach: float) -> float:
    """Risk plus k^2 times the tail of the regrets beyond chance."""
    beyond = regret_of(environments, coef, fits) - fits.chance
    tail = float(heaviest(beyond, environments.share / SETTINGS.tail) @ beyond)
    return float(risk_of(environments, coef)[0]) + reach**2 * tail


def heaviest(values: FloatArray, most: FloatArray) -> FloatArray:
    """Weights that give ``values`` the largest mean: at most ``most`` each, and one together.

    Values below zero get none: the rest of the weight then stands for no environment at all.
    """
    order = np.argsort(-values, kind="stable")
    filled = np.minimum(np.cumsum(most[order]), 1.0)
    weights = np.empty_like(values)
    weights[order] = np.diff(np.append(0.0, filled))
    heaviest: FloatArray = np.where(values > 0.0, weights, 0.0)
    return heaviest
