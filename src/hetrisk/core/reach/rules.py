"""The rules that say which columns leave, in the order in which they are asked.

1. *Regret* (`by_regret`): the set with the least error to expect at the reach, if it is to blame
   and the same columns leave on other rows.
2. *Effects* (`by_effects`): columns that follow from the target, in another way in some
   environments. They leave beside what regret leaves out, too, where that pays more.
3. *One population* (`by_population`): a set without which y follows the other columns in one way,
   with noise of one size, in all environments.

An answer counts only where it pays within the reach, and more than the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from hetrisk.core.numerics.floors import EQUAL, EXACT, TINY
from hetrisk.core.numerics.multiplicity import p_text
from hetrisk.core.numerics.named_numbers import Constant
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.choice import Choice
from hetrisk.core.reach.forms import FORMS, Model, refit_set
from hetrisk.core.reach.population import PopulationSet, one_population
from hetrisk.core.reach.regret import says_nothing
from hetrisk.core.reach.resampling import resample_sets
from hetrisk.core.reach.sentences import EMPTY, listed, not_sure, out_of, refused, several, unsteady
from hetrisk.core.result import HOMOGENEOUS, INVARIANT, UNSTABLE, ReachCurve, SearchSettings
from hetrisk.core.thresholds import THRESHOLDS

EVEN: Constant[float] = 0.5  # share of resamples that is as often as not
PERCENT: Constant[float] = 0.01  # least gain that a sentence tells as a number


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


@dataclass(frozen=True)
class Priced:
    """A model and its curve."""

    model: Model
    curve: ReachCurve


@dataclass(frozen=True)
class Answer:
    """A model with its curve, and whether it is to be used; plain ERM is where it is not.

    ``stability`` (d,) is the share of resamples in which each column leaves.
    """

    priced: Priced | None
    verdict: str
    reason: str
    stability: FloatArray

    @property
    def stands(self) -> bool:
        """Whether the model is to be used."""
        return self.verdict == INVARIANT


@dataclass(frozen=True)
class Facts:
    """What rules go by.

    Attributes
    ----------
    choice : the columns that regret alone would leave out.
    tests : whether, and in what, the environments differ.
    price : draws the curve of a model.
    groups : (d,) columns that the user calls one group.
    settings : of the search.
    """

    choice: Choice
    tests: Tests
    price: Callable[[Model], Priced]
    groups: IntArray
    settings: SearchSettings

    @property
    def environments(self) -> str:
        """The environments in words: of several sources the same rows are in several."""
        partition = self.choice.problem.environments.partition
        sources = len(np.unique(partition))
        if sources > 1:
            return f"the environments of {sources} sources"
        return f"{len(partition)} environments"

    @property
    def shifting(self) -> BoolArray:
        """(d,) effects of the target whose mechanism differs, with their groups."""
        groups = self.choice.groups
        surely = groups[self.tests.effects < THRESHOLDS.sure]
        shifting: BoolArray = np.isin(groups, surely) & ~self.choice.keep
        return shifting


def by_regret(facts: Facts) -> Answer:
    """The answer that pays most at the reach, in environments that differ beyond chance."""
    choice, groups, settings = facts.choice, facts.groups, facts.settings
    form, nothing = FORMS[settings.form], np.zeros(len(groups))
    if facts.tests.chance is not None:
        return Answer(None, HOMOGENEOUS, not_sure(facts.environments, facts.tests.chance), nothing)
    made = facts.price(form.make(choice.problem))
    stability = choice.stability if form.leaves_columns else nothing
    verdict, reason = _verdict(facts, made, stability)
    reason = f"{reason[:1].upper()}{reason[1:]}"
    if form.leaves_columns and choice.refused:
        reason = f"{reason} {refused(choice.varies & ~choice.wanted, groups, settings)}"
    return Answer(made, verdict, reason, stability)


def by_effects(facts: Facts, so_far: Answer) -> Answer | None:
    """Leave out effects of the target whose mechanism differs, where that pays; else None.

    Beside what is left out so far, if that is anything. Each was tested by itself: that it shifts
    needs no second opinion from resamples, and that it pays is asked for as often as not.
    """
    left, before = facts.shifting, _left_out(facts, so_far)
    new = left & ~before
    if not new.any():
        return None
    both = several(new, facts.groups, facts.settings)
    which = "effects of the target that follow" if both else "an effect of the target that follows"
    p_value = p_text(float(facts.tests.effects[new].min()))
    if not before.any():
        what = f"{which} from it in another way in some of {facts.environments} ({p_value})"
        return _without(facts, left, what, EVEN)
    what = (
        f"{facts.environments} differ beyond chance, and {which} from it in another way in "
        f"some of them {'leave' if both else 'leaves'} as well ({p_value})"
    )
    answer = _without(facts, left | before, what, EVEN)
    if answer is None or _at_reach(facts, answer) >= _at_reach(facts, so_far):
        return None
    return replace(answer, stability=np.where(left, answer.stability, so_far.stability))


def by_population(facts: Facts, so_far: Answer) -> Answer | None:
    """Leave out columns without which y is one population in all environments; else None.

    Asked where nothing is left out so far.
    """
    choice, chance = facts.choice, facts.tests.chance
    if so_far.stands or (chance is not None and not facts.tests.noise < THRESHOLDS.sure):
        return None
    differ = "differ in their noise" if chance is not None else "differ beyond chance"
    for found, stability in _populations(facts):
        what = (
            f"{facts.environments} {differ}, and the target given the other columns follows "
            f"them alike in all, with noise of one size ({p_text(found.p_value)})"
        )
        left = ~found.columns & choice.varies
        answer = _without(facts, left, what, THRESHOLDS.agreement)
        if answer is not None:
            return answer if stability is None else replace(answer, stability=stability)
    return None


RULES: Final[tuple[Callable[[Facts, Answer], Answer | None], ...]] = (by_effects, by_population)


def _left_out(facts: Facts, answer: Answer) -> BoolArray:
    """(d,) columns that an answer leaves out."""
    if answer.priced is None or not answer.stands:
        return np.zeros_like(facts.choice.varies)
    return facts.choice.varies & ~answer.priced.model.support


def _at_reach(facts: Facts, answer: Answer) -> float:
    """Error to expect of an answer's model at the reach."""
    assert answer.priced is not None
    curve = answer.priced.curve
    return float(curve.error[np.searchsorted(curve.reach, facts.settings.reach)])


