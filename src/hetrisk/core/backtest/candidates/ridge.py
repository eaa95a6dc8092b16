"""Ridge regression, its strength chosen by cross-validation."""

from hetrisk.core.backtest.candidates.base import Candidate
from hetrisk.core.backtest.training import Training
from hetrisk.core.predictor import Part


class Ridge(Candidate):
    """Shrunken slopes on all columns."""

    name, words = "ridge", "ridge regression"

    def fit(self, training: Training) -> tuple[Part, ...]:
        """See `Candidate.fit`."""
        return (training.fit(shrink=True),)
