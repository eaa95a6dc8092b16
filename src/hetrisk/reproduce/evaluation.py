"""From a case to its record: fit, measure in every environment, note how it was done."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from hetrisk.datasets import load_task
from hetrisk.datasets.task import ShiftTask
from hetrisk.metrics.errors import DEFAULT_LOSS, LOSSES
from hetrisk.reproduce.cases import Case
from hetrisk.reproduce.distances import measured_distances
from hetrisk.reproduce.methods import METHODS
from hetrisk.reproduce.records import FAILED, OK, Record

PACKAGES = ("hetrisk", "numpy", "scipy", "scikit-learn")
DISTANCES = "distances"  # the method of the cases behind the Task2Vec figure


def evaluate(case: Case) -> Record:
    """Run a case of the paper's tables and describe it."""
    return recorded(case, _measure)


def recorded(case: Case, measure: Callable[[Case], dict[str, Any]]) -> Record:
    """Run a case and describe it; an exception becomes a failed record that says why."""
    record: Record = {
        "key": case.key,
        "task": case.task,
        "setting": dict(case.setting),
        "seed": case.seed,
        "method": case.method,
        "versions": versions(),
    }
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = {"status": OK, **measure(case)}
        except Exception as error:
            # A method that cannot run must not stop the others: its cell says why.
            result = {"status": FAILED, "reason": f"{type(error).__name__}: {error}"}
    notes = sorted({str(warning.message) for warning in caught})
    return {**record, **result, "warnings": notes}


def _measure(case: Case) -> dict[str, Any]:
    task = task_of(case.task, case.setting, case.seed)
    start = time.perf_counter()
    if case.method == DISTANCES:
        distances = measured_distances(task, case.seed)
        return {"parameters": {}, "distances": distances, "seconds": _since(start)}
    method = METHODS[case.method]
    model = method.fit(task, case.seed)
    seconds = _since(start)
    name = DEFAULT_LOSS[task.task_type]
    loss = partial(LOSSES[name], method.view(model, task))
    errors = {environment: loss(X, y) for environment, (X, y) in task.test.items()}
    if not all(np.isfinite(list(errors.values()))):
        raise ValueError(f"the predictions are not finite: errors are {errors}.")
    return {
        "parameters": {key: plain(value) for key, value in model.get_params().items()},
        "loss": name,
        "errors": errors,
        "train_error": loss(task.train.X, task.train.y),
        "seconds": seconds,
        **findings(model, task),
    }


def _since(start: float) -> float:
    return time.perf_counter() - start


def findings(model: Any, task: ShiftTask) -> dict[str, Any]:
    """What a method chose or decided, where it has something to say."""
    found: dict[str, Any] = {}
    last = model[-1] if hasattr(model, "steps") else model
    if "choices_" in vars(last):
        found["strength"] = [plain(choice.value) for choice in last.choices_]
    if "support_" in vars(last):
        found["support"] = [bool(kept) for kept in last.support_]
        found["recovered"] = task.recovered(last.support_)
    return found


@lru_cache(maxsize=2)
def task_of(name: str, setting: tuple[tuple[str, Any], ...], seed: int) -> ShiftTask:
    """Load a task; the cases of one draw follow each other, so two are worth keeping."""
    return load_task(name, seed=seed, **dict(setting))


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Versions of everything that could change a number."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def plain(value: Any) -> Any:
    """Return the value as JSON has it; anything else as it prints."""
    if isinstance(value, np.ndarray):
        return [plain(entry) for entry in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else repr(value)
    return repr(value)
