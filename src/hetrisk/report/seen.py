"""Rows as the estimator at the end of a model sees them: numbers, one column a feature."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.tables import TableEncoder
from hetrisk.tables.frames import as_pandas, is_frame


class Seen(NamedTuple):
    """(n, d) rows, (d,) which of the columns the table has, and notes about it."""

    X: FloatArray
    known: BoolArray
    notes: list[Any]


def encoder_of(model: Any, final: Any) -> TableEncoder | None:
    """Return the encoder between a table and the last step ``final``, where there is one."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else None
    if isinstance(first, TableEncoder) and len(model.steps) == 2:
        return first
    own = vars(final).get("encoder_")
    return own if isinstance(own, TableEncoder) else None


def seen(model: Any, final: Any, X: Any) -> Seen:
    """Return new rows as ``final``, the last step of ``model``, sees them.

    Columns no feature of which the model uses may be missing from a table.
    """
    steps = len(model.steps) if isinstance(model, Pipeline) else 1
    encoder = encoder_of(model, final)
    if encoder is not None and is_frame(X) and not (steps > 1 and "encoder_" in vars(final)):
        return _encoded(encoder, final, X)
    inner = model[:-1].transform(X) if steps > 1 else X
    if encoder is not None and is_frame(inner):
        return _encoded(encoder, final, inner)
    names = getattr(final, "feature_names_in_", None)
    known = np.ones(final.n_features_in_, dtype=bool)
    if is_frame(inner) and names is not None:
        frame = as_pandas(inner)
        known = np.isin(names, frame.columns)
        if (final.support_ & ~known).any():
            lacking = ", ".join(map(repr, names[final.support_ & ~known]))
            raise ValueError(f"X must have the columns the model uses; it lacks {lacking}.")
        inner = frame.reindex(columns=list(names), fill_value=0.0)
    values = np.asarray(inner.toarray() if hasattr(inner, "toarray") else inner, dtype=float)
    if values.ndim != 2 or values.shape[1] != final.n_features_in_:
        raise ValueError(
            f"X must have {final.n_features_in_} columns, as the model was fitted on; "
            f"got an array of shape {values.shape}."
        )
    return Seen(values, known, [])


def _encoded(encoder: TableEncoder, final: Any, X: Any) -> Seen:
    frame = encoder.matched(X)
    names = {str(name) for name in frame.columns}
    used = set(encoder.feature_groups_[final.support_])
    spare = {c.name for c in encoder.columns_ if c.name not in used and c.name not in names}
    values, notes = encoder.encode(frame, spare=spare)
    known = ~np.isin(encoder.feature_groups_.astype(str), list(spare))
    return Seen(values, known, [note for note in notes if note.column not in spare])
