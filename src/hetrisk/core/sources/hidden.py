"""Is y given x one population? If not: which columns must go, so that y given the rest is?

Rows that follow different slopes, with nothing to tell them apart, show in the distribution of y
about any mean: one regression with any noise does not describe it, two do. The calibrated score
(`hetrisk.core.sources.score`) says whether that is more than one population would show.

If it is, the two slopes do not say whom to blame: where a shortcut copies y in most rows, all
other slopes change with it. What does is that **y given the right columns is one population
again**. Sets to leave out are proposed by regret between the two slopes; each is asked how much
two slopes still gain once it is gone (all sets in one batch) and how much of the regret is left,
and those that pass both are tested by a score of their own, the smallest first.

Where a column goes along with the slope that rows follow, the flexible mean takes the two for an
interaction, and little is left for a score to see. So every interaction it found is asked whether
it is one (`hetrisk.core.sources.turns`); the column whose slope turns leaves where y given the rest
is one population.

For labels there is nothing to ask: a mixture of two probabilities is a probability, so y given x
is always one population.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np

from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.multiplicity import p_text
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows, RowSource
from hetrisk.core.reach.regret import Environments
from hetrisk.core.sources.candidate_sets import (
    environment_grams,
    proposed_sets,
    regrets,
    units_of,
)
from hetrisk.core.sources.effect import recognised
from hetrisk.core.sources.proposal import HIDDEN
from hetrisk.core.sources.question import (
    Case,
    Finding,
    Question,
    count_text,
    nothing_found,
)
from hetrisk.core.sources.score import ComparedPartition, Score, gain_pass, score
from hetrisk.core.sources.slopes import gains_from
from hetrisk.core.sources.turns import Turn, surest_turn, turning_columns

DOUBTED: Budget[int] = 6  # units of which every subset is looked at
TESTED: Budget[int] = 6  # sets that are tested, at most
MIXTURE_ROWS: Budget[int] = 5000  # of the sample, that mixtures are fitted to
CHANCE: Budget[int] = 6  # draws whose environments are kept, for what chance would show


@dataclass(frozen=True)
class Suspicion:
    """The score of all columns, and sets to leave out.

    Attributes
    ----------
    score : of y given all columns in play; None where nothing was asked.
    rows : the rows it was asked of.
    sets : (s, d) columns to leave out.
    gain : (s,) what two slopes still gain without them; risk : (s,) the squared error then.
    regret : (s,) share of the regret beyond chance that is left without them.
    turn : the surest slope that turns with a column; None where none does.
    level : of each test, corrected for their number.
    """

    score: Score | None
    rows: Rows
    sets: BoolArray
    gain: FloatArray
    risk: FloatArray
    regret: FloatArray
    turn: Turn | None = None
    level: float = 1.0

    @property
    def p_value(self) -> float:
        """The smallest, relative to the level of each test."""
        each = [found.p_value for found in (self.score, self.turn) if found is not None]
        return min(each, default=1.0)


class Hidden(Question[Suspicion]):
    """Slopes that differ between rows which nothing tells apart."""

    name = "hidden slopes"
    kind = HIDDEN

    def applies(self, family: Family) -> bool:
        """Numbers only: see above."""
        return family.shows_mixtures

    def propose(self, case: Case) -> Suspicion:
        """Score all columns in play and, where that is beyond chance, propose sets to leave."""
        rows = _within_bounds(case.sample, case.thresholds.least_share)
        none, nil = np.zeros((0, len(case.excluded)), dtype=bool), np.empty(0)
        case = _without_effects(case)
        at_bounds = len(rows) < min(MIXTURE_ROWS, len(case.sample)) / 2
        if at_bounds or len(case.support) == 0:
            return Suspicion(None, rows, none, nil, nil, nil)
        found = score(
            rows,
            case.groups,
            case.thresholds,
            case.support,
            case.thresholds.noise_block,
            # At most all columns are asked below whether they turn.
            decided=case.level / (1 + len(case.support)) if case.decide else 0.0,
        )
        asked = turning_columns(rows, found.columns.population, case.support)
        # One test of all columns, and one for each that may turn (Bonferroni).
        level = case.level / (1 + len(asked))
        turn = surest_turn(rows, asked, case.thresholds, level)
        if found.p_value >= level:
            return Suspicion(found, rows, none, nil, nil, nil, turn, level)
        sets = _sets(case, rows, found)
        gain, risk = _without(case, rows, found, sets)
        regret = _regret_left(case, rows, found, sets)
        return Suspicion(found, rows, sets, gain, risk, regret, turn, level)

    def test(self, case: Case, proposal: Suspicion) -> Finding:
        """Test sets, the most plausible first, until y given the rest is one population."""
        found, turn = proposal.score, proposal.turn
        if found is None:
            sentence = "Not asked: no column is left, or most rows are at a bound of the target."
            return nothing_found(self, case, 1.0, sentence)
        p_value = min(1.0, proposal.p_value * case.level / proposal.level)
        if proposal.p_value >= proposal.level:
            sentence = f"y given the columns is one population ({p_text(p_value)})."
            return nothing_found(self, case, p_value, sentence)
        case = _without_effects(case)
        partition: ComparedPartition = found.partition()
        chance: tuple[tuple[Environments, ...], ...] = ()
        gone, without = np.zeros_like(case.excluded), None
        if turn is not None and turn.p_value < proposal.level:
            gone, without = self._cure(case, proposal, _turning(case, turn))
        if not gone.any() and found.p_value < proposal.level:
            order = _order(case, proposal, found)
            order = order[_to_blame(case, proposal)[order]]
            tried = [j for i in order[:TESTED] for j in _and_with_more(case, proposal, int(i))]
            tried = list(dict.fromkeys(tried))[:TESTED]
            gone, without = self._cure(case, proposal, proposal.sets[tried])
        sentence = _sentence(case, gone, p_text(p_value), without)
        if turn is not None and _turns(case, proposal.rows, turn, partition, gone):
            partition = turn.partition
            sentence = f"A slope changes, and not because of another column: {sentence}"
        elif found.p_value < proposal.level:
            _, grams = _grams(proposal.rows, np.arange(len(case.excluded)), found)
            chance = (tuple(grams),)
        return replace(
            nothing_found(self, case, p_value, sentence),
            column_p_values=np.where(gone, p_value, 1.0),
            against=gone,
            safe=bool(gone.any()),
            partitions=(partition,),
            chance=chance,
        )

    def _cure(
        self, case: Case, proposal: Suspicion, sets: BoolArray
    ) -> tuple[BoolArray, Score | None]:
        """The first set without which y is one population, and the score it then has."""
        without = None
        for leave in sets:
            rest = np.flatnonzero(~case.excluded & ~leave)
            without = score(
                proposal.rows,
                case.groups,
                case.thresholds,
                rest,
                case.thresholds.noise_block,
                decided=case.thresholds.alpha,
            )
            if without.p_value >= case.thresholds.alpha:
                return leave, without
        return np.zeros_like(case.excluded), without

    def confirm(self, case: Case, finding: Finding, rows: RowSource) -> Finding:
        """Ask whether two slopes describe all rows better than one regression does.

        All coefficients stay those of the sample. In one population two slopes then lose: on rows
        they were not fitted to, what fitting had gained turns into its opposite.
        """
        partition = finding.partitions[0]
        assert isinstance(partition, ComparedPartition)
        if rows.sum(partial(gain_pass, partitions=(partition,)))[0] > 0.0:
            return finding
        sentence = "What a sample suggested is not borne out by all rows."
        return nothing_found(self, case, 1.0, sentence)


def _within_bounds(sample: Rows, at_bound: float) -> Rows:
    """At most `MIXTURE_ROWS` rows, without those at a bound where many are.

    Rows at a bound (nothing is recorded below zero) follow no slope at all: beside the others they
    look like a second one.
    """
    rows = sample.first(MIXTURE_ROWS)
    y = rows.y
    free = np.ones(len(y), dtype=bool)
    for bound in (y.min(), y.max()):
        if np.mean(y == bound) > at_bound:
            free &= y != bound
    return Rows(rows.X[free], y[free], rows.weight[free])


def _without_effects(case: Case) -> Case:
    """The case without columns that look like effects of the target.

    Given effects whose noise has heavy tails, y has two most likely values where they disagree:
    one population, and nothing like one regression. Their own question is about their mechanism.
    """
    return replace(case, excluded=case.excluded | recognised(case).effect)


def _turning(case: Case, turn: Turn) -> BoolArray:
    """(1, d) the column that turns, as a set; (0, d) where it is to stay or nothing would."""
    gone = (case.groups == case.groups[turn.turning]) & ~case.excluded
    if (gone & case.keep).any() or (gone | case.excluded).all():
        return np.zeros((0, len(gone)), dtype=bool)
    only: BoolArray = gone[None]
    return only


def _turns(case: Case, rows: Rows, turn: Turn, slopes: ComparedPartition, gone: BoolArray) -> bool:
    """Whether the column that leaves turns, and that describes the rows better than two slopes.

    Whoever found it out, a turn parts all rows; two slopes part those that contradict the
    interaction which the mean takes it for.
    """
    if not np.array_equal(_turning(case, turn), gone[None]):
        return False
    by_slopes, by_turn = gain_pass(rows, (slopes, turn.partition))
    return bool(by_turn > by_slopes)


def _sets(case: Case, rows: Rows, found: Score) -> BoolArray:
    """(s, d) sets of columns to leave: single units, what regret proposes, and what that mixes."""
    members = units_of(case.groups, case.keep | case.excluded)
    if len(members) == 0:
        return np.zeros((0, len(case.excluded)), dtype=bool)
    stay = case.support
    real, null = _grams(rows, stay, found)
    fixed: BoolArray = np.logical_not(members[:, stay].any(axis=0))
    kept = proposed_sets(real, null, members[:, stay], fixed)
    left = ~kept
    # Regret proposes whole sets; what several of them share is to be doubted most, and so is the
    # one column without which two slopes gain least.
    votes = left.sum(axis=0).astype(float)
    single = np.eye(len(members), dtype=bool)
    gain, _ = _without(case, rows, found, single @ members)
    votes[int(np.argmin(gain))] += len(left)
    order = np.argsort(-votes, kind="stable")
    doubted = order[votes[order] > 0][:DOUBTED]
    mixed = [
        np.isin(np.arange(len(members)), chosen)
        for size in range(1, len(doubted) + 1)
        for chosen in combinations(doubted, size)
    ]
    units = np.unique(np.vstack([single, left[left.any(axis=1)], *mixed]), axis=0)
    if fixed.sum() == 0:
        units = units[~units.all(axis=1)]
    sets: BoolArray = units @ members
    return sets


def _grams(rows: Rows, columns: IntArray, found: Score) -> tuple[Environments, list[Environments]]:
    """Moments of the environments of two slopes, in the rows and in targets of one population."""
    X, second = rows.X[:, columns], found.found.second[0].astype(np.float64)
    null = [
        environment_grams(X, draw, rows.weight, part)
        for draw, part in zip(found.draws[:CHANCE], found.second[:CHANCE], strict=True)
    ]
    return environment_grams(X, rows.y, rows.weight, second), null


def _regret_left(case: Case, rows: Rows, found: Score, sets: BoolArray) -> FloatArray:
    """(s,) share of the regret beyond chance that is left without each set.

    To leave out what predicts well hides two slopes behind noise: the score falls, but what
    differs still differs.
    """
    stay = case.support
    real, null = _grams(rows, stay, found)
    kept = np.vstack([np.ones((1, len(stay)), dtype=bool), ~sets[:, stay]])
    chance = np.mean([regrets(grams, kept)[1] for grams in null], axis=0)
    beyond = np.maximum(regrets(real, kept)[1] - chance, 0.0)
    left: FloatArray = beyond[1:] / max(float(beyond[0]), TINY)
    return left


def _without(
    case: Case, rows: Rows, found: Score, sets: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """(s,) gain of two slopes, and squared error of one, without each set of columns."""
    mask = found.columns.without(sets)
    # Units have the mean of all columns taken out; a smaller set must explain y itself.
    target = rows.y * found.columns.unit / found.columns.population.scale
    return gains_from(found.design, target, found.found.second[0], mask)


def _order(case: Case, proposal: Suspicion, found: Score) -> IntArray:
    """Sets that leave a gain of no more than chance come first, the smallest of them first.

    Of sets of one size, the one that leaves the least gain; gains that chance alone shows are
    alike, and there the better predictor comes first. (Not before: to leave out what predicts best
    hides two slopes behind noise, and to keep the shortcut predicts better.)
    """
    mean, sd = float(found.null.mean()), float(found.null.std())
    units = _units(case, proposal)[0].sum(axis=1)
    beyond = proposal.gain > float(found.null.max())
    # Gains within what chance shows are alike: the order among them would be noise.
    gain = np.maximum(proposal.gain, mean + sd)
    order: IntArray = np.lexsort((proposal.risk, gain, np.where(beyond, 0, units), beyond))
    return order


def _to_blame(case: Case, proposal: Suspicion) -> BoolArray:
    """(s,) small sets without which most regret is gone, while no part of them would do."""
    units, small = _units(case, proposal)
    cured = proposal.regret < 1.0 - case.thresholds.removed
    size = units.sum(axis=1)
    # Row i is inside column j: as many units in common as i has, and fewer than j has.
    inside = (units @ units.T == size[:, None]) & (size[:, None] < size)
    blamed: BoolArray = cured & small & ~(inside & cured[:, None]).any(axis=0)
    return blamed


def _and_with_more(case: Case, proposal: Suspicion, i: int) -> list[int]:
    """A set by its number, and before it the same with one more column, if there is one to add.

    Of two slopes that change together, one hides behind the noise that leaving out the other makes:
    y given the rest may pass for one population. A column is to be added if most of what is left
    goes with it, both of the regret between two slopes and of what they gain.
    """
    units, small = _units(case, proposal)
    size = units.sum(axis=1)
    wider = small & (units @ units[i] == size[i]) & (size == size[i] + 1)
    for still in (proposal.regret, proposal.gain):
        wider &= (still[i] > 0.0) & (still <= (1.0 - case.thresholds.removed) * still[i])
    added = np.flatnonzero(wider)
    return [*added[np.argsort(proposal.gain[added], kind="stable")[:1]].tolist(), i]


def _units(case: Case, proposal: Suspicion) -> tuple[IntArray, BoolArray]:
    """(s, u) which units the sets leave out, and (s,) sets that leave out half of them at most.

    A model of few columns has little regret, so a large set proves nothing.
    """
    first = np.unique(case.groups, return_index=True)[1]
    units = proposal.sets[:, first].astype(np.int64)
    return units, units.sum(axis=1) <= len(np.unique(case.groups[case.support])) // 2


def _sentence(case: Case, gone: BoolArray, numbers: str, without: Score | None) -> str:
    """What the score showed, and what cured it."""
    if not gone.any():
        return (
            f"y given the columns is not one population ({numbers}), and no set of columns was "
            "found that makes it one."
        )
    units = len(np.unique(case.groups[gone]))
    assert without is not None
    return (
        f"y given the columns is not one population ({numbers}); without "
        f"{count_text(units, 'column')} it is ({p_text(without.p_value)})."
    )
