"""Several tests at once."""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.rows import FloatArray


def holm(p_values: FloatArray) -> FloatArray:
    """p-values corrected for their number (Holm 1979).

    Rejecting those at or below a level makes one wrong rejection or more with at most that
    probability, whatever the dependence between the tests.
    """
    order = np.argsort(p_values, kind="stable")
    steps = p_values[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected
