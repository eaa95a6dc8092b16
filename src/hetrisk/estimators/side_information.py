"""Side information about rows: environments that the user names, and hints.

Whatever the user passes (labels, numbers, dates, frames, with missing values) becomes one matrix
of numbers that the rows carry, and a description of its columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from hetrisk.blocks import ArrayBlocks, Blocks
from hetrisk.blocks.aside import as_frame, described, side_numbers
from hetrisk.blocks.labels import (
    as_labels,
    check_shares,
    have_order,
    in_numpy,
    in_order,
    name_of,
    quoted,
    shown,
)
from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.core.result import NamedEnvironments, SideColumn
from hetrisk.estimators.memberships import (
    check_length,
    check_named,
    one_column,
)

Listed = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class SideInformation:
    """What rows carry beside features and target.

    Attributes
    ----------
    values : (n, m) numbers, or None.
    shares : (n, K) responsibilities, where the user gave those, or None.
    labels : the environments named, or None.
    hints : the columns of hints.
    named : name, as the user wrote it, and share of the rows of each environment named in memory.
    """

    values: FloatArray | None = None
    shares: FloatArray | None = None
    labels: NamedEnvironments | None = None
    hints: tuple[SideColumn, ...] = ()
    named: Listed = ()


def read_side(environments: Any, hints: Any, n_rows: int) -> SideInformation:
    """Check environments and hints for rows in memory."""
    columns: list[FloatArray] = []
    labels, shares = None, None
    listed: Listed = ()
    if environments is not None:
        held = in_numpy(environments)
        given = one_column(np.asarray(held))
        check_length("environments", given, n_rows)
        if given.ndim == 1:
            codes, labels, listed = _named(given, name_of(held))
            columns.append(codes)
        else:
            shares = check_shares(given)
            labels = _numbered(shares.shape[1])
    described = []
    for name, values in _hint_columns(hints, n_rows):
        column, described_as = _hint(name, values, len(columns))
        columns.append(column)
        described.append(described_as)
    matrix = np.array(columns).T if columns else None
    return SideInformation(matrix, shares, labels, tuple(described), listed)


def side_of(rows: Blocks) -> SideInformation:
    """What rows out of core carry already."""
    names, labels = rows.environment_labels, None
    if names is not None:
        _check_labels(names, rows.n_rows)
        ordered = in_order(pd.Series(names))
        means_order = have_order(ordered, rows.environment_name)
        labels = NamedEnvironments(tuple(map(shown, ordered)), None, means_order)
    elif rows.n_shares:
        labels = _numbered(rows.n_shares)
    return SideInformation(labels=labels, hints=rows.side_columns)


def _numbered(count: int) -> NamedEnvironments:
    """Environments of responsibilities: they have no names."""
    return NamedEnvironments(tuple(str(k + 1) for k in range(count)), None, False)


def _check_labels(names: Any, n_rows: int) -> None:
    """Refuse environments that say nothing: the same for every row, or another for each."""
    if len(names) < 2:
        raise ValueError(
            f"environments must hold at least two different labels; got one, {quoted(names[0])}."
        )
    if len(names) == n_rows:
        raise ValueError(
            f"environments must repeat; got {len(names)} different labels for {n_rows} rows."
        )


def _named(given: np.ndarray, name: str) -> tuple[FloatArray, NamedEnvironments, Listed]:
    """Codes of the rows, the labels in order, and name and share of each as it was written."""
    values = pd.Series(as_labels(given), copy=False)
    check_named(values, " (As hints=, missing values are allowed.)")
    codes, found, counts = _distinct(values)
    held = counts > 0
    _check_labels(found[held], len(values))
    # What the labels are is asked of each once, not of every row.
    place, levels = pd.factorize(in_order(pd.Series(found[held])), sort=True)
    labels = NamedEnvironments(tuple(map(shown, levels)), 0, have_order(pd.Series(levels), name))
    lookup = np.zeros(len(found))
    lookup[held] = place
    listed = listed_shares(np.asarray(found[held]), counts[held])
    # Codes are in range: clipped, they need not be checked one by one.
    return lookup.take(codes, mode="clip"), labels, listed


def _distinct(values: pd.Series) -> tuple[IntArray, Any, IntArray]:
    """Codes of the rows, the labels that they stand for, and the rows of each."""
    numbers = values.to_numpy()
    if numbers.dtype.kind not in "iu" or int(numbers.max()) - int(numbers.min()) >= len(numbers):
        codes, found = pd.factorize(values)
        return codes, found, np.bincount(codes, minlength=len(found))
    # Integers close to each other are counted, not looked up.
    low, above = numbers.min().astype(np.int64), numbers.astype(np.int64, copy=False)
    if low != 0:
        above = above - low
    counts = np.bincount(above)
    return above, (low + np.arange(len(counts))).astype(numbers.dtype), counts


def listed_shares(names: np.ndarray, counts: np.ndarray) -> Listed:
    """Name and share of each environment; labels that are written alike are one."""
    written = [shown(name) for name in names] if names.dtype.kind == "M" else names.astype(str)
    distinct, place = np.unique(written, return_inverse=True)
    shares = np.bincount(place, counts) / counts.sum()
    return tuple(zip(distinct.tolist(), shares.tolist(), strict=True))


def _hint_columns(hints: Any, n_rows: int) -> list[tuple[str, pd.Series]]:
    """Hints as named columns."""
    if hints is None:
        return []
    hints = as_frame(hints)
    check_length("hints", hints, n_rows)
    if hints.shape[1] == 0:
        raise ValueError("hints must have at least one column; got none.")
    return [(str(name), hints.iloc[:, j]) for j, name in enumerate(hints.columns)]


def _hint(name: str, values: pd.Series, position: int) -> tuple[FloatArray, SideColumn]:
    """A hint as numbers, and what it is."""
    values = values.reset_index(drop=True).infer_objects()
    column = described(name, position, lambda: [values], len(values))
    return side_numbers(values, column), column


def refuse_known(method: str, side: SideInformation) -> None:
    """Refuse environments and hints, passed or carried by blocks, that a method would not use."""
    if side.labels is not None or side.hints:
        raise ValueError(
            f"method={method!r} infers environments itself; with environments or hints use "
            "method='auto', or InvariantRegressor and InvariantClassifier."
        )


def carrying(rows: Blocks, environments: Any, hints: Any) -> tuple[Blocks, SideInformation]:
    """Rows that carry what is known about them, and a description of it."""
    if not isinstance(rows, ArrayBlocks):
        return rows, side_of(rows)
    # Blocks bring their own, and then nothing else is given.
    environments = rows.environments if environments is None else environments
    side = read_side(environments, rows.aside if hints is None else hints, rows.n_rows)
    return rows.carrying(side.shares, side.values), side
