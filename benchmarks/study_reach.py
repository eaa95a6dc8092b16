"""Named and hinted environments: how much regret at a reach gains, and what it costs.

    python benchmarks/study_reach.py told        designs, environments named: error / stable columns
    python benchmarks/study_reach.py real        real tables, environments named: error / plain ERM
    python benchmarks/study_reach.py reach       the same over several reaches
    python benchmarks/study_reach.py hints       hints instead of names: share of the gain
    python benchmarks/study_reach.py null        environments and hints that mean nothing
    python benchmarks/study_reach.py band        does the curve's band hold what came true?
    python benchmarks/study_reach.py labels      labels: errors forecast and come true, alarms
    python benchmarks/study_reach.py time        seconds, and Gram products of all rows

Options: --seeds N, --first SEED, --reach K, --form columns|directions.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hetrisk import HRMClassifier, HRMRegressor, check
from hetrisk.datasets import homogeneous, load_task
from hetrisk.datasets.natural import natural_names
from hetrisk.datasets.task import ShiftTask
from hetrisk.estimators.quality import assess

warnings.simplefilter("ignore")

DESIGNS: dict[str, tuple[str, dict[str, object]]] = {
    "selected on y: product": ("selected_on_target", {}),
    "selected on y: square": ("selected_on_target", {"curve": "square"}),
    "selected on y: exp": ("selected_on_target", {"curve": "exp"}),
    "selected on y: step": ("selected_on_target", {"curve": "step"}),
    "selected on y: noise 1": ("selected_on_target", {"noise": 1.0}),
    "selected on y: 500 rows": ("selected_on_target", {"n_samples": 500}),
    "selected on y: rotated": ("selected_on_target", {"rotated": True}),
    "flipping cause, visible": ("flipping_cause", {}),
    "flipping cause, hidden": ("flipping_cause", {"visible": False}),
    "spreading effects": ("spreading_effects", {}),
    "spreading effects, mild": ("spreading_effects", {"spreads": (0.5, 0.8, 1.0)}),
    "cause and effect": ("cause_and_effect", {}),
    "cows and camels, rotated": ("cows_and_camels", {"rotated": True}),
    "copied label .7/.9": ("copied_label", {}),
    "copied label .8/.9": ("copied_label", {"rates": (0.8, 0.9)}),
    "copied label .8/.9, rotated": ("copied_label", {"rates": (0.8, 0.9), "rotated": True}),
    "selection bias (paper)": ("selection_bias", {}),
    "anti-causal (paper)": ("anti_causal", {}),
}


def plain(task: ShiftTask) -> object:
    labels = task.task_type == "classification"
    return make_pipeline(StandardScaler(), LogisticRegression() if labels else LinearRegression())


def estimator(task: ShiftTask, **settings: object) -> HRMRegressor | HRMClassifier:
    kind = HRMClassifier if task.task_type == "classification" else HRMRegressor
    return kind(**settings)


def errors(predict: Callable[[np.ndarray], np.ndarray], task: ShiftTask) -> list[float]:
    found = []
    for sample in task.test.values():
        wrong = predict(sample.X)
        if task.task_type == "classification":
            found.append(float(np.mean(wrong != sample.y)))
        else:
            found.append(float(np.sqrt(np.mean((wrong - sample.y) ** 2))))
    return found


def worst(model: object, task: ShiftTask, columns: list[int] | None = None) -> float:
    chosen = slice(None) if columns is None else columns
    return max(errors(lambda X: model.predict(X[:, chosen]), task))


def told(task: ShiftTask) -> np.ndarray:
    """The name of every row's environment."""
    return np.array(task.environment_names)[task.train.environments]


def stable_error(task: ShiftTask) -> float:
    if task.invariant is None or not task.invariant.any():
        return np.nan
    columns = np.flatnonzero(task.invariant).tolist()
    return worst(plain(task).fit(task.train.X[:, columns], task.train.y), task, columns)


