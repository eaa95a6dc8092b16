"""Plain: least squares, or logistic regression, on all columns and rows."""

from hetrisk.core.backtest.candidates.base import Candidate
from hetrisk.core.backtest.training import Training
from hetrisk.core.predictor import Part


class Plain(Candidate):
    """What everything else is compared with."""

    name, words = "plain", "the plain linear model"

    def fit(self, training: Training) -> tuple[Part, ...]:
        """See `Candidate.fit`."""
        return (training.fit(),)
