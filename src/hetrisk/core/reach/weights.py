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

from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.regret import Environments, Fits, fit_set, regret_of, risk_of
from hetrisk.core.reach.resampling import BATCH, other_half
from hetrisk.core.reach.thresholds import REACH_THRESHOLDS

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
    if environments.rows.ndim > 1 and environments.gram.size > BATCH:
        # Side by side all go on until the last has stopped: not where a step is work.
        each = [fit_weighted(one, columns, reach) for one in environments.each()]
        return WeightedFit(
            np.stack([fit.coef for fit in each]), np.stack([fit.multipliers for fit in each])
        )
    fits = fit_set(environments, columns)
    if reach == 0 or not fits.excess.any():
        return WeightedFit(fits.coef[..., 0, :, :], np.zeros_like(environments.share))
    problem = _problem(environments, fits, columns)
    strength, met = reach**2, []
    coef, multipliers = fits.coef[..., 0, problem.chosen, :], np.zeros_like(fits.own)
    # Where no environment suffers beyond chance, plain least squares is already the minimum.
    running = fits.excess.any(axis=-1)
    # A loop of its own: it stops by a duality gap, environments of a batch one by one.
    for step in range(STEPS):
        risk, beyond = problem.costs(coef)
        tail = heaviest(beyond, problem.most)
        # The worst weights for this fit give the objective itself: CVaR is the largest mean that
        # weights within their bounds can make.
        value = risk + strength * (tail * beyond).sum(axis=-1)
        met.append((np.where(running, value, np.inf), coef, multipliers))
        change = tail - multipliers
        if step:  # the duality gap: no weights could raise the least value by more
            gap = strength * (change * beyond).sum(axis=-1)
            running = running & (gap > TOL * problem.scale)
        if not running.any():
            break
        # Frank and Wolfe 1956: towards the weights that are the worst for this fit.
        multipliers = multipliers + 2.0 / (step + 2.0) * change
        coef = problem.solved(strength * multipliers)
    # The steps of Frank and Wolfe do not fall steadily: the best fit met is taken, not the last.
    values, coefs, weights = (np.stack(each) for each in zip(*met, strict=True))
    best = np.argmin(values, axis=0)[None, ..., None]  # the first, where none was running
    found = np.zeros_like(fits.coef[..., 0, :, :])
    found[..., problem.chosen, :] = np.take_along_axis(coefs, best[..., None], 0)[0]
    return WeightedFit(found, np.take_along_axis(weights, best, 0)[0])


@dataclass(frozen=True)
class _Problem:
    """Least squares on the columns of a set, environments to be weighted.

    Attributes
    ----------
    moments : (K + 1, s (s + t)) A and b beside it, row after row; all rows first.
    own : (K,) what the fit of each environment explains there, less chance: the regret beyond
        chance of beta is beta'A beta - 2 beta'b, and this.
    chosen : (s,) coefficients of the set.
    most : (K,) the largest multipliers.
    scale : sum of squares that gaps are compared with.
    """

    moments: FloatArray
    own: FloatArray
    chosen: IntArray
    most: FloatArray
    scale: FloatArray

    def costs(self, coef: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Risk, less the sum of squares of the target, and (K,) regrets beyond chance."""
        # beta'A beta - 2 beta'b is the product of (A, b) with (beta beta', -2 beta).
        square = np.concatenate([coef @ np.swapaxes(coef, -1, -2), -2.0 * coef], axis=-1)
        flat = square.reshape(*coef.shape[:-2], -1, 1)
        risks = (self.moments @ flat)[..., 0]
        return risks[..., 0], risks[..., 1:] + self.own

    def solved(self, extra: FloatArray) -> FloatArray:
        """(s, t) least squares with environments counted ``extra`` times more."""
        added = (extra[..., None, :] @ self.moments[..., 1:, :])[..., 0, :]
        s = len(self.chosen)
        total = (self.moments[..., 0, :] + added).reshape(*extra.shape[:-1], s, -1)
        solved: FloatArray = np.linalg.solve(total[..., :s], total[..., s:]).astype(
            np.float64, copy=False
        )
        return solved


def _problem(environments: Environments, fits: Fits, columns: BoolArray) -> _Problem:
    """Lay the moments of a set of columns out for the iteration."""
    A, b, _ = environments.stacked
    chosen = np.flatnonzero(np.append(True, columns))
    moments = np.concatenate([A[..., chosen[:, None], chosen], b[..., chosen, :]], axis=-1)
    moments = moments.reshape(*moments.shape[:-2], -1)
    # At its own optimum beta'A beta = beta'b, so that an environment explains beta'b of y'y.
    explained = (fits.coef * b).sum(axis=(-2, -1))[..., 1:]
    scale = np.where(environments.share > 0.0, explained, 0.0).max(axis=-1)
    most = environments.share / REACH_THRESHOLDS.tail
    return _Problem(moments, explained - fits.chance, chosen, most, scale)


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
    # Chance is that of the half the fit is tried on, whoever made the fit.
    beyond = regret_of(environments, coef, fits) - fits.chance
    tail = (heaviest(beyond, environments.share / REACH_THRESHOLDS.tail) * beyond).sum(axis=-1)
    objective: FloatArray = risk_of(environments, coef)[..., 0] + reach**2 * tail
    return objective


def heaviest(values: FloatArray, most: FloatArray) -> FloatArray:
    """Weights that give ``values`` the largest mean: at most ``most`` each, and one together.

    Values below zero get none: the rest of the weight then stands for no environment at all.
    """
    K = values.shape[-1]
    # Fill up from the largest value on, each to its bound, until the weights make up one: the
    # optimum of a linear function on such a polytope (a continuous knapsack).
    order = np.argsort(-values, axis=-1, kind="stable").reshape(-1, K)
    order += K * np.arange(len(order))[:, None]
    filled = np.minimum(most.reshape(-1)[order].cumsum(axis=-1), 1.0)
    # From running totals back to weights.
    filled[:, 1:] -= filled[:, :-1].copy()
    weights = np.empty(values.size)
    weights[order] = filled
    heaviest: FloatArray = np.where(values > 0.0, weights.reshape(values.shape), 0.0)
    return heaviest
