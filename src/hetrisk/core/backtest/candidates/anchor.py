"""Anchor regression: what differs between environments has more of a say."""

from hetrisk.core.backtest.candidates.base import Candidate
from hetrisk.core.backtest.training import Training
from hetrisk.core.predictor import Part

GAMMA = 5.0  # what differences between environments count for: shifts of the mean twice as wide


class Anchor(Candidate):
    """Least squares that is best for shifts of environments' means ``sqrt(GAMMA)`` as wide.

    Rothenhaeusler, Meinshausen, Buehlmann and Peters (2021), with environments as anchors.
    """

    name, words = "anchor", "anchor regression"
    numbers_only = True

    def fit(self, training: Training) -> tuple[Part, ...]:
        """See `Candidate.fit`."""
        return (training.fit(between=GAMMA),)
