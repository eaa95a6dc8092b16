"""What a sample of the rows suggests, asked of all of them: who does not shift there stays.

A stand-in must be unstable between the environments of its probes; the mechanism of a
consequence must fail the test of one mechanism. Both are a few passes over the rows.
"""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.comparison import environment_fits, instability
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.rows import BoolArray, IntArray, RowSource
from hetrisk.core.pooled.mechanism import mechanism_p_values
from hetrisk.core.pooled.trail import SHIFTING, STAND_IN, Trail

CONFIRMED_INDEX = 0.4  # instability a stand-in must show on all rows
CONFIRMED_LEVEL = 0.05  # level of the test of a mechanism on all rows


def confirmed(trail: Trail, rows: RowSource, family: Family, groups: IntArray) -> BoolArray:
    """(d,) support once what left on the sample has been asked of all rows."""
    support = trail.support.copy()
    steady = _steady_consequences(trail, rows, family, groups)
    for group in np.unique(groups[trail.varies & ~trail.support]):
        members = np.flatnonzero(groups == group)
        if not any(_still_leaves(trail, rows, family, steady, int(j)) for j in members):
            support[members] = trail.varies[members]
    return support


def _steady_consequences(
    trail: Trail, rows: RowSource, family: Family, groups: IntArray
) -> BoolArray:
    """(d,) shifting consequences that all rows clear."""
    steady = np.zeros(len(trail.route), dtype=bool)
    shifting = np.flatnonzero([route == SHIFTING for route in trail.route])
    steady[shifting] = mechanism_p_values(rows, family, groups, shifting) >= CONFIRMED_LEVEL
    return steady


def _still_leaves(trail: Trail, rows: RowSource, family: Family, steady: BoolArray, j: int) -> bool:
    if trail.route[j] == STAND_IN:
        columns = trail.support.copy()
        columns[j] = True
        for probe in trail.probes[j]:
            index, error = instability(environment_fits(rows, family, probe, columns))
            if index[j] > max(CONFIRMED_INDEX, 3 * error[j]):
                return True
        return False
    return bool(trail.route[j]) and not steady[j]
