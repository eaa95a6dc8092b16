"""What tests say, one and several at once."""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.named_numbers import Constant
from hetrisk.core.numerics.rows import FloatArray

LEAST_SHOWN: Constant[float] = 0.0001  # of p-values


def holm(p_values: FloatArray) -> FloatArray:
    """p-values corrected for their number (Holm 1979).

    Rejecting those at or below a level makes one wrong rejection or more with at most that
    probability, whatever the dependence between the tests.
    """
    order = np.argsort(p_values, kind="stable")
    # The smallest against all, the next against those that are left; a p-value never falls below
    # that of a stronger finding.
    steps = p_values[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected


def p_text(p_value: float) -> str:
    """A p-value in a sentence."""
    return f"p = {p_value:.2g}" if p_value >= LEAST_SHOWN else f"p below {LEAST_SHOWN:g}"
