"""From a fitted model, and the table if it is at hand, to the `Summary` the page shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.result import HOMOGENEOUS, INVARIANT, UNSTABLE
from hetrisk.estimators.hrm import EnvironmentSummary, HRMClassifier, HRMRegressor
from hetrisk.report.features import column_groups, grouped, table_columns
from hetrisk.report.labels import (
    count_of,
    number,
    percent,
    readable,
    unique_labels,
)
from hetrisk.report.provenance import origin, provenance
from hetrisk.report.spreads import spreads
from hetrisk.report.summary import (
    Coefficients,
    Environment,
    Feature,
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
    features = grouped(columns, column_groups(model, final))
    table, Z, environments = _read_table(model, final, data)
    return Summary(
        task="classification" if is_classifier(final) else "regression",
        n_classes=len(getattr(final, "classes_", ())),
        verdict=final.verdict_,
        headline=_headline(final.verdict_, features, len(found.weight)),
        reason=readable(final.verdict_reason_),
        risk_name=found.risk_name,
        n_rows=_n_rows(final),
        features=features,
        columns=columns,
        environments=_environments(found),
        coefficients=_coefficients(found, getattr(final, "classes_", ())),
        spreads=spreads(found.feature_mean, found.feature_sd, Z, environments),
        distance=np.asarray(found.distance, dtype=float),
        steps=_steps(final.history_),
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


def _headline(verdict: str, features: tuple[Feature, ...], n_environments: int) -> str:
    n_dropped = sum(not f.used for f in features)
    groups = count_of(n_environments, "hidden group") + " of rows"
    sentence = {
        INVARIANT: (
            f"The model leaves out {n_dropped:,} of {count_of(len(features), 'feature')}: what "
            f"{'it says' if n_dropped == 1 else 'they say'} about the target is not safe to rely "
            "on when the data shifts."
        ),
        HOMOGENEOUS: (
            "No usable difference between hidden groups of rows was found: this is an ordinary "
            f"model on {len(features) - n_dropped:,} of {count_of(len(features), 'feature')}."
        ),
        UNSTABLE: (
            f"Take care: relations change between {groups}, and no set of features predicts "
            "alike in all of them. This is an ordinary model that may fail when the data shifts."
        ),
    }
    return sentence[verdict]


def _n_rows(final: Any) -> int | None:
    """Rows the model was fitted on; None where they were out of core and are not held."""
    environments = getattr(final, "environments_", None)
    return None if environments is None else len(environments)


def _environments(found: EnvironmentSummary) -> tuple[Environment, ...]:
    share = np.asarray(found.weight, dtype=float) / np.sum(found.weight)
    return tuple(
        Environment(f"Environment {k}", float(share[k]), float(risk), float(risk_erm))
        for k, (risk, risk_erm) in enumerate(zip(found.risk, found.risk_erm, strict=True))
    )


@np.errstate(over="ignore", invalid="ignore")  # what overflows is shown as infinite
def _coefficients(found: EnvironmentSummary, classes: Sequence[object]) -> tuple[Coefficients, ...]:
    """One set for a single relation (K, d), or one a class (K, C, d), up to `MANY_CLASSES`."""
    scale = _pooled_sd(found)
    coef, error = np.asarray(found.coef), np.asarray(found.coef_error)
    if coef.ndim == 2:
        return (Coefficients(None, coef * scale, error * scale, coef, error),)
    labels = unique_labels(classes)
    return tuple(
        Coefficients(labels[c], coef[:, c] * scale, error[:, c] * scale, coef[:, c], error[:, c])
        for c in range(min(coef.shape[1], MANY_CLASSES))
    )


def _pooled_sd(found: EnvironmentSummary) -> FloatArray:
    """Standard deviation of each feature over all rows: within plus between environments."""
    share = np.asarray(found.weight, dtype=float) / np.sum(found.weight)
    mean, sd = np.asarray(found.feature_mean), np.asarray(found.feature_sd)
    centre = share @ mean
    pooled: FloatArray = np.sqrt(share @ (sd**2 + (mean - centre) ** 2))
    return pooled


def _steps(history: Sequence[dict[str, Any]]) -> tuple[Step, ...]:
    return tuple(
        Step(
            number=int(record["round"]),
            n_environments=int(record["n_environments"]),
            log_likelihood=_float(record.get("log_likelihood")),
            objective=_float(record.get("objective")),
            kept=tuple(bool(flag) for flag in record.get("support") or ()),
            chosen=bool(record.get("chosen")),
        )
        for record in history
    )


def _float(value: Any) -> float:
    return np.nan if value is None else float(value)


def _read_table(
    model: Any, final: Any, data: tuple[Any, Any] | None
) -> tuple[TableSummary | None, FloatArray | None, FloatArray | None]:
    """Summary of the table, the features the model sees of it, and each row's environment."""
    if data is None:
        return None, None, None
    try:
        X, y = data
    except (TypeError, ValueError):
        raise TypeError(f"data must be a pair (X, y) or None; got {type(data).__name__}.") from None
    Z = model[:-1].transform(X) if isinstance(model, Pipeline) and len(model.steps) > 1 else X
    environments = np.asarray(final.predict_environments(Z, y))
    y = np.asarray(y)
    prediction = np.asarray(model.predict(X))
    summary = TableSummary(len(y), _describe_target(final, y), _error(final, y, prediction))
    dense = Z.toarray() if hasattr(Z, "toarray") else Z
    return summary, np.asarray(dense, dtype=float), environments


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
    return ", ".join(shown) + (f", and {count_of(rest, 'other class')}es" if rest else "")
