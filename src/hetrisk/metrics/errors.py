"""How a model fares in each environment: its errors one by one, and their summary.

Errors are summarised by their mean, their standard deviation (ddof 1, as in the paper's tables)
and their maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.datasets.task import CLASSIFICATION, REGRESSION, ShiftTask

Errors = Mapping[str, float] | Sequence[float] | np.ndarray
Loss = Callable[[Any, FloatArray, np.ndarray], float]


def rmse(model: Any, X: FloatArray, y: np.ndarray) -> float:
    """Root mean squared error."""
    return float(np.sqrt(mse(model, X, y)))


def mse(model: Any, X: FloatArray, y: np.ndarray) -> float:
    """Mean squared error."""
    return float(np.mean((np.asarray(model.predict(X)) - y) ** 2))


def mae(model: Any, X: FloatArray, y: np.ndarray) -> float:
    """Mean absolute error."""
    return float(np.mean(np.abs(np.asarray(model.predict(X)) - y)))


def error_rate(model: Any, X: FloatArray, y: np.ndarray) -> float:
    """Share of rows whose label is wrong."""
    return float(np.mean(np.asarray(model.predict(X)) != y))


def cross_entropy(model: Any, X: FloatArray, y: np.ndarray) -> float:
    """Mean negative log probability of the true label."""
    return float(log_loss(y, model.predict_proba(X), labels=model.classes_))


LOSSES: dict[str, Loss] = {
    "rmse": rmse,
    "mse": mse,
    "mae": mae,
    "error_rate": error_rate,
    "log_loss": cross_entropy,
}
DEFAULT_LOSS = {REGRESSION: "rmse", CLASSIFICATION: "error_rate"}


def environment_errors(model: Any, task: ShiftTask, loss: str | Loss = "auto") -> dict[str, float]:
    """Error of a fitted model in every test environment of a task.

    Parameters
    ----------
    model : anything with ``predict`` (and ``predict_proba`` for ``"log_loss"``).
    task : a `hetrisk.datasets.ShiftTask`.
    loss : ``"rmse"``, ``"mse"``, ``"mae"``, ``"error_rate"``, ``"log_loss"``, a function of
        ``(model, X, y)``, or ``"auto"``: RMSE for a regression, error rate for a classification.

    Returns
    -------
    dict of environment name to error, in the order of ``task.test``.
    """
    if isinstance(loss, str):
        name = DEFAULT_LOSS[task.task_type] if loss == "auto" else loss
        if name not in LOSSES:
            raise ValueError(
                f"loss must be 'auto', a function, or one of {', '.join(map(repr, LOSSES))}; "
                f"got {loss!r}."
            )
        loss = LOSSES[name]
    return {name: float(loss(model, X, y)) for name, (X, y) in task.test.items()}


def mean_error(errors: Errors) -> float:
    """Mean over environments."""
    return float(_values(errors).mean())


def std_error(errors: Errors) -> float:
    """Standard deviation over environments (ddof 1); NaN for a single one."""
    values = _values(errors)
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def max_error(errors: Errors) -> float:
    """Error in the worst environment."""
    return float(_values(errors).max())


def _values(errors: Errors) -> FloatArray:
    listed = list(errors.values()) if isinstance(errors, Mapping) else errors
    values = np.asarray(listed, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(
            f"errors must be one number for each environment; got shape {values.shape}."
        )
    return values
