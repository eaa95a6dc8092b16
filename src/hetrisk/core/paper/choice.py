"""Penalties for known environments: given, or those whose gates carry over best between them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, IntArray
from hetrisk.core.paper.invariance import InvarianceProblem
from hetrisk.core.paper.solve import GateFit, fit_gates
from hetrisk.core.paper.transfer import carry_over, unexplained

PRICE = 0.003  # alpha, in shares of the variance of the target,
LEFT = 0.05  # but at most this share of what all columns together leave of it
# Values of lambda that are tried; "masked" squares variances, which are below one.
INVARIANCE: Budget[dict[str, tuple[float, ...]]] = {
    "trace": (1.0, 3.0, 10.0, 30.0),
    "masked": (10.0, 100.0, 1e3, 1e4),
}


@dataclass(frozen=True)
class ChosenGates:
    """Gates, the objective they minimise, and the (lambda, support) tried."""

    problem: InvarianceProblem
    fit: GateFit
    path: tuple[tuple[float, BoolArray], ...]


def gate_price(given: float | None, environments: Moments, n_features: int) -> float:
    """Alpha as given, or for None.

    A share of the variance of the target is next to nothing where little of it can be predicted,
    and more than a true column is worth where nearly all of it can: so it is never more than a
    share of what least squares leaves.
    """
    if given is not None:
        return given
    # Where the rows can be fitted exactly, what is left is rounding, and no price at all.
    return min(PRICE, max(LEFT * unexplained(environments, n_features), PRICE / 100.0))


def choose_gates(
    problem: InvarianceProblem,
    environments: Moments,
    groups: IntArray,
    invariance: float | None,
    price: float | None,
) -> ChosenGates:
    """Fit the gates; a lambda of None is that which carries over best, the smallest first.

    ``environments`` are the moments of the environments, ``groups`` (d,) the gate of each column.
    """
    problem = replace(problem, price=gate_price(price, environments, len(groups)))
    tried = INVARIANCE[problem.penalty] if invariance is None else (invariance,)
    problems = [replace(problem, invariance=strength) for strength in tried]
    fits = [fit_gates(p) for p in problems]
    columns = np.array([fit.support[groups] for fit in fits])
    best = int(carry_over([environments], columns, problem.price).argmin())
    path = tuple((strength, fit.support) for strength, fit in zip(tried, fits, strict=True))
    return ChosenGates(problems[best], fits[best], path)
