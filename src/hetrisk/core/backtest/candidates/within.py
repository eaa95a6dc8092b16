"""Slopes within periods: what moves from period to period has no say in them."""

from hetrisk.core.backtest.candidates.base import Candidate
from hetrisk.core.backtest.training import Training
from hetrisk.core.predictor import Part, shifted


class Within(Candidate):
    """Every period has a level of its own; the last one is kept."""

    name, words = "within", "slopes within periods at the last level"
    needs_time = True

    def fit(self, training: Training) -> tuple[Part, ...]:
        """See `Candidate.fit`."""
        part = training.fit(within=True)
        return (shifted(part, training.shift((part,), training.last())),)
