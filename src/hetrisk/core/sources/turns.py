"""Does a slope turn with other columns, or do these only go along with what turns it?

A mean may bend: where a column ``a`` says so, the slope of ``b`` is another one. That is an
interaction, one population, and nothing to leave out. But ``a`` may be a mark of environments in
which the slope of ``b`` differs (a site that shifts a, say), and then it errs now and then: at
values of a which both environments show, y follows either slope, and no function of x says which.
The mark may be one column or what several say together; it is the direction in which the chance of
the other slope rises. Of what b says of y, alone and in products with others, everything else taken
out, three descriptions are compared:

* *bent*: b and the terms of the flexible mean in which it stands;
* *cut*: two regressions on (1, b), one for either side of some value of a;
* *mixed*: the same two, each row following the second with a chance that is logistic in a,

all with the same two-part noise (`hetrisk.core.sources.one_regression`). An interaction is
described by the first, or, where it is a step, by the second, to which the third can come as close
as it likes without being better. The gain of the third over the better of the others is set against
the same on targets drawn from the better one, by the score that hidden slopes have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_expit

from hetrisk.core.numerics.floors import ROUNDING
from hetrisk.core.numerics.linear import weighted_coefficients
from hetrisk.core.numerics.named_numbers import Budget, Constant
from hetrisk.core.numerics.rows import FloatArray, IntArray, Rows
from hetrisk.core.sources.cuts import best_cuts
from hetrisk.core.sources.design import BatchDesign, BrokenDesign, Single
from hetrisk.core.sources.experts import Experts, fit_experts
from hetrisk.core.sources.flexible import Population
from hetrisk.core.sources.one_regression import OneRegression, one_regression
from hetrisk.core.sources.score import (
    DRAWS,
    FIRST,
    SPECIAL,
    ComparedPartition,
    Regressions,
    noise_parts,
    p_value_of,
    standardised_gain,
)
from hetrisk.core.thresholds import Thresholds

MARKS: Budget[int] = 8  # columns whose direction a slope may go along with
SEED: Constant[int] = 20211  # of the draws


@dataclass(frozen=True)
class TurningRows:
    """Rows as a column that may turn sees them.

    Attributes
    ----------
    marks : (n, g) columns that its slope may go along with.
    bent, straight : (n, 1 + k) and (n, 2) columns of the descriptions, over the size of the noise.
    mean, size : (n,) mean of all else, size of the noise.
    """

    marks: FloatArray
    bent: FloatArray
    straight: FloatArray
    mean: FloatArray
    size: FloatArray

    def units(self, y: FloatArray) -> FloatArray:
        """(n,) what is not said by all else, over the size of the noise."""
        units: FloatArray = (y - self.mean) / self.size
        return units

    def index(self, weights: FloatArray) -> FloatArray:
        """(n,) constant and marks, weighted by (1 + g)."""
        index: FloatArray = weights[0] + self.marks @ weights[1:]
        return index

    def broken(self, cut: FloatArray) -> FloatArray:
        """(n, 4) columns with a regression of their own on either side of a cut (1 + g)."""
        return np.hstack([self.straight, self.straight * (self.index(cut) > 0)[:, None]])


@dataclass(frozen=True)
class TurningColumn:
    """A column that may turn, what it says of the target, and what all else says.

    Attributes
    ----------
    support : (m,) columns of the table that the population is given.
    turning, marks : places, among these, of the column whose slope turns, and of those (g,) that it
        may go along with.
    own : (k,) places, among the population's columns and terms, of what the column says.
    population : of y given the support.
    centre, spread : (k,) of what it says; unit : median size of the noise.
    """

    support: IntArray
    turning: int
    marks: IntArray
    own: IntArray
    population: Population
    centre: FloatArray
    spread: FloatArray
    unit: float

    def __call__(self, X: FloatArray) -> TurningRows:
        """Any rows."""
        seen = X[:, self.support]
        every = self.population.columns_at(seen)
        rest = self.population.coef.copy()
        # All that the column says is left to the descriptions that are compared.
        rest[1 + self.own] = 0.0
        size = self.population.scale_at(seen)
        ones, over = np.ones((len(X), 1)), (self.unit / size)[:, None]
        bent = np.hstack([ones, (every[:, self.own] - self.centre) / self.spread]) * over
        straight = np.hstack([ones, seen[:, [self.turning]]]) * over
        return TurningRows(seen[:, self.marks], bent, straight, rest[0] + every @ rest[1:], size)


@dataclass(frozen=True)
class TurnPartition(ComparedPartition):
    """Rows told apart by which of two regressions they follow, other columns going along.

    Attributes
    ----------
    column : that turns.
    chance : (1 + g,) of constant and marks: the logit of following the second.
    two, one : the two regressions, and the one they are set against.
    cut : (1 + g,) of what is positive on one side of the cut at which that one breaks, None where
        it bends.
    """

    column: TurningColumn
    chance: FloatArray
    two: Regressions
    one: Regressions
    cut: FloatArray | None

    @property
    def n_environments(self) -> int:
        """Two."""
        return 2

    def responsibilities(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """(n, 2) probabilities of either regression."""
        log = self._log_joint(self.column(X), y)
        share: FloatArray = np.exp(log - np.logaddexp(log[:, 0], log[:, 1])[:, None])
        return share

    def log_ratio(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """(n,) log density under both regressions together less that under one."""
        seen = self.column(X)
        log = self._log_joint(seen, y)
        single = seen.bent if self.cut is None else seen.broken(self.cut)
        one = self.one.log_joint(single, seen.units(y))[:, 0]
        ratio: FloatArray = np.logaddexp(log[:, 0], log[:, 1]) - one
        return ratio

    def _log_joint(self, seen: TurningRows, y: FloatArray) -> FloatArray:
        logit = seen.index(self.chance)
        chance = np.column_stack([log_expit(-logit), log_expit(logit)])
        joint: FloatArray = self.two.log_joint(seen.straight, seen.units(y)) + chance
        return joint


@dataclass(frozen=True)
class Turn:
    """A column whose slope turns along with others, and how sure that is.

    Attributes
    ----------
    turning : the column, of the table.
    value, p_value : score and p-value of one population.
    partition : the rows by the slope they follow.
    """

    turning: int
    value: float
    p_value: float
    partition: TurnPartition


def turning_columns(rows: Rows, population: Population, support: IntArray) -> list[TurningColumn]:
    """What may turn, and along with what: every column that the mean multiplies with another."""
    m = len(support)
    columns = {
        atom.columns[0]
        for term in population.terms
        if len(term.columns) == 2 and max(term.columns) < m
        for atom in term.atoms
        if atom.kind == "column"
    }
    return [_turning(rows, population, support, turning) for turning in sorted(columns)]


def _turning(rows: Rows, population: Population, support: IntArray, turning: int) -> TurningColumn:
    """A column with those that its slope changes most with, by least squares."""
    X = rows.X[:, support]
    others = np.flatnonzero(np.arange(len(support)) != turning)
    design = np.column_stack([np.ones(len(X)), X, X[:, others] * X[:, [turning]]])
    weights = np.linalg.lstsq(design, rows.y, rcond=None)[0][-len(others) :]
    marks = np.sort(others[np.argsort(-np.abs(weights), kind="stable")[:MARKS]])
    terms = population.terms
    both = [i for i, t in enumerate(terms) if turning in t.columns and len(t.columns) > 1]
    own = np.array([turning, *(len(support) + i for i in both)], dtype=np.int64)
    values = population.columns_at(X)[:, own]
    return TurningColumn(
        support,
        turning,
        marks,
        own,
        population,
        values.mean(axis=0),
        values.std(axis=0),
        float(np.median(population.scale)),
    )


def surest_turn(
    rows: Rows, columns: list[TurningColumn], thresholds: Thresholds, level: float
) -> Turn | None:
    """The surest of several; None where there are none.

    At ``level`` it is decided whether it turns: where a few draws do, no more are made, and the
    p-value is the one that they allow for.
    """
    random = np.random.default_rng(SEED)
    blur = thresholds.blur * random.standard_normal((1, len(rows)))
    seen = [column(rows.X) for column in columns]
    compared = [_compare(one, one.units(rows.y) + blur, rows.weight) for one in seen]
    if not compared:
        return None
    best = int(np.argmax([float(one.gain[0]) for one in compared]))
    column, found = columns[best], compared[best]
    value = standardised_gain(np.append(found.gain, np.zeros(2)), thresholds.misfit)
    p_value = p_value_of(value, DRAWS)
    # Only draws can say that it is not chance; that it is nothing special shows without.
    if p_value < level:
        null = _null(rows, column.population, seen[best], found, thresholds)
        gain = np.append(found.gain, _compare(seen[best], null[:FIRST], rows.weight, found).gain)
        value = standardised_gain(gain, thresholds.misfit)
        p_value = p_value_of(value, FIRST)
        if value > SPECIAL and p_value >= level:
            gain = np.append(gain, _compare(seen[best], null[FIRST:], rows.weight, found).gain)
            value = standardised_gain(gain, thresholds.misfit)
            p_value = p_value_of(value, DRAWS)
    turning = int(column.support[column.turning])
    return Turn(turning, value, p_value, found.partition(column))


def _null(
    rows: Rows, population: Population, seen: TurningRows, found: _Compared, thresholds: Thresholds
) -> FloatArray:
    """(DRAWS, n) targets of the better of the two descriptions by one population."""
    single = seen.bent if found.cut is None else seen.broken(found.cut)
    fit = found.bent if found.cut is None else found.broken
    mean = single @ fit.coef[0].astype(np.float64)
    random = np.random.default_rng(SEED)
    # Draws keep the shape of the noise along the mean, as those of hidden slopes do.
    drawn = replace(population, mean=mean, unit=seen.units(rows.y) - mean)
    Y = mean + drawn.draws(DRAWS, thresholds.noise_block, random)
    blurred: FloatArray = Y + thresholds.blur * random.standard_normal(Y.shape)
    return blurred


@dataclass(frozen=True)
class _Compared:
    """Descriptions of B targets: bent, broken at a cut, and mixed.

    ``sharp`` (B,) log likelihoods of the same two regressions as the mixed, with a chance as steep
    as a step; ``cuts`` (B, 1 + g) of the broken. Where the mixed is no better than the others
    already, neither is sought further.
    """

    bent: OneRegression
    broken: OneRegression
    sharp: Single
    mixed: Experts
    cuts: FloatArray

    @property
    def cut(self) -> FloatArray | None:
        """Where the first target breaks; None where it bends."""
        broken = max(self.broken.log_likelihood[0], self.sharp[0])
        return None if self.bent.log_likelihood[0] >= broken else self.cuts[0]

    @property
    def gain(self) -> FloatArray:
        """(B,) of the mixed over the best of the others; below zero it is an upper bound."""
        others = (self.bent.log_likelihood, self.broken.log_likelihood, self.sharp)
        one = np.max(others, axis=0)
        gain: FloatArray = (self.mixed.log_likelihood - one).astype(np.float64)
        return gain

    def partition(self, column: TurningColumn) -> TurnPartition:
        """Rows by the slope they follow, of the first target."""
        single = self.bent if self.cut is None else self.broken
        share = float(single.noise.share[0])
        one = Regressions(
            single.coef[:1].astype(np.float64),
            np.array([[1.0 - share, share]]),
            noise_parts(single.noise),
        )
        two = Regressions(
            self.mixed.coef[:, 0].astype(np.float64),
            self.mixed.weights[:, :, 0].astype(np.float64),
            noise_parts(self.mixed.noise),
        )
        return TurnPartition(column, self.mixed.chance[0], two, one, self.cut)


def _compare(
    seen: TurningRows, Y: FloatArray, weight: FloatArray, like: _Compared | None = None
) -> _Compared:
    """Describe targets (B, n) in every way.

    The mixed start from the cut across the direction in which the slope changes most; the place of
    a sharp cut is sought from where the mixed put it. Targets that were drawn have noise ``like``
    that of the one they were drawn for.
    """
    Y32, design = Y.astype(np.float32), BatchDesign(seen.straight, weight)
    first = _placed(seen, [_steepest(seen, Y, weight)], Y, weight)
    mixed = fit_experts(seen.marks, design, Y32, first)
    bent = _one(BatchDesign(seen.bent, weight), Y32, None if like is None else like.bent)
    broken = _broken(seen, Y32, weight, first, like)
    low: Single = np.full(len(Y), -np.inf, dtype=np.float32)
    found = _Compared(bent, broken, low, mixed, first)
    # A gain below zero is none, however far below.
    asked = np.flatnonzero(found.gain > 0.0)
    if len(asked) == 0:
        return found
    chance, some, enough = mixed.chance[asked], Y32[asked], mixed.log_likelihood[asked]
    sharp = fit_experts(seen.marks, design, some, _sides(seen, chance), enough)
    cuts = found.cuts.copy()
    cuts[asked] = _placed(seen, [first[asked], chance, sharp.chance], Y[asked], weight)
    found.sharp[asked] = sharp.log_likelihood
    better = broken.replaced(asked, _broken(seen, some, weight, cuts[asked], like))
    return replace(found, broken=better, cuts=cuts)


def _steepest(seen: TurningRows, Y: FloatArray, weight: FloatArray) -> FloatArray:
    """(B, 1 + g) the direction in which the slope changes most, by least squares."""
    g = seen.marks.shape[1]
    ones, turning = seen.straight.T[..., None]
    design = np.hstack([ones, turning, ones * seen.marks, turning * seen.marks])
    coef = weighted_coefficients(design, Y.T, weight)[-g:]
    return np.column_stack([np.zeros(len(Y)), coef.T])


def _placed(
    seen: TurningRows, directions: list[FloatArray], Y: FloatArray, weight: FloatArray
) -> FloatArray:
    """(B, 1 + g) the cut across one of several directions (B, 1 + g) that serves a target best."""
    sides = np.stack([_sides(seen, direction) for direction in directions])
    cuts = [best_cuts(side[:, 1:] @ seen.marks.T, seen.straight, Y, weight) for side in sides]
    best = np.argmax([explained for _, explained in cuts], axis=0), np.arange(len(Y))
    found: FloatArray = sides[best]
    found[:, 0] = -np.array([place for place, _ in cuts])[best]
    return found


def _sides(seen: TurningRows, weights: FloatArray) -> FloatArray:
    """(B, 1 + g) weights of constant and marks, scaled to a spread of one of what they say."""
    spread = (seen.marks @ weights[:, 1:].T).std(axis=0)
    scaled: FloatArray = weights / np.maximum(spread, ROUNDING)[:, None]
    return scaled


def _one(design: BatchDesign, Y: Single, like: OneRegression | None) -> OneRegression:
    mask = np.ones((len(Y), design.n_columns), dtype=bool)
    noise = None if like is None else like.noise.chosen(np.zeros(1, dtype=np.int64))
    return one_regression(design, Y, mask, like=noise)


def _broken(
    seen: TurningRows, Y: Single, weight: FloatArray, cuts: FloatArray, like: _Compared | None
) -> OneRegression:
    """A regression on either side of the cut (B, 1 + g) of each target."""
    far = cuts[:, :1] + cuts[:, 1:] @ seen.marks.T > 0
    known = None if like is None else like.broken
    return _one(BrokenDesign(seen.straight, weight, far), Y, known)
