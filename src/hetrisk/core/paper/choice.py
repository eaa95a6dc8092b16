"""Penalties for known environments: given, or those whose gates carry over best between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, IntArray
from hetrisk.core.paper.invariance import InvarianceProblem
from hetrisk.core.paper.solve import GateFit, fit_gates
from hetrisk.core.paper.transfer import carry_over

INVARIANCE: Budget[tuple[float, ...]] = (1.0, 3.0, 10.0, 30.0)
PRICE: Budget[tuple[float, ...]] = (0.001, 0.005)


@dataclass(frozen=True)
class ChosenGates:
    """Gates, the objective they minimise, and the (lambda, alpha, support) tried."""

    problem: InvarianceProblem
    fit: GateFit
    path: tuple[tuple[float, float, BoolArray], ...]


def choose_gates(
    problem: InvarianceProblem,
    environments: Moments,
    groups: IntArray,
    invariance: float | None,
    price: float | None,
) -> ChosenGates:
    """Fit the gates; penalties that are None are those that carry over best, the smallest first.

    ``environments`` are the moments of the environments, ``groups`` (d,) the gate of each column.
    """
    combinations = product(
        INVARIANCE if invariance is None else (invariance,), PRICE if price is None else (price,)
    )
    problems = [replace(problem, invariance=i, price=p) for i, p in combinations]
    fits = [fit_gates(p) for p in problems]
    scores = [carry_over([environments], fit.support[groups]) for fit in fits]
    best = scores.index(min(scores))
    path = tuple((p.invariance, p.price, f.support) for p, f in zip(problems, fits, strict=True))
    return ChosenGates(problems[best], fits[best], path)
