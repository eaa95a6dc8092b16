"""Data frames with categories, dates and missing values, for estimators of numbers.

A frame that is numbers already goes straight through. Any other is encoded as the command line
encodes a table (`hetrisk.tables.TableEncoder`): the fitted encoder stays with the estimator as
``encoder_``, whose features, not the frame's columns, are then what ``support_``, ``coef_`` and
``feature_names_in_`` speak of. All features of one column share a decision, and predictions need
only the columns some feature of which stayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from sklearn.base import BaseEstimator

from hetrisk.estimators.keep import kept_columns
from hetrisk.tables.encoder import TableEncoder
from hetrisk.tables.frames import as_pandas, is_frame, is_numeric


def encoded(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """Return the table as numbers.

    Parameters
    ----------
    estimator : learns ``encoder_`` when ``reset`` and the frame needs one, and forgets an old one.
    X : anything `fit` or `predict` was given.
    reset : at fit time; False at prediction.
    """
    if reset:
        vars(estimator).pop("encoder_", None)
        if not is_frame(X) or is_numeric(X):
            return X
        frame = as_pandas(X)
        # Who passes a column of numbers means it, whatever it looks like.
        named = [str(name) for name, dtype in frame.dtypes.items() if is_numeric_dtype(dtype)]
        estimator.encoder_ = TableEncoder(named=tuple(named)).fit(frame)
    encoder = vars(estimator).get("encoder_")
    if encoder is None or not is_frame(X):
        return X
    frame = as_pandas(X)
    spare = set() if reset else _spare(estimator, encoder)
    names = {str(name) for name in frame.columns}
    if not reset and _is_encoded(encoder, names, spare):
        return X
    values = encoder.encode(frame, spare=spare)[0]
    # Without a copy, so that the rows lie in memory as they did when they were fitted.
    return pd.DataFrame(values, columns=encoder.get_feature_names_out(), copy=False)


def completed(estimator: Any, X: Any) -> Any:
    """Return a frame of numbers with the columns that the model left out, where it lacks them.

    A prediction does not look at them; any number will do.
    """
    names, support = (vars(estimator).get(of) for of in ("feature_names_in_", "support_"))
    if names is None or support is None or not is_frame(X):
        return X
    frame = as_pandas(X)
    absent = {name for name in names if name not in frame.columns}
    if not absent or not absent <= set(names[~np.asarray(support)]):
        return X
    return frame.assign(**dict.fromkeys(absent, 0.0))[list(names)]


def called(names: Iterable[Any], groups: Any) -> tuple[str, ...]:
    """Return what to call features in a sentence: one that is all of a category, as that."""
    shown = tuple(map(str, names))
    if groups is None:
        return shown
    counts = Counter(groups)
    return tuple(
        group
        if isinstance(group, str) and counts[group] == 1 and name.startswith(f"{group}=")
        else name
        for name, group in zip(shown, groups, strict=True)
    )


def feature_groups(estimator: Any) -> Any:
    """Return the group of each feature: those given, and one for all features of a column."""
    encoder = vars(estimator).get("encoder_")
    given = estimator.feature_groups
    if encoder is None:
        return given
    columns = encoder.feature_groups_
    if given is None:
        return columns
    names = [str(name) for name in encoder.feature_names_in_]
    if np.shape(given) != (len(names),):
        raise ValueError(
            f"feature_groups must hold one name or integer per column of X, {len(names)}; got "
            f"shape {np.shape(given)}."
        )
    group = dict(zip(names, given, strict=True))
    return np.asarray([group[column] for column in columns], dtype=object)


def kept(estimator: Any) -> Any:
    """Return ``keep`` in terms of features: a column stands for all features it became."""
    encoder = vars(estimator).get("encoder_")
    keep = estimator.keep
    if encoder is None or keep is None:
        return keep
    names = [str(name) for name in encoder.feature_names_in_]
    wanted = [names[j] for j in np.flatnonzero(kept_columns(keep, names, len(names)))]
    return [int(j) for j in np.flatnonzero(np.isin(encoder.feature_groups_, wanted))]


def _spare(estimator: Any, encoder: TableEncoder) -> set[str]:
    """Columns none of whose features the model looks at."""
    support = vars(estimator).get("support_")
    if support is None:
        return set()
    used = set(encoder.feature_groups_[np.asarray(support)])
    return {column.name for column in encoder.columns_ if column.name not in used}


def _is_encoded(encoder: TableEncoder, names: set[str], spare: set[str]) -> bool:
    """Whether these are the encoder's features already, and not the columns it encodes."""
    needed = {column.name for column in encoder.columns_} - spare
    return not needed <= names and set(encoder.get_feature_names_out()) <= names
