"""A contest between methods: learn from all environments but one, be tested on that one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression

from hetrisk.baselines import BASELINES, Baseline
from hetrisk.cli.known import environment_labels
from hetrisk.cli.terminal import grid, number, progress
from hetrisk.datasets import ShiftTask
from hetrisk.estimators.hrm import HRMClassifier, HRMRegressor
from hetrisk.tables import Table, TableError, read_target
from hetrisk.tables.errors import counted, listed, quoted, shown
from hetrisk.tables.model import chosen_columns
from hetrisk.tables.target import CLASSIFICATION, REGRESSION, Target

MOST_ENVIRONMENTS = 30
FEWEST_ROWS = 10
MOST_SHOWN = 6

METHODS = {
    "erm": Baseline(LinearRegression, LogisticRegression, needs_labels=False),
    **BASELINES,
    "hrm": Baseline(HRMRegressor, HRMClassifier, needs_labels=False),
}


def hold(
    table: Table,
    *,
    target: str,
    environment: str,
    task: str = "auto",
    features: Sequence[str] = (),
    drop: Sequence[str] = (),
    category: Sequence[str] = (),
    methods: Sequence[str] = (),
    rows: int = 20_000,
    seed: int = 0,
) -> dict[str, Any]:
    """Test every method in every environment, and return all errors as one record.

    Parameters
    ----------
    table : as `hetrisk.tables.read_table` returns it.
    target : the column to predict.
    environment : the column that says where each row came from.
    task, features, drop, category : as for `hetrisk.tables.model.fit_table`.
    methods : names from `METHODS`; none means all.
    rows : most rows to use, drawn at random.
    seed : of every random choice.
    """
    if target == environment:
        raise TableError(f"{quoted(target)} cannot be both target and environment")
    codes, names = environment_labels(table, environment)
    wanted = read_target(table.frame, target, task)
    frame, notes = _frame(table, wanted, codes, names, (environment, *drop), features, rows, seed)
    columns = [c for c in frame.columns if c not in (_TARGET, _ENVIRONMENT)]
    chosen = [name for name in category if name in columns]
    scores: dict[str, dict[str, Any]] = {name: {} for name in methods or METHODS}
    tasks = ShiftTask.leave_one_out(
        frame, _TARGET, _ENVIRONMENT, task_type=wanted.task, features=columns, category=chosen
    )
    for held in tasks:
        (left_out,) = held.test
        for name in scores:
            with progress(f"{name}, without environment {shown(left_out, 30)}"):
                scores[name][left_out] = _score(name, held, seed)
    return {
        "target": target,
        "environment": environment,
        "task": wanted.task,
        "risk_name": "RMSE" if wanted.task == REGRESSION else "error rate",
        "rows": len(frame),
        "methods": [_method_record(name, errors) for name, errors in scores.items()],
        "notes": [*map(str, wanted.notes), *notes],
    }


# Names no column of a table can have: a file's cells and headers hold no NUL.
_TARGET, _ENVIRONMENT = "\0target", "\0environment"


def _frame(
    table: Table,
    target: Target,
    codes: np.ndarray,
    names: list[str],
    drop: Sequence[str],
    features: Sequence[str],
    rows: int,
    seed: int,
) -> tuple[Any, list[str]]:
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
    frame = frame.loc[usable]
    if len(frame) > rows:
        notes.append(f"a random sample of {rows:,} of {len(frame):,} rows; --rows changes that")
        frame = frame.sample(rows, random_state=seed)
    return frame.reset_index(drop=True), notes


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


def _score(name: str, held: ShiftTask, seed: int) -> float | str:
    """Return the error in the environment left out, or why there is none."""
    method = METHODS[name]
    model = _estimator(method, held, seed)
    ((X, y),) = held.test.values()
    if held.task_type == CLASSIFICATION and len(np.unique(held.train.y)) < 2:
        return "only one class in the other environments"
    labels = {"environments": held.train.environments} if method.needs_labels else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = model.fit(held.train.X, held.train.y, **labels).predict(X)
    except (ValueError, np.linalg.LinAlgError) as error:
        return shown(error, 200)
    if held.task_type == REGRESSION:
        return float(np.sqrt(np.mean((predicted - y) ** 2)))
    return float(np.mean(predicted != y))


def _estimator(method: Baseline, held: ShiftTask, seed: int) -> BaseEstimator:
    kind = method.regressor if held.task_type == REGRESSION else method.classifier
    model = kind()
    settings = {"random_state": seed, "feature_groups": held.feature_groups, "max_iter": 1000}
    known = model.get_params(deep=False)
    return model.set_params(**{k: v for k, v in settings.items() if k in known and _ours(k, model)})


def _ours(setting: str, model: BaseEstimator) -> bool:
    """Whether the contest may set it: more iterations only for scikit-learn's logistic model."""
    return setting != "max_iter" or isinstance(model, LogisticRegression)


def _method_record(name: str, errors: dict[str, Any]) -> dict[str, Any]:
    known = [error for error in errors.values() if isinstance(error, float)]
    return {
        "method": name,
        "told_environments": METHODS[name].needs_labels,
        "mean": float(np.mean(known)) if known else np.nan,
        "std": float(np.std(known, ddof=1)) if len(known) > 1 else np.nan,
        "worst": float(np.max(known)) if known else np.nan,
        "errors": errors,
    }


def show(record: dict[str, Any], screen: Console) -> None:
    """Print the comparison for a person, best mean first."""
    methods = sorted(record["methods"], key=lambda m: np.nan_to_num(m["mean"], nan=np.inf))
    environments = list(methods[0]["errors"])
    columns = environments if len(environments) <= MOST_SHOWN else []
    best = {key: min(m[key] for m in methods) for key in ("mean", "worst")}
    rows = []
    for method in methods:
        mark = " *" if method["told_environments"] else ""
        cells: list[object] = [f"{method['method']}{mark}"]
        cells += [_figure(method, key, best) for key in ("mean", "std", "worst")]
        cells += [_cell(method["errors"][name]) for name in columns]
        rows.append(cells)
    heads = [("method", "left"), ("mean", "right"), ("std", "right"), ("worst", "right")]
    heads += [(shown(name, 20), "right") for name in columns]
    title = f"{record['risk_name']} in the environment left out ({len(environments)} environments)"
    screen.print(grid(title, heads, rows))
    screen.print("* is told which training row came from which environment.")
    _say_failures(methods, screen)


def _figure(method: dict[str, Any], key: str, best: dict[str, float]) -> Text:
    value = method[key]
    return Text(number(value), style="bold green" if value == best.get(key) else "")


def _cell(error: float | str) -> str:
    return number(error) if isinstance(error, float) else "failed"


def _say_failures(methods: list[dict[str, Any]], screen: Console) -> None:
    for method in methods:
        for name, error in method["errors"].items():
            if isinstance(error, str):
                screen.print(f"{method['method']} failed without {quoted(name)}: {error}")
