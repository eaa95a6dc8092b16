"""Weights of rows: only how they compare counts, so they may be of any size that can be squared."""

from __future__ import annotations

from hetrisk.core.numerics.rows import FloatArray

LARGEST, SMALLEST = 1e100, 1e-100  # of the largest weights: sums of squares stay finite, above 0


def scaled(weight: FloatArray) -> FloatArray:
    """(n,) weights, some positive, of a size that can be squared: those that can are as given."""
    largest = weight.max()
    return weight if SMALLEST <= largest <= LARGEST else weight / largest


def refuse_extreme(weight: FloatArray, what: str) -> None:
    """Refuse the weights of a block that cannot be squared; ``what`` names them.

    Out of core nobody knows the largest of all before every row has been read.
    """
    largest = float(weight.max(initial=0.0))
    if largest > LARGEST or 0.0 < largest < SMALLEST:
        raise ValueError(
            f"{what} must lie between {SMALLEST:g} and {LARGEST:g}, or be zero; the largest here "
            f"is {largest:g}. Only how weights compare counts: divide all by the largest."
        )
