"""From environments that differ to a decision, a verdict and its sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.multiplicity import p_text
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.blame import left_by_all
from hetrisk.core.reach.column_prices import column_prices
from hetrisk.core.reach.columns import choose_columns, take_back_path
from hetrisk.core.reach.curve import reach_curve
from hetrisk.core.reach.forms import FORMS, DecisionProblem, Model, plain
from hetrisk.core.reach.leave_one_out import leave_one_out
from hetrisk.core.reach.regret import Environments, fit_set
from hetrisk.core.reach.resampling import resample_sets, surely_cured
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
from hetrisk.core.reach.set_errors import evaluate_path
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
    environments: Environments,
    p_value: FloatArray,
    effects: FloatArray,
    names: tuple[str, ...],
    groups: IntArray,
    settings: SearchSettings,
    unit: str,
    chance: float | None = None,
    measure: Measure | None = None,
) -> Decision:
    """Choose columns or directions at the reach asked for; keep plain ERM where that pays more.

    Parameters
    ----------
    cells : moments of each partition's environments and folds.
    environments : the same environments side by side.
    p_value : (d,) that a column's coefficient is the same everywhere.
    effects : (d,) that an effect of the target follows from it in one way everywhere, corrected;
        one for columns that are no effects.
    names : of the environments.
    unit : of the error.
    chance : where the environments do not differ beyond chance, the p-value that says so.
    measure : measures the error where nothing shifts, for labels (`hetrisk.core.reach.brier`).
    """
    choice = _choose(cells, environments, effects, groups, settings)
    price = partial(_priced, choice, unit=unit, measure=measure)
    answer = _by_regret(choice, price, groups, settings, chance)
    if answer.verdict != INVARIANT:
        answer = _by_effects(choice, price, groups, settings) or answer
    reason = answer.reason
    if answer.verdict != INVARIANT:
        answer = replace(answer, **price(plain(choice.problem)))
        reason += f" {unpaid(choice.shifting, groups, settings)}" if choice.shifting.any() else ""
    found = answer.model
    scores = leave_one_out(environments, found.refit, names)
    if answer.verdict == INVARIANT:
        reason = f"{reason} {contradiction(scores)}".strip()
    return Decision(
        support=found.support,
        coef=found.coef,
        verdict=answer.verdict,
        reason=reason,
        evidence=_evidence(choice, found.support, p_value, groups, settings),
        curve=answer.curve,
        stability=answer.stability,
        agreement=found.agreement,
        leave_one_out=scores,
    )


@dataclass(frozen=True)
class _Answer:
    """A model with its curve, and whether it is to be used."""

    model: Model
    curve: ReachCurve
    verdict: str
    reason: str
    stability: FloatArray


Price = Callable[[Model], dict[str, Any]]


def _priced(
    choice: _Choice, model: Model, unit: str, measure: Measure | None = None
) -> dict[str, Any]:
    """A model and its curve."""
    start = None if measure is None else _start(measure, model, plain(choice.problem))
    return {"model": model, "curve": _draw(choice, model, unit, start)}


def _by_regret(
    choice: _Choice, price: Price, groups: IntArray, settings: SearchSettings, chance: float | None
) -> _Answer:
    """The answer that pays most at the reach, in environments that differ beyond chance."""
    form, nothing = FORMS[settings.form], np.zeros(len(groups))
    made = price(form.make(choice.problem))
    if chance is not None:
        reason = not_sure(len(choice.problem.environments.rows), chance)
        return _Answer(**made, verdict=HOMOGENEOUS, reason=reason, stability=nothing)
    stability = choice.stability if form.leaves_columns else nothing
    verdict, reason = _verdict(made["model"], made["curve"], stability, choice, groups, settings)
    if form.leaves_columns and choice.refused:
        reason = f"{reason} {refused(choice.varies & ~choice.wanted, groups, settings)}"
    return _Answer(**made, verdict=verdict, reason=reason, stability=stability)


def _by_effects(
    choice: _Choice, price: Price, groups: IntArray, settings: SearchSettings
) -> _Answer | None:
    """Leave out effects of the target whose mechanism differs, where that pays; else None.

    Each was tested by itself: that it leaves needs no second opinion from resamples.
    """
    left, stays = choice.shifting, ~choice.shifting & choice.varies
    if not left.any() or not stays.any():
        return None
    problem = replace(choice.problem, at=choice.without_effects)
    model = FORMS["columns"].make(problem)
    made = price(replace(model, refit=partial(_refit_set, columns=model.support)))
    gain, worth = _worth(made["model"], made["curve"], settings)
    if made["curve"].break_even > settings.reach or gain <= 0:
        return None
    surely = p_text(float(choice.effects[left].min()))
    reason = (
        f"{out_of(left, choice.varies, groups, settings)}: effects of the target that follow from "
        f"it in another way in some of {len(problem.environments.rows)} environments ({surely}). "
        f"{worth}"
    )
    return _Answer(**made, verdict=INVARIANT, reason=reason, stability=choice.stability)


def _refit_set(rest: Environments, columns: BoolArray) -> FloatArray:
    """The same columns in each of m resamples."""
    coef: FloatArray = fit_set(rest, columns).coef[:, 0]
    return coef


@dataclass(frozen=True)
class _Choice:
    """The set of columns to use, and what it was chosen among.

    Attributes
    ----------
    wanted : (d,) the set with the least E_k, whether or not it can be trusted.
    trusted, costs : (n, d) the sets met that can be, and what they cost.
    problem : what a form of the answer is made from; ``at`` is the number of the chosen set.
    stability : (d,) share of resamples in which each column leaves.
    sure : whether the chosen set removes most of the regret on other rows, too.
    effects : (d,) p-values of one mechanism for each effect of the target.
    shifting : (d,) effects that may leave because theirs differs, with their groups.
    without_effects : number of the set without them.
    varies, keep : (d,) columns that are not constant, and columns that never leave.
    """

    wanted: BoolArray
    trusted: BoolArray
    costs: Costs
    problem: DecisionProblem
    stability: FloatArray
    sure: bool
    effects: FloatArray
    shifting: BoolArray
    without_effects: int
    varies: BoolArray
    keep: BoolArray

    @property
    def refused(self) -> bool:
        """Whether a set would pay at the reach, and none does that can be trusted so far."""
        return self.problem.at == self.problem.full and not self.wanted.all()


def _choose(
    cells: list[CellMoments],
    environments: Environments,
    effects: FloatArray,
    groups: IntArray,
    settings: SearchSettings,
) -> _Choice:
    """Decide which columns leave.

    1. Look for sets with a small expected error at the reach.
    2. Of those that can be trusted so far (they pay where nothing is extrapolated, or what they
       leave out is to blame) take the one with the least.
    3. From it, take columns back one by one, those that cost least first, and stay with the largest
       trusted set whose error is within two standard errors of the least (over resamples), and
       which surely removes most of the regret: a column leaves only for a reason.
    """
    d, reach = environments.n_columns, settings.reach
    varies = np.diag(environments.pooled)[1 : d + 1] > 0
    keep = settings.kept(d) | ~varies
    found = choose_columns(environments, reach, groups, keep)
    by_all = partial(left_by_all, environments, groups=groups)
    everything = int(found.met.all(axis=1).argmax())
    trusted = found.costs.trusted(everything, by_all(found.met))
    best = found.met[found.costs.best(reach, trusted)]
    path = take_back_path(environments, reach, groups, best)
    full = len(path) - 1
    shifting = np.isin(groups, groups[effects < THRESHOLDS.sure]) & ~keep
    rivals = np.unique(np.vstack([found.rivals, ~shifting]), axis=0)
    resampled = resample_sets(cells, environments, path, rivals, reach)
    nested = evaluate_path(environments, path).costs
    sure = surely_cured(cells, environments, path, nested)
    # All columns are not one of the sets in between: whether leaving any out pays is asked below.
    between = np.arange(len(path)) < full
    at = resampled.within_errors(nested.trusted(full, by_all(path)) & sure & between)
    problem = DecisionProblem(cells, environments, reach, rivals, resampled, at, full)
    # Whether anything is to blame is asked of all rows; resamples, which carry the noise of the
    # rows twice, only of which columns.
    stability = resampled.stability(resampled.errors.costs.cured(full))
    return _Choice(
        wanted=found.support,
        trusted=found.met[trusted],
        costs=found.costs.some(trusted),
        problem=problem,
        stability=stability,
        sure=bool(sure[at]),
        effects=effects,
        shifting=shifting,
        without_effects=int((resampled.sets == ~shifting).all(axis=1).argmax()),
        varies=varies,
        keep=keep,
    )


def _draw(
    choice: _Choice, model: Model, unit: str, start: tuple[float, float] | None
) -> ReachCurve:
    """The reach curve of a model; ``start`` as in `hetrisk.core.reach.curve.reach_curve`."""
    sets, costs = choice.trusted, choice.costs
    environments, reach = choice.problem.environments, choice.problem.reach
    return reach_curve(environments, model.line, reach, sets, costs, model.lines, unit, start)


def _evidence(
    choice: _Choice,
    support: BoolArray,
    p_value: FloatArray,
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
        np.minimum(p_value * len(np.unique(groups)), 1.0),
        np.zeros(d, dtype=bool),
        tuple(_column_reason(j, support, choice, prices.margin, settings) for j in range(d)),
    )


def _start(measure: Measure, model: Model, plain: Model) -> tuple[float, float]:
    """Squared errors of a model and of plain ERM, which is measured once where it is the model."""
    base = measure(plain.support, None)
    if model.support.all() and not model.dense:
        return base, base
    return measure(model.support, model.coef if model.dense else None), base


def _verdict(
    found: Model,
    drawn: ReachCurve,
    stability: FloatArray,
    choice: _Choice,
    groups: IntArray,
    settings: SearchSettings,
) -> tuple[str, str]:
    """The verdict, and why: what leaves and what that is worth, or what speaks for plain ERM."""
    varies, form = choice.varies, FORMS[settings.form]
    left = varies & ~found.support
    gain, worth = _worth(found, drawn, settings)
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


def _worth(model: Model, drawn: ReachCurve, settings: SearchSettings) -> tuple[float, str]:
    """What a model gains at the reach, and that beside its price in a sentence or two."""
    at = int(np.searchsorted(drawn.reach, settings.reach))
    gain = 1.0 - drawn.error[at] / max(drawn.error_erm[at], TINY)
    price = drawn.error[0] / max(drawn.error_erm[0], TINY) - 1.0
    cost = f"costs {price:.1%} more error" if price > 0 else "costs nothing"
    return gain, (
        f"At reach {settings.reach:g} the error to expect is {gain:.0%} lower than plain ERM's; "
        f"where nothing shifts, that {cost}. It pays from reach {drawn.break_even:.2g} on, "
        f"{model.where}."
    )


def _column_reason(
    j: int, support: BoolArray, choice: _Choice, margin: FloatArray, settings: SearchSettings
) -> str:
    """What became of a column, in a sentence."""
    if not choice.varies[j]:
        return "Left out: it never varies."
    change = f"the error at reach {settings.reach:g} by {share(abs(float(margin[j])))}"
    if not support[j] and margin[j] >= 0:
        return f"Left out: taken back, it would raise {change}."
    if not support[j]:
        return (
            f"Left out: an effect of the target that shifts ({p_text(float(choice.effects[j]))})."
        )
    if choice.keep[j]:
        return "Kept: asked for."
    if margin[j] >= 0:
        return f"Kept: leaving it out would raise {change}."
    return (
        f"Kept: leaving it out alone would lower {change}, but leaving columns out does not pay or "
        "does not remove enough of what moves."
    )
