"""What a model must look like as a whole, and a trial run before it is handed out.

A model is one of hetrisk's estimators, or a pipeline: a `hetrisk.tables.TableEncoder` if the
model was fitted from a table, steps that scale or select, and an estimator at the end, of which
one at least is hetrisk's. Two rows then go through it, of zeros, or of a table without a single
value where the model encodes tables: parts that do not fit together fail here, with a sentence,
and not in the middle of somebody's work.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from hetrisk.estimators.mixture import EnvironmentMixture
from hetrisk.modelfile.errors import ModelFileError
from hetrisk.modelfile.named import NAMED, refusal
from hetrisk.modelfile.own import is_own
from hetrisk.tables.encoder import TableEncoder

ROWS = 2


def check_kind(model: Any) -> None:
    """Refuse what is not an estimator of hetrisk, or a pipeline around one."""
    steps = [step for _, step in model.steps] if type(model) is Pipeline else [model]
    for position, step in enumerate(steps):
        if type(step) is TableEncoder and position > 0:
            raise ModelFileError("a table encoder must be the first step of a model")
        if not _is_own(step) and type(step) not in [named.kind for named in NAMED.values()]:
            raise ModelFileError(refusal(step))
        last = position == len(steps) - 1
        if not last and not hasattr(step, "transform"):
            raise ModelFileError(f"{type(step).__name__} stands where a step must transform")
        _check_final(step)
    if not any(_is_own(step) and type(step) is not TableEncoder for step in steps):
        raise ModelFileError(f"a {type(steps[-1]).__name__} alone is not a hetrisk model")


def _check_final(step: Any) -> None:
    for name in ("final_estimator", "final_estimator_"):
        final = getattr(step, name, None)
        kinds = [named.kind for named in NAMED.values()]
        inner = [part for _, part in final.steps] if isinstance(final, Pipeline) else [final]
        for part in inner:
            if part is not None and type(part) not in kinds:
                raise ModelFileError(refusal(part))


def _is_own(step: Any) -> bool:
    return isinstance(step, BaseEstimator) and is_own(step)


def try_out(model: Any, size: int) -> None:
    """Run two rows through the model; any error means that its parts do not fit together.

    Parameters
    ----------
    model : as read, of a kind `check_kind` accepts.
    size : of the file in bytes. A feature takes at least one of them, so a model that claims
        more features than that would only make the trial large.
    """
    steps = [step for _, step in model.steps] if type(model) is Pipeline else [model]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        rows = _rows(steps[0], size)
        for step in steps[:-1]:
            rows = step.transform(rows)
        answer = np.asarray(_answer(steps[-1], rows))
    finite = answer.dtype.kind not in "fc" or bool(np.isfinite(answer).all())
    if len(answer) != ROWS or not finite:
        raise ModelFileError("is damaged or was tampered with: it does not predict")


def _rows(first: Any, size: int) -> Any:
    names = _names(first, size)
    encoder = _encoder(first)
    if encoder is not None:
        # As the table was: a feature may share its name with a column of dates, and no date is 0.
        return pd.DataFrame(None, range(ROWS), _names(encoder, size), dtype=object)
    if names is None:
        return np.zeros((ROWS, first.n_features_in_))
    return pd.DataFrame(0.0, range(ROWS), names)


def _names(step: Any, size: int) -> Any:
    """Return the names of the columns a step was fitted on, or None, once their number is right."""
    names, count = getattr(step, "feature_names_in_", None), step.n_features_in_
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
        raise ModelFileError("is damaged or was tampered with: it does not say what it was fitted")
    if not 0 <= count <= size or (names is not None and len(names) != count):
        raise ModelFileError("is damaged or was tampered with: it names other columns than it has")
    return names


def _encoder(first: Any) -> TableEncoder | None:
    """Return what makes numbers of a table: the step itself, or what an estimator learned."""
    if type(first) is TableEncoder:
        return first
    own = vars(getattr(first, "estimator_", first)).get("encoder_")
    return own if type(own) is TableEncoder else None


def _answer(last: Any, rows: Any) -> Any:
    if isinstance(last, EnvironmentMixture):
        classes = getattr(last, "classes_", np.zeros(1))
        return last.predict_proba(rows, np.resize(classes, ROWS))
    if hasattr(last, "predict_proba"):
        shares = last.predict_proba(rows)
        if np.shape(shares) != (ROWS, len(last.classes_)):
            raise ModelFileError("is damaged or was tampered with: a class has no probability")
    return last.predict(rows) if hasattr(last, "predict") else last.transform(rows)
