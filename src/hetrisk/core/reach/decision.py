"""From environments that differ to a decision, a verdict and its sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.choice import Choice, choose
from hetrisk.core.reach.column_prices import column_prices
from hetrisk.core.reach.curve import reach_curve
from hetrisk.core.reach.forms import FORMS, Model, plain
from hetrisk.core.reach.leave_one_out import leave_one_out
from hetrisk.core.reach.regret import Environments
from hetrisk.core.reach.rules import RULES, Facts, Priced, Tests, by_regret
from hetrisk.core.reach.sentences import ASKED_FOR, contradiction, share, unpaid
from hetrisk.core.reach.set_errors import evaluate_sets
from hetrisk.core.reach.sweep import Costs
from hetrisk.core.result import (
    EnvironmentScore,
    Evidence,
    ReachCurve,
    SearchSettings,
)

# Squared error of a model: its columns, and its linear scores in place of them, if it has any.
Measure = Callable[[BoolArray, FloatArray | None], float]


@dataclass(frozen=True)
class Decision:
    """What is to be done about environments that differ.

    Attributes
    ----------
    support : (d,) columns to use.
    coef : (p, t) linear model of the (indicators of the) target, constant first.
    verdict, reason : in a word, and in a sentence or two.
    evidence, curve, stability, agreement, leave_one_out : see `hetrisk.core.result.SearchResult`.
    """

    support: BoolArray
    coef: FloatArray
    verdict: str
    reason: str
    evidence: Evidence
    curve: ReachCurve
    stability: FloatArray
    agreement: float
    leave_one_out: tuple[EnvironmentScore, ...]


def decide(
    cells: list[CellMoments],
    levels: list[CellMoments],
    environments: Environments,
    tests: Tests,
    names: tuple[str, ...],
    groups: IntArray,
    settings: SearchSettings,
    unit: str,
    measure: Measure | None = None,
) -> Decision:
    """Choose columns or directions at the reach asked for; keep plain ERM where that pays more.

    Regret decides first, then the other rules (`hetrisk.core.reach.rules`).

    Parameters
    ----------
    cells : moments of each partition's environments and folds.
    levels : of what they were merged from, where they were: what is said of them must hold there.
    environments : the same environments side by side.
    tests : whether, and in what, they differ.
    names : of the environments.
    unit : of the error.
    measure : measures the error where nothing shifts, for labels (`hetrisk.core.reach.brier`).
    """
    choice = choose(cells, levels, environments, groups, settings)
    facts = Facts(choice, tests, _pricing(choice, unit, measure), groups, settings)
    answer = by_regret(facts)
    for rule in RULES if FORMS[settings.form].leaves_columns else ():
        answer = rule(facts, answer) or answer
    use = answer.priced if answer.stands else None
    use = use or facts.price(plain(choice.problem))
    found, reason, shifting = use.model, answer.reason, facts.shifting
    scores = leave_one_out(environments, found.refit, names)
    if answer.stands:
        reason = f"{reason} {contradiction(scores)}".strip()
    elif shifting.any() and (choice.varies & ~shifting).any():
        reason = f"{reason} {unpaid(shifting, groups, settings)}"
    return Decision(
        support=found.support,
        coef=found.coef,
        verdict=answer.verdict,
        reason=reason,
        evidence=_evidence(choice, found.support, tests, groups, settings),
        curve=use.curve,
        stability=answer.stability,
        agreement=found.agreement,
        leave_one_out=scores,
    )


def _pricing(choice: Choice, unit: str, measure: Measure | None) -> Callable[[Model], Priced]:
    """What draws the curve of a model; the error of plain ERM is measured once."""
    base = None if measure is None else measure(plain(choice.problem).support, None)

    def price(model: Model) -> Priced:
        start = None if measure is None or base is None else (_error(measure, model, base), base)
        return Priced(model, _draw(choice, model, unit, start))

    return price


def _draw(choice: Choice, model: Model, unit: str, start: tuple[float, float] | None) -> ReachCurve:
    """The reach curve of a model; ``start`` as in `hetrisk.core.reach.curve.reach_curve`."""
    environments, reach = choice.problem.environments, choice.problem.reach
    # Of all sets met those that can be trusted, and the model's own.
    own = evaluate_sets(environments, model.support[None]).costs
    sets = np.vstack([choice.met[choice.trusted], model.support])
    costs = Costs.concatenated([choice.costs.some(choice.trusted), own])
    return reach_curve(environments, model.line, reach, sets, costs, model.lines, unit, start)


def _evidence(
    choice: Choice,
    support: BoolArray,
    tests: Tests,
    groups: IntArray,
    settings: SearchSettings,
) -> Evidence:
    """What decided about each column; p-values corrected for the number of groups."""
    d, problem = len(support), choice.problem
    prices = column_prices(problem.environments, support, choice.groups, problem.reach)
    return Evidence(
        prices.margin,
        prices.price,
        prices.regret,
        np.minimum(np.minimum(tests.columns * len(np.unique(groups)), 1.0), tests.effects),
        np.zeros(d, dtype=bool),
        tuple(_column_reason(j, support, choice, prices.margin, tests, settings) for j in range(d)),
    )


def _error(measure: Measure, model: Model, plain: float) -> float:
    """Squared error of a model where nothing shifts; that of plain ERM is known."""
    if model.support.all() and not model.dense:
        return plain
    return measure(model.support, model.coef if model.dense else None)


def _column_reason(
    j: int,
    support: BoolArray,
    choice: Choice,
    margin: FloatArray,
    tests: Tests,
    settings: SearchSettings,
) -> str:
    """What became of a column, in a sentence."""
    if not choice.varies[j]:
        return "Left out: it never varies."
    change = f"the error at reach {settings.reach:g} by {share(abs(float(margin[j])))}"
    if not support[j] and margin[j] >= 0:
        return f"Left out: taken back, it would raise {change}."
    if not support[j]:
        return f"Left out as one of several: taken back alone, it would lower {change}."
    if choice.keep[j]:
        return ASKED_FOR
    if not FORMS[settings.form].leaves_columns:
        return f"Kept: {settings.form} leave no column out."
    if margin[j] >= 0:
        return f"Kept: leaving it out would raise {change}."
    if (choice.varies & ~support).any():
        return (
            f"Kept: leaving it out as well would lower {change}, but that it is to blame for what "
            "moves is not sure."
        )
    why = "no set of columns surely takes away enough of what moves, and pays"
    if tests.chance is not None:
        why = "the environments do not surely differ"
    return f"Kept: leaving it out alone would lower {change}, but {why}."
