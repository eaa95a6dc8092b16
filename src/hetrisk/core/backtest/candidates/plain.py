"""Plain: least squares, or logistic regression, on all columns and rows; and at the last level."""

from hetrisk.core.backtest.candidates.base import Candidate
from hetrisk.core.backtest.training import Training
from hetrisk.core.predictor import Part, shifted


class Plain(Candidate):
    """What everything else is compared with."""

    name, words = "plain", "the plain linear model"

    def fit(self, training: Training) -> tuple[Part, ...]:
        """See `Candidate.fit`."""
        return (training.fit(),)


class PlainAtLevel(Candidate):
    """Slopes of all rows, the level of the last periods."""

    name, words = "plain, last level", "the plain slopes at the level of the last period"
    needs_time = True

    def fit(self, training: Training) -> tuple[Part, ...]:
        """See `Candidate.fit`."""
        part = training.fit()
        return (shifted(part, training.shift((part,), training.last())),)
