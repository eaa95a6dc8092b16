"""Which columns follow from the target: they depend on the others, but not once it is known.

Causes do the opposite (the collider rule of constraint-based causal discovery, Spirtes, Glymour
and Scheines 2000): once the target is known, one tells of the other. A column that only a linear
model needs, a proxy for a curve of the causes, follows from that curve as an effect follows from
the target, so what is known may be the target and a flexible mean of it together.
"""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.dependence import DEPENDS, dependence
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.stable.two_slopes import FAR

# Of its dependence on the others, that may be left of a column for it to be a suspect: causes keep
# all of it and more, effects that share noise a third.
SUSPECT: Budget[float] = 0.5


def effects(X: FloatArray, known: FloatArray, groups: IntArray, weight: FloatArray) -> BoolArray:
    """(d,) columns that depend on the others, but not given functions of what is known (n, b).

    Effects that share more than the target depend on each other when it is known, so suspects are
    asked once more about the columns that are none.
    """
    share = weight / weight.sum()
    centred, functions = X - share @ X, known - share @ known
    weighted = functions.T * share
    coef = np.linalg.lstsq(weighted @ functions, weighted @ centred, rcond=None)[0]
    left = centred - functions @ coef
    plain, given = (z.T @ (share[:, None] * z) for z in (centred, left))
    rows, n_known = float(weight.sum()), known.shape[1]
    alone = dependence(plain, given, rows, n_known, groups)
    depends = alone.before < DEPENDS
    suspect = depends & (alone.ratio < SUSPECT)
    found = alone.is_effect
    if (suspect & ~found).any() and not suspect.all():
        apart = np.where(suspect, groups.max() + 1, groups)
        found = found | (suspect & dependence(plain, given, rows, n_known, apart).is_effect)
    return found


def bent(values: FloatArray) -> FloatArray:
    """(n, 3) a column, its square and its cube, far rows counting no further."""
    unit = (values - values.mean()) / max(float(values.std()), TINY)
    unit = np.clip(unit, -FAR, FAR)
    return np.column_stack([unit, unit**2, unit**3])
