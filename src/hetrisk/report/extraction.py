"""From a fitted model, and the table if it is at hand, to the `Summary` the page shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.result import UNSEARCHED
from hetrisk.estimators.environments import EnvironmentSummary
from hetrisk.estimators.hrm import HRMClassifier, HRMRegressor
from hetrisk.estimators.quality import Quality, assess, with_names
from hetrisk.report.description import describe, pooled_sd
from hetrisk.report.features import column_groups, grouped, rounding_of, table_columns
from hetrisk.report.labels import (
    LONGEST_NAME,
    brief,
    count_of,
    listed,
    number,
    percent,
    readable,
    unique_labels,
)
from hetrisk.report.provenance import origin, provenance, stored_quality
from hetrisk.report.recommendation import recommend
from hetrisk.report.seen import seen
from hetrisk.report.spreads import spreads
from hetrisk.report.summary import (
    Coefficients,
    Curve,
    Feature,
    LeftOutEnvironment,
    Source,
    Step,
    Summary,
    TableSummary,
)

MANY_CLASSES = 12


def summarize(model: Any, data: tuple[Any, Any] | None = None) -> Summary:
    """Collect what a page about ``model`` shows.

    Parameters
    ----------
    model : a fitted `HRMRegressor` or `HRMClassifier`, or a Pipeline ending in one.
    data : optional pair (X, y) as `fit` and `predict` take them, in the columns the whole
        pipeline was fitted on. Adds histograms, the error on that table and its summary.
    """
    final = final_step(model)
    found: EnvironmentSummary = final.environment_summary_
    columns = table_columns(model, final)
    groups = column_groups(model, final)
    features = grouped(columns, groups)
    table, Z, environments = _read_table(model, final, data)
    curve = curve_of(final, columns)
    n_rows = int(final.reference_.n_rows)
    quality = _quality(model, final, Z, data)
    over = partial(_over, 0.0 if is_classifier(final) else rounding_of(final))
    return Summary(
        task="classification" if is_classifier(final) else "regression",
        n_classes=len(getattr(final, "classes_", ())),
        verdict=final.verdict_,
        reason=readable(final.verdict_reason_),
        recommendation=recommend(final, features, curve, n_rows, quality),
        curve=curve,
        risk_name=found.risk_name,
        n_rows=n_rows,
        n_resamples=int(final.n_resamples_),
        features=features,
        columns=columns,
        sources=_sources(final, features, groups),
        environments=tuple(
            replace(e, risk=over(e.risk), risk_erm=over(e.risk_erm))
            for e in describe(found, environment_names(final), columns)
        ),
        leave_one_out=_leave_one_out(final, over),
        coefficients=_coefficients(found, getattr(final, "classes_", ())),
        spreads=spreads(found.feature_mean, found.feature_sd, Z, environments),
        distance=np.asarray(found.distance, dtype=float),
        steps=_steps(final.history_),
        quality=_rounded(quality, over),
        table=table,
        origin=origin(model),
        provenance=provenance(model, final),
    )


def final_step(model: Any) -> Any:
    """Return the HRM estimator inside ``model``, checked to be fitted."""
    final = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(final, HRMRegressor | HRMClassifier):
        raise TypeError(
            "model must be a fitted HRMRegressor or HRMClassifier, or a Pipeline ending in one; "
            f"got {type(final).__name__}."
        )
    check_is_fitted(final, "environment_summary_")
    return final


def curve_of(final: Any, columns: tuple[Feature, ...]) -> Curve | None:
    """Return the reach curve with the names of what would be left out; None if not searched."""
    found = final.reach_curve_
    if final.verdict_ == UNSEARCHED or found is None or not np.isfinite(found.error_erm).any():
        return None
    return Curve(
        reach=found.reach,
        error=found.error,
        error_erm=found.error_erm,
        low=found.low,
        high=found.high,
        low_erm=found.low_erm,
        high_erm=found.high_erm,
        left_out=tuple(listed([columns[j].label for j in left], 6) for left in found.left_out),
        unit=found.unit,
        break_even=float(found.break_even),
        asked=float(final.reach),
    )


def _sources(
    final: Any, features: tuple[Feature, ...], groups: Sequence[object]
) -> tuple[Source, ...]:
    named = dict(zip(dict.fromkeys(groups), (f.label for f in features), strict=True))
    return tuple(
        Source(
            name=brief(source.name, LONGEST_NAME),
            kind=source.kind,
            n_environments=int(source.n_environments),
            p_value=float(source.p_value),
            score=max(float(source.score), 0.0),  # less than chance is not more news
            against="" if source.column is None else named[groups[source.column]],
            used=bool(source.used),
            sentence=brief(source.sentence, 2 * LONGEST_NAME),
        )
        for source in final.sources_
    )


def environment_names(final: Any) -> tuple[str, ...]:
    """Return the names of the environments; a number nobody gave is called an environment.

    That of a hint goes by the hint's name.
    """
    told = any(source.kind == "named" for source in final.sources_)
    hints = [source.name for source in final.sources_ if source.used and source.kind == "hinted"]
    what = f"{hints[0]} =" if len(hints) == 1 else "Environment"
    K = len(final.environment_summary_.weight)
    labels = final.environment_labels_ or tuple(str(k) for k in range(K))
    return unique_labels(
        f"{what} {label}" if str(label).isdigit() and not told else label for label in labels
    )


def _over(rounding: float, error: float) -> float:
    """Return the error, and 0 for one that is rounding."""
    return 0.0 if error < rounding else error


def _rounded(quality: Quality | None, over: Callable[[float], float]) -> Quality | None:
    if quality is None:
        return None
    return replace(
        quality,
        metrics=tuple(
            m if m.more_is_better else replace(m, this=over(m.this), plain=over(m.plain))
            for m in quality.metrics
        ),
    )


def _leave_one_out(final: Any, over: Callable[[float], float]) -> tuple[LeftOutEnvironment, ...]:
    labels = unique_labels(score.label for score in final.leave_one_out_)
    return tuple(
        LeftOutEnvironment(
            label=label,
            rows=float(score.rows),
            error=over(float(score.error)),
            error_erm=over(float(score.error_erm)),
            error_anchor=over(float(score.error_anchor)),
        )
        for label, score in zip(labels, final.leave_one_out_, strict=True)
    )


@np.errstate(over="ignore", invalid="ignore")  # what overflows is shown as infinite
def _coefficients(found: EnvironmentSummary, classes: Sequence[object]) -> tuple[Coefficients, ...]:
    """One set for a single relation (K, d), or one a class (K, C, d), up to `MANY_CLASSES`."""
    scale = pooled_sd(found)
    coef, error = np.asarray(found.coef), np.asarray(found.coef_error)
    if coef.ndim == 2:
        return (Coefficients(None, coef * scale, error * scale, coef, error),)
    labels = unique_labels(classes)
    return tuple(
        Coefficients(labels[c], coef[:, c] * scale, error[:, c] * scale, coef[:, c], error[:, c])
        for c in range(min(coef.shape[1], MANY_CLASSES))
    )


def _steps(history: Sequence[Any]) -> tuple[Step, ...]:
    return tuple(
        Step(
            number=int(record.round),
            n_environments=int(record.n_environments),
            score=float(record.score),
            score_name=readable(record.score_name),
            log_likelihood=float(record.log_likelihood),
            kept=tuple(bool(flag) for flag in record.support),
            chosen=bool(record.chosen),
            invariance_penalty=record.invariance_penalty,
            gate_penalty=record.gate_penalty,
            note=brief(record.note, LONGEST_NAME) if record.note else "",
        )
        for record in history
    )


def _read_table(
    model: Any, final: Any, data: tuple[Any, Any] | None
) -> tuple[TableSummary | None, FloatArray | None, FloatArray | None]:
    """Summary of the table, the columns the model sees of it, and environments there."""
    if data is None:
        return None, None, None
    try:
        X, y = data
    except (TypeError, ValueError):
        raise TypeError(f"data must be a pair (X, y) or None; got {type(data).__name__}.") from None
    Z = seen(model, final, X).X
    y = np.asarray(y)
    environments = _environments_of(final, Z, y)
    prediction = np.asarray(model.predict(X))
    summary = TableSummary(len(y), _describe_target(final, y), _error(final, y, prediction))
    return summary, Z, environments


def _environments_of(final: Any, Z: FloatArray, y: np.ndarray) -> FloatArray:
    """(n,) environments: of the rows the model was fitted on its own, of others the likeliest."""
    held = getattr(final, "environment_proba_", None)  # not of rows out of core, nor in files
    if held is not None and len(held) == len(y):
        weight = held / np.maximum(held.sum(axis=0), TINY)
        mean = np.asarray(final.environment_summary_.feature_mean)
        if np.allclose(weight.T @ Z, mean, rtol=1e-6, atol=1e-9, equal_nan=True):
            return np.asarray(held.argmax(axis=1), dtype=float)
    return np.asarray(final.predict_environments(with_names(final, Z), y))


def _quality(
    model: Any, final: Any, Z: FloatArray | None, data: tuple[Any, Any] | None
) -> Quality | None:
    """Figures of merit as the model was stored with them; measured on the table where it was not.

    To measure them may mean to search once a fold, so what is stored is not measured again.
    """
    stored = stored_quality(model)
    if stored is not None or Z is None or data is None:
        return stored
    return assess(final, Z, np.asarray(data[1]))


def _error(final: Any, y: Any, prediction: Any) -> float:
    """The quantity called ``risk_name`` in the environment summary, on all rows."""
    if is_classifier(final):
        return float(np.mean(prediction != y))
    return float(np.sqrt(np.mean((prediction - y) ** 2)))


def _describe_target(final: Any, y: Any) -> str:
    if not is_classifier(final):
        return f"mean {number(float(np.mean(y)))}, standard deviation {number(float(np.std(y)))}"
    shares = [float(np.mean(y == label)) for label in final.classes_]
    named = zip(unique_labels(final.classes_), shares, strict=True)
    shown = [f"{label}: {percent(share)}" for label, share in named][:MANY_CLASSES]
    rest = len(shares) - len(shown)
    return ", ".join(shown) + (f", and {count_of(rest, 'other class')}" if rest else "")
