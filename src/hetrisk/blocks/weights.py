"""Weights of rows: they count rows up to a scale, and that scale is a mean of one.

A row of weight two counts as two rows do; all weights together count as many rows as there are, so
that only how they compare matters, whatever their size. Out of core the mean is found when the
blocks are made, in one pass over the weights alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from hetrisk.core.numerics.rows import FloatArray


@dataclass(frozen=True)
class WeightScale:
    """What is known of weights, part by part; parts add up.

    Attributes
    ----------
    largest : of the weights.
    share : their sum, divided by the largest: a sum of large ones alone would overflow.
    n_rows : how many they are.
    """

    largest: float = 0.0
    share: float = 0.0
    n_rows: int = 0

    @classmethod
    def of(cls, weight: FloatArray) -> WeightScale:
        """What one part holds, none of it negative."""
        largest = float(weight.max(initial=0.0))
        return cls(largest, float((weight / largest).sum()) if largest else 0.0, len(weight))

    def __add__(self, other: WeightScale) -> WeightScale:
        largest = max(self.largest, other.largest)
        parts = [part for part in (self, other) if part.largest]
        share = sum(part.share * (part.largest / largest) for part in parts)
        return WeightScale(largest, share, self.n_rows + other.n_rows)

    def scaled(self, weight: FloatArray) -> FloatArray:
        """(n,) some of the weights, such that all of them have a mean of one."""
        return weight / self.largest * (self.n_rows / self.share)

    def checked(self, what: str) -> WeightScale:
        """Return itself, unless all weights are zero; ``what`` names them."""
        if self.largest == 0.0:
            raise ValueError(f"{what} must have a positive entry; got all zeros.")
        return self


def normalised(weight: FloatArray, what: str = "sample_weight") -> FloatArray:
    """(n,) weights with a mean of one, none negative; ``what`` names them."""
    return WeightScale.of(weight).checked(what).scaled(weight)
