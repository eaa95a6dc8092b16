"""Methods compared: learn from all environments but one, be tested on that one.

>>> import numpy as np, pandas as pd
>>> from hetrisk.compare import leave_one_environment_out
>>> from hetrisk.tables import Table
>>> rng = np.random.default_rng(0)
>>> frame = pd.DataFrame(rng.normal(size=(90, 2)), columns=["size", "age"])
>>> frame["price"] = frame["size"] + 0.1 * rng.normal(size=90)
>>> frame["town"] = np.repeat(["a", "b", "c"], 30)
>>> found = leave_one_environment_out(
...     Table(frame, "houses"), target="price", environment="town", methods=["erm"]
... )
>>> found.methods[0].method, sorted(found.methods[0].errors)
('erm', ['a', 'b', 'c'])
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression

from hetrisk.baselines import BASELINES
from hetrisk.datasets import ShiftTask
from hetrisk.estimators.hrm import HRMClassifier, HRMRegressor
from hetrisk.tables import Leak, Table, TableEncoder, TableError, read_target
from hetrisk.tables.environments import environment_labels
from hetrisk.tables.errors import counted, listed, quoted, shown
from hetrisk.tables.model import chosen_columns, leaks_of
from hetrisk.tables.roles import read_roles
from hetrisk.tables.target import CLASSIFICATION, REGRESSION, Target

MOST_ENVIRONMENTS = 30
FEWEST_ROWS = 10

ROWS, HINTS, ENVIRONMENTS = "rows", "hints", "environments"


@dataclass(frozen=True)
class Contestant:
    """A method for both kinds of target, and what it is given beside the rows.

    ``given`` is "rows" (nothing more), "hints" (the columns named as such) or "environments" (the
    environment of every training row).
    """

    regressor: type[BaseEstimator]
    classifier: type[BaseEstimator]
    given: str = ROWS


METHODS = {
    "erm": Contestant(LinearRegression, LogisticRegression),
    **{
        name: Contestant(b.regressor, b.classifier, ENVIRONMENTS if b.needs_labels else ROWS)
        for name, b in BASELINES.items()
    },
    "hrm": Contestant(HRMRegressor, HRMClassifier),
    "hrm-hinted": Contestant(HRMRegressor, HRMClassifier, HINTS),
    "hrm-told": Contestant(HRMRegressor, HRMClassifier, ENVIRONMENTS),
}
Progress = Callable[[str, float], AbstractContextManager[object]]


def _quietly(line: str, done: float) -> AbstractContextManager[object]:
    return nullcontext()


@dataclass(frozen=True)
class MethodErrors:
    """How one method did in the environments it had not seen.

    Attributes
    ----------
    method : its name in `METHODS`.
    told_environments : whether it was told which training row came from where.
    given_hints : whether it was given the columns named as hints.
    mean, std, worst : of the errors there are; NaN where there are none (too few for ``std``).
    errors : environment left out -> error there, or why there is none, in words.
    """

    method: str
    told_environments: bool
    given_hints: bool
    mean: float
    std: float
    worst: float
    errors: dict[str, float | str]


@dataclass(frozen=True)
class Comparison:
    """Every method's error in every environment left out.

    Attributes
    ----------
    target, environment : the columns.
    task : "regression" or "classification".
    risk_name : what the errors are: "RMSE" or "error rate".
    rows : number of rows compared on.
    methods : one record a method, in the order asked for.
    notes : what was done to the table.
    leaks : columns that give the target away: no comparison means anything with them.
    """

    target: str
    environment: str
    task: str
    risk_name: str
    rows: int
    methods: tuple[MethodErrors, ...]
    notes: tuple[str, ...]
    leaks: tuple[Leak, ...] = ()


def leave_one_environment_out(
    table: Table,
    *,
    target: str,
    environment: str,
    task: str = "auto",
    features: Sequence[str] = (),
    drop: Sequence[str] = (),
    category: Sequence[str] = (),
    decimal: str | None = None,
    hints: Sequence[str] = (),
    methods: Sequence[str] = (),
    rows: int = 20_000,
    seed: int = 0,
    progress: Progress = _quietly,
) -> Comparison:
    """Test every method in every environment, after learning from the others.

    Parameters
    ----------
    table : as `hetrisk.tables.read_table` returns it.
    target : the column to predict.
    environment : the column that says where each row came from.
    task, features, drop, category, decimal : as for `hetrisk.tables.model.fit_table`.
    hints : columns that may go along with where rows come from; never features.
    methods : names from `METHODS`; none means all ("hrm-hinted" only where there are hints).
    rows : most rows to use, drawn at random.
    seed : of every random choice.
    progress : entered around each fit, with a line saying which and the share that is done.
    """
    _check_roles(target, environment, hints, methods)
    codes, names = environment_labels(table, environment)
    wanted = read_target(table.frame, target, task, decimal)
    every = read_roles(table.frame, np.ones(len(table.frame), dtype=bool), None, hints, None)
    hidden = (environment, *hints, *drop)
    frame, notes = _frame(table, wanted, codes, names, hidden, features, rows, seed)
    columns = [c for c in frame.columns if c not in (_TARGET, _ENVIRONMENT, _ROW)]
    chosen = [name for name in category if name in columns]
    contestants = methods or [m for m, c in METHODS.items() if hints or c.given != HINTS]
    scores: dict[str, dict[str, float | str]] = {name: {} for name in contestants}
    tasks = ShiftTask.leave_one_out(
        frame,
        _TARGET,
        _ENVIRONMENT,
        task_type=wanted.task,
        features=columns,
        category=chosen,
        named=features,
        decimal=decimal,
    )
    fits = len(scores) * frame[_ENVIRONMENT].nunique()
    for done, (held, name) in enumerate((held, name) for held in tasks for name in scores):
        (left_out,) = held.test
        kept = frame.loc[frame[_ENVIRONMENT] != left_out, _ROW]
        line = f"{name}, without environment {shown(left_out, 30)}"
        with progress(line, done / fits):
            scores[name][left_out] = _score(name, held, every.hints, kept, seed)
    return Comparison(
        target=target,
        environment=environment,
        task=wanted.task,
        risk_name="RMSE" if wanted.task == REGRESSION else "error rate",
        rows=len(frame),
        methods=tuple(_method_errors(name, errors) for name, errors in scores.items()),
        notes=(*table.notes, *map(str, wanted.notes), *notes),
        leaks=_leaks(table.frame, wanted, hidden, features, chosen, decimal),
    )


# Names no column of a table can have: a file's cells and headers hold no NUL.
_TARGET, _ENVIRONMENT, _ROW = "\0target", "\0environment", "\0row"


def _check_roles(
    target: str, environment: str, hints: Sequence[str], methods: Sequence[str]
) -> None:
    if target == environment:
        raise TableError(f"{quoted(target)} cannot be both target and environment")
    for name in hints:
        if name in (target, environment):
            role = "target" if name == target else "environment"
            raise TableError(f"{quoted(name)} cannot be both {role} and hint")
    if not hints and any(METHODS[name].given == HINTS for name in methods):
        raise TableError("hrm-hinted needs hints: name their columns")


def _frame(
    table: Table,
    target: Target,
    codes: np.ndarray,
    names: list[str],
    drop: Sequence[str],
    features: Sequence[str],
    rows: int,
    seed: int,
) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows to compare on, with target and environments under names of their own."""
    if len(names) < 2:
        raise TableError("leaving one environment out needs at least two of them; there is one")
    if len(names) > MOST_ENVIRONMENTS:
        raise TableError(
            f"the environment column has {len(names):,} different values, more than the "
            f"{MOST_ENVIRONMENTS} that can be left out in turn; group them first"
        )
    counts = np.bincount(codes[target.known & (codes >= 0)], minlength=len(names))
    small = [name for name, count in zip(names, counts, strict=True) if count < FEWEST_ROWS]
    usable = target.known & (codes >= 0) & (counts[codes] >= FEWEST_ROWS)
    if len(names) - len(small) < 2:
        raise TableError(f"fewer than two environments have {FEWEST_ROWS} rows with a target")
    notes = _notes(small, int((target.known & (codes < 0)).sum()))
    frame = chosen_columns(table.frame, target.name, features, drop).copy()
    frame.columns = [str(name) for name in frame.columns]
    values = np.full(
        len(frame), np.nan, dtype=target.values.dtype if _is_number(target) else object
    )
    values[target.known] = target.values
    frame[_TARGET], frame[_ENVIRONMENT] = values, np.asarray(names, dtype=object)[codes]
    frame[_ROW] = np.arange(len(frame))
    frame = frame.loc[usable]
    if len(frame) > rows:
        notes.append(f"a random sample of {rows:,} of {len(frame):,} rows")
        frame = frame.sample(rows, random_state=seed)
    return frame.reset_index(drop=True), notes