def _populations(facts: Facts) -> Iterator[tuple[PopulationSet, FloatArray | None]]:
    """Columns given which y is one population, and how often those that leave do so, if known.

    First where the differences in noise go along. Then what regret chose, if each column leaves as
    often as not where it chooses again.
    """
    choice, problem = facts.choice, facts.choice.problem
    found = one_population(
        problem.cells,
        problem.environments,
        choice.met,
        choice.costs,
        problem.reach,
        choice.groups,
        choice.certificate,
    )
    if found is not None:
        yield found, None
    if facts.tests.chance is not None or not choice.sure:
        return
    left = ~choice.columns & choice.varies
    if left.any() and (choice.stability[left] >= EVEN).all() and choice.one_population is not None:
        yield PopulationSet(choice.columns, choice.one_population), choice.stability


def _without(facts: Facts, left: BoolArray, what: str, agreement: float) -> Answer | None:
    """Leave some columns out, where that pays, in a share of resamples at least; else None.

    Tests say what leaves: in resamples it does so where that pays, all of it or none.
    """
    problem, settings = facts.choice.problem, facts.settings
    varies = facts.choice.varies
    if says_nothing(problem.environments, ~left & varies):
        return None
    path = np.stack([~left, np.ones_like(left)])
    tried = resample_sets(problem.cells, problem.environments, path, path[:0], problem.reach)
    model = FORMS["columns"].make(replace(problem, rivals=path, resampled=tried, at=0, full=1))
    # Without an environment the same columns leave: tests chose them, not how much regret goes.
    made = facts.price(replace(model, refit=partial(refit_set, columns=path[0])))
    gain, worth = _worth(made, settings)
    pays = made.curve.break_even <= settings.reach and gain > 0
    if not pays or model.agreement < agreement:
        return None
    reason = f"{out_of(left, varies, facts.groups, settings)}: {what}. {worth}"
    return Answer(made, INVARIANT, reason, np.where(left, model.agreement, 0.0))


def _verdict(facts: Facts, made: Priced, stability: FloatArray) -> tuple[str, str]:
    """The verdict, and why: what leaves and what that is worth, or what speaks for plain ERM."""
    choice, groups, settings = facts.choice, facts.groups, facts.settings
    varies, form = choice.varies, FORMS[settings.form]
    found, drawn = made.model, made.curve
    left = varies & ~found.support
    gain, worth = _worth(made, settings)
    differs = f"{facts.environments} differ beyond chance"
    stays = found.support & varies
    if not stays.any():
        return UNSTABLE, f"{differs}, and no column predicts alike in all of them."
    if left.any() and says_nothing(choice.problem.environments, stays):
        return UNSTABLE, f"{differs}, and without {listed(left, groups, settings)} {EMPTY}."
    if drawn.break_even > settings.reach or gain <= 0:
        return HOMOGENEOUS, (
            f"{differs}, but at reach {settings.reach:g} nothing{_keeping(facts)} does better than "
            "plain ERM on all columns."
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


def _keeping(facts: Facts) -> str:
    """Which columns any answer was to keep, if some were."""
    kept = facts.settings.kept(len(facts.groups)) & facts.choice.varies
    return f" that keeps {listed(kept, facts.groups, facts.settings)}" if kept.any() else ""


def _worth(made: Priced, settings: SearchSettings) -> tuple[float, str]:
    """What a model gains at the reach, and that beside its price in a sentence or two."""
    model, drawn = made.model, made.curve
    at = int(np.searchsorted(drawn.reach, settings.reach))
    # Where plain ERM makes no error there is none to lower: what is left is rounding.
    gain = 1.0 - drawn.error[at] / max(drawn.error_erm[at], TINY)
    gain = gain if gain > EQUAL and drawn.error_erm[at] ** 2 > EXACT else min(gain, 0.0)
    price = drawn.error[0] / max(drawn.error_erm[0], TINY) - 1.0
    cost = f"costs {price:.1%} more error" if price > 0 else "costs nothing"
    lower = f"{gain:.0%}" if gain >= PERCENT else "less than 1%"
    return gain, (
        f"At reach {settings.reach:g} the error to expect is {lower} lower than plain ERM's; "
        f"where nothing shifts, that {cost}. It pays from reach {drawn.break_even:.2g} on, "
        f"{model.where}."
    )
