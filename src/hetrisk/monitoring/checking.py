"""Hold new rows against a fitted model: the one function of this package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.core.result import INVARIANT
from hetrisk.estimators.quality import Quality, with_names
from hetrisk.monitoring.columns import check_columns, check_environments, membership_of
from hetrisk.monitoring.findings import Check, EnvironmentCheck, status_of
from hetrisk.monitoring.outcomes import check_outcomes
from hetrisk.monitoring.words import points_of, sentence_of
from hetrisk.report.extraction import curve_of, environment_names, final_step
from hetrisk.report.features import column_groups, grouped, table_columns
from hetrisk.report.labels import readable, unique_labels
from hetrisk.report.provenance import stored_quality
from hetrisk.report.seen import seen
from hetrisk.report.summary import Curve


def check(model: Any, X: Any, y: Any = None, *, environments: Any = None) -> Check:
    """Compare new rows with those a model was fitted on.

    Parameters
    ----------
    model : HRMRegressor, HRMClassifier or Pipeline
        Fitted; a Pipeline must end in one of them.
    X : (n, d) array or DataFrame
        New rows, in the columns ``model.predict`` takes. Columns the model does not use may be
        missing from a model fitted from a table; what plain ERM would do and whether the relation
        left out broke cannot be said then.
    y : (n,) array, default=None
        Their targets, where known; NaN or None marks those that are not. Without any, only what
        the columns show can be said.
    environments : (n,) array, default=None
        Where the new rows came from, for a model that was told: compared with the shares then.

    Returns
    -------
    Check
        What was found; its ``status`` is 0 (fine), 3 (columns, environments or the error moved)
        or 4 (a relation broke, or the error is beyond the reach the model was fitted for).

    Examples
    --------
    >>> import numpy as np
    >>> from hetrisk import HRMRegressor, check
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> model = HRMRegressor(random_state=0).fit(X, X[:, 0] + rng.normal(size=500))
    >>> found = check(model, X[:200] + [0.0, 3.0])
    >>> found.status.name, [column.name for column in found.moved]
    ('MOVED', ['x1'])
    """
    final = final_step(model)
    Z, known, notes = seen(model, final, X)
    if not len(Z):
        raise ValueError("X must have at least one row; got 0.")
    labelled, targets = _targets(final, y, len(Z))
    columns = table_columns(model, final)
    groups = column_groups(model, final)
    curve = _anchored(curve_of(final, columns), stored_quality(model))
    names = [column.name for column in columns]
    moved = check_columns(final.reference_, Z, final.support_, groups, names, known)
    whole = bool(known.all())
    mix = _environments(final, Z, targets, labelled, environments, whole)
    outcome = check_outcomes(final, Z[labelled], targets, curve, whole) if len(targets) else None
    used = final.support_ & known
    outside = final.reference_.outside(Z[:, used], np.append(used, False)).any(axis=1)
    left_out = tuple(f.label for f in grouped(columns, groups) if not f.used)
    status = status_of(moved, mix, outcome)
    return Check(
        status=status,
        sentence=sentence_of(status, moved, mix, outcome, left_out),
        points=points_of(moved, mix, outcome, int(outside.sum()), len(Z), curve),
        n_rows=len(Z),
        n_reference=final.reference_.n_rows,
        columns=moved,
        environments=mix,
        outcome=outcome,
        outside=float(outside.mean()),
        left_out=left_out,
        curve=curve,
        same=final.verdict_ != INVARIANT,
        notes=tuple(readable(note) for note in notes),
    )


def _anchored(curve: Curve | None, quality: Quality | None) -> Curve | None:
    """Let the curve start at the errors out of fold, where they are stored with the model.

    They are those of the model itself, whatever kind it is, on rows it was not fitted to: what
    new rows are to be held against.
    """
    measured = None if curve is None or quality is None else quality.error(curve.unit)
    if curve is None or measured is None:
        return curve
    return curve.anchored(measured.this, measured.plain)


def _targets(final: Any, y: Any, n: int) -> tuple[BoolArray, np.ndarray]:
    """Which rows have a target, and those targets."""
    if y is None:
        return np.zeros(n, dtype=bool), np.empty(0)
    values = np.asarray(y)
    if values.shape != (n,):
        raise ValueError(f"y must have length n_samples={n}; got an array of shape {values.shape}.")
    known = ~np.asarray(pd.isna(values))
    targets = values[known]
    if not is_classifier(final):
        return known, targets.astype(float)
    strange = sorted({str(label) for label in targets if label not in set(final.classes_)})
    if strange:
        raise ValueError(
            f"y must hold labels among the {len(final.classes_)} classes of the model; "
            f"got {', '.join(strange[:5])}."
        )
    return known, targets


def _environments(
    final: Any,
    Z: FloatArray,
    targets: np.ndarray,
    labelled: BoolArray,
    environments: Any,
    whole: bool,
) -> tuple[EnvironmentCheck, ...]:
    """Shares of the environments: by the labels given, else inferred from whole rows with targets.

    ``whole`` says that the rows have every column the model was fitted on.
    """
    n, named = final.reference_.n_rows, final.reference_.environments
    if environments is not None:
        values = np.asarray(environments)
        if not named:
            raise ValueError(
                "environments were given, but the model was fitted without labels of them; "
                f"got {values.ravel()[:1].tolist()}."
            )
        if values.shape != (len(Z),):
            raise ValueError(
                f"environments must have length n_samples={len(Z)}; got shape {values.shape}."
            )
        labels, member = membership_of([label for label, _ in named], values)
        before = np.array([share for _, share in named] + [0.0] * (len(labels) - len(named)))
        return check_environments(unique_labels(labels), before, member, n)
    weight = np.asarray(final.environment_summary_.weight, dtype=float)
    was_named = any(source.kind == "named" for source in final.sources_)
    if len(weight) < 2 or was_named or not whole or not labelled.any():
        return ()
    member = final.predict_environment_proba(with_names(final, Z[labelled]), targets)
    return check_environments(environment_names(final), weight, member, n)
