"""Weights of rows: only how they compare counts, so they may be of any size.

Those that can be squared are as given; of others each is divided by the largest of all rows. Out
of core that one is found when the blocks are made, in one pass over the weights alone: a block
that holds tiny weights only is as good as any where another holds ordinary ones.
"""

from __future__ import annotations

from hetrisk.core.numerics.rows import FloatArray

LARGEST, SMALLEST = 1e100, 1e-100  # of the largest weights: sums of squares stay finite, above 0


def scale_of(largest: float, what: str) -> float:
    """What weights are divided by, the largest of which is given; ``what`` names them."""
    if largest == 0.0:
        raise ValueError(f"{what} must have a positive entry; got all zeros.")
    return 1.0 if SMALLEST <= largest <= LARGEST else float(largest)


def scaled(weight: FloatArray, scale: float) -> FloatArray:
    """(n,) weights divided by their scale; the same array where there is nothing to divide by."""
    return weight if scale == 1.0 else weight / scale
