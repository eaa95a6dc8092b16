"""How far directions are shrunk: as far as the reach asks, and no farther than noise allows.

A strength is judged on rows it was not fitted to: beta_s from either half of the folds, its risk
and the shifts of its gradient on the other. Past some strength the differences that are shrunk
are those of the sample; on the other half the risk goes on rising and the shifts do not fall:
there it stops.
"""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.thresholds import Budget
from hetrisk.core.reach.directions import fit_directions
from hetrisk.core.reach.regret import Environments, gradient_shift, risk_of
from hetrisk.core.reach.resampling import halves, other_half

# Times the reach.
STRENGTHS: Budget[tuple[float, ...]] = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


def choose_strength(cells: list[CellMoments], environments: Environments, reach: float) -> float:
    """The strength whose expected error at the reach is least on rows it was not fitted to."""
    sides, losses = halves(cells, environments), []
    for times in STRENGTHS:
        coef = other_half(fit_directions(sides, times * reach))
        risk = risk_of(sides, coef)[:, 0]
        worst = max(float(gradient_shift(sides, coef).mean(axis=0).max()), 0.0)
        losses.append(float(risk.mean()) + reach**2 * worst)
    return STRENGTHS[int(np.argmin(losses))] * reach
