"""Each environment left out of the fit in turn: the error there of this model and of two others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hetrisk.core.numerics.linear import least_squares_many
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.reach.anchor import anchor_moments
from hetrisk.core.reach.regret import Environments, fit_set, risk_in
from hetrisk.core.reach.resampling import BATCH
from hetrisk.core.reach.thresholds import REACH_THRESHOLDS
from hetrisk.core.result import EnvironmentScore

Refit = Callable[[Environments], FloatArray]  # (m, p, t) the model on each of m resamples


def leave_one_out(
    environments: Environments, refit: Refit, names: tuple[str, ...]
) -> tuple[EnvironmentScore, ...]:
    """Fit to all environments but one, for each; errors on the one left out.

    ``refit`` follows the whole rule, so that the one left out has no say.
    """
    if len(environments.rows) < 3 or np.any(environments.partition > 0):
        return ()
    K, step = len(environments.rows), max(1, BATCH // environments.gram.size)
    full = np.ones(environments.n_columns, dtype=bool)
    risks = []
    for start in range(0, K, step):
        out = np.arange(start, min(start + step, K))
        rest = environments.without(out)
        models = (refit(rest), fit_set(rest, full).coef[:, 0], _anchor(rest))
        risks.append(np.stack([risk_in(environments, out, coef) for coef in models], axis=1))
    errors = np.sqrt(np.concatenate(risks)).tolist()
    rows = environments.rows.tolist()
    return tuple(EnvironmentScore(*s[:2], *s[2]) for s in zip(names, rows, errors, strict=True))


def _anchor(environments: Environments) -> FloatArray:
    """(m, p, t) anchor regression on each of m resamples, each target on its own."""
    d, t = environments.n_columns, environments.n_targets
    coef = np.zeros((len(environments.rows), 1 + d, t))
    weight = environments.share
    for target in range(t):
        chosen = np.array([*range(1, 1 + d), 1 + d + target])
        mean = environments.gram[..., 0, chosen]
        second = environments.gram[..., chosen[:, None], chosen]
        scatter = weight[..., None, None] * (second - mean[..., :, None] * mean[..., None, :])
        pooled = anchor_moments(Moments(weight, mean, scatter), REACH_THRESHOLDS.anchor_gamma)
        coef[:, 1:, target], coef[:, 0, target], _ = least_squares_many(pooled)
    return coef
