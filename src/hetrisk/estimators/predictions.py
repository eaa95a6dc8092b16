"""Predictions of rows that do not fit in memory, written to Parquet block by block."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from hetrisk import blocks  # write_columns is looked up when called: it needs pyarrow
from hetrisk.blocks import ArrayBlocks, as_blocks
from hetrisk.core.numerics.rows import Rows

__all__ = ["write_environments", "write_predictions"]


def write_predictions(model: Any, X: Any, path: str | Path) -> Path:
    """Write what ``model`` predicts for every row, in the order of the rows.

    Columns: ``prediction`` and, for a classifier, ``probability_<class>`` each. The file
    appears whole or not at all.

    Parameters
    ----------
    model : fitted estimator.
    X : blocks or a dask collection; a target in it is not read.
    path : Parquet file to write.
    """
    check_is_fitted(model)
    source = as_blocks(X).without_target()
    return blocks.write_columns(source, partial(_predictions, model=model), path)


def write_environments(model: Any, X: Any, path: str | Path, y: Any = None) -> Path:
    """Write the environment of every row, and the probability of each, in the order of the rows.

    Columns: ``environment`` and ``probability_<number>`` each. The file appears whole or not
    at all.

    Parameters
    ----------
    model : fitted `HRMRegressor` or `HRMClassifier`.
    X, y : rows as given to ``fit``.
    path : Parquet file to write.
    """
    check_is_fitted(model)
    source, classes = as_blocks(X, y), getattr(model, "classes_", None)
    if classes is not None:
        source = source.encoded(classes)
    return blocks.write_columns(source, partial(_environments, model=model, classes=classes), path)


def _predictions(rows: Rows, model: Any) -> dict[str, np.ndarray]:
    block = ArrayBlocks(rows.X, rows.y)
    if not is_classifier(model):
        return {"prediction": model.predict(block)}
    share = model.predict_proba(block)
    columns = {f"probability_{c}": share[:, k] for k, c in enumerate(model.classes_)}
    return {"prediction": model.predict(block), **columns}


def _environments(rows: Rows, model: Any, classes: np.ndarray | None) -> dict[str, np.ndarray]:
    y = rows.y if classes is None else classes[rows.y.astype(np.int64)]
    share = model.predict_environment_proba(ArrayBlocks(rows.X, y))
    columns = {f"probability_{k}": share[:, k] for k in range(share.shape[1])}
    return {"environment": share.argmax(axis=1), **columns}
