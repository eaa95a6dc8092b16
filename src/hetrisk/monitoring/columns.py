"""Which columns moved, where values are missing, new or out of range."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hetrisk.core.drift.columns import distances, shares_equal
from hetrisk.core.numerics.multiplicity import holm
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.monitoring.findings import LEAST, LEVEL, ColumnCheck
from hetrisk.monitoring.reference import Reference

Unseen = Mapping[str, tuple[tuple[str, ...], float]]


def check_columns(r: Reference, X: FloatArray, unseen: Unseen) -> tuple[ColumnCheck, ...]:
    """Return every column then and now, those that say most first.

    Parameters
    ----------
    r : of the rows learned from.
    X : (n, p) new rows in the model's numbers, NaN where the table has no value.
    unseen : by column of the table, levels that did not occur before, and the share of their rows.
    """
    distance, p_value = distances(r.columns, X)
    members: dict[str, list[int]] = {}
    for j, group in enumerate(r.groups):
        members.setdefault(group, []).append(j)
    groups = list(members)
    p = np.array([min(1.0, float(p_value[m].min()) * len(m)) for m in members.values()])
    p_missing = np.array([_missing_p(r, X, m[0]) for m in members.values()])
    p, p_missing = (holm(v) for v in (p, p_missing))
    found = [
        _column(r, X, unseen, group, members[group], distance, float(p[k]), float(p_missing[k]))
        for k, group in enumerate(groups)
    ]
    return tuple(sorted(found, key=_rank))


def _rank(c: ColumnCheck) -> tuple[bool, bool, float]:
    most = max(c.distance, c.new_share, c.outside, abs(c.missing_now - c.missing_before))
    return (not c.notable, not c.weight > 0, -most)


def _missing_p(r: Reference, X: FloatArray, j: int) -> float:
    before, now = float(r.columns.missing[j]), float(np.isnan(X[:, j]).mean())
    return shares_equal(before, now, r.columns.n_rows, len(X))


def _column(
    r: Reference,
    X: FloatArray,
    unseen: Unseen,
    group: str,
    index: list[int],
    distance: FloatArray,
    p_value: float,
    p_missing: float,
) -> ColumnCheck:
    """One column of the table: of several levels, the shares that would have to change."""
    worst = index[int(np.argmax(distance[index]))]
    levels = bool(r.columns.indicator[index].all()) and r.names[worst] != group
    apart = float(distance[index].max())
    if levels and len(index) > 1:
        gap = np.nanmean(X[:, index], axis=0) - r.columns.mean[index]
        apart = min(1.0, 0.5 * float(np.abs(gap).sum() + abs(gap.sum())))
    held = X[~np.isnan(X[:, worst]), worst]
    missing = float(r.columns.missing[index[0]]), float(np.isnan(X[:, index[0]]).mean())
    new, share = unseen.get(group, ((), 0.0))
    outside = r.columns.outside(X)[:, index].any(axis=1) if not levels else np.zeros(1)
    return ColumnCheck(
        name=group,
        weight=float(r.weights.get(group, 0.0)),
        moved=p_value < LEVEL and apart >= LEAST,
        distance=apart,
        p_value=p_value,
        level=r.names[worst] if levels else "",
        before=float(r.columns.mean[worst]),
        now=float(held.mean()) if len(held) else np.nan,
        sd=float(r.columns.sd[worst]),
        missing_before=missing[0],
        missing_now=missing[1],
        missing_moved=p_missing < LEVEL and abs(missing[1] - missing[0]) >= LEAST,
        new_levels=new,
        new_share=share,
        outside=float(outside.mean()),
    )
