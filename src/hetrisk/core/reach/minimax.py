"""Weights of environments: a fit whose worst regret is least.

On a set of columns, plain least squares sides with the environment that has most rows. The fit

    beta = argmin R(beta) + k^2 max_e rho_e(beta)

does not: it is bounded by the environment that suffers most. By duality it is least squares with
the rows of environment e counted 1 + k^2 w_e / share_e times, w_e the multipliers of the maximum
(they sum to at most one), so any model that takes sample weights can be fitted the same way.
Because regret, not risk, is compared, an environment that is merely noisy gets no weight (compare
group DRO; Agarwal and Zhang 2022 study the criterion itself). Regret within chance counts as none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.core.reach.regret import Environments, fit_set, regret_of, risk_of

STEPS = 40  # of mirror ascent on the multipliers; the answer moves by less than 1 % after 30
RATE = 2.0


@dataclass(frozen=True)
class MinimaxFit:
    """A linear model and the environments it answers to.

    Attributes
    ----------
    coef : (p, t) coefficients, constant first, zero off the set.
    multipliers : (K,) w_e; zero where the plain fit is within chance everywhere.
    """

    coef: FloatArray
    multipliers: FloatArray


def fit_minimax(environments: Environments, columns: BoolArray, reach: float) -> MinimaxFit:
    """Minimise risk plus k^2 times the worst regret beyond chance, on some columns."""
    fits = fit_set(environments, columns)
    nothing = np.zeros(len(environments.rows))
    best = MinimaxFit(fits.coef[0], nothing)
    if reach == 0 or not fits.excess.any():
        return best
    least = fits.expected(reach)
    weights = np.append(environments.share, 1.0)  # the last stands for no environment at all
    weights /= weights.sum()
    for step in range(STEPS):
        multipliers = weights[:-1]
        coef = _weighted_fit(environments, columns, reach**2 * multipliers)
        beyond = regret_of(environments, coef, fits) - fits.chance
        value = risk_of(environments, coef)[0] + reach**2 * max(float(beyond.max()), 0.0)
        if value < least:
            least, best = value, MinimaxFit(coef, multipliers)
        ascent = np.append(beyond, 0.0) / max(float(np.abs(beyond).max()), TINY)
        log = np.log(np.maximum(weights, TINY)) + RATE / np.sqrt(step + 1.0) * ascent
        weights = np.exp(log - log.max())
        weights /= weights.sum()
    return best


def _weighted_fit(environments: Environments, columns: BoolArray, extra: FloatArray) -> FloatArray:
    """Least squares with environments counted ``extra`` times more, each scaled to one row."""
    A, b, _ = environments.stacked
    chosen = np.flatnonzero(np.append(True, columns))
    weight = np.append(1.0, extra)
    left = np.tensordot(weight, A[:, chosen][:, :, chosen], axes=1)
    right = np.tensordot(weight, b[:, chosen], axes=1)
    coef = np.zeros(b.shape[1:])
    coef[chosen] = np.linalg.solve(left, right)
    return coef
