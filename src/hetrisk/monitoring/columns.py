"""Which columns moved, and whether the mix of environments did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from hetrisk.core.drift.reference import Reference, distances
from hetrisk.core.numerics.multiplicity import holm
from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.monitoring.findings import LEAST_DISTANCE, LEVEL, ColumnCheck, EnvironmentCheck
from hetrisk.report.labels import readable, unique_labels


def check_columns(
    reference: Reference,
    Z: FloatArray,
    support: BoolArray,
    groups: Sequence[object],
    names: Sequence[str],
    known: BoolArray,
) -> tuple[ColumnCheck, ...]:
    """Return every column then and now, the furthest moved first.

    Parameters
    ----------
    reference : of the training rows.
    Z : (n, d) new rows in the model's columns.
    support : (d,) those the model uses.
    groups : (d,) columns of one group are one column of the table.
    names : (d,).
    known : (d,) columns the new table has.
    """
    distance, p_value = distances(reference, Z)
    outside = reference.outside(Z, slice(0, Z.shape[1]))
    members: dict[object, list[int]] = {}
    for j, group in enumerate(groups):
        if known[j]:
            members.setdefault(group, []).append(j)
    found = [
        _column(reference, Z, support, outside, names, group, index, distance, p_value)
        for group, index in members.items()
    ]
    corrected = holm(np.array([c.p_value for c in found]))
    labels = unique_labels(c.name for c in found)
    checks = [
        _judged(column, label, float(p))
        for column, label, p in zip(found, labels, corrected, strict=True)
    ]
    return tuple(sorted(checks, key=lambda c: (not c.moved, -c.distance)))


def _column(
    reference: Reference,
    Z: FloatArray,
    support: BoolArray,
    outside: BoolArray,
    names: Sequence[str],
    group: object,
    index: list[int],
    distance: FloatArray,
    p_value: FloatArray,
) -> ColumnCheck:
    """One column of the table: of several levels, the shares that would have to change."""
    before, now = reference.mean[index], Z[:, index].mean(axis=0)
    worst = index[int(np.argmax(distance[index]))]
    levels = bool(reference.indicator[index].all())
    apart = float(distance[index].max())
    if levels and len(index) > 1:
        gap = now - before
        apart = min(1.0, 0.5 * float(np.abs(gap).sum() + abs(gap.sum())))
    sd = float(reference.sd[worst])
    shift = (float(Z[:, worst].mean()) - float(reference.mean[worst])) / sd if sd > 0 else np.nan
    return ColumnCheck(
        name=group if isinstance(group, str) else names[worst],
        used=bool(support[index].any()),
        distance=apart,
        p_value=min(1.0, float(p_value[index].min()) * len(index)),
        moved=False,
        before=float(reference.mean[worst]),
        now=float(Z[:, worst].mean()),
        sd=sd,
        shift=np.nan if levels else shift,
        outside=float(outside[:, index].any(axis=1).mean()),
        level=readable(names[worst]) if levels else "",
    )


def _judged(column: ColumnCheck, label: str, p_value: float) -> ColumnCheck:
    moved = p_value < LEVEL and column.distance >= LEAST_DISTANCE
    return ColumnCheck(**{**vars(column), "name": label, "p_value": p_value, "moved": moved})


def check_environments(
    labels: Sequence[str], before: FloatArray, member: FloatArray, n_reference: int
) -> tuple[EnvironmentCheck, ...]:
    """Return the share of every environment then and now.

    The mix is judged as the levels of a category are: by the rows that would have to change, so
    that many small environments that all went away are noticed.

    Parameters
    ----------
    labels : names of the K environments.
    before : (K,) shares of the training rows.
    member : (n, K) probability that each new row belongs to each.
    n_reference : training rows.
    """
    before = np.asarray(before, dtype=float) / np.sum(before)
    now, n = member.mean(axis=0), len(member)
    # The variance of a share of whole rows is the most that probabilities can have.
    pooled = (before * n_reference + now * n) / (n_reference + n)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n_reference + 1 / n))
    z = np.abs(now - before) / np.where(error > 0, error, np.inf)
    corrected = holm(special.erfc(z / np.sqrt(2)))
    apart = 0.5 * float(np.abs(now - before).sum())
    return tuple(
        EnvironmentCheck(
            label=label,
            before=float(before[k]),
            now=float(now[k]),
            p_value=float(corrected[k]),
            moved=bool(corrected[k] < LEVEL and apart >= LEAST_DISTANCE),
        )
        for k, label in enumerate(labels)
    )


def membership_of(labels: Sequence[Any], environments: Any) -> tuple[list[str], FloatArray]:
    """Return names and memberships of given labels; those never seen get columns of their own."""
    values = np.asarray(environments).astype(str)
    known = [str(label) for label in labels]
    new = sorted(set(values) - set(known))
    return [*known, *new], (values[:, None] == np.array([*known, *new])).astype(float)
