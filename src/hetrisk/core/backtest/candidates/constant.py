"""The constant: the mean of the target, or the class shares."""

from hetrisk.core.backtest.candidates.base import Candidate
from hetrisk.core.backtest.training import Training
from hetrisk.core.predictor import Part, shifted


class Constant(Candidate):
    """The mean of all rows."""

    name, words = "constant", "the mean"

    def fit(self, training: Training) -> tuple[Part, ...]:
        """See `Candidate.fit`."""
        nothing = training.nothing()
        every = (training.weight > 0).astype(float)
        return (shifted(nothing, training.shift((nothing,), every)),)
