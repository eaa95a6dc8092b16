"""Attack the estimators with small tables: a fit must end in predictions or in a sentence.

Tables of a few rows and columns are drawn at random: constant, repeated, missing and huge columns,
one class, one environment, one row an environment, times in any order. An answer holds if the fit
raises no more than a ValueError in a sentence; predictions are finite and of the right shape; rows
in another order give the same model; and a model file of it predicts the same. Run it with

    python benchmarks/attack_fits.py --count 20000 --out fits.json
"""

from __future__ import annotations

import random
import tempfile
import traceback
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import hetrisk
from attacking import in_batches, options
from hetrisk import modelfile

BATCH = 50
FAMILIES = {"Backtest": 0.5, "Stable": 0.4, "HRM": 0.1}
LAW = 0.25  # of the fits are repeated with their rows in another order
CLOSE = 1e-6


def values(rng: np.random.Generator, n: int) -> np.ndarray:
    """One column, plain or not."""
    what = rng.choice(
        ["normal", "whole", "constant", "huge", "tiny", "heavy", "binary", "step", "missing"],
        p=[0.5, 0.1, 0.05, 0.05, 0.05, 0.05, 0.1, 0.05, 0.05],
    )
    x = rng.normal(size=n)
    made = {
        "normal": x,
        "whole": rng.integers(-3, 4, n).astype(float),
        "constant": np.full(n, 7.0),
        "huge": 1e12 * x + 1e14,
        "tiny": 1e-12 * x,
        "heavy": rng.standard_t(1.1, n),
        "binary": (x > 0).astype(float),
        "step": np.where(np.arange(n) < n // 2, 0.0, 1.0),
        "missing": np.where(rng.random(n) < 0.1, np.nan, x),
    }
    return made[str(what)]


def drawn(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Columns with time and site beside them, a target of numbers, and one of labels."""
    n = int(rng.choice([1, 2, 5, 12, 30, 60, 120, 240]))
    d = int(rng.choice([1, 2, 3, 5, 9]))
    X = pd.DataFrame({f"x{j}": values(rng, n) for j in range(d)})
    if d > 1 and rng.random() < 0.15:
        X["x1"] = X["x0"] * rng.choice([1.0, -2.0])
    year = np.sort(rng.integers(2000, 2000 + int(rng.choice([1, 3, 10, 25])), n))
    dates = pd.to_datetime([f"{y}-0{rng.integers(1, 10)}-01" for y in year])
    site = rng.choice([f"s{k}" for k in range(int(rng.choice([1, 2, 4, 8, 30])))], n)
    X["when"] = dates if rng.random() < 0.5 else year.astype(float)
    X["site"] = site
    filled = X.filter(like="x").fillna(0.0).to_numpy()
    scale = np.where(filled.std(axis=0) > 0, filled.std(axis=0), 1.0)
    score = ((filled - filled.mean(axis=0)) / scale) @ rng.normal(size=d)
    y = score + rng.normal(size=n) + 0.2 * (year - 2000) * rng.choice([0, 1])
    y *= rng.choice([1.0, 1.0, 1e6, 1e-6, 0.0], p=[0.5, 0.2, 0.1, 0.1, 0.1])
    cuts = np.quantile(score, [0.5] if rng.random() < 0.6 else [0.3, 0.7])
    labels = np.array(["a", "b", "c"])[np.searchsorted(cuts, score)]
    return X.iloc[rng.permutation(n)] if rng.random() < 0.5 else X, y, labels


def estimator(family: str, labels: bool, rng: np.random.Generator) -> tuple[Any, dict[str, Any]]:
    """Return an estimator with odd parameters, and what its fit is told."""
    kind = getattr(hetrisk, f"{family}{'Classifier' if labels else 'Regressor'}")
    if family == "Backtest":
        made = kind(
            time=rng.choice([None, "when"]),
            environment=rng.choice([None, "site"]),
            reach=float(rng.choice([0.0, 1.0, 4.0])),
        )
        return made, {}
    if family == "Stable":
        return kind(reach=float(rng.choice([0.0, 1.0, 4.0]))), {
            "environments": str(rng.choice(["", "when", "site", "both"]))
        }
    return kind(max_rounds=2, random_state=0), {}


def fitted(model: Any, told: dict[str, Any], X: pd.DataFrame, y: np.ndarray, weight: Any) -> Any:
    """Fit as a user would: side columns by name, or beside the numbers."""
    numbers = X.filter(like="x")
    extra: dict[str, Any] = {} if weight is None else {"sample_weight": weight}
    if told.get("environments"):
        names = {"both": ["when", "site"]}.get(told["environments"], told["environments"])
        extra["environments"] = X[names]
    if type(model).__name__.startswith("Backtest"):
        sides = [name for name in (model.time, model.environment) if name is not None]
        return model.fit(X[[*numbers.columns, *sides]], y, **extra)
    return model.fit(numbers, y, **extra)


def attempt(seed: int) -> tuple[str, str, str]:
    """One table, one estimator: which, what became of it, what is wrong with that."""
    rng = np.random.default_rng(seed)
    family = str(rng.choice(list(FAMILIES), p=list(FAMILIES.values())))
    labels = bool(rng.random() < 0.4)
    X, numbers, classes = drawn(rng)
    y = classes if labels else numbers
    weight = rng.random(len(X)) * rng.choice([1.0, 1e-6, 1e6]) if rng.random() < 0.2 else None
    model, told = estimator(family, labels, rng)
    kind = f"{family}, {'labels' if labels else 'numbers'}"
    try:
        fitted(model, told, X, y, weight)
    except ValueError as error:
        said = str(error)
        # scikit-learn says in several lines that a value is missing.
        sound = said and (said.isprintable() or said.startswith("Input X contains NaN"))
        return kind, "refused", "" if sound else f"seed {seed}: {error!r}"
    except Exception:
        return kind, "fault", f"seed {seed}: {traceback.format_exc()[-1500:]}"
    try:
        wrong = faults(model, told, X, y, weight, rng)
    except Exception:
        wrong = traceback.format_exc()[-1500:]
    return kind, "fitted", f"seed {seed}: {wrong}" if wrong else ""


def faults(
    model: Any, told: dict[str, Any], X: pd.DataFrame, y: np.ndarray, weight: Any, rng: Any
) -> str:
    """Say what is wrong with a fitted model; "" for nothing."""
    asked = X if type(model).__name__.startswith("Backtest") else X.filter(like="x")
    known = asked.dropna() if asked.isna().to_numpy().any() else asked
    if not len(known):
        return ""
    classes = getattr(model, "classes_", None)

    def answer(of: Any) -> np.ndarray:
        return of.predict(known) if classes is None else of.predict_proba(known)

    found = answer(model)
    if len(found) != len(known) or not np.isfinite(found).all():
        return "predictions are not finite, or not one a row"
    if classes is not None and not np.allclose(found.sum(axis=1), 1):
        return "probabilities do not sum to one"
    if rng.random() < LAW and not type(model).__name__.startswith("HRM"):
        order = rng.permutation(len(X))
        again = type(model)(**model.get_params(deep=False))
        fitted(again, told, X.iloc[order], y[order], None if weight is None else weight[order])
        if not close(answer(again), found, y):
            return "rows in another order give another model"
    if not hasattr(model, "predictor_"):
        return ""
    wrong = stored(model, known, answer)
    if not wrong and type(model).__name__.startswith("Backtest"):
        return adapted(model, known, y, answer)
    return wrong


def stored(model: Any, known: pd.DataFrame, answer: Any) -> str:
    """Say what is wrong with the model's file."""
    if model.predictor_ is None:
        return ""
    data = modelfile.dumps(modelfile.Deployed.from_model(model))
    again = modelfile.loads(data)
    if not np.allclose(answer(again), answer(model), rtol=1e-12, atol=0):
        return "a model file predicts something else"
    if getattr(model, "quantiles_", None) is not None:
        ends = model.predict_interval(known, 0.8)
        if not (np.isfinite(ends).all() and (ends[:, 0] <= ends[:, 1]).all()):
            return "an interval is not one"
        if not np.allclose(again.predict_interval(known, 0.8), ends, rtol=1e-12, atol=0):
            return "a model file has other intervals"
    return "" if modelfile.dumps(again) == data else "a model file is written in two ways"


def adapted(model: Any, known: pd.DataFrame, y: np.ndarray, answer: Any) -> str:
    """Say what is wrong with the model moved by a few of its own rows."""
    if len(known) < 5 or len(known) != len(y) or model.forecast_.n_environments == 0:
        return ""
    moved = model.adapt(known.iloc[:20], y[:20])
    if not np.isfinite(answer(moved)).all():
        return "an adapted model predicts what is not finite"
    return stored(moved, known, answer)


def close(a: np.ndarray, b: np.ndarray, y: np.ndarray) -> bool:
    spread = 1.0 if y.dtype.kind in "OU" else float(np.std(y)) or 1.0
    return bool(np.abs(a - b).max() <= CLOSE * spread)


def batch(seed: int, count: int) -> str:
    warnings.simplefilter("ignore")
    random.seed(seed)
    told = [attempt(seed + k) for k in range(count)]
    return "done\n" + "\x1e".join("\x1f".join(part) for part in told)


def main() -> int:
    given = options(__doc__.splitlines()[0], 1000)
    with tempfile.TemporaryDirectory() as place:
        return in_batches(given, BATCH, partial(batch), Path(place))


if __name__ == "__main__":
    raise SystemExit(main())
