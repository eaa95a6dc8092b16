"""A column that says where each row came from."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from hetrisk.core.numerics.rows import IntArray
from hetrisk.tables.cells import cells_of
from hetrisk.tables.errors import TableError, listed, quoted
from hetrisk.tables.reading import Table
from hetrisk.tables.target import REGRESSION, read_target


def environment_labels(table: Table, column: str) -> tuple[IntArray, list[str]]:
    """Return a code per row (-1: missing) into the names of the environments in a column."""
    labels = [str(name) for name in table.frame.columns]
    if column not in labels:
        raise TableError(
            f"there is no environment column {quoted(column)}; the columns are {listed(labels, 12)}"
        )
    cells = cells_of(column, table.frame.iloc[:, labels.index(column)])
    if cells is None:
        raise TableError(f"column {quoted(column)} does not hold single values")
    return cells.levels()


def compare_with_known(table: Table, model: Pipeline, column: str) -> dict[str, Any]:
    """Return the error of the model and of plain ERM in each known environment.

    Parameters
    ----------
    table : the training table.
    model : the pipeline fitted on it.
    column : says where each row came from.
    """
    codes, names = environment_labels(table, column)
    description = model[0].description_
    target = read_target(table.frame, description.target, description.task, model[0].decimal)
    codes = codes[target.known]
    X = model[0].transform(table.frame.loc[target.known])
    errors = _errors(model[-1].predict(X), target.values, description.task)
    erm = _errors(
        _erm(description.task).fit(X, target.values).predict(X), target.values, description.task
    )
    agreement = adjusted_rand_score(codes, model[-1].environments_)
    return {
        "column": column,
        "agreement": float(agreement),
        "environments": [
            {
                "environment": names[code] if code >= 0 else "(missing)",
                "rows": int((codes == code).sum()),
                "risk": _risk(errors[codes == code], description.task),
                "risk_erm": _risk(erm[codes == code], description.task),
            }
            for code in np.unique(codes)
        ],
    }


def _erm(task: str) -> Any:
    if task == REGRESSION:
        return LinearRegression()
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))


def _errors(predicted: np.ndarray, y: np.ndarray, task: str) -> np.ndarray:
    """Squared errors of numbers, 0/1 errors of classes."""
    wrong = (predicted - y) ** 2 if task == REGRESSION else predicted != y
    return np.asarray(wrong, dtype=float)


def _risk(errors: np.ndarray, task: str) -> float:
    """RMSE of a regression, error rate of a classification."""
    return float(np.sqrt(errors.mean()) if task == REGRESSION else errors.mean())
