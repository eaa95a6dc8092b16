"""Recent rows: those of older periods count for less and less."""

from hetrisk.core.backtest.candidates.base import Candidate
from hetrisk.core.backtest.training import Training
from hetrisk.core.predictor import Part, shifted

HALF_LIFE = 0.3  # share of the periods after which a row counts half


class Recent(Candidate):
    """Ridge regression on recent rows, at the level of the last periods."""

    name, words = "recent", "a linear model of recent rows"
    needs_time = True

    def fit(self, training: Training) -> tuple[Part, ...]:
        """See `Candidate.fit`."""
        part = training.fit(training.recent(HALF_LIFE), shrink=True)
        return (shifted(part, training.shift((part,), training.last())),)
