"""Which candidate, or average of a few, to deploy: the one of least X_t, if that is beyond chance.

1. Of all averages whose weights are tenths, the one of least X_t is sought, from the best single
   candidate on by moving weight from one to another while that lowers X_t.
2. It is chosen if its X_t lies below plain's by two standard errors of the log ratio of the two
   models' losses over the environments left out, and the mean of this log ratio below zero by one;
   else plain is. X_t may rest on one environment, the worst, whose ratio varies more than the mean:
   alone it lets averages pass that fit the few losses seen.
3. The variance of the log ratio is that between environments, with what rows alone would give as
   one environment more: with two or three of them chance makes differences look small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hetrisk.core.backtest.losses import Losses, extrapolated
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray, IntArray

STANDARD_ERRORS = 2.0  # by which plain must be beaten
MOST_RATIO = 20.0  # that is told apart: a loss of nearly nothing here and there is no doubt
MEMBERS = 4  # of an average at most: one that is read in a sentence
PARTS = 10  # weights are tenths: the same in any order of rows, whatever the rounding
STEPS = (5, 2, 1)  # tenths that are moved, from coarse to fine
BETTER = 1e-9  # share by which X_t must fall for a move
MOST_MOVES: Budget[int] = 100


@dataclass(frozen=True)
class Comparison:
    """A mixture beside plain: log ratio of X_t, mean log ratio of losses, and standard error."""

    log_ratio: float
    mean_ratio: float
    standard_error: float

    @property
    def refused(self) -> str:
        """By what it is not better, in words; "" where it is by more than chance."""
        if self.log_ratio + STANDARD_ERRORS * self.standard_error >= 0.0:
            return "not by two standard errors"
        if self.mean_ratio + self.standard_error >= 0.0:
            return "not by one standard error in the average environment"
        return ""


@dataclass(frozen=True)
class Choice:
    """(F,) weights of the candidates, those of least X_t before the gate, and why they failed."""

    weight: FloatArray
    best: FloatArray
    refused: str = ""


def choose(
    losses: Losses, plain: int, reach: float, noise: Callable[[FloatArray], float]
) -> Choice:
    """Choose among candidates: see the module; ``noise`` is that of weights, as in `compare`."""
    best = least(losses, reach)
    mixed = losses.of(best[None])[0]
    comparison = compare(mixed, losses.single(plain), reach, noise(best))
    only_plain = np.eye(losses.n_candidates)[plain]
    refused = comparison.refused
    return Choice(only_plain if refused else best, best, refused)


def compare(losses: FloatArray, plain: FloatArray, reach: float, noise: float) -> Comparison:
    """Compare (E,) losses of a model with those of plain in the same environments.

    The standard error is that of the mean of log (loss / plain's loss) over the environments, each
    within a factor of `MOST_RATIO`. ``noise`` is the variance of this log ratio in an environment
    that its rows alone would give.
    """
    ratio = float(extrapolated(losses, reach) / max(float(extrapolated(plain, reach)), TINY))
    each = np.log(np.maximum(losses, TINY) / np.maximum(plain, TINY))
    each = np.clip(each, -np.log(MOST_RATIO), np.log(MOST_RATIO))
    E, noise = len(each), min(noise, np.log(MOST_RATIO) ** 2)
    # Of noise and E - 1 squared differences: E of them in all.
    variance = (noise + float(((each - each.mean()) ** 2).sum())) / E
    error = float(np.sqrt(variance / E)) if E > 1 else np.inf
    return Comparison(float(np.log(max(ratio, TINY))), float(each.mean()), error)


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
