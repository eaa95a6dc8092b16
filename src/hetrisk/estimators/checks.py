"""From what a user passes to `fit` to checked rows in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetrisk.blocks import Blocks, is_out_of_core
from hetrisk.core.numerics.families import Bernoulli, Family, Gaussian, Multinomial
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.estimators.inputs import as_blocks
from hetrisk.estimators.memberships import check_length, memberships

MOST_COEFFICIENTS = 10_000  # of a multinomial: their curvature alone takes 800 MB


def check_regression_rows(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    environments: FloatArray | None = None,
) -> tuple[Blocks, Family]:
    """Rows with a numeric target, and the Gaussian family."""
    rows = as_blocks(model, X, y, sample_weight, environments=environments, min_rows=2)
    if environments is not None:
        check_length("environments", environments, rows.n_rows)
    return rows, Gaussian()


def check_classification_rows(
    model: Any, X: Any, y: Any, sample_weight: Any, environments: FloatArray | None = None
) -> tuple[Blocks, Family]:
    """Rows with labels coded 0, 1, ..., and the family of that many classes.

    Sets ``classes_`` on the model.
    """
    rows = as_blocks(model, X, y, sample_weight, environments=environments, labels=True, min_rows=2)
    if environments is not None:
        check_length("environments", environments, rows.n_rows)
    model.classes_ = rows.labels()
    n_classes = len(model.classes_)
    if n_classes < 2:
        raise ValueError(
            f"y must hold at least two classes; got one class, {model.classes_.tolist()}."
        )
    coefficients = (n_classes - 1) * (rows.n_features + 1)
    if n_classes > 2 and coefficients > MOST_COEFFICIENTS:
        raise ValueError(
            f"y must hold fewer classes: {n_classes} on {rows.n_features} columns make "
            f"{coefficients:,} coefficients, more than the {MOST_COEFFICIENTS:,} that can be "
            "fitted together. Merge classes, or is y a number?"
        )
    family = Bernoulli() if n_classes == 2 else Multinomial(n_classes)
    return rows.encoded(model.classes_), family


def check_environments(environments: Any) -> tuple[FloatArray | None, np.ndarray | None]:
    """(n, K) responsibilities and the names of the environments, from labels or responsibilities.

    Names are None where responsibilities were given. A dask collection stays as it is: its blocks
    do the same where they live.
    """
    if environments is None or is_out_of_core(environments):
        return environments, None
    return memberships(environments)


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
