"""Weights of rows: a weight of two is a row given twice.

Weights that sum to less than the rows that have one cannot be counts, and nor can those beyond
1e100; of these only how they compare is meant, and they are brought to a mean of one over the rows
that have one. Out of core the sum is found when the blocks are made, in one pass over the weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.rows import FloatArray

LARGEST = 1e100  # of a count: squares of sums stay finite


@dataclass(frozen=True)
class WeightScale:
    """What is known of weights, part by part; parts add up.

    Attributes
    ----------
    largest : of the weights.
    share : their sum, divided by the largest: a sum of large ones alone would overflow.
    held : how many are positive.
    """

    largest: float = 0.0
    share: float = 0.0
    held: int = 0

    @classmethod
    def of(cls, weight: FloatArray) -> WeightScale:
        """What one part holds, none of it negative."""
        largest = float(weight.max(initial=0.0))
        share = float((weight / largest).sum()) if largest else 0.0
        return cls(largest, share, int(np.count_nonzero(weight)))

    def __add__(self, other: WeightScale) -> WeightScale:
        largest = max(self.largest, other.largest)
        parts = [part for part in (self, other) if part.largest]
        share = sum(part.share * (part.largest / largest) for part in parts)
        return WeightScale(largest, share, self.held + other.held)

    def scaled(self, weight: FloatArray) -> FloatArray:
        """(n,) some of the weights, as counts."""
        counts = self.largest <= LARGEST and self.largest * self.share >= self.held
        return weight if counts else weight / self.largest * (self.held / self.share)

    def checked(self, what: str) -> WeightScale:
        """Return itself, unless all weights are zero; ``what`` names them."""
        if self.largest == 0.0:
            raise ValueError(f"{what} must have a positive entry; got all zeros.")
        return self


def as_counts(weight: FloatArray, what: str = "sample_weight") -> FloatArray:
    """(n,) weights that count rows, none negative; ``what`` names them."""
    return WeightScale.of(weight).checked(what).scaled(weight)
