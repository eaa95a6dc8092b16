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

from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.numerics.thresholds import Budget
from hetrisk.core.reach.regret import Environments, Fits, fit_set, regret_of, risk_of
from hetrisk.core.reach.resampling import other_half
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

    Further axes before these are those of the environments.
    """

    coef: FloatArray
    multipliers: FloatArray


def fit_weighted(environments: Environments, columns: BoolArray, reach: float) -> WeightedFit:
    """Minimise risk plus k^2 times the tail of the regrets beyond chance, on some columns."""
    fits = fit_set(environments, columns)
    if reach == 0 or not fits.excess.any():
        return WeightedFit(fits.coef[..., 0, :, :], np.zeros_like(environments.share))
    problem = _problem(environments, fits, columns)
    best = _start(fits, problem.chosen)
    found = best
    running: BoolArray = np.asarray(fits.excess.any(axis=-1))
    for step in range(STEPS):
        beyond = problem.beyond(found.coef)
        tail = heaviest(beyond, problem.most)
        value = problem.risk(found.coef) + reach**2 * (tail * beyond).sum(axis=-1)
        best = best.or_less(replace(found, value=value), running)
        if step:  # the duality gap: no weights could raise the least value by more
            gap = reach**2 * ((tail - found.multipliers) * beyond).sum(axis=-1)
            running = running & (gap > TOL * problem.scale)
        if not running.any():
            break
        # Frank and Wolfe 1956: towards the weights that are the worst for this fit.
        towards = found.multipliers + 2.0 / (step + 2.0) * (tail - found.multipliers)
        found = _State(problem.solved(reach**2 * towards), towards, value)
    coef = np.zeros_like(fits.coef[..., 0, :, :])
    coef[..., problem.chosen, :] = best.coef
    return WeightedFit(coef, best.multipliers)


@dataclass(frozen=True)
class _State:
    """A fit (s, t) on the columns of the set, its multipliers (K,) and the value it attains."""

    coef: FloatArray
    multipliers: FloatArray
    value: FloatArray

    def or_less(self, other: _State, running: BoolArray) -> _State:
        """This, or where it attains less and is still running, the other."""
        less = running & (other.value < self.value)
        return _State(
            np.where(less[..., None, None], other.coef, self.coef),
            np.where(less[..., None], other.multipliers, self.multipliers),
            np.where(less, other.value, self.value),
        )


def _start(fits: Fits, chosen: IntArray) -> _State:
    coef = fits.coef[..., 0, chosen, :]
    return _State(coef, np.zeros_like(fits.own), np.full(coef.shape[:-2], np.inf))


@dataclass(frozen=True)
class _Problem:
    """Moments A (K + 1, s, s) and b (K + 1, s, t), all rows first; fits of the environments.

    ``chosen`` (s,) are the coefficients of the set, ``most`` (K,) the largest multipliers and
    ``scale`` the sum of squares that gaps are compared with.
    """

    A: FloatArray
    b: FloatArray
    own: FloatArray
    chance: FloatArray
    chosen: IntArray
    most: FloatArray
    scale: FloatArray

    def beyond(self, coef: FloatArray) -> FloatArray:
        """(K,) regret beyond chance."""
        gap = coef[..., None, :, :] - self.own
        square = (gap * (self.A[..., 1:, :, :] @ gap)).sum(axis=(-2, -1))
        beyond: FloatArray = square - self.chance
        return beyond

    def risk(self, coef: FloatArray) -> FloatArray:
        """Squared error over all rows, less the sum of squares of the target."""
        slope = self.A[..., 0, :, :] @ coef - 2.0 * self.b[..., 0, :, :]
        risk: FloatArray = (coef * slope).sum(axis=(-2, -1))
        return risk

    def solved(self, extra: FloatArray) -> FloatArray:
        """(s, t) least squares with environments counted ``extra`` times more."""
        left, right = (
            m[..., 0, :, :] + np.einsum("...k,...kij->...ij", extra, m[..., 1:, :, :])
            for m in (self.A, self.b)
        )
        solved: FloatArray = np.linalg.solve(left, right)
        return solved


def _problem(environments: Environments, fits: Fits, columns: BoolArray) -> _Problem:
    A, b, _ = environments.stacked
    chosen = np.flatnonzero(np.append(True, columns))
    A, b, own = A[..., chosen[:, None], chosen], b[..., chosen, :], fits.coef[..., 1:, chosen, :]
    explained = (own * b[..., 1:, :, :]).sum(axis=(-2, -1))
    scale = np.where(environments.share > 0.0, explained, 0.0).max(axis=-1)
    return _Problem(A, b, own, fits.chance, chosen, environments.share / SETTINGS.tail, scale)


def weight_gains(sides: Environments, columns: BoolArray, reach: float) -> FloatArray:
    """(m,) what weights fitted to the other half of the rows gain on each of m `halves`."""
    fits = fit_set(sides, columns)
    models = (fits.coef[..., 0, :, :], fit_weighted(sides, columns, reach).coef)
    plain, weighted = (_objective(sides, fits, other_half(coef), reach) for coef in models)
    return plain - weighted


def _objective(
    environments: Environments, fits: Fits, coef: FloatArray, reach: float
) -> FloatArray:
    """Risk plus k^2 times the tail of the regrets beyond chance."""
    beyond = regret_of(environments, coef, fits) - fits.chance
    tail = (heaviest(beyond, environments.share / SETTINGS.tail) * beyond).sum(axis=-1)
    objective: FloatArray = risk_of(environments, coef)[..., 0] + reach**2 * tail
    return objective


def heaviest(values: FloatArray, most: FloatArray) -> FloatArray:
    """Weights that give ``values`` the largest mean: at most ``most`` each, and one together.

    Values below zero get none: the rest of the weight then stands for no environment at all.
    """
    order = np.argsort(-values, axis=-1, kind="stable")
    filled = np.minimum(np.take_along_axis(most, order, -1).cumsum(axis=-1), 1.0)
    filled[..., 1:] -= filled[..., :-1].copy()
    weights = np.empty_like(values)
    np.put_along_axis(weights, order, filled, -1)
    heaviest: FloatArray = np.where(values > 0.0, weights, 0.0)
    return heaviest
