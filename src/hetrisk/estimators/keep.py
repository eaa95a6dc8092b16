"""Which columns never leave, however the user says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hetrisk.core.numerics.rows import BoolArray


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
