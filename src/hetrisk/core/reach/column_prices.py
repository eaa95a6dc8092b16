"""What each column is worth: the error that reversing the decision about it would cost.

Whoever decided (regret, the search for hidden environments, the paper's loop), the answer is priced
in one currency: the squared error E_k to expect as the shift grows (`hetrisk.core.reach.regret`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.floors import EQUAL, TINY
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.regret import Environments, fit_set
from hetrisk.core.reach.sweep import Costs, SweptFit, cost_of


@dataclass(frozen=True)
class ColumnPrices:
    """For each of d columns: margin, price and share of regret (see `Evidence`)."""

    margin: FloatArray
    price: FloatArray
    regret: FloatArray


def column_prices(
    environments: Environments, support: BoolArray, groups: IntArray, reach: float
) -> ColumnPrices:
    """What reversing the decision about each group of columns would cost."""
    d = len(support)
    margin, price, share = np.zeros(d), np.zeros(d), np.full(d, np.nan)
    members = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    now = fit_set(environments, support)
    everything = fit_set(environments, np.ones(d, dtype=bool)).worst
    flips = _flips(environments, support, members)
    alone = flips if support.all() else _flips(environments, np.ones(d, dtype=bool), members)
    rise = _rise(flips.expected(reach), now.expected(reach))
    # Taken back, an absent column lowers the risk: its price is what that would save.
    lost, saved = _rise(flips.risk, now.risk), _rise(now.risk, flips.risk)
    for i, group in enumerate(members):
        margin[group] = rise[i]
        price[group] = lost[i] if support[group].all() else saved[i]
        if everything > EQUAL * float(now.risk):  # less is rounding: no environments to compare
            share[group] = 1.0 - alone.worst[i] / everything
    return ColumnPrices(margin, price, share)


def _flips(environments: Environments, support: BoolArray, members: list[IntArray]) -> Costs:
    """Costs of the m sets in which one of the groups has changed sides."""
    if environments.null:  # what chance shows depends on the set: each is fitted from scratch
        fits = [fit_set(environments, _flipped(support, group)) for group in members]
        return Costs(*np.array([cost_of(fit) for fit in fits]).reshape(len(fits), -1).T)
    inside = np.array([support[group].all() for group in members], dtype=bool)
    state = SweptFit.of(environments, support)
    sides = [np.flatnonzero(inside), np.flatnonzero(~inside)]
    changes = (state.without, state.with_more)
    costs = [c([members[i] for i in side]) for c, side in zip(changes, sides, strict=True)]
    return Costs.concatenated(costs).some(np.argsort(np.concatenate(sides)))


def _flipped(support: BoolArray, group: IntArray) -> BoolArray:
    changed = support.copy()
    changed[group] = not support[group].all()
    return changed


def _rise(value: FloatArray | float, base: FloatArray | float) -> FloatArray:
    rise: FloatArray = np.sqrt(np.maximum(value, 0.0) / np.maximum(base, TINY)) - 1.0
    return rise
