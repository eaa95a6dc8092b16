"""Families of tests."""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.rows import BoolArray, FloatArray


def holm(p_values: FloatArray, level: float) -> BoolArray:
    """Hypotheses to reject with a family-wise error of at most ``level`` (Holm 1979)."""
    m = len(p_values)
    order = np.argsort(p_values, kind="stable")
    passed = p_values[order] <= level / (m - np.arange(m))
    rejected = np.zeros(m, dtype=bool)
    rejected[order[: int(np.argmin(np.append(passed, False)))]] = True
    return rejected
