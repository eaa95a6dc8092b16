"""How well a fitted model predicts rows it was not fitted on: figures of merit out of fold.

Every row is predicted by a model that has not seen it: the rows are split into folds, and the
final model is fitted again without each of them, on the columns that were chosen on all rows.
Where the coefficients themselves came out of the search (directions, half-open gates), the whole
search is repeated for each fold. The plain model is the same kind of model on all columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.metrics import balanced_accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from hetrisk.blocks.base import chosen_rows
from hetrisk.core.numerics.cells import folds
from hetrisk.core.numerics.rows import FloatArray, IntArray, Rows
from hetrisk.core.result import INVARIANT

N_FOLDS = 5
N_BINS = 10
MOST_ROWS = 20_000  # drawn at random from more: a figure of merit to three digits needs no more
RARE_CLASS = 0.2  # of the share it would have were all classes alike frequent
DECIDING_ROW = 0.5  # of the squared error: more than all others together
SAME_LABELS = 0.99  # of the rows: one model, but for rounding and the penalty's scale
SAME_PROBABILITIES = 0.005
SAME_NUMBERS = 1e-3  # of the target's standard deviation
RIDGES = np.logspace(-3, 4, 22)


@dataclass(frozen=True)
class Metric:
    """One figure of merit: of this model and of the plain one."""

    name: str
    this: float
    plain: float
    more_is_better: bool


@dataclass(frozen=True)
class Quality:
    """How well a model predicts rows it was not fitted on.

    Attributes
    ----------
    n_rows, n_folds : rows predicted, and the folds they were predicted in.
    metrics : the first is the error everything else speaks of.
    predicted, observed : (B,) mean prediction and mean outcome in bins of the prediction; for
        labels the probability and the share of ``outcome``.
    low, high : (B,) where 10 % and 90 % of the outcomes of a bin lie, each seen from its own
        prediction (numbers), or the 95 % interval of the share (labels).
    count : (B,) rows in each bin.
    outcome : what the probability is of, or None for numbers.
    rarest, commonest : the classes with the fewest and the most rows, and their shares.
    worst_row, worst_row_plain : share of the squared error of this model, and of the plain one,
        that one row makes up (numbers), or NaN.
    n_classes : of labels; 0 for numbers.
    """

    n_rows: int
    n_folds: int
    metrics: tuple[Metric, ...]
    predicted: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    count: FloatArray
    outcome: str | None = None
    rarest: tuple[str, float] | None = None
    commonest: tuple[str, float] | None = None
    worst_row: float = np.nan
    worst_row_plain: float = np.nan
    n_classes: int = 0

    def error(self, unit: str) -> Metric | None:
        """Return the figure of merit of this name."""
        return next((metric for metric in self.metrics if metric.name == unit), None)

    @property
    def one_row_decides(self) -> bool:
        """Whether one row makes up so much of an error that the figures are those of the row."""
        return max(np.nan_to_num([self.worst_row, self.worst_row_plain])) > DECIDING_ROW

    @property
    def imbalanced(self) -> bool:
        """Whether a class is so rare that the error rate says little."""
        return self.rarest is not None and self.rarest[1] < RARE_CLASS / self.n_classes


def assess(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    environments: Any = None,
    hints: Any = None,
) -> Quality | None:
    """Return the figures of merit of a fitted HRM estimator out of fold.

    Parameters
    ----------
    model : fitted `HRMRegressor` or `HRMClassifier`.
    X : (n, d) rows in the columns the model was fitted on.
    y : (n,) target.
    sample_weight : (n,) weights, or None.
    environments, hints : as they were given to `fit`; used where the search is repeated.

    Returns
    -------
    None where there are too few rows (or rows of a class) to leave any out.
    """
    rows = _Table(np.asarray(X, dtype=float), np.asarray(y), sample_weight, environments, hints)
    rows = rows.drawn(MOST_ROWS)
    folds = _folds(model, rows)
    if folds is None:
        return None
    refitted = _Refitted(model, model.support_)
    make_this = refitted if refitted.explains(rows) else _Repeated(model)
    make_plain = _Refitted(model, np.ones(rows.X.shape[1], dtype=bool))
    this, plain = (_out_of_fold(make, rows, folds, model) for make in (make_this, make_plain))
    if is_classifier(model):
        return _of_labels(model.classes_, rows, this, plain, len(folds))
    return _of_numbers(rows, this, plain, len(folds))


def with_names(model: Any, X: FloatArray) -> Any:
    """Return rows as ``model`` was fitted on: under the names of its columns, where it has them."""
    names = getattr(model, "feature_names_in_", None)
    return X if names is None else pd.DataFrame(X, columns=names, copy=False)


@dataclass(frozen=True)
class _Table:
    X: FloatArray
    y: np.ndarray
    weight: Any
    environments: Any
    hints: Any

    def drawn(self, most: int) -> _Table:
        if len(self.y) <= most:
            return self
        return self.take(chosen_rows(len(self.y), most, 0))

    def take(self, index: IntArray) -> _Table:
        def part(values: Any) -> Any:
            if values is None:
                return None
            return values.iloc[index] if hasattr(values, "iloc") else np.asarray(values)[index]

        optional = (part(v) for v in (self.weight, self.environments, self.hints))
        return _Table(self.X[index], self.y[index], *optional)


def _folds(model: Any, rows: _Table) -> list[tuple[IntArray, IntArray]] | None:
    """Random folds, for labels those the reach curve starts from; None where that cannot be.

    Where rows of a class are so few that a fit would miss it, classes are in proportion.
    """
    if not is_classifier(model):
        if len(rows.y) < 2 * N_FOLDS:
            return None
        return list(KFold(N_FOLDS, shuffle=True, random_state=0).split(rows.X))
    _, counts = np.unique(rows.y, return_counts=True)
    n_folds = min(N_FOLDS, int(counts.min()))
    if n_folds < 2 or len(counts) < len(model.classes_):
        return None
    fold = folds(Rows(rows.X, np.zeros(len(rows.y)), np.ones(len(rows.y))), N_FOLDS)
    parts = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(N_FOLDS)]
    if all(len(np.unique(rows.y[train])) == len(counts) and len(test) for train, test in parts):
        return parts
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(rows.X, rows.y))


@dataclass(frozen=True)
class _Refitted:
    """The final model, fitted to other rows on given columns."""

    model: Any
    columns: np.ndarray

    def __call__(self, rows: _Table) -> Any:
        X = rows.X[:, self.columns]
        estimator = self._estimator(X)
        weighted = rows.weight is not None and has_fit_parameter(
            estimator[-1] if hasattr(estimator, "steps") else estimator, "sample_weight"
        )
        if not weighted:
            return estimator.fit(X, rows.y)
        if hasattr(estimator, "steps"):
            name = estimator.steps[-1][0]
            return estimator.fit(X, rows.y, **{f"{name}__sample_weight": rows.weight})
        return estimator.fit(X, rows.y, sample_weight=rows.weight)

    def explains(self, rows: _Table) -> bool:
        """Whether fitting the final model to all rows gives the model that was fitted.

        Not so where the coefficients came out of the search: directions, half-open gates,
        environments weighed against each other.
        """
        if self.model.final_estimator is not None:
            return True
        if self.model.method == "auto" and self.model.verdict_ != INVARIANT:
            return True  # plain ERM, whatever another solver makes of labels that can be separated
        again = self(rows)
        given = np.asarray(self.model.predict(with_names(self.model, rows.X)))
        other = np.asarray(again.predict(self.columns_of(rows.X)))
        if is_classifier(self.model):
            same = bool(np.mean(given == other) > SAME_LABELS)
            return same and self._probabilities_differ(again, rows) < SAME_PROBABILITIES
        spread = float(np.std(rows.y.astype(float)))
        return bool(np.max(np.abs(given - other)) <= SAME_NUMBERS * spread)

    def _probabilities_differ(self, again: Any, rows: _Table) -> float:
        """Mean difference between the probabilities of the model and of its refit."""
        given = self.model.predict_proba(with_names(self.model, rows.X))
        other = again.predict_proba(self.columns_of(rows.X))
        return float(np.mean(np.abs(np.asarray(given) - np.asarray(other))))

    def _estimator(self, X: FloatArray) -> Any:
        labels = is_classifier(self.model)
        if X.shape[1] == 0:
            return DummyClassifier(strategy="prior") if labels else DummyRegressor()
        if self.model.final_estimator is not None:
            return clone(self.model.final_estimator)
        if labels:
            return make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
        if len(X) > X.shape[1] + 1:
            # Standardised: least squares in the units of the table loses columns of small numbers
            # beside large ones, which then count as multiples of each other.
            return make_pipeline(StandardScaler(), LinearRegression())
        return make_pipeline(StandardScaler(), RidgeCV(RIDGES))

    def columns_of(self, X: FloatArray) -> FloatArray:
        """Return what the fitted model is to be asked with."""
        return X[:, self.columns]


@dataclass(frozen=True)
class _Repeated:
    """The whole search, repeated on other rows."""

    model: Any

    def __call__(self, rows: _Table) -> Any:
        given = {
            "environments": rows.environments,
            "hints": rows.hints,
            "sample_weight": rows.weight,
        }
        known = {key: value for key, value in given.items() if value is not None}
        return clone(self.model).fit(rows.X, rows.y, **known)

    def columns_of(self, X: FloatArray) -> FloatArray:
        """Return what the fitted model is to be asked with: all columns."""
        return X


def _out_of_fold(
    make: _Refitted | _Repeated,
    rows: _Table,
    folds: list[tuple[IntArray, IntArray]],
    model: Any,
) -> FloatArray:
    """(n,) predictions, or (n, C) probabilities, each by a model that has not seen the row."""
    labels = is_classifier(model)
    out = np.empty((len(rows.y), len(model.classes_)) if labels else len(rows.y))
    for train, test in folds:
        fitted = make(rows.take(train))
        X = make.columns_of(rows.X[test])
        out[test] = _probabilities(fitted, X, model.classes_) if labels else fitted.predict(X)
    return out


def _probabilities(fitted: Any, X: FloatArray, classes: np.ndarray) -> FloatArray:
    if hasattr(fitted, "predict_proba"):
        return np.asarray(fitted.predict_proba(X), dtype=float)
    return (np.asarray(fitted.predict(X))[:, None] == classes).astype(float)


def _of_numbers(rows: _Table, this: FloatArray, plain: FloatArray, n_folds: int) -> Quality:
    y, weight = rows.y.astype(float), rows.weight

    def rmse(predicted: FloatArray) -> float:
        return float(np.sqrt(np.average((y - predicted) ** 2, weights=weight)))

    def r2(predicted: FloatArray) -> float:
        return float(r2_score(y, predicted, sample_weight=weight)) if np.ptp(y) > 0 else np.nan

    bins = [b for b in np.array_split(np.argsort(this, kind="stable"), N_BINS) if len(b)]
    centre, missed = np.array([this[b].mean() for b in bins]), y - this
    return Quality(
        n_rows=len(y),
        n_folds=n_folds,
        metrics=(
            Metric("RMSE", rmse(this), rmse(plain), more_is_better=False),
            Metric("R²", r2(this), r2(plain), more_is_better=True),
        ),
        predicted=centre,
        observed=np.array([y[b].mean() for b in bins]),
        # About the bin's prediction: outcomes themselves are as far apart as predictions are.
        low=centre + np.array([np.quantile(missed[b], 0.1) for b in bins]),
        high=centre + np.array([np.quantile(missed[b], 0.9) for b in bins]),
        count=np.array([float(len(b)) for b in bins]),
        worst_row=_worst_share((y - this) ** 2, weight),
        worst_row_plain=_worst_share((y - plain) ** 2, weight),
    )


def _worst_share(squared: FloatArray, weight: Any) -> float:
    squared = squared if weight is None else squared * np.asarray(weight, dtype=float)
    total = float(squared.sum())
    return float(squared.max()) / total if total > 0 else np.nan


def _of_labels(
    classes: np.ndarray, rows: _Table, this: FloatArray, plain: FloatArray, n_folds: int
) -> Quality:
    shares = np.array([np.average(rows.y == c, weights=rows.weight) for c in classes])
    rare, common = int(shares.argmin()), int(shares.argmax())
    predicted, observed, low, high, count = _calibration(classes, rows, this)
    return Quality(
        n_rows=len(rows.y),
        n_folds=n_folds,
        metrics=tuple(
            Metric(name, one, other, more)
            for (name, one, more), (_, other, _) in zip(
                _label_metrics(classes, rows, this),
                _label_metrics(classes, rows, plain),
                strict=True,
            )
        ),
        predicted=predicted,
        observed=observed,
        low=low,
        high=high,
        count=count,
        outcome=str(classes[1]) if len(classes) == 2 else "the class predicted",
        rarest=(str(classes[rare]), float(shares[rare])),
        commonest=(str(classes[common]), float(shares[common])),
        n_classes=len(classes),
    )


def _label_metrics(
    classes: np.ndarray, rows: _Table, shares: FloatArray
) -> tuple[tuple[str, float, bool], ...]:
    y, weight = rows.y, rows.weight
    label = classes[shares.argmax(axis=1)]
    hot = (y[:, None] == classes).astype(float)
    brier = np.sqrt(np.average(((shares - hot) ** 2).sum(axis=1) / 2, weights=weight))
    total = shares.sum(axis=1, keepdims=True)
    ranked = shares[:, 1] if len(classes) == 2 else shares / np.where(total > 0, total, 1)
    auc = roc_auc_score(y, ranked, multi_class="ovr", sample_weight=weight, labels=classes)
    balanced = balanced_accuracy_score(y, label, sample_weight=weight)
    return (
        ("error rate", float(np.average(label != y, weights=weight)), False),
        ("balanced accuracy", float(balanced), True),
        ("AUC", float(auc), True),
        ("root Brier score", float(brier), False),
    )


def _calibration(
    classes: np.ndarray, rows: _Table, shares: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Predicted and observed share, Wilson's 95 % interval and the rows of each bin."""
    if len(classes) == 2:
        chance, hit = shares[:, 1], rows.y == classes[1]
    else:
        chance, hit = shares.max(axis=1), rows.y == classes[shares.argmax(axis=1)]
    bins = [b for b in np.array_split(np.argsort(chance, kind="stable"), N_BINS) if len(b)]
    n = np.array([float(len(b)) for b in bins])
    p = np.array([hit[b].mean() for b in bins])
    z = 1.96
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    low, high = np.clip(centre - half, 0.0, p), np.clip(centre + half, p, 1.0)
    return np.array([chance[b].mean() for b in bins]), p, low, high, n
