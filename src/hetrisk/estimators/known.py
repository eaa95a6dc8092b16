"""Environments as the user names them: labels, dates, numbers, frames of these, responsibilities.

Dates, spans of time and floating-point numbers have an order, and neighbours are alike; integers,
text, truths and categories are labels without one, whatever they look like. A missing value is no
environment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hetrisk.blocks import ArrayBlocks, Blocks
from hetrisk.blocks.aside import as_frame
from hetrisk.blocks.labels import check_shares, in_numpy, name_of, quoted, shown
from hetrisk.columns.dates import are_dates, days, plain
from hetrisk.core.environments.content import sampled
from hetrisk.core.environments.levels import MOST_ORDERED, Levels
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.result import SideColumn
from hetrisk.estimators.memberships import check_length

MOST_LABELS = 2_000  # that are told apart: those with the most rows
EDGE_ROWS = 10_000  # of rows out of core, by which a number is cut into levels
NAME = "environments"


def known_environments(rows: Blocks, environments: Any) -> tuple[Blocks, tuple[Levels, ...]]:
    """Rows that carry what is known about them, and how to read it; () where nothing is."""
    if not isinstance(rows, ArrayBlocks):
        return rows, _carried(rows)
    given = rows.environments if environments is None else in_numpy(environments)
    if given is None:
        return rows, ()
    check_length("environments", given, rows.n_rows)
    if _are_shares(given):
        shares = check_shares(np.asarray(given))
        names = tuple(f"environment {k}" for k in range(1, shares.shape[1] + 1))
        return rows.carrying(shares, None), (Levels(NAME, names, False, None),)
    read = [_levels(name, values, j) for j, (name, values) in enumerate(_columns(given))]
    return rows.carrying(None, np.column_stack([c for c, _ in read])), tuple(v for _, v in read)


def _are_shares(given: Any) -> bool:
    """Whether these are responsibilities: an array of several columns whose rows add up to one."""
    array = np.asarray(given)
    if isinstance(given, pd.DataFrame) or array.ndim != 2 or array.shape[1] < 2:
        return False
    return array.dtype.kind in "fb" and bool(np.allclose(array.sum(axis=1), 1.0, atol=1e-4))


def _columns(given: Any) -> list[tuple[str, pd.Series]]:
    if isinstance(given, pd.Series) or np.ndim(given) == 1:
        return [(name_of(given) or NAME, pd.Series(given).reset_index(drop=True))]
    frame = as_frame(given)
    if frame.shape[1] == 0:
        raise ValueError("environments must have at least one column; got none.")
    return [(str(c), frame.iloc[:, j].reset_index(drop=True)) for j, c in enumerate(frame)]


def _levels(name: str, values: pd.Series, position: int) -> tuple[FloatArray, Levels]:
    """A column as numbers, and how to read them."""
    values = plain(values.infer_objects())
    if are_dates(values):
        return _ordered(name, days(values), position, dates=True)
    if values.dtype.kind == "f" if isinstance(values.dtype, np.dtype) else False:
        return _ordered(name, values.to_numpy(np.float64), position)
    return _labels(name, values, position)


def _ordered(
    name: str, value: FloatArray, position: int, dates: bool = False
) -> tuple[FloatArray, Levels]:
    known = np.isfinite(value)
    edges = _edges(value[known])
    _refuse_one(len(edges) + 1, value[known][:1])
    names = tuple(_spans(value[known], edges, dates))
    return value, Levels(name, names, True, position, edges)


def _labels(name: str, values: pd.Series, position: int) -> tuple[FloatArray, Levels]:
    codes, found = pd.factorize(values, sort=False)
    _refuse_one(len(found), found)
    counts = np.bincount(codes[codes >= 0], minlength=len(found))
    if len(found) == len(values):
        raise ValueError(
            f"environments must repeat; got {len(found)} different labels for {len(values)} rows."
        )
    least = np.sort(counts)[::-1][min(len(counts), MOST_LABELS) - 1]
    # As common as the rarest that is told apart: all of these, or the choice would be one of order.
    kept = counts >= least if len(counts) <= MOST_LABELS else counts > least
    place = np.where(kept, np.cumsum(kept) - 1, -1)
    coded = np.where(codes >= 0, place[codes], -1).astype(np.float64)
    coded[coded < 0] = np.nan
    names = tuple(shown(label) for label, own in zip(found, kept, strict=True) if own)
    return coded, Levels(name, names, False, position)


def _refuse_one(count: int, found: Any) -> None:
    if count < 2:
        got = f"one, {quoted(found[0])}" if len(found) else "none"
        raise ValueError(f"environments must hold at least two different labels; got {got}.")


def _edges(value: FloatArray) -> FloatArray:
    """Between distinct values, or quantiles of them where they are many."""
    distinct = np.unique(value)
    if len(distinct) > MOST_ORDERED:
        share = np.linspace(0.0, 1.0, MOST_ORDERED + 1)[1:-1]
        return np.unique(np.quantile(value, share, method="higher"))
    return distinct[1:]


def _spans(value: FloatArray, edges: FloatArray, dates: bool) -> list[str]:
    low = np.concatenate([[value.min(initial=0.0)], edges])
    return [str(np.datetime64(int(v), "D")) if dates else shown(float(v)) for v in low]


def _carried(rows: Blocks) -> tuple[Levels, ...]:
    """What rows out of core carry already."""
    if rows.environment_labels is not None:
        names = tuple(map(shown, rows.environment_labels))
        kind = np.asarray(rows.environment_labels).dtype.kind
        return (Levels(rows.environment_name or NAME, names, kind in "fM", None),)
    if rows.n_shares:
        names = tuple(f"environment {k}" for k in range(1, rows.n_shares + 1))
        return (Levels(NAME, names, False, None),)
    return tuple(_side(rows, column) for column in rows.side_columns)


def _side(rows: Blocks, column: SideColumn) -> Levels:
    if column.kind == "category":
        return Levels(column.name, column.levels, False, column.position)
    aside = sampled(rows, EDGE_ROWS, rows.n_rows).aside
    assert aside is not None
    value = aside[:, column.position]
    value = value[np.isfinite(value)]
    edges = _edges(value)
    dates = column.kind == "date"
    return Levels(column.name, tuple(_spans(value, edges, dates)), True, column.position, edges)
