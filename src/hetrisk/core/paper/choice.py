"""Penalties for known environments: given, or those whose gates carry over best between them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, IntArray
from hetrisk.core.paper.invariance import InvarianceProblem
from hetrisk.core.paper.solve import GateFit, fit_gates
from hetrisk.core.paper.transfer import carry_over

PRICE = 0.002  # alpha, in shares of the variance of the target
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


def choose_gates(
    problem: InvarianceProblem, environments: Moments, groups: IntArray, invariance: float | None
) -> ChosenGates:
    """Fit the gates; a lambda of None is that which carries over best, the smallest first.

    ``environments`` are the moments of the environments, ``groups`` (d,) the gate of each column.
    """
    tried = INVARIANCE[problem.penalty] if invariance is None else (invariance,)
    problems = [replace(problem, invariance=strength) for strength in tried]
    fits = [fit_gates(p) for p in problems]
    scores = [carry_over([environments], fit.support[groups], problem.price) for fit in fits]
    best = scores.index(min(scores))
    path = tuple((strength, fit.support) for strength, fit in zip(tried, fits, strict=True))
    return ChosenGates(problems[best], fits[best], path)
