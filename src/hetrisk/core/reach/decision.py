"""From environments that differ to a decision, a verdict and its sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.named_numbers import Constant
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.blame import left_by_all
from hetrisk.core.reach.column_prices import column_prices
from hetrisk.core.reach.columns import choose_columns, take_back_path
from hetrisk.core.reach.curve import reach_curve
from hetrisk.core.reach.forms import FORMS, DecisionProblem, Model, plain
from hetrisk.core.reach.leave_one_out import leave_one_out
from hetrisk.core.reach.regret import Environments
from hetrisk.core.reach.resampling import resample_sets, surely_cured
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

LISTED: Constant[int] = 5  # columns named in a sentence
LARGEST: Constant[float] = 9.99  # change of an error that a sentence tells in full
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
    names : of the environments.
    unit : of the error.
    chance : where the environments do not differ beyond chance, the p-value that says so.
    measure : measures the error where nothing shifts, for labels (`hetrisk.core.reach.brier`).
    """
    form, nothing = FORMS[settings.form], np.zeros(environments.n_columns)
    choice = _choose(cells, environments, groups, settings)
    other, found = plain(choice.problem), form.make(choice.problem)
    start = None if measure is None else _start(measure, found, other)
    drawn = _draw(choice, found, unit, start)
    stability = choice.stability if form.leaves_columns else nothing
    verdict, reason = _verdict(found, drawn, stability, choice, groups, settings)
    if form.leaves_columns and choice.refused:
        reason = f"{reason} {_refused(choice, groups, settings)}"
    if chance is not None:
        verdict, stability = HOMOGENEOUS, nothing
        reason = _not_sure(len(environments.rows), chance)
    if verdict != INVARIANT:
        found = other
        drawn = _draw(choice, other, unit, None if start is None else (start[1], start[1]))
    scores = leave_one_out(environments, found.refit, names)
    if verdict == INVARIANT:
        reason = f"{reason} {_contradiction(scores)}".strip()
    return Decision(
        support=found.support,
        coef=found.coef,
        verdict=verdict,
        reason=reason,
        evidence=_evidence(choice, found.support, p_value, groups, settings),
        curve=drawn,
        stability=stability,
        agreement=found.agreement,
        leave_one_out=scores,
    )


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
    varies, keep : (d,) columns that are not constant, and columns that never leave.
    """

    wanted: BoolArray
    trusted: BoolArray
    costs: Costs
    problem: DecisionProblem
    stability: FloatArray
    sure: bool
    varies: BoolArray
    keep: BoolArray

    @property
    def refused(self) -> bool:
        """Whether a set would pay at the reach, and none does that can be trusted so far."""
        return self.problem.at == self.problem.full and not self.wanted.all()


def _choose(
    cells: list[CellMoments], environments: Environments, groups: IntArray, settings: SearchSettings
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
    resampled = resample_sets(cells, environments, path, found.rivals, reach)
    nested = evaluate_path(environments, path).costs
    sure = surely_cured(cells, environments, path, nested)
    # All columns are not one of the sets in between: whether leaving any out pays is asked below.
    between = np.arange(len(path)) < full
    at = resampled.within_errors(nested.trusted(full, by_all(path)) & sure & between)
    problem = DecisionProblem(cells, environments, reach, found.rivals, resampled, at, full)
    # Whether anything is to blame is asked of all rows; resamples, which carry the noise of the
    # rows twice, only of which columns.
    stability = resampled.stability(resampled.errors.costs.cured(full))
    met, costs = found.met[trusted], found.costs.some(trusted)
    return _Choice(found.support, met, costs, problem, stability, bool(sure[at]), varies, keep)


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
    at = int(np.searchsorted(drawn.reach, settings.reach))
    gain = 1.0 - drawn.error[at] / max(drawn.error_erm[at], TINY)
    price = drawn.error[0] / max(drawn.error_erm[0], TINY) - 1.0
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
    if form.leaves_columns:
        which = listed(left, groups, settings)
        gone, all_of_them = (len(np.unique(groups[some])) for some in (left, varies))
        what = f"{gone} of {all_of_them} columns left out ({which})"
    else:
        what = form.sentence
    cost = f"costs {price:.1%} more error" if price > 0 else "costs nothing"
    return INVARIANT, (
        f"{what}: {differs}. At reach {settings.reach:g} the error to expect is {gain:.0%} lower "
        f"than plain ERM's; where nothing shifts, that {cost}. It pays from reach "
        f"{drawn.break_even:.2g} on, {found.where}."
    )


def unsteady(
    where: str,
    agreement: float,
    left: BoolArray,
    stability: FloatArray,
    groups: IntArray,
    settings: SearchSettings,
) -> str:
    """What does not hold on other rows, in words; empty where everything does.

    ``where`` says on how many it pays; ``left`` (d,) are columns that leave as a set.
    """
    doubted = left & (stability < THRESHOLDS.agreement)
    if agreement < THRESHOLDS.agreement:
        doubted, what = left, f"{where} it would pay"
    elif doubted.any():
        what = "in too many resamples other columns would leave, or none"
    else:
        return ""
    doubt = f" In doubt: {listed(doubted, groups, settings)}." if doubted.any() else ""
    return f"the answer does not hold on other rows: {what}.{doubt}"


def _not_sure(count: int, p_value: float) -> str:
    """Why nothing is done about environments that do not surely differ."""
    if p_value < THRESHOLDS.alpha:
        what = "differ by less than three standard errors"
    else:
        what = "do not differ beyond chance"
    return f"The {count} environments {what} (p = {p_value:.2g}): plain ERM on all columns."


def _refused(choice: _Choice, groups: IntArray, settings: SearchSettings) -> str:
    """Why columns that would pay at the reach stay."""
    left = choice.varies & ~choice.wanted
    return (
        f"Without {listed(left, groups, settings)} the environment that moves most would suffer "
        "less, but not enough of what moves would be gone for them to be to blame: other relations "
        "move as well, and no column is left out."
    )


def listed(chosen: BoolArray, groups: IntArray, settings: SearchSettings) -> str:
    """Names of the columns chosen; those of one group, the levels of a category, are one."""
    _, first, size = np.unique(groups[chosen], return_index=True, return_counts=True)
    names = [settings.name(int(j)) for j in np.flatnonzero(chosen)[first]]
    # A level is named as its column and its value.
    names = [n.rpartition("=")[0] or n if s > 1 else n for n, s in zip(names, size, strict=True)]
    shown = ", ".join(names[:LISTED])
    more = len(names) - LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def _contradiction(scores: tuple[EnvironmentScore, ...]) -> str:
    """Say so where environments left out did worse with this model than with plain ERM."""
    if len(scores) < 3:
        return ""
    gap = np.array([score.error**2 - score.error_erm**2 for score in scores])
    error = float(gap.std(ddof=1) / np.sqrt(len(gap)))
    if gap.mean() <= error:
        return ""
    errors = np.array([(score.error, score.error_erm) for score in scores])
    model, plain = np.sqrt((errors**2).mean(axis=0))
    return (
        "Among the environments seen it did not pay: fitted to all but one and tried on that one, "
        f"it erred {model / plain - 1:.1%} more than plain ERM. It is for shifts beyond those."
    )


def _column_reason(
    j: int, support: BoolArray, choice: _Choice, margin: FloatArray, settings: SearchSettings
) -> str:
    """What became of a column, in a sentence."""
    if not choice.varies[j]:
        return "Left out: it never varies."
    change = f"the error at reach {settings.reach:g} by {_share(abs(float(margin[j])))}"
    if not support[j]:
        return f"Left out: taken back, it would raise {change}."
    if choice.keep[j]:
        return "Kept: asked for."
    if margin[j] >= 0:
        return f"Kept: leaving it out would raise {change}."
    return (
        f"Kept: leaving it out alone would lower {change}, but leaving columns out does not pay or "
        "does not remove enough of what moves."
    )


def _share(change: float) -> str:
    """A relative change; nobody reads 8929944.6%."""
    return f"{change:.1%}" if change < LARGEST else f"more than {LARGEST:.0%}"
