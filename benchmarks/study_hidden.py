"""The search for environments that nobody named: what it finds, and what it leaves alone.

    python benchmarks/study_hidden.py paper --seeds 5
    python benchmarks/study_hidden.py designs --seeds 4
    python benchmarks/study_hidden.py harm --seeds 5
    python benchmarks/study_hidden.py calibration --seeds 20
    python benchmarks/study_hidden.py natural --seeds 1 --first 0
    python benchmarks/study_hidden.py stability

All but the p-values (calibration, which asks `hetrisk.core.sources.questions` directly) go through
the estimators, at --reach. Seeds start at --first, so that any run can be made on seeds nobody
has looked at.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hetrisk import HRMClassifier, HRMRegressor
from hetrisk.core.numerics.families import Bernoulli, Family, Gaussian, Multinomial
from hetrisk.core.numerics.rows import Held, Rows
from hetrisk.core.sources.question import Answer
from hetrisk.core.sources.questions import ask
from hetrisk.datasets import load_task, natural_names
from hetrisk.datasets.homogeneous import classification_families, families
from newfamilies import new_families
from study_pooled import CELLS

SELECTED = "selected_on_target"
DESIGNS: dict[str, tuple[str, dict[str, Any]]] = {
    "selected on y: product": (SELECTED, {}),
    "selected on y: square": (SELECTED, {"curve": "square"}),
    "selected on y: exp": (SELECTED, {"curve": "exp"}),
    "selected on y: step": (SELECTED, {"curve": "step"}),
    "selected on y: noise 1": (SELECTED, {"noise": 1.0}),
    "selected on y: 2 % minority": (SELECTED, {"share": 0.98}),
    "selected on y: 40 % minority": (SELECTED, {"share": 0.6}),
    "selected on y: 500 rows": (SELECTED, {"n_samples": 500}),
    "selected on y: 8000 rows": (SELECTED, {"n_samples": 8000}),
    "selected on y: wide, noise 1": (SELECTED, {"noise": 1.0, "spread": 2.0}),
    "flipping cause, visible": ("flipping_cause", {}),
    "flipping cause, 40 %": ("flipping_cause", {"share": 0.4}),
    "flipping cause, hidden": ("flipping_cause", {"visible": False}),
    "spreading effects": ("spreading_effects", {}),
    "spreading effects, mild": ("spreading_effects", {"spreads": (0.5, 0.8, 1.0)}),
    "spreading effects, balanced": ("spreading_effects", {"sizes": (500, 500, 500)}),
    "cause and effect": ("cause_and_effect", {}),
}


def answer(X: np.ndarray, y: np.ndarray, groups: np.ndarray | None = None) -> Answer:
    """Ask standardised rows."""
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    family: Family = Gaussian()
    if y.dtype.kind in "iub":
        classes, codes = np.unique(y, return_inverse=True)
        family = Bernoulli() if len(classes) == 2 else Multinomial(len(classes))
        y = codes.astype(float)
    else:
        y = (y - y.mean()) / y.std()
    rows = Held(Rows(np.ascontiguousarray(X), y, np.ones(len(y))))
    groups = np.arange(X.shape[1]) if groups is None else groups
    return ask(rows, family, groups, np.zeros(X.shape[1], dtype=bool))


Model = HRMRegressor | HRMClassifier


def fitted(X: np.ndarray, y: np.ndarray, **settings: Any) -> tuple[Model, float]:
    """The default estimator, told nothing, and its CPU seconds."""
    began = time.process_time()
    model = (HRMRegressor if y.dtype.kind == "f" else HRMClassifier)(**settings).fit(X, y)
    return model, time.process_time() - began


def said(model: Model) -> str:
    """What was left out, by which question, and from which reach on that pays."""
    left = np.flatnonzero(~model.support_).tolist()
    by = "+".join(s.name for s in model.sources_ if s.used)
    return f"{model.verdict_[:3]} {left} {by} {model.break_even_:.2f}" if left else "none"


def rmse(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((y - model.predict(X)) ** 2)))


def mean_of(runs: list[dict], key: str) -> float:
    return float(np.mean([run[key] for run in runs]))


def paper_run(name: str, setting: dict, seed: int, reach: float) -> dict:
    task = load_task(name, seed=seed, **setting)
    X, y = task.train.X, task.train.y
    model, seconds = fitted(X, y, reach=reach)
    inv = task.invariant
    oracle = LinearRegression().fit(X[:, inv], y)
    ours = np.mean([rmse(model, A, b) for A, b in task.test.values()])
    best = np.mean([rmse(oracle, A[:, inv], b) for A, b in task.test.values()])
    return {
        "seed": seed,
        "exact": task.recovered(model.support_),
        "ratio": ours / best,
        "seconds": seconds,
        "said": said(model),
    }


def paper(seeds: list[int], jobs: int, reach: float) -> None:
    print("cell | exact | RMSE over oracle | CPU s")
    every = []
    for label, (name, setting) in CELLS.items():
        runs = Parallel(jobs)(delayed(paper_run)(name, setting, s, reach) for s in seeds)
        every += runs
        missed = [(r["seed"], r["said"]) for r in runs if not r["exact"]]
        print(
            f"{label} | {mean_of(runs, 'exact'):.2f} | {mean_of(runs, 'ratio'):.4f} | "
            f"{mean_of(runs, 'seconds'):.2f} {missed or ''}",
            flush=True,
        )
    print(f"overall | {mean_of(every, 'exact'):.3f}")


def design_run(name: str, setting: dict, seed: int, reach: float) -> dict:
    task = load_task(name, seed=seed, **setting)
    X, y = task.train.X, task.train.y
    model, seconds = fitted(X, y, reach=reach)

    def worst(columns: np.ndarray) -> float:
        plain = LinearRegression().fit(X[:, columns], y)
        return max(rmse(plain, A[:, columns], b) for A, b in task.test.values())

    return {
        "erm": worst(np.ones(X.shape[1], dtype=bool)),
        "best": worst(task.invariant),
        "ours": max(rmse(model, A, b) for A, b in task.test.values()),
        "seconds": seconds,
        "said": said(model),
    }


def designs(seeds: list[int], jobs: int, reach: float) -> None:
    print("design | ERM | ours | stable columns | share of the way | CPU s | what was said")
    shares = []
    for label, (name, setting) in DESIGNS.items():
        runs = Parallel(jobs)(delayed(design_run)(name, setting, s, reach) for s in seeds)
        erm, ours, best = (mean_of(runs, key) for key in ("erm", "ours", "best"))
        shares.append((erm - ours) / (erm - best))
        print(
            f"{label} | {erm:.3f} | {ours:.3f} | {best:.3f} | {shares[-1]:.2f} | "
            f"{mean_of(runs, 'seconds'):.2f} | {' ; '.join(r['said'] for r in runs)}",
            flush=True,
        )
    print(f"mean share {np.mean(shares):.3f}, least {np.min(shares):.2f}")


def harm_run(draw: Callable, seed: int, reach: float) -> dict:
    X, y, A, b = draw(seed, 2000, 10)
    model, seconds = fitted(X, y, reach=reach)
    return {
        "ratio": rmse(model, A, b) / rmse(LinearRegression().fit(X, y), A, b),
        "verdict": model.verdict_,
        "seconds": seconds,
        "said": said(model),
    }


def label_run(draw: Callable, seed: int, reach: float) -> dict:
    X, y, A, b = draw(seed, 2000, 10)
    model, seconds = fitted(X, y, reach=reach)
    plain = make_pipeline(StandardScaler(), LogisticRegression(C=1e4, max_iter=2000)).fit(X, y)
    return {
        # One point of accuracy counts as 1.02.
        "ratio": 1.0 + 2.0 * (plain.score(A, b) - model.score(A, b)),
        "verdict": model.verdict_,
        "seconds": seconds,
        "said": said(model),
    }


def harm(seeds: list[int], jobs: int, reach: float) -> None:
    print("family | unharmed | worst | CPU s | verdicts other than homogeneous")
    every = []
    numbers = {**families(), **new_families()}
    asked = [(n, f, harm_run) for n, f in numbers.items()]
    asked += [(n, f, label_run) for n, f in classification_families().items()]
    for label, draw, run in asked:
        runs = Parallel(jobs)(delayed(run)(draw, s, reach) for s in seeds)
        ratio = np.array([r["ratio"] for r in runs])
        every += ratio.tolist()
        other = [r["said"] for r in runs if r["verdict"] != "homogeneous"]
        print(
            f"{label} | {np.mean(ratio <= 1.02):.2f} | {ratio.max():.3f} | "
            f"{mean_of(runs, 'seconds'):.2f} | {len(other)} {other or ''}",
            flush=True,
        )
    print(f"overall {np.mean(np.array(every) <= 1.02):.4f}")


def natural_run(table: str, split: str, seed: int, reach: float) -> dict:
    task = load_task("natural", seed=seed, table=table, split=split)
    X, y = task.train.X, task.train.y
    labels = task.task_type == "classification"
    model, seconds = fitted(X, y, reach=reach, feature_groups=task.feature_groups)

    def worst(model: Any) -> float:
        return float(
            max(
                np.mean(model.predict(A) != b) if labels else rmse(model, A, b)
                for A, b in task.test.values()
            )
        )

    ratio = 1.0
    if not model.support_.all():
        plain = LogisticRegression(max_iter=1000) if labels else LinearRegression()
        ratio = worst(model) / worst(make_pipeline(StandardScaler(), plain).fit(X, y))
    return {
        "ratio": ratio,
        "verdict": model.verdict_,
        "left": [task.feature_names[j] for j in np.flatnonzero(~model.support_)],
        "seconds": seconds,
        "said": f"pays from {model.break_even_:.2f}",
        "shape": X.shape,
    }


def natural(seeds: list[int], jobs: int, reach: float) -> None:
    print(
        "table | trained on | rows, columns | worst unseen over plain | verdict | CPU s | left out"
    )
    ratios = []
    for table in natural_names():
        for split in ("first half", "second half", "random half"):
            runs = Parallel(jobs)(delayed(natural_run)(table, split, s, reach) for s in seeds)
            for run in runs:
                ratios.append(run["ratio"])
                print(
                    f"{table} | {split} | {run['shape']} | {run['ratio']:.3f} | {run['verdict']} | "
                    f"{run['seconds']:.1f} | {run['left']} | {run['said']}",
                    flush=True,
                )
    r = np.array(ratios)
    print(f"{len(r)} splits: harmed {np.sum(r > 1.02)}, helped {np.sum(r < 0.98)}")


STEADY_TABLES = 20
SEEDS = 10
SUBSAMPLES = 10


def steady_run(table: str, reach: float) -> dict:
    """Columns over ten seeds, and verdicts over ten subsamples of 80 % of the rows."""
    task = load_task("natural", table=table, split="first half", max_rows=3000)
    X, y = task.train.X, task.train.y
    given = {"reach": reach, "feature_groups": task.feature_groups}
    model, *others = (fitted(X, y, random_state=seed, **given)[0] for seed in range(SEEDS))
    verdicts = []
    for seed in range(SUBSAMPLES):
        chosen = np.sort(np.random.default_rng(seed).permutation(len(y))[: int(0.8 * len(y))])
        verdicts.append(fitted(X[chosen], y[chosen], **given)[0].verdict_)
    return {
        "verdict": model.verdict_,
        "left": [task.feature_names[j] for j in np.flatnonzero(~model.support_)],
        "seeds": all(np.array_equal(model.support_, other.support_) for other in others),
        "same": float(np.mean([verdict == model.verdict_ for verdict in verdicts])),
        "verdicts": " ".join(verdict[:3] for verdict in verdicts),
    }


def stability(seeds: list[int], jobs: int, reach: float) -> None:
    print("table | verdict | left out | same columns over seeds | same verdict in 80 % subsamples")
    tables = natural_names()[:STEADY_TABLES]
    runs = []
    for table in tables:
        runs.append(steady_run(table, reach))
        run = runs[-1]
        print(
            f"{table} | {run['verdict']} | {run['left']} | {run['seeds']} | {run['same']:.1f} "
            f"({run['verdicts']})",
            flush=True,
        )
    print(f"same columns: {mean_of(runs, 'seeds'):.2f}, same verdict: {mean_of(runs, 'same'):.3f}")


def calibration(seeds: list[int], jobs: int, reach: float) -> None:
    print("family | share of p-values of hidden slopes below 0.01, 0.05, 0.1")
    every = []
    for label, draw in {**families(), **new_families()}.items():
        drawn = [draw(s, 2000, 10) for s in seeds]
        runs = Parallel(jobs)(delayed(answer)(X, y) for X, y, _, _ in drawn)
        p = np.array([run.findings[2].p_value for run in runs])
        every += p.tolist()
        shares = "  ".join(f"{np.mean(p < level):.3f}" for level in (0.01, 0.05, 0.1))
        print(f"{label} | {shares}", flush=True)
    p = np.array(every)
    print("overall | " + "  ".join(f"{np.mean(p < level):.3f}" for level in (0.01, 0.05, 0.1)))


def main() -> None:
    parts = {
        "paper": paper,
        "designs": designs,
        "harm": harm,
        "calibration": calibration,
        "natural": natural,
        "stability": stability,
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=parts)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--reach", type=float, default=4.0)
    given = parser.parse_args()
    seeds = list(range(given.first, given.first + given.seeds))
    parts[given.what](seeds, given.jobs, given.reach)


if __name__ == "__main__":
    main()
