"""Models that may be deployed: those that are a line or two of what `Training` offers, and others.

A further one is a function of a `Training` in a file of its own, and a line in the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hetrisk.core.backtest.candidates.levels import levels
from hetrisk.core.backtest.candidates.splines import splines
from hetrisk.core.backtest.candidates.stable import stable
from hetrisk.core.backtest.training import Training
from hetrisk.core.predictor import Part

__all__ = ["CONSTANT", "LINEAR", "PLAIN", "Candidate", "trend"]

HALF_LIFE = 0.3  # share of the periods after which a recent row counts half


@dataclass(frozen=True)
class Candidate:
    """A model that may be deployed.

    Attributes
    ----------
    name : what it is called, by users too.
    words : what it is, for a sentence: "use ...".
    fit : returns parts whose scores add up to the model's.
    needs_time, needs_sites : whether it can be fitted only where there is time; sites.
    numbers_only : whether it is for numbers and not for labels.
    """

    name: str
    words: str
    fit: Callable[[Training], tuple[Part, ...]]
    needs_time: bool = False
    needs_sites: bool = False
    numbers_only: bool = False


def plain(training: Training) -> tuple[Part, ...]:
    """Least squares, or logistic regression, on all columns and rows."""
    return (training.fit(),)


def constant(training: Training) -> tuple[Part, ...]:
    """The mean of all rows, or the class shares."""
    return (training.at_level(training.nothing()),)


def ridge(training: Training) -> tuple[Part, ...]:
    """Slopes on all columns, shrunken as cross-validation says."""
    return (training.fit(shrink=True),)


def level(training: Training) -> tuple[Part, ...]:
    """The mean of the last periods, or their class shares."""
    return (training.at_level(training.nothing(), training.last()),)


def trend(training: Training) -> tuple[Part, ...]:
    """Ridge regression on all columns and time."""
    return (training.fit(time=True, shrink=True),)


def recent(training: Training) -> tuple[Part, ...]:
    """Ridge regression on recent rows, at the level of the last periods."""
    part = training.fit(training.recent(HALF_LIFE), shrink=True)
    return (training.at_level(part, training.last()),)


def within(training: Training) -> tuple[Part, ...]:
    """Slopes within periods: what moves from one to the next has no say; the last level is kept."""
    return (training.at_level(training.fit(within=True), training.last()),)


# In this order: of two that do equally well the first is taken.
LINEAR = (
    Candidate("plain", "the plain linear model", plain),
    Candidate("constant", "the mean", constant),
    Candidate("ridge", "ridge regression", ridge),
    Candidate("level", "the mean of the last period", level, needs_time=True),
    Candidate("trend", "a linear model with a trend", trend, needs_time=True),
    Candidate("recent", "a linear model of recent rows", recent, needs_time=True),
    Candidate("within", "slopes within periods at the last level", within, needs_time=True),
    Candidate(
        "levels",
        "the plain slopes at the level of each known environment",
        levels,
        needs_time=True,
        needs_sites=True,
        numbers_only=True,
    ),
    Candidate("splines", "a sum of curves, one a column", splines),
    Candidate("stable", "the plain model on its stable columns", stable),
)
PLAIN, CONSTANT = (candidate.name for candidate in LINEAR[:2])
