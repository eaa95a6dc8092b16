"""The thresholds by which later rows are held against those a model was fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hetrisk.core.numerics.named_numbers import conventional, derived, threshold


@dataclass(frozen=True)
class DriftThresholds:
    """What counts as outside, and as known well enough to speak of its strength."""

    room: float = threshold(
        0.1,
        "of a column's range, how far beyond it a value may lie without being called outside",
        conventional("a tenth"),
    )
    least_signal: float = threshold(
        4.0,
        "information a coefficient on what was left out, below which no strength is given",
        derived("the square of two standard errors"),
    )


DRIFT_THRESHOLDS: Final = DriftThresholds()