def _leaks(
    frame: pd.DataFrame,
    target: Target,
    drop: Sequence[str],
    features: Sequence[str],
    category: Sequence[str],
    decimal: str | None,
) -> tuple[Leak, ...]:
    X = chosen_columns(frame, target.name, features, drop).loc[target.known]
    return leaks_of(TableEncoder(tuple(category), tuple(features), decimal).fit(X), X, target)


def _is_number(target: Target) -> bool:
    return target.task == REGRESSION


def _notes(small: list[str], unlabelled: int) -> list[str]:
    notes = []
    if small:
        noun = counted(len(small), "environment")
        notes.append(f"{noun} with fewer than {FEWEST_ROWS} rows left out: {listed(small)}")
    if unlabelled:
        notes.append(f"{counted(unlabelled, 'row')} without an environment left out")
    return notes


def _score(
    name: str, held: ShiftTask, hints: pd.DataFrame | None, kept: pd.Series, seed: int
) -> float | str:
    """Return the error in the environment left out, or why there is none.

    ``hints`` are those of every row of the table, ``kept`` the rows that are trained on.
    """
    method = METHODS[name]
    model = _estimator(method, held, seed)
    ((X, y),) = held.test.values()
    if held.task_type == CLASSIFICATION and len(np.unique(held.train.y)) < 2:
        return "only one class in the other environments"
    if name == "hrm-told" and len(held.environment_names) < 2:
        return "only one other environment: nothing to be told"
    more: dict[str, dict[str, Any]] = {
        ROWS: {},
        HINTS: {} if hints is None else {"hints": hints.iloc[kept.to_numpy()]},
        ENVIRONMENTS: {"environments": held.train.environments},
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = model.fit(held.train.X, held.train.y, **more[method.given])
            predicted = fitted.predict(X)
    except (ValueError, np.linalg.LinAlgError) as error:
        return shown(error, 200)
    if held.task_type == REGRESSION:
        return float(np.sqrt(np.mean((predicted - y) ** 2)))
    return float(np.mean(predicted != y))


def _estimator(method: Contestant, held: ShiftTask, seed: int) -> BaseEstimator:
    kind = method.regressor if held.task_type == REGRESSION else method.classifier
    model = kind()
    settings = {"random_state": seed, "feature_groups": held.feature_groups, "max_iter": 1000}
    known = model.get_params(deep=False)
    return model.set_params(**{k: v for k, v in settings.items() if k in known and _ours(k, model)})


def _ours(setting: str, model: BaseEstimator) -> bool:
    """Whether the comparison may set it: more iterations only for scikit-learn's logistic model."""
    return setting != "max_iter" or isinstance(model, LogisticRegression)


def _method_errors(name: str, errors: dict[str, float | str]) -> MethodErrors:
    known = [error for error in errors.values() if isinstance(error, float)]
    return MethodErrors(
        method=name,
        told_environments=METHODS[name].given == ENVIRONMENTS,
        given_hints=METHODS[name].given == HINTS,
        mean=float(np.mean(known)) if known else np.nan,
        std=float(np.std(known, ddof=1)) if len(known) > 1 else np.nan,
        worst=float(np.max(known)) if known else np.nan,
        errors=errors,
    )
