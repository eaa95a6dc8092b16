"""What every candidate is: a name, what it needs, and a fit that returns parts of a predictor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from hetrisk.core.backtest.training import Training
from hetrisk.core.predictor import Part


class Candidate(ABC):
    """A model that may be deployed.

    Attributes
    ----------
    name : what it is called, by users too.
    words : what it is, for a sentence: "use ...".
    needs_time, needs_sites : whether it can be fitted only where there is time; sites.
    numbers_only : whether it is for numbers and not for labels.
    """

    name: str
    words: str
    needs_time: ClassVar[bool] = False
    needs_sites: ClassVar[bool] = False
    numbers_only: ClassVar[bool] = False

    @abstractmethod
    def fit(self, training: Training) -> tuple[Part, ...]:
        """Return parts whose scores add up to the model's."""
