"""What a sample of the rows suggests, asked of all of them: who does not shift there stays.

A stand-in must be unstable between the environments of its probes; the mechanism of a
consequence must fail the test of one mechanism. Both are a few passes over the rows.
"""

from __future__ import annotations

import numpy as np

from hetrisk.core.comparison import environment_fits, instability
from hetrisk.core.families import Family
from hetrisk.core.mechanism import mechanism_p_value
from hetrisk.core.rows import BoolArray, IntArray, RowSource
from hetrisk.core.trail import SHIFTING, STAND_IN, Trail

CONFIRMED_INDEX = 0.4  # instability a stand-in must show on all rows
CONFIRMED_LEVEL = 0.05  # level of the test of a mechanism on all rows


def confirmed(trail: Trail, rows: RowSource, family: Family, groups: IntArray) -> BoolArray:
    """(d,) support once what left on the sample has been asked of all rows."""
    support = trail.support.copy()
    for group in np.unique(groups[trail.varies & ~trail.support]):
        members = np.flatnonzero(groups == group)
        if not any(_still_leaves(trail, rows, family, groups, int(j)) for j in members):
            support[members] = trail.varies[members]
    return support


def _still_leaves(trail: Trail, rows: RowSource, family: Family, groups: IntArray, j: int) -> bool:
    if trail.route[j] == STAND_IN:
        columns = trail.support.copy()
        columns[j] = True
        for probe in trail.probes[j]:
            index, error = instability(environment_fits(rows, family, probe, columns))
            if index[j] > max(CONFIRMED_INDEX, 3 * error[j]):
                return True
        return False
    if trail.route[j] == SHIFTING and family.n_outputs == 1:
        shifting = np.array([route == SHIFTING for route in trail.route])
        return mechanism_p_value(rows, family, groups, shifting, j) < CONFIRMED_LEVEL
    return bool(trail.route[j])
