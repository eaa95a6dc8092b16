"""A linear trend: time as a column beside the others."""

from hetrisk.core.backtest.candidates.base import Candidate
from hetrisk.core.backtest.training import Training
from hetrisk.core.predictor import Part


class Trend(Candidate):
    """Ridge regression on all columns and time."""

    name, words = "trend", "a linear model with a trend"
    needs_time = True

    def fit(self, training: Training) -> tuple[Part, ...]:
        """See `Candidate.fit`."""
        return (training.fit(time=True, shrink=True),)
