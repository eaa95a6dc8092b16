"""Which candidates take part: built-in ones by name, and estimators of the user's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter

from hetrisk.core.backtest.candidates import CONSTANT, LINEAR, PLAIN, Candidate
from hetrisk.core.backtest.cuts import Layout
from hetrisk.core.backtest.decision import Outcome, decide
from hetrisk.core.backtest.prepare import among_rows
from hetrisk.core.backtest.run import Problem, Run, refit
from hetrisk.core.backtest.training import Training
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.predictor import Inputs, Part
from hetrisk.estimators.trees import TREES

BUILT_IN: dict[str, Candidate] = {c.name: c for c in LINEAR + TREES}


def candidates_for(spec: Any, layout: Layout, labels: bool, seed: Any) -> list[Candidate]:
    """Return those asked for that this table has the columns for, plain and the constant first."""
    if isinstance(spec, str):
        spec = list(BUILT_IN) if spec == "auto" else [spec]
    if isinstance(spec, Mapping):
        chosen = {str(name): _own(str(name), model, seed) for name, model in spec.items()}
    else:
        if not isinstance(spec, Iterable):
            raise ValueError(
                f"candidates must be 'auto', names, or a dict of names to estimators; got {spec!r}."
            )
        chosen = {str(name): _built_in(name) for name in spec}
    if not chosen:
        raise ValueError(f"candidates must name at least one; got {spec!r}.")
    first = {name: BUILT_IN[name] for name in (PLAIN, CONSTANT)}
    for name in first:
        if name in chosen and chosen[name] is not BUILT_IN[name]:
            raise ValueError(f"the name {name!r} is taken: call your own candidate otherwise.")
    return [c for c in ({**first, **chosen}).values() if _applies(c, layout, labels)]


def _applies(candidate: Candidate, layout: Layout, labels: bool) -> bool:
    if candidate.needs_time and layout.periods is None:
        return False
    if candidate.needs_sites and layout.sites is None:
        return False
    return not (candidate.numbers_only and labels)


def _built_in(name: Any) -> Candidate:
    if name not in BUILT_IN:
        near = get_close_matches(str(name), ["auto", *BUILT_IN], 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"candidates must be among {list(BUILT_IN)}; got {name!r}.{hint}")
    return BUILT_IN[name]


def _own(name: str, model: Any, seed: Any) -> Candidate:
    if isinstance(model, str):
        return _built_in(model)
    if isinstance(model, type):
        raise ValueError(
            f"candidate {name!r} must be an estimator, not a class: {model.__name__}()."
        )
    if not isinstance(model, BaseEstimator) and not (
        callable(getattr(model, "fit", None)) and callable(getattr(model, "predict", None))
    ):
        raise ValueError(
            f"candidate {name!r} must be an estimator with fit and predict, or the name of a "
            f"built-in one; got {model!r}."
        )
    return Candidate(name, name, partial(_fit_own, estimator=model, seed=seed))


@dataclass(frozen=True)
class EstimatorPart(Part):
    """A fitted estimator of the user's own: predictions of numbers, log probabilities of labels.

    It is asked with the columns and, where the table has it, time behind them.
    """

    kind: ClassVar[str] = "estimator"
    estimator: Any
    classes: FloatArray | None
    n_outputs: int
    with_time: bool

    @property
    def needs_time(self) -> bool:  # type: ignore[override]
        """Whether time was a column of the fit."""
        return self.with_time

    def scores(self, rows: Inputs) -> FloatArray:
        X = np.column_stack([rows.X, rows.when]) if self.with_time else rows.X
        if self.classes is None:
            return np.asarray(self.estimator.predict(X), dtype=np.float64).reshape(-1, 1)
        given = np.full((len(X), self.n_outputs), 1e-12)
        given[:, self.classes.astype(np.int64)] = self.estimator.predict_proba(X)
        return np.log(np.maximum(given, 1e-12))


def _fit_own(training: Training, estimator: Any, seed: Any) -> tuple[Part, ...]:
    rows, labels = training.rows, training.n_outputs > 1
    model = clone(estimator)
    if seed is not None and model.get_params(deep=False).get("random_state", 0) is None:
        model.set_params(random_state=seed)
    with_time = not np.isnan(rows.time).all()
    X = np.column_stack([rows.X, rows.time]) if with_time else rows.X
    y = rows.y.astype(np.int64) if labels else rows.y
    if has_fit_parameter(model, "sample_weight"):
        model.fit(X, y, sample_weight=rows.weight)
    else:
        model.fit(X, y)
    classes = np.asarray(model.classes_) if labels else None
    return (EstimatorPart(model, classes, training.n_outputs, with_time),)


def plain_alone(problem: Problem, candidates: list[Candidate], run: Run) -> Outcome:
    """Deploy plain where nothing could be backtested, with what random cross-validation says."""
    folded, splits = among_rows(problem)
    outcome = decide(folded, splits, candidates, 0.0, run, None, only_plain=True)
    forecast = replace(outcome.forecast, n_environments=0)
    predictor = refit(problem, candidates[:1], np.ones(1))
    return replace(outcome, forecast=forecast, predictor=predictor)
