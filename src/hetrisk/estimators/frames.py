"""Data frames of numbers, for estimators of numbers, as scikit-learn's are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

TABLES = "encode it first: hetrisk.tables.TableEncoder does, as the first step of a pipeline"


def encoded(X: Any) -> Any:
    """Return the rows as they are; refuse a frame with a column that is no number, by its name."""
    if isinstance(X, pd.DataFrame):
        for name, kind in X.dtypes.items():
            if not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_object_dtype(kind)):
                raise ValueError(
                    f"X must hold numbers; column {str(name)!r} holds {kind}: {TABLES}."
                )
    return X


def completed(estimator: Any, X: Any) -> Any:
    """Return a frame of numbers with the columns that the model left out, where it lacks them.

    A prediction does not look at them; any number will do.
    """
    names, support = (vars(estimator).get(of) for of in ("feature_names_in_", "support_"))
    if names is None or support is None or not isinstance(X, pd.DataFrame):
        return X
    absent = {name for name in names if name not in X.columns}
    if not absent or not absent <= set(names[~np.asarray(support)]):
        return X
    return X.assign(**dict.fromkeys(absent, 0.0))[list(names)]
