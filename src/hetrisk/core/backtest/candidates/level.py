"""The level of the last periods: their mean, or their class shares."""

from hetrisk.core.backtest.candidates.base import Candidate
from hetrisk.core.backtest.training import Training
from hetrisk.core.predictor import Part, shifted


class Level(Candidate):
    """The mean of the last periods."""

    name, words = "level", "the mean of the last period"
    needs_time = True

    def fit(self, training: Training) -> tuple[Part, ...]:
        """See `Candidate.fit`."""
        nothing = training.nothing()
        return (shifted(nothing, training.shift((nothing,), training.last())),)
