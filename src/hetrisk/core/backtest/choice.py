"""Which candidate, or average of a few, to deploy: the one of least X_t, if that is beyond chance.

1. Of all averages whose weights are tenths, the one of least X_t is sought, from the best single
   candidate on by moving weight from one to another while that lowers X_t.
2. It is chosen if its X_t lies below plain's by two standard errors of the log ratio of the two
   models' losses over the environments left out, and the mean of this log ratio below zero by one;
   else plain is. X_t may rest on one environment, the worst, whose ratio varies more than the mean:
   alone it lets averages pass that fit the few losses seen. Where two environments are all there
   is, no error can be put on a mean of two: then it must have at most half of plain's loss in both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.backtest.losses import Losses, extrapolated
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray, IntArray

STANDARD_ERRORS = 2.0  # by which plain must be beaten
MOST_RATIO = 20.0  # that is told apart: a loss of nearly nothing here and there is no doubt
OF_TWO = 0.5  # of plain's loss at most, in both, where two environments are all there is
MEMBERS = 4  # of an average at most: one that is read in a sentence
PARTS = 10  # weights are tenths: the same in any order of rows, whatever the rounding
STEPS = (5, 2, 1)  # tenths that are moved, from coarse to fine
BETTER = 1e-9  # share by which X_t must fall for a move
MOST_MOVES: Budget[int] = 100


@dataclass(frozen=True)
class Comparison:
    """A mixture beside plain: log ratios of X_t, mean and worst of losses, and standard error."""

    log_ratio: float
    mean_ratio: float
    of_worst: float
    standard_error: float

    @property
    def beyond_chance(self) -> bool:
        """Whether it is better by more than chance."""
        of_x_t = self.log_ratio + STANDARD_ERRORS * self.standard_error
        of_mean = self.mean_ratio + self.standard_error
        return max(of_x_t, of_mean) < 0.0


@dataclass(frozen=True)
class Choice:
    """(F,) weights of the candidates; those of least X_t before the gate, and how they compare."""

    weight: FloatArray
    best: FloatArray
    comparison: Comparison


def choose(losses: Losses, plain: int, reach: float, only_two: bool = False) -> Choice:
    """Choose among candidates: see the module.

    ``only_two`` says that two environments are all there is: no error can be put on a mean of two.
    """
    best = least(losses, reach)
    comparison = compare(losses.of(best[None])[0], losses.single(plain), reach)
    only_plain = np.eye(losses.n_candidates)[plain]
    surely = comparison.of_worst < np.log(OF_TWO) if only_two else comparison.beyond_chance
    return Choice(best if surely else only_plain, best, comparison)


def compare(losses: FloatArray, plain: FloatArray, reach: float) -> Comparison:
    """Compare (E,) losses of a model with those of plain in the same environments.

    The standard error is that of the mean of log (loss / plain's loss) over the environments, each
    within a factor of `MOST_RATIO`.
    """
    ratio = float(extrapolated(losses, reach) / max(float(extrapolated(plain, reach)), TINY))
    each = np.log(np.maximum(losses, TINY) / np.maximum(plain, TINY))
    each = np.clip(each, -np.log(MOST_RATIO), np.log(MOST_RATIO))
    error = float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else np.inf
    return Comparison(float(np.log(max(ratio, TINY))), float(each.mean()), float(each.max()), error)


TINY = 1e-300  # losses of a model that makes no error


def least(losses: Losses, reach: float) -> FloatArray:
    """(F,) weights, tenths, of an average with least X_t."""
    single = extrapolated(losses.singles, reach)
    parts = np.zeros(losses.n_candidates, dtype=np.int64)
    first = _first(single)
    parts[first], value = PARTS, float(single[first])
    for step in STEPS:
        for _ in range(MOST_MOVES):
            moves = _moves(parts, step)
            values = extrapolated(losses.of(moves / PARTS), reach)
            move = _first(values)
            if not values[move] < value * (1.0 - BETTER):
                break
            parts, value = moves[move], float(values[move])
    return parts / PARTS


def _first(values: FloatArray) -> int:
    """The first that is least, rounding aside."""
    lowest = float(np.nanmin(values))
    return int(np.flatnonzero(values <= lowest + BETTER * abs(lowest))[0])


def _moves(parts: IntArray, step: int) -> IntArray:
    """(B, F) what moving tenths from one candidate to another gives; none in the first."""
    moves = [parts]
    for giver in np.flatnonzero(parts >= step):
        for taker in range(len(parts)):
            moved = parts.copy()
            moved[giver] -= step
            moved[taker] += step
            if taker != giver and np.count_nonzero(moved) <= MEMBERS:
                moves.append(moved)
    return np.array(moves)
