"""From environments to invariant features: penalties given, or chosen from the data ("auto").

With numbers for lambda and alpha this is the paper's objective and nothing else. ``None`` asks
for them to be chosen, from the environments alone:

1. `hetrisk.core.paper.stability.screen` leaves out, worst first, features whose coefficients spread
   between environments by a large share of their size.
2. alpha: of the rest, `hetrisk.core.paper.stability.informative` drops what predicts nothing; alpha
   is half the smallest fall in risk that a remaining feature brings.
3. lambda: the value of `penalties`, warm-started from one to the next, that opens all of the
   features found so where no others may open, and whose gates agree best with them where all
   may (the smallest, of equals).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hetrisk.core.numerics.dependence import shifting_effects
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.paper.invariance import InvarianceProblem
from hetrisk.core.paper.solve import GateFit, fit_gates, left_out_risk, mask_values
from hetrisk.core.paper.stability import Quadratics, informative, ratio_by_group, screen
from hetrisk.core.paper.thresholds import GATE_THRESHOLDS

READINGS: Budget[int] = 6  # features tried as the first to leave: each is one more screen


@dataclass(frozen=True)
class ChosenGates:
    """Gates, and the penalties they were found with.

    Attributes
    ----------
    fit : the gates.
    invariance, price : lambda and alpha, given or chosen.
    path : (lambda, support) pairs visited, where lambda was chosen.
    """

    fit: GateFit
    invariance: float
    price: float
    path: tuple[tuple[float, BoolArray], ...]


def choose(
    problem: InvarianceProblem,
    q: Quadratics,
    groups: IntArray,
    invariance: float | None,
    price: float | None,
) -> ChosenGates:
    """Fit the gates, choosing lambda and alpha where they are None."""
    allowed = np.ones(problem.n_gates, dtype=bool)
    if invariance is None and len(q.curvature) > 1:
        allowed = stable_gates(problem, q, groups)
    if price is None:
        allowed = informative(q, groups, allowed)
        price = _price(problem, allowed)
    problem = replace(problem, price=price)
    if invariance is not None:
        problem = replace(problem, invariance=invariance)
        return ChosenGates(fit_gates(problem, allowed=allowed), invariance, price, ())
    # Masks along the path first, without the screen's help: lambda is to agree with it, not to copy
    # it.
    path = _path(problem)
    invariance = min(path, key=partial(_disagreement, problem, allowed))[0]
    fit = fit_gates(replace(problem, invariance=invariance), start=allowed, allowed=allowed)
    return ChosenGates(fit, invariance, price, path)


def stable_gates(problem: InvarianceProblem, q: Quadratics, groups: IntArray) -> BoolArray:
    """(G,) gates that may open: `screen`, and a second opinion on what it left out first.

    Environments that were found by clustering can often be read in two ways (y follows phi
    here and v there: is it phi or v that is unstable?), and the first feature left out
    decides. So the screen is repeated with each of the most unstable features left out first,
    and of these stable selections the one that predicts the rows clearly best is taken: the
    maximal invariant predictor. Environments counted alike would give a small cluster, made of
    the rows that v happens to predict, as much say as all the others.
    """
    affordable = partial(_affordable, problem)
    everything = _without_shifting_effects(problem, q, groups)
    best, _ = screen(q, groups, affordable, start=everything)
    # Rows count alike here: see the docstring.
    plain = replace(problem, risks=problem.risks.mixture(), invariance=0.0, price=0.0)
    least = mask_values(plain, best[None])[0]
    first = ratio_by_group(q, groups)
    for group in np.argsort(-first, kind="stable")[:READINGS]:
        if first[group] <= GATE_THRESHOLDS.unstable_ratio:
            break
        start = everything.copy()
        start[group] = False
        other, _ = screen(q, groups, affordable, start=start)
        risk = mask_values(plain, other[None])[0]
        # Clearly better only: between readings that predict alike, the first evidence stands.
        if risk < least / (1.0 + GATE_THRESHOLDS.affordable_rise):
            best, least = other, risk
    return best


def _without_shifting_effects(
    problem: InvarianceProblem, q: Quadratics, groups: IntArray
) -> BoolArray:
    """(G,) all gates but those of effects of the target whose mechanism shifts.

    The slope of such a feature may change by less than its error where its spread plainly does.
    """
    gates = np.ones(problem.n_gates, dtype=bool)
    if not np.isnan(q.total).any():
        shifting = shifting_effects(
            q.curvature, q.right, q.total, q.weight, groups, GATE_THRESHOLDS.shifting
        )
        gates[groups[shifting]] = False
    return gates if gates.any() else ~gates


def _affordable(problem: InvarianceProblem, before: BoolArray, after: BoolArray) -> bool:
    """Whether leaving a feature out keeps the risk in an environment not fitted about as it was."""
    return left_out_risk(problem, after) <= (1.0 + GATE_THRESHOLDS.affordable_rise) * left_out_risk(
        problem, before
    )


def _path(problem: InvarianceProblem) -> tuple[tuple[float, BoolArray], ...]:
    """Supports along the values of lambda, each started from the one before."""
    steps: list[tuple[float, BoolArray]] = []
    # Warm starts: neighbours on the path differ by a few gates.
    mask = np.ones(problem.n_gates, dtype=bool)
    for strength in GATE_THRESHOLDS.penalties:
        mask = fit_gates(replace(problem, invariance=strength), start=mask, soft=False).support
        steps.append((strength, mask))
    return tuple(steps)


def _disagreement(
    problem: InvarianceProblem, allowed: BoolArray, step: tuple[float, BoolArray]
) -> tuple[int, int, float]:
    """How far a lambda is from the allowed gates: among these, among all; and lambda itself."""
    strength, free = step
    held = fit_gates(
        replace(problem, invariance=strength), start=allowed, allowed=allowed, soft=False
    ).support
    return int((held != allowed).sum()), int((free != allowed).sum()), strength


def _price(problem: InvarianceProblem, kept: BoolArray) -> float:
    """Half the smallest rise in mean risk when one of the kept gates is shut."""
    if not kept.any():
        return 1.0
    plain = replace(problem, invariance=0.0, price=0.0)
    without = np.repeat(kept[None], int(kept.sum()), axis=0)
    without[np.arange(len(without)), np.flatnonzero(kept)] = False
    values: FloatArray = mask_values(plain, np.vstack([kept[None], without]))
    return max(0.5 * float((values[1:] - values[0]).min()), 0.0)