def study_told(options: argparse.Namespace) -> None:
    """Worst error of plain ERM, ours and the stable columns on designs."""
    print("| design | ERM | told | stable columns | told / stable | left out |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, (task_name, setting) in DESIGNS.items():
        rows, left = [], []
        for seed in range(options.first, options.first + options.seeds):
            task = load_task(task_name, seed=seed, **setting)
            model = estimator(task, reach=options.reach, form=options.form)
            model.fit(task.train.X, task.train.y, environments=told(task))
            base = plain(task).fit(task.train.X, task.train.y)
            rows.append([worst(base, task), worst(model, task), stable_error(task)])
            left.append(int((~model.support_).sum()))
        erm, ours, stable = np.mean(rows, axis=0)
        print(
            f"| {name} | {erm:.3f} | {ours:.3f} | {stable:.3f} | {ours / stable:.3f} | "
            f"{np.mean(left):.1f} |",
            flush=True,
        )


def real_splits(numbers_only: bool = True) -> Iterator[tuple[str, ShiftTask]]:
    for table in natural_names():
        for split in ("first half", "second half", "random half"):
            task = load_task("natural", table=table, split=split)
            if len(task.test) and not (numbers_only and task.task_type == "classification"):
                yield f"{table}, {split}", task


def ratios(options: argparse.Namespace, reach: float, show: bool = False) -> np.ndarray:
    found = []
    for name, task in real_splits(numbers_only=False):
        start = time.perf_counter()
        model = estimator(task, reach=reach, form=options.form)
        model.fit(task.train.X, task.train.y, environments=told(task))
        took = time.perf_counter() - start
        ratio = worst(model, task) / worst(plain(task).fit(task.train.X, task.train.y), task)
        found.append(ratio)
        if show:
            print(
                f"| {name} | {len(task.train.y)} x {task.n_features} | {ratio:.3f} | "
                f"{model.verdict_} | {int((~model.support_).sum())} | {took:.2f} |",
                flush=True,
            )
    return np.array(found)


def _counts(found: np.ndarray) -> str:
    return (
        f"{(found > 1.02).sum()} | {(found < 0.98).sum()} | "
        f"{np.exp(np.log(found).mean()):.4f} | {found.max():.2f}"
    )


def study_real(options: argparse.Namespace) -> None:
    print("| split | rows | error / ERM | verdict | left out | s |\n| " + "--- | " * 6)
    found = ratios(options, options.reach, show=True)
    print(f"\n{len(found)} splits: harmed | helped | geometric mean | worst: {_counts(found)}")


def study_reach(options: argparse.Namespace) -> None:
    print("| reach | harmed | helped | geometric mean | worst |\n| --- | --- | --- | --- | --- |")
    for reach in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0):
        print(f"| {reach:g} | {_counts(ratios(options, reach))} |", flush=True)


HINTED = ("selected on y: product", "flipping cause, hidden", "spreading effects")


def wrong_labels(codes: np.ndarray, rng: np.random.Generator) -> pd.Series:
    """A fifth of the labels drawn at random."""
    wrong = rng.random(len(codes)) < 0.2
    return pd.Series(np.where(wrong, rng.permutation(codes), codes).astype(str), name="source")


def sites(codes: np.ndarray, rng: np.random.Generator) -> pd.Series:
    """Two hundred sites, each in one environment."""
    order = np.argsort(rng.random(len(codes)) + 10 * codes)
    site = np.empty(len(codes), dtype=int)
    site[order] = np.arange(len(codes)) * 200 // len(codes)
    # A site that straddles two environments is given to one of them row by row.
    return pd.Series([f"site {s}-{c}" for s, c in zip(site, codes, strict=True)], name="site")


def dates(codes: np.ndarray, rng: np.random.Generator) -> pd.Series:
    """A date: environments follow each other, with an overlap of a tenth."""
    position = np.argsort(np.argsort(codes + 0.3 * rng.standard_normal(len(codes))))
    days = np.floor(position / len(codes) * 1500)
    return pd.Series(pd.Timestamp("2019-01-01") + pd.to_timedelta(days, unit="D"), name="date")


