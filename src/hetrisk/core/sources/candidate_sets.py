"""Which columns to doubt: sets that regret speaks for, from the moments of two environments.

Environments that were made from y are sorted by its noise, so every set of columns shows regret in
them. Regret is therefore used to *propose*, both as it is and less what targets of one population
show; whether y given what stays is one population is asked afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from hetrisk.core.numerics.floors import RIDGE, TINY
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.regret import Environments

# Strengths of a shift to propose for.
REACHES: Budget[tuple[float, ...]] = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0)
EXHAUSTIVE: Budget[int] = 12  # units up to which every set is looked at
# Units that leave on the way down in wider tables; larger sets prove nothing.
DEEPEST: Budget[int] = 8


def environment_grams(
    X: FloatArray, y: FloatArray, weight: FloatArray, second: FloatArray
) -> Environments:
    """Moments of the two environments that share out the rows."""
    z = np.column_stack([np.ones(len(X)), X, y])
    gram, rows, total = [], [], []
    for share in (1.0 - second, second):
        w = weight * share
        total.append(max(float(w.sum()), TINY))
        rows.append(total[-1] ** 2 / max(float((w**2).sum()), TINY))
        gram.append((z.T * w) @ z / total[-1])
    share = np.array(total) / sum(total)
    return Environments(
        gram=np.array(gram),
        rows=np.array(rows),
        share=share,
        partition=np.zeros(2, dtype=np.int64),
        pooled=np.tensordot(share, gram, axes=1),
        n_targets=1,
        phi=np.ones(2),
    )


def regrets(grams: Environments, sets: BoolArray) -> tuple[FloatArray, FloatArray]:
    """(m,) pooled risk and largest regret beyond chance for each of m sets (m, d) of columns.

    As `hetrisk.core.reach.regret.fit_set`, for thousands of sets in one batch.
    """
    keep = np.column_stack([np.ones(len(sets), dtype=bool), sets])
    pooled = grams.pooled
    beta = _solved(pooled, keep)
    risk = pooled[-1, -1] - beta @ pooled[:-1, -1]
    worst = np.full(len(sets), -np.inf)
    for gram, rows in zip(grams.gram, grams.rows, strict=True):
        own = _solved(gram, keep)
        gap = beta - own
        noise = gram[-1, -1] - own @ gram[:-1, -1]
        lost = np.einsum("mi,ij,mj->m", gap, gram[:-1, :-1], gap)
        # Less the mean that chance alone would show in a fit of so many coefficients.
        worst = np.maximum(worst, lost - noise * keep.sum(axis=1) / rows)
    return risk, np.maximum(worst, 0.0)


def proposed_sets(
    real: Environments, null: list[Environments], members: BoolArray, fixed: BoolArray
) -> BoolArray:
    """(s, u) sets of units to keep: the best for some strength of shift.

    ``members`` (u, d) says which columns make up a unit, ``fixed`` (d,) which always stay. Every
    reach has its best set, by regret as it is and by regret less what chance shows.
    """

    def measured(units: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        sets = (units @ members) | fixed
        risk, regret = regrets(real, sets)
        return risk, regret, np.mean([regrets(grams, sets)[1] for grams in null], axis=0)

    u = len(members)
    best = []
    if u <= EXHAUSTIVE:
        # Every set of units but the empty one, as the digits of a number.
        units = (np.arange(1, 2**u)[:, None] >> np.arange(u) & 1).astype(bool)
        risk, regret, chance = measured(units)
        for reach in REACHES:
            for less in (0.0, 1.0):
                expected = risk + reach**2 * np.maximum(regret - less * chance, 0.0)
                best.append(units[int(np.argmin(expected))])
        return np.unique(best, axis=0)
    # Descents for different strengths pass through the same sets, and risk and regret do not
    # depend on the strength.
    around: Around = lru_cache(maxsize=None)(partial(_around, measured, u))
    for reach in REACHES[::2]:
        for less in (0.0, 1.0):
            best.append(_descent(around, u, reach, less))
    return np.unique(best, axis=0)


Measured = Callable[[BoolArray], tuple[FloatArray, FloatArray, FloatArray]]


Around = Callable[[bytes], tuple[BoolArray, tuple[FloatArray, FloatArray, FloatArray]]]


def _around(
    measured: Measured, u: int, current: bytes
) -> tuple[BoolArray, tuple[FloatArray, FloatArray, FloatArray]]:
    """A set of units and those one unit away, measured; the same for every strength of shift."""
    units = np.frombuffer(current, dtype=bool)
    near = np.vstack([units, units ^ np.eye(u, dtype=bool)])
    near = near[near.any(axis=1)]
    return near, measured(near)


def _descent(around: Around, u: int, reach: float, less: float) -> BoolArray:
    """Take units out or back one at a time, from all of them, while the expected error falls."""
    current = np.ones(u, dtype=bool)
    for _ in range(DEEPEST):
        near, (risk, regret, chance) = around(current.tobytes())
        value = risk + reach**2 * np.maximum(regret - less * chance, 0.0)
        step = int(np.argmin(value))
        if value[step] >= value[0]:
            break
        current = near[step]
    return current


def _solved(gram: FloatArray, keep: BoolArray) -> FloatArray:
    """(m, p) least squares on sets (m, p) of columns, zero elsewhere."""
    A = gram[:-1, :-1] * (keep[:, :, None] & keep[:, None, :])
    place = np.arange(A.shape[1])
    # Columns that are not in the set get the equation b = 0: all sets are systems of one size.
    A[:, place, place] += np.where(keep, RIDGE, 1.0)
    solved = np.linalg.solve(A, (gram[:-1, -1] * keep)[..., None])[..., 0]
    return np.asarray(solved, dtype=np.float64)


def units_of(groups: IntArray, keep: BoolArray) -> BoolArray:
    """(u, d) columns of each unit that may leave: groups with no column to keep."""
    free = [g for g in np.unique(groups) if not keep[groups == g].any()]
    members: BoolArray = np.array([groups == g for g in free], dtype=bool)
    return members.reshape(len(free), len(groups))
