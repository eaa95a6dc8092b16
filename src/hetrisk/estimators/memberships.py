"""Which environment each row belongs to, however the user says it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hetrisk.blocks.labels import check_shares
from hetrisk.core.numerics.rows import FloatArray


def memberships(
    environments: Any, n_rows: int | None = None
) -> tuple[FloatArray, np.ndarray | None]:
    """(n, K) responsibilities and the names of the environments.

    Parameters
    ----------
    environments : a label per row, of any kind, (n,) or (n, 1); or (n, K) responsibilities:
        non-negative numbers whose rows sum to one.
    n_rows : the number of rows there must be; None where it is checked later.

    Returns
    -------
    shares : (n, K).
    names : (K,) the labels in the order of the columns; None where responsibilities were given.
    """
    given = np.asarray(environments)
    if given.ndim not in (1, 2):
        raise ValueError(
            "environments must be a label per row (n,) or responsibilities (n, K); got an array "
            f"with {given.ndim} dimensions."
        )
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if n_rows is not None:
        check_length("environments", given, n_rows)
    if given.ndim == 2:
        return check_shares(given), None
    missing = np.flatnonzero(pd.isna(given))
    if len(missing):
        raise ValueError(
            f"environments must name every row; {len(missing)} of {len(given)} are missing, the "
            f"first in row {missing[0]}."
        )
    try:
        names, codes = np.unique(given, return_inverse=True)
    except TypeError:  # labels of several types have no order but that of their names
        names, codes = np.unique(given.astype(str), return_inverse=True)
    return np.eye(len(names))[codes], names


def check_length(name: str, given: Any, n_rows: int) -> None:
    """Refuse what is not one a row."""
    if len(given) != n_rows:
        raise ValueError(f"{name} must have length n_samples={n_rows}; got {len(given)}.")