def study_hints(options: argparse.Namespace) -> None:
    """Share of the gain of being told (ERM to told) that a hint gives."""
    print("| design | hint | ERM | told | hinted | share of the gain |\n| " + "--- | " * 6)
    for name in HINTED:
        task_name, setting = DESIGNS[name]
        for make in (wrong_labels, sites, dates):
            rows = []
            for seed in range(options.first, options.first + options.seeds):
                task = load_task(task_name, seed=seed, **setting)
                X, y = task.train.X, task.train.y
                hint = make(task.train.environments, np.random.default_rng(seed))
                named = estimator(task, reach=options.reach).fit(X, y, environments=told(task))
                hinted = estimator(task, reach=options.reach).fit(X, y, hints=hint)
                models = (plain(task).fit(X, y), named, hinted)
                rows.append([worst(model, task) for model in models])
            erm, with_names, with_hints = np.mean(rows, axis=0)
            share = (erm - with_hints) / (erm - with_names)
            what = make.__name__.replace("_", " ")
            print(
                f"| {name} | {what} | {erm:.3f} | {with_names:.3f} | {with_hints:.3f} | "
                f"{share:.2f} |",
                flush=True,
            )


def study_null(options: argparse.Namespace) -> None:
    """Random environments (2, 5, 50) and random hints: how often is the model plain ERM?"""
    print("| family | 2 | 5 | 50 | random category | random date |\n| " + "--- | " * 6)
    totals = np.zeros(5)
    families = homogeneous.families()
    for name, family in families.items():
        plain_runs = np.zeros(5)
        for seed in range(options.first, options.first + options.seeds):
            X, y, *_ = family(seed, 1000, 8)
            rng = np.random.default_rng(seed)
            base = LinearRegression().fit(X, y).predict(X)
            for i, count in enumerate((2, 5, 50)):
                model = HRMRegressor().fit(X, y, environments=rng.integers(0, count, len(y)))
                plain_runs[i] += np.allclose(model.predict(X), base)
            without = HRMRegressor().fit(X, y).predict(X)
            days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, len(y)), "D")
            for i, hint in enumerate((rng.integers(0, 6, len(y)).astype(str), pd.Series(days))):
                model = HRMRegressor().fit(X, y, hints=hint)
                plain_runs[3 + i] += np.allclose(model.predict(X), without)
        totals += plain_runs
        shown = " | ".join(f"{int(c)}/{options.seeds}" for c in plain_runs)
        print(f"| {name} | {shown} |", flush=True)
    share = totals / (options.seeds * len(families))
    print("| all | " + " | ".join(f"{s:.3f}" for s in share) + " |")


def study_band(options: argparse.Namespace) -> None:
    """Predicted error at reach 1 and the worst that came true, on real tables."""
    print("| split | predicted | band | came true | inside |\n| --- | --- | --- | --- | --- |")
    predicted, realised, inside = [], [], []
    for name, task in real_splits():
        model = estimator(task, reach=options.reach, form=options.form)
        model.fit(task.train.X, task.train.y, environments=told(task))
        curve, true = model.reach_curve_, worst(model, task)
        at = int(np.searchsorted(curve.reach, 1.0))
        predicted.append((curve.error[at], curve.error[0]))
        realised.append(true)
        inside.append(curve.low[at] <= true <= curve.high[at])
        print(
            f"| {name} | {curve.error[at]:.3f} | {curve.low[at]:.3f} to {curve.high[at]:.3f} | "
            f"{true:.3f} | {'yes' if inside[-1] else 'no'} |",
            flush=True,
        )
    forecast = np.array(predicted)
    rank = pd.Series(forecast[:, 0] / forecast[:, 1]).corr(
        pd.Series(np.array(realised) / forecast[:, 1]), method="spearman"
    )
    ratio = np.median(np.array(realised) / forecast[:, 0])
    print(
        f"\ninside {np.mean(inside):.2f}; median ratio {ratio:.2f}; rank correlation of the excess "
        f"over reach 0 {rank:.2f}"
    )


