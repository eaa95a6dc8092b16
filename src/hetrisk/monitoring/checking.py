"""Hold new rows against a fitted model: the one function of this package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.core.result import INVARIANT
from hetrisk.estimators.quality import with_names
from hetrisk.monitoring.columns import check_columns, check_environments, membership_of
from hetrisk.monitoring.findings import Check, EnvironmentCheck, OutcomeCheck, status_of
from hetrisk.monitoring.outcomes import check_outcomes
from hetrisk.monitoring.words import points_of, sentence_of
from hetrisk.report.extraction import curve_of, environment_names, final_step
from hetrisk.report.features import column_groups, grouped, table_columns
from hetrisk.report.labels import readable, unique_labels
from hetrisk.report.summary import Curve
from hetrisk.tables import TableEncoder


def check(model: Any, X: Any, y: Any = None, *, environments: Any = None) -> Check:
    """Compare new rows with those a model was fitted on.

    Parameters
    ----------
    model : HRMRegressor, HRMClassifier or Pipeline
        Fitted; a Pipeline must end in one of them.
    X : (n, d) array or DataFrame
        New rows, in the columns ``model.predict`` takes. Columns the model does not use may be
        missing from a model fitted from a table.
    y : (n,) array, default=None
        Their targets, where known; NaN or None marks those that are not. Without any, only what
        the columns show can be said.
    environments : (n,) array, default=None
        Where the new rows came from, for a model that was told: compared with the shares then.

    Returns
    -------
    Check
        What was found; its ``status`` is 0 (fine), 3 (columns or environments moved) or 4 (a
        relation broke, or the error is beyond the reach the model was fitted for).

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
    Z, known, notes = _columns_of(model, X)
    if not len(Z):
        raise ValueError("X must have at least one row; got 0.")
    labelled, targets = _targets(final, y, len(Z))
    columns = table_columns(model, final)
    groups = column_groups(model, final)
    curve = curve_of(final, columns)
    names = [column.name for column in columns]
    moved = check_columns(final.reference_, Z, final.support_, groups, names, known)
    mix = _environments(final, Z, targets, labelled, environments)
    outcome = _outcome(final, Z[labelled], targets, curve)
    used = final.support_ & known
    outside = final.reference_.outside(Z[:, used], np.append(used, False)).any(axis=1)
    left_out = tuple(f.label for f in grouped(columns, groups) if not f.used)
    status = status_of(moved, mix, outcome)
    return Check(
        status=status,
        sentence=sentence_of(status, moved, mix, outcome, left_out),
        points=points_of(moved, mix, outcome, float(outside.mean()), curve),
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


def _columns_of(model: Any, X: Any) -> tuple[FloatArray, BoolArray, list[Any]]:
    """(n, d) rows as the estimator sees them, which columns the table has, and notes about it."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else None
    if isinstance(first, TableEncoder) and len(model.steps) == 2:
        names = {str(name) for name in X.columns}
        absent = [c.name for c in first.columns_ if c.name not in names]
        used = set(first.feature_groups_[model[-1].support_])
        spare = [name for name in absent if name not in used]
        blank = pd.DataFrame(None, index=X.index, columns=pd.Index(spare), dtype=object)
        Z, notes = first.encode(pd.concat([X, blank], axis=1) if spare else X)
        notes = [note for note in notes if note.column not in spare]
        return Z, ~np.isin(first.feature_groups_.astype(str), spare), notes
    inner = model[:-1].transform(X) if isinstance(model, Pipeline) and len(model) > 1 else X
    final = final_step(model)
    if isinstance(inner, pd.DataFrame) and hasattr(final, "feature_names_in_"):
        inner = inner[list(final.feature_names_in_)]
    Z = np.asarray(inner.toarray() if hasattr(inner, "toarray") else inner, dtype=float)
    if Z.ndim != 2 or Z.shape[1] != final.n_features_in_:
        raise ValueError(
            f"X must have {final.n_features_in_} columns, as the model was fitted on; "
            f"got an array of shape {Z.shape}."
        )
    return Z, np.ones(Z.shape[1], dtype=bool), []


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
    final: Any, Z: FloatArray, targets: np.ndarray, labelled: BoolArray, environments: Any
) -> tuple[EnvironmentCheck, ...]:
    """Shares of the environments: by the labels given, else inferred from rows with targets."""
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
    told = any(source.kind == "named" for source in final.sources_)
    if len(weight) < 2 or told or not labelled.any():
        return ()
    member = final.predict_environment_proba(with_names(final, Z[labelled]), targets)
    return check_environments(environment_names(final), weight, member, n)


def _outcome(
    final: Any, Z: FloatArray, targets: np.ndarray, curve: Curve | None
) -> OutcomeCheck | None:
    return check_outcomes(final, Z, targets, curve) if len(targets) else None
