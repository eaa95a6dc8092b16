"""A user's own table, split by the column that says which environment a row came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hetrisk.core.numerics.rows import IntArray
from hetrisk.datasets.checks import one_of

TASK_TYPES = ("regression", "classification")


@dataclass(frozen=True, eq=False)
class LabelledFrame:
    """Features, target and environment of every row of a table.

    Attributes
    ----------
    features : the columns to learn from, as they came.
    y : (n,) target: floats, or class labels as they came.
    labels : (n,) name of each row's environment.
    task_type : ``"regression"`` or ``"classification"``.
    """

    features: pd.DataFrame
    y: np.ndarray
    labels: np.ndarray
    task_type: str

    @classmethod
    def read(
        cls,
        frame: pd.DataFrame,
        target: str,
        environment: str,
        task_type: str = "auto",
        features: Sequence[str] | None = None,
    ) -> LabelledFrame:
        """Check a table and take it apart."""
        one_of("task_type", task_type, ("auto", *TASK_TYPES))
        _check_columns(frame, target, environment, features)
        for role, name in (("target", target), ("environment", environment)):
            missing = int(frame[name].isna().sum())
            if missing:
                raise ValueError(f"{role} column {name!r} has {missing} missing values.")
        if task_type == "auto":
            task_type = _infer(frame[target])
        chosen = features or [c for c in frame.columns if c not in (target, environment)]
        labels = frame[environment].astype(str).to_numpy(dtype=object)
        table = cls(frame[list(chosen)], _target(frame[target], task_type), labels, task_type)
        if len(table.names) < 2:
            raise ValueError(
                f"environment column {environment!r} must hold at least two environments; "
                f"got {table.names}."
            )
        return table

    @property
    def names(self) -> list[str]:
        """Names of the environments, sorted, numbers by value."""
        return sorted(set(self.labels), key=_by_value)

    def rows(self, environments: Sequence[str]) -> IntArray:
        """Return the positions of the rows of some environments, in the table's order."""
        return np.flatnonzero(np.isin(self.labels, list(environments)))

    def check_held_out(self, test: Sequence[str]) -> None:
        """Raise unless ``test`` names some of the environments and leaves others to train on."""
        unknown = [label for label in test if label not in self.names]
        if unknown:
            raise ValueError(
                f"test must name environments of the table {self.names}; got {unknown}."
            )
        if not test or set(test) == set(self.names):
            raise ValueError(
                f"test must hold out some of the environments {self.names} and leave some to "
                f"train on; got {list(test)}."
            )


def _check_columns(
    frame: pd.DataFrame, target: str, environment: str, features: Sequence[str] | None
) -> None:
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"frame must be a pandas DataFrame; got {type(frame).__name__}.")
    if frame.columns.has_duplicates:
        twice = sorted({str(c) for c in frame.columns[frame.columns.duplicated()]})
        raise ValueError(f"column names of frame must differ; {twice} appear more than once.")
    if target == environment:
        raise ValueError(f"target and environment must be different columns; both are {target!r}.")
    wanted = {"target": [target], "environment": [environment], "features": features or []}
    for role, names in wanted.items():
        absent = [name for name in names if name not in frame.columns]
        if absent:
            raise ValueError(
                f"{role} must name columns of the frame {list(frame.columns)}; got {absent}."
            )
    overlap = sorted({target, environment} & set(features or ()))
    if overlap:
        raise ValueError(f"features must not hold the target or the environment; got {overlap}.")


def _infer(target: pd.Series) -> str:
    numeric = pd.api.types.is_numeric_dtype(target) and not pd.api.types.is_bool_dtype(target)
    return "regression" if numeric and target.nunique() > 2 else "classification"


def _target(target: pd.Series, task_type: str) -> np.ndarray:
    if task_type == "classification":
        return target.to_numpy()
    try:
        y = target.to_numpy(dtype=np.float64)
    except ValueError:
        raise ValueError(
            f"target column {target.name!r} must hold numbers for a regression; got {target.dtype}."
        ) from None
    if not np.isfinite(y).all():
        raise ValueError(f"target column {target.name!r} must hold finite numbers.")
    return y


def _by_value(label: str) -> tuple[int, float, str]:
    try:
        return 0, float(label), label
    except ValueError:
        return 1, 0.0, label