def study_labels(options: argparse.Namespace) -> None:
    """Root Brier scores: forecast, out of fold, in the environments to come; what a check says.

    Risen: by a tenth or more over the error forecast where nothing shifts.
    """
    print(
        "| split | at reach 0 | out of fold | at reach 1 | band | mean, worst that came | inside | "
        "risen | of them alarmed | others alarmed |\n| " + "--- | " * 10
    )
    totals = np.zeros(6, dtype=int)
    for name, task in real_splits(numbers_only=False):
        if task.task_type != "classification":
            continue
        model = estimator(task, reach=options.reach, form=options.form)
        model.fit(task.train.X, task.train.y, environments=told(task))
        curve = model.reach_curve_
        measured = assess(model, task.train.X, task.train.y).error(curve.unit)
        at = int(np.searchsorted(curve.reach, 1.0))
        found = [check(model, sample.X, sample.y).outcome for sample in task.test.values()]
        error = np.array([outcome.error.value for outcome in found])
        alarm = np.array([o.risen or o.beyond or o.weakened for o in found])
        up = error >= 1.1 * curve.error[0]
        inside = curve.low[at] <= error.max() <= curve.high[at]
        counts = (inside, 1, up.sum(), (alarm & up).sum(), (~up).sum(), (alarm & ~up).sum())
        totals += np.array(counts, dtype=int)
        print(
            f"| {name} | {curve.error[0]:.3f} | {measured.this:.3f} | {curve.error[at]:.3f} | "
            f"{curve.low[at]:.3f} to {curve.high[at]:.3f} | {error.mean():.3f}, {error.max():.3f} "
            f"| {'yes' if inside else 'no'} | {counts[2]} of {len(error)} | {counts[3]} | "
            f"{counts[5]} |",
            flush=True,
        )
    print(
        f"\ninside {totals[0]} of {totals[1]}; risen {totals[2]}, alarmed {totals[3]}; not risen "
        f"{totals[4]}, alarmed {totals[5]}"
    )


TIMED = ((2_000, 10, 2), (1_000_000, 20, 10), (5_000, 200, 5), (100_000, 30, 200))
REPEATS, LONG = 5, 3.0  # at least so many fits, and for so many seconds
IDLE = 0.2  # seconds after which threads are asleep


def study_time(options: argparse.Namespace) -> None:
    """Seconds on the clock and of the processor, the least of several fits, and peak memory."""
    rng = np.random.default_rng(0)
    print(
        "| rows x columns | environments | s | processor s | Gram products of all rows, s | "
        "processor | peak memory / table |\n| " + "--- | " * 7
    )
    for n, d, K in TIMED:
        X = rng.standard_normal((n, d))
        codes = rng.integers(0, K, n)
        y = X[:, : d // 2].sum(axis=1) + (codes == 0) * X[:, -1] + rng.standard_normal(n)
        Z = np.column_stack([np.ones(n), X, y])
        names = codes if K < 100 else np.array([f"site {k}" for k in codes])
        grams, fits, start = [], [], time.perf_counter()
        # One after the other, so that both see the same load on the machine. The threads of a
        # product go on waiting for the next one for a while; that is no work of the fit.
        while len(fits) < REPEATS or time.perf_counter() - start < LONG:
            grams.append(_clock(np.matmul, Z.T, Z))
            time.sleep(IDLE)
            fits.append(_clock(HRMRegressor().fit, X, y, names))
        gram, took = np.min(grams, axis=0), np.min(fits, axis=0)
        ratio = took / gram
        print(
            f"| {n:,} x {d} | {K} | {took[0]:.3f} | {took[1]:.3f} | {ratio[0]:.1f} | "
            f"{ratio[1]:.1f} | {_peak(HRMRegressor().fit, X, y, names) / X.nbytes:.2f} |",
            flush=True,
        )


def _clock(function: Callable[..., object], *arguments: object) -> tuple[float, float]:
    """Seconds on the clock, and of all the processors used."""
    start = time.perf_counter(), time.process_time()
    function(*arguments)
    return time.perf_counter() - start[0], time.process_time() - start[1]


def _peak(function: Callable[..., object], *arguments: object) -> int:
    """Most bytes allocated at a time."""
    tracemalloc.start()
    function(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


STUDIES = {
    "told": study_told,
    "real": study_real,
    "reach": study_reach,
    "hints": study_hints,
    "null": study_null,
    "band": study_band,
    "labels": study_labels,
    "time": study_time,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--reach", type=float, default=4.0)
    parser.add_argument("--form", default="columns", choices=("columns", "directions"))
    options = parser.parse_args()
    STUDIES[options.study](options)


if __name__ == "__main__":
    main()
