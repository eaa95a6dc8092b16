"""From environments that differ to a decision, a verdict and its sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.floors import EQUAL, EXACT, TINY
from hetrisk.core.numerics.multiplicity import p_text
from hetrisk.core.numerics.named_numbers import Constant
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.choice import Choice, choose
from hetrisk.core.reach.column_prices import column_prices
from hetrisk.core.reach.curve import reach_curve
from hetrisk.core.reach.forms import FORMS, Model, plain
from hetrisk.core.reach.leave_one_out import leave_one_out
from hetrisk.core.reach.population import one_population
from hetrisk.core.reach.regret import Environments
from hetrisk.core.reach.resampling import resample_sets
from hetrisk.core.reach.sentences import (
    contradiction,
    listed,
    not_sure,
    out_of,
    refused,
    share,
    unpaid,
    unsteady,
)
from hetrisk.core.reach.set_errors import evaluate_sets
from hetrisk.core.reach.sweep import Costs
from hetrisk.core.result import (
    HOMOGENEOUS,
    INVARIANT,
    UNSTABLE,
    EnvironmentScore,
    Evidence,
    ReachCurve,
    SearchSettings,
)
from hetrisk.core.thresholds import THRESHOLDS

EVEN: Constant[float] = 0.5  # share of resamples in which something pays as often as not
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


@dataclass(frozen=True)
class Tests:
    """What tests say of environments.

    Attributes
    ----------
    columns : (d,) p-values that a column's coefficient is the same everywhere.
    effects : (d,) that an effect of the target follows from it in one way everywhere, corrected;
        one for columns that are no effects.
    chance : where regressions do not differ beyond chance, the p-value that says so, else None.
    noise : p-value that the noise has one size everywhere.
    """

    columns: FloatArray
    effects: FloatArray
    chance: float | None
    noise: float


def decide(
    cells: list[CellMoments],
    environments: Environments,
    tests: Tests,
    names: tuple[str, ...],
    groups: IntArray,
    settings: SearchSettings,
    unit: str,
    measure: Measure | None = None,
) -> Decision:
    """Choose columns or directions at the reach asked for; keep plain ERM where that pays more.

    Regret decides first. Where it leaves nothing out, effects of the target that shift may leave,
    or a set of columns without which y is one population again.

    Parameters
    ----------
    cells : moments of each partition's environments and folds.
    environments : the same environments side by side.
    tests : whether, and in what, they differ.
    names : of the environments.
    unit : of the error.
    measure : measures the error where nothing shifts, for labels (`hetrisk.core.reach.brier`).
    """
    choice = choose(cells, environments, groups, settings)
    price = _pricing(choice, unit, measure)
    answer = _by_regret(choice, price, tests, groups, settings)
    for rule in (_by_effects, _by_population) if FORMS[settings.form].leaves_columns else ():
        if answer.verdict != INVARIANT:
            answer = rule(choice, price, tests, groups, settings) or answer
    if answer.verdict != INVARIANT:
        answer = replace(answer, priced=price(plain(choice.problem)))
    found, reason = answer.priced.model, answer.reason
    scores = leave_one_out(environments, found.refit, names)
    shifting = _shifting(choice, tests, groups)
    if answer.verdict == INVARIANT:
        reason = f"{reason} {contradiction(scores)}".strip()
    elif shifting.any() and (choice.varies & ~shifting).any():
        reason = f"{reason} {unpaid(shifting, groups, settings)}"
    return Decision(
        support=found.support,
        coef=found.coef,
        verdict=answer.verdict,
        reason=reason,
        evidence=_evidence(choice, found.support, tests, groups, settings),
        curve=answer.priced.curve,
        stability=answer.stability,
        agreement=found.agreement,
        leave_one_out=scores,
    )


@dataclass(frozen=True)
class _Priced:
    """A model and its curve."""

    model: Model
    curve: ReachCurve


@dataclass(frozen=True)
class _Answer:
    """A model with its curve, and whether it is to be used."""

    priced: _Priced
    verdict: str
    reason: str
    stability: FloatArray


Price = Callable[[Model], _Priced]


def _pricing(choice: Choice, unit: str, measure: Measure | None) -> Price:
    """What draws the curve of a model; the error of plain ERM is measured once."""
    base = None if measure is None else measure(plain(choice.problem).support, None)

    def price(model: Model) -> _Priced:
        start = None if measure is None or base is None else (_error(measure, model, base), base)
        return _Priced(model, _draw(choice, model, unit, start))

    return price


def _by_regret(
    choice: Choice, price: Price, tests: Tests, groups: IntArray, settings: SearchSettings
) -> _Answer:
    """The answer that pays most at the reach, in environments that differ beyond chance."""
    form, nothing = FORMS[settings.form], np.zeros(len(groups))
    made = price(form.make(choice.problem))
    if tests.chance is not None:
        reason = not_sure(len(choice.problem.environments.rows), tests.chance)
        return _Answer(made, HOMOGENEOUS, reason, nothing)
    stability = choice.stability if form.leaves_columns else nothing
    verdict, reason = _verdict(made, stability, choice, groups, settings)
    if form.leaves_columns and choice.refused:
        reason = f"{reason} {refused(choice.varies & ~choice.wanted, groups, settings)}"
    return _Answer(made, verdict, reason, stability)


def _shifting(choice: Choice, tests: Tests, groups: IntArray) -> BoolArray:
    """(d,) effects of the target whose mechanism differs, with their groups."""
    surely = groups[tests.effects < THRESHOLDS.sure]
    shifting: BoolArray = np.isin(groups, surely) & ~choice.keep
    return shifting


def _by_effects(
    choice: Choice, price: Price, tests: Tests, groups: IntArray, settings: SearchSettings
) -> _Answer | None:
    """Leave out effects of the target whose mechanism differs, where that pays; else None.

    Each was tested by itself: that it shifts needs no second opinion from resamples, and that it
    pays is asked for more often than not.
    """
    left = _shifting(choice, tests, groups)
    if not left.any():
        return None
    several = len(np.unique(groups[left])) > 1
    which = (
        "effects of the target that follow" if several else "an effect of the target that follows"
    )
    what = (
        f"{which} from it in another way in some of {len(choice.problem.environments.rows)} "
        f"environments ({p_text(float(tests.effects[left].min()))})"
    )
    return _without(left, what, choice, price, groups, settings, EVEN)


def _by_population(
    choice: Choice, price: Price, tests: Tests, groups: IntArray, settings: SearchSettings
) -> _Answer | None:
    """Leave out columns without which y is one population in all environments; else None.

    Which columns these are may hang on the rows: what has to hold on others is that it pays.
    """
    problem = choice.problem
    if tests.chance is not None and not tests.noise < THRESHOLDS.sure:
        return None
    found = one_population(
        problem.cells, problem.environments, choice.met, choice.costs, problem.reach, groups
    )
    if found is None:
        return None
    differ = "differ in their noise" if tests.chance is not None else "differ beyond chance"
    what = (
        f"{len(problem.environments.rows)} environments {differ}, and the target given the other "
        f"columns follows them alike in all, with noise of one size ({p_text(found.p_value)})"
    )
    left = ~found.columns & choice.varies
    return _without(left, what, choice, price, groups, settings, THRESHOLDS.agreement)


def _without(
    left: BoolArray,
    what: str,
    choice: Choice,
    price: Price,
    groups: IntArray,
    settings: SearchSettings,
    agreement: float,
) -> _Answer | None:
    """Leave some columns out, where that pays, in a share of resamples at least; else None.

    Tests say what leaves: in resamples it does so where that pays, all of it or none.
    """
    problem, stays = choice.problem, ~left & choice.varies
    if not stays.any():
        return None
    path = np.stack([~left, np.ones_like(left)])
    tried = resample_sets(problem.cells, problem.environments, path, path[:0], problem.reach)
    model = FORMS["columns"].make(replace(problem, rivals=path, resampled=tried, at=0, full=1))
    made = price(model)
    gain, worth = _worth(made, settings)
    pays = made.curve.break_even <= settings.reach and gain > 0
    if not pays or model.agreement < agreement:
        return None
    reason = f"{out_of(left, choice.varies, groups, settings)}: {what}. {worth}"
    return _Answer(made, INVARIANT, reason, np.where(left, model.agreement, 0.0))


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
    prices = column_prices(problem.environments, support, groups, problem.reach)
    return Evidence(
        prices.margin,
        prices.price,
        prices.regret,
        np.minimum(np.minimum(tests.columns * len(np.unique(groups)), 1.0), tests.effects),
        np.zeros(d, dtype=bool),
        tuple(_column_reason(j, support, choice, prices.margin, settings) for j in range(d)),
    )


def _error(measure: Measure, model: Model, plain: float) -> float:
    """Squared error of a model where nothing shifts; that of plain ERM is known."""
    if model.support.all() and not model.dense:
        return plain
    return measure(model.support, model.coef if model.dense else None)


def _verdict(
    made: _Priced,
    stability: FloatArray,
    choice: Choice,
    groups: IntArray,
    settings: SearchSettings,
) -> tuple[str, str]:
    """The verdict, and why: what leaves and what that is worth, or what speaks for plain ERM."""
    varies, form = choice.varies, FORMS[settings.form]
    found, drawn = made.model, made.curve
    left = varies & ~found.support
    gain, worth = _worth(made, settings)
    differs = f"{len(choice.problem.environments.rows)} environments differ beyond chance"
    if not (found.support & varies).any():
        return UNSTABLE, f"{differs}, and no column predicts alike in all of them."
    if drawn.break_even > settings.reach or gain <= 0:
        return HOMOGENEOUS, (
            f"{differs}, but at reach {settings.reach:g} nothing does better than plain ERM on "
            "all columns."
        )
    if form.leaves_columns and not choice.sure:
        doubt = (
            "the answer does not hold on other rows: whether most of what moves goes with "
            f"{listed(left, groups, settings)} hangs on some of them."
        )
    else:
        doubt = unsteady(found.where, found.agreement, left, stability, groups, settings)
    if doubt:
        return UNSTABLE, f"{differs}, but {doubt}"
    leaves = form.leaves_columns
    what = out_of(left, varies, groups, settings) if leaves else form.sentence
    return INVARIANT, f"{what}: {differs}. {worth}"


def _worth(made: _Priced, settings: SearchSettings) -> tuple[float, str]:
    """What a model gains at the reach, and that beside its price in a sentence or two."""
    model, drawn = made.model, made.curve
    at = int(np.searchsorted(drawn.reach, settings.reach))
    # Where plain ERM makes no error there is none to lower: what is left is rounding.
    gain = 1.0 - drawn.error[at] / max(drawn.error_erm[at], TINY)
    gain = gain if gain > EQUAL and drawn.error_erm[at] ** 2 > EXACT else min(gain, 0.0)
    price = drawn.error[0] / max(drawn.error_erm[0], TINY) - 1.0
    cost = f"costs {price:.1%} more error" if price > 0 else "costs nothing"
    return gain, (
        f"At reach {settings.reach:g} the error to expect is {gain:.0%} lower than plain ERM's; "
        f"where nothing shifts, that {cost}. It pays from reach {drawn.break_even:.2g} on, "
        f"{model.where}."
    )


def _column_reason(
    j: int, support: BoolArray, choice: Choice, margin: FloatArray, settings: SearchSettings
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
        return "Kept: asked for."
    if margin[j] >= 0:
        return f"Kept: leaving it out would raise {change}."
    return (
        f"Kept: leaving it out alone would lower {change}, but leaving columns out does not pay or "
        "does not remove enough of what moves."
    )
