"""Which environment each row belongs to, however the user says it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hetrisk.core.numerics.rows import FloatArray

SUM_TOLERANCE = 1e-6  # a row of responsibilities may miss a sum of one by this much


def memberships(
    environments: Any, n_rows: int | None = None
) -> tuple[FloatArray, np.ndarray | None]:
    """(n, K) responsibilities and the names of the environments.

    Parameters
    ----------
    environments : a label per row, of any kind; or (n, K) responsibilities: non-negative
        numbers whose rows sum to one.
    n_rows : the number of rows there must be; None where it is checked later.

    Returns
    -------
    shares : (n, K).
    names : (K,) the labels in the order of the columns; None where responsibilities were given.
    """
    given = np.asarray(environments)
    check_axes(given)
    if n_rows is not None:
        check_length("environments", given, n_rows)
    if given.ndim == 2:
        return responsibilities(given), None
    check_named(given)
    names, codes = _distinct(given)
    return np.eye(len(names))[codes], names


def check_axes(given: np.ndarray) -> None:
    """Refuse what is neither labels nor responsibilities."""
    if given.ndim not in (1, 2):
        raise ValueError(
            "environments must be a label per row (n,) or responsibilities (n, K); got an array "
            f"with {given.ndim} dimensions."
        )


def check_length(name: str, given: Any, n_rows: int) -> None:
    """Refuse what is not one a row."""
    if len(given) != n_rows:
        raise ValueError(f"{name} must have length n_samples={n_rows}; got {len(given)}.")


def check_named(labels: Any, instead: str = "") -> None:
    """Refuse rows without a label; ``instead`` says what the user may do about them."""
    missing = np.flatnonzero(pd.isna(labels))
    if len(missing):
        raise ValueError(
            f"environments must name every row; {len(missing)} of {len(labels)} are missing, the "
            f"first in row {missing[0]}.{instead}"
        )


def _distinct(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError:  # labels of several types have no order but that of their names
        return np.unique(labels.astype(str), return_inverse=True)


def responsibilities(given: np.ndarray) -> FloatArray:
    """(n, K) numbers that are shares of a row: not negative, one together."""
    if given.dtype.kind not in "fiub":
        raise TypeError(
            f"environments given as responsibilities must be numbers; got dtype {given.dtype}."
        )
    shares: FloatArray = given.astype(np.float64)
    # Written so that NaN fails: every comparison with it is false.
    if not (np.all(shares >= 0) and np.all(np.abs(shares.sum(axis=1) - 1.0) <= SUM_TOLERANCE)):
        raise ValueError(
            "environments given as responsibilities must be non-negative with rows summing to one."
        )
    return shares
