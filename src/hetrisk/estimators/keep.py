"""What the user says of columns: which never leave, and which share a decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hetrisk.core.numerics.rows import BoolArray, IntArray


def kept_columns(keep: Any, names: Sequence[str] | None, n_features: int) -> BoolArray:
    """(d,) mask of the columns that never leave, from names, positions or such a mask."""
    mask = np.zeros(n_features, dtype=bool)
    if keep is None:
        return mask
    given = [keep] if isinstance(keep, str | int | np.integer) else list(keep)
    if given and np.ndim(keep) and all(isinstance(column, bool | np.bool_) for column in given):
        if len(given) != n_features:
            raise ValueError(
                f"keep as a mask must have length n_features={n_features}; got {len(given)}."
            )
        return np.asarray(given, dtype=bool)
    known = {} if names is None else {str(name): j for j, name in enumerate(names)}
    for column in given:
        mask[_position(column, known, n_features)] = True
    return mask


def _position(column: Any, known: dict[str, int], n_features: int) -> int:
    if isinstance(column, str):
        if column not in known:
            raise ValueError(f"keep must name columns of X; there is no column {column!r}.")
        return known[column]
    if isinstance(column, bool | np.bool_) or not isinstance(column, int | np.integer):
        raise ValueError(
            "keep must hold names or positions of columns of X, or be a mask of n_features="
            f"{n_features} truths; got {column!r}."
        )
    if not 0 <= column < n_features:
        raise ValueError(f"keep must hold positions below n_features={n_features}; got {column}.")
    return int(column)


def feature_gates(feature_groups: Any, n_features: int, constant: BoolArray) -> IntArray:
    """(d,) codes 0, 1, ... of the groups in the order of their first column.

    A ``constant`` (d,) column, such as a level that no row has, stands alone: no decision is to be
    made about it, and it would tie that about its group to none.
    """
    if feature_groups is None:
        return np.arange(n_features)
    names = np.asarray(feature_groups, dtype=object)
    if names.shape != (n_features,):
        raise ValueError(
            f"feature_groups must hold one name or integer per column, n_features={n_features}; "
            f"got shape {names.shape}."
        )
    codes: dict[Any, int] = {}
    own = [
        (alone, j) if alone else (alone, name)
        for j, (name, alone) in enumerate(zip(names, constant, strict=True))
    ]
    return np.array([codes.setdefault(key, len(codes)) for key in own], dtype=np.int64)
