"""Effects of the target that follow it in another way in some environments.

A symptom or a later measurement predicts the target until its own mechanism changes. Seen from y
given all columns such a change is faint: what an effect says is shared among the columns, and its
noise blurs the rest. Seen from the effect given y it is plain. So columns that are effects (they
depend on the others, but not once the target and the environment are known:
`hetrisk.core.numerics.dependence`) are asked about directly, from the moments of environments and
folds: is the line in y the same in all environments, and is the spread about it?

Both tests measure their noise between folds of rows, so that heavy tails are no mechanism. A bent
mean of the effect, or noise that grows with the target, is one where the target shifts as well:
what the line and the spread are then depends on where the target lies. The environments were not
made from y: ordinary inference holds.
"""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.dependence import effects_of
from hetrisk.core.numerics.floors import NEARLY_SINGULAR
from hetrisk.core.numerics.multiplicity import holm
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.heterogeneity import heterogeneity, one_noise


def effect_p_values(
    cells: CellMoments, levels: CellMoments, n_targets: int, groups: IntArray
) -> FloatArray:
    """(d,) p-values of one mechanism in all environments, corrected for each other (Holm).

    One for columns that are no effects of the target.

    Parameters
    ----------
    cells : moments of environments and folds, (1, x, y), whose mechanisms are compared.
    levels : moments within which effects are recognised: the environments, or finer, since a line
        in the target is known from few rows.
    n_targets : t; of the indicators of t > 1 classes one says nothing that the others do not.
    groups : (d,) columns of one group are one feature.
    """
    p_values = np.ones(len(groups))
    held = cells.some(cells.held)
    if len(held.weight) < 2 or held.weight.shape[1] < 2:
        return p_values
    effects = np.flatnonzero(effects_within(levels, groups))
    each = [
        _one_mechanism(reversed_moments(held, n_targets, effects[[k]])) for k in range(len(effects))
    ]
    p_values[effects] = holm(np.array(each))
    return p_values


def _one_mechanism(cells: CellMoments) -> float:
    """p-value of one line and one spread; either may change, so the smaller counts twice."""
    return min(1.0, 2.0 * min(heterogeneity(cells, 1).p_value, one_noise(cells, 1).p_value))


def effects_within(cells: CellMoments, groups: IntArray) -> BoolArray:
    """(d,) effects of the target, by what columns say of each other within environments."""
    d, rows = len(groups), cells.effective_rows
    # A line in the targets takes as many rows as it has coefficients: of fewer nothing is left,
    # which would be no dependence.
    asked = rows > cells.gram.shape[-1] - d
    if not asked.any():
        return np.zeros(d, dtype=bool)
    weight, gram = cells.weight.sum(axis=1)[asked], cells.gram.sum(axis=1)[asked]
    mean = gram[:, 0] / weight[:, None]
    # About each environment's own mean: a shift of means is not taken for dependence.
    about = gram - weight[:, None, None] * mean[:, :, None] * mean[:, None, :]
    within = about[:, 1:, 1:] / weight.sum()
    # Of a column that says which environment it is nothing is left but rounding, which seems to
    # depend on anything.
    square = np.einsum("kii->i", gram[:, 1:, 1:]) / weight.sum()
    level = np.einsum("kii->i", within) <= NEARLY_SINGULAR * square
    within[:, level], within[:, :, level] = 0.0, 0.0
    free = float(rows[asked].sum()) - len(weight) + 1
    return effects_of(within[:, :d, :d], within[:, :d, d:], within[:, d:, d:], free, groups)


def reversed_moments(cells: CellMoments, n_targets: int, effects: IntArray) -> CellMoments:
    """The moments of (1, y, x): the target in the place of columns, its effects in its own."""
    targets = np.arange(cells.gram.shape[-1] - n_targets, cells.gram.shape[-1])
    place = np.array([0, *targets[: max(n_targets - 1, 1)], *(1 + effects)])
    return CellMoments(cells.weight, cells.square, cells.gram[:, :, place[:, None], place])
