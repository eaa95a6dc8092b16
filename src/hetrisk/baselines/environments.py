"""Environment labels as a matrix: one column an environment, one row a row."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from hetrisk.core.numerics.rows import FloatArray


def environment_matrix(environments: ArrayLike | None, n_rows: int) -> FloatArray:
    """(n, K) memberships from a label a row, from responsibilities, or from nothing.

    ``None`` means that all rows share one environment. Labels may be of any sortable kind;
    a matrix must hold non-negative numbers with rows that sum to one. Environments without
    rows are left out.
    """
    if environments is None:
        return np.ones((n_rows, 1))
    given = np.asarray(environments)
    if given.ndim not in (1, 2):
        raise ValueError(
            "environments must be a label per row or an (n_samples, K) matrix; "
            f"got an array with {given.ndim} dimensions."
        )
    if len(given) != n_rows:
        raise ValueError(f"environments must have length n_samples={n_rows}; got {len(given)}.")
    return _from_labels(given) if given.ndim == 1 else _from_matrix(given)


def _from_labels(labels: np.ndarray) -> FloatArray:
    if np.any(pd.isna(labels)):
        raise ValueError("environments must name an environment for every row; some are missing.")
    _, codes = np.unique(
        labels.astype(str) if labels.dtype == object else labels, return_inverse=True
    )
    return np.eye(codes.max() + 1)[codes]


def _from_matrix(matrix: np.ndarray) -> FloatArray:
    if matrix.dtype.kind not in "fiub":
        raise TypeError(f"environments as a matrix must hold numbers; got dtype {matrix.dtype}.")
    shares = matrix.astype(np.float64)
    if not np.all(shares >= 0) or not np.allclose(shares.sum(axis=1), 1.0, atol=1e-6):
        raise ValueError("environments as a matrix must be >= 0 with rows that sum to one.")
    return shares[:, shares.sum(axis=0) > 0]
