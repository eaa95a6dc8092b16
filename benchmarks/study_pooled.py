"""What the default search finds, and what it leaves alone: power, harm, labels, calibration.

    python benchmarks/study_pooled.py power --seeds 20
    python benchmarks/study_pooled.py variations --seeds 10
    python benchmarks/study_pooled.py harm --seeds 20
    python benchmarks/study_pooled.py steady --seeds 60
    python benchmarks/study_pooled.py labels --seeds 20
    python benchmarks/study_pooled.py calibration --seeds 20
    python benchmarks/study_pooled.py boosted --seeds 5
    HETRISK_DATA=... python benchmarks/study_pooled.py houses

Seeds start at --first, so that any run can be made on seeds nobody has looked at.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hetrisk import HRMClassifier, HRMRegressor
from hetrisk.baselines import OneStandardErrorRidgeRegressor
from hetrisk.datasets import load_task
from homogeneous import classification_families, families

CELLS: dict[str, tuple[str, dict]] = {
    "r = 1.5": ("selection_bias", {"r": 1.5}),
    "r = 1.9": ("selection_bias", {}),
    "r = 2.3": ("selection_bias", {"r": 2.3}),
    "d = 20": ("selection_bias", {"n_features": 20, "n_biased": 2}),
    "d = 40": ("selection_bias", {"n_features": 40, "n_biased": 4}),
    "kappa = 0.9, n = 1000": ("selection_bias", {"kappa": 0.9, "n_samples": 1000}),
    "kappa = 0.975, n = 4000": ("selection_bias", {"kappa": 0.975, "n_samples": 4000}),
    "n_b = 3": ("selection_bias", {"n_biased": 3}),
    "n_b = 5": ("selection_bias", {"n_biased": 5}),
    "anti-causal 9/1": ("anti_causal", {"n_phi": 9, "n_psi": 1}),
    "anti-causal 5/5": ("anti_causal", {"n_phi": 5, "n_psi": 5}),
}
VARIATIONS: dict[str, tuple[str, dict]] = {
    "r = -1.9": ("selection_bias", {"r": -1.9}),
    "r = -1.5": ("selection_bias", {"r": -1.5}),
    "r = 3": ("selection_bias", {"r": 3.0}),
    "r = 1.3": ("selection_bias", {"r": 1.3}),
    "d = 14, n_b = 2": ("selection_bias", {"n_features": 14, "n_biased": 2}),
    "d = 30, n_b = 3": ("selection_bias", {"n_features": 30, "n_biased": 3}),
    "n_b = 2": ("selection_bias", {"n_biased": 2}),
    "n_b = 4, r = -2": ("selection_bias", {"n_biased": 4, "r": -2.0}),
    "kappa = 0.8": ("selection_bias", {"kappa": 0.8}),
    "kappa = 0.7": ("selection_bias", {"kappa": 0.7}),
    "kappa = 0.99, n = 10000": ("selection_bias", {"kappa": 0.99, "n_samples": 10_000}),
    "n = 600": ("selection_bias", {"n_samples": 600, "kappa": 0.9}),
    "appendix coefficients": ("selection_bias", {"coefficients": "appendix"}),
    "anti-causal 7/3": ("anti_causal", {"n_phi": 7, "n_psi": 3}),
    "anti-causal 12/2": ("anti_causal", {"n_phi": 12, "n_psi": 2}),
}


CHOICES = ("power", "variations", "harm", "steady", "labels", "calibration", "boosted", "houses")


def rmse(model, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((y - model.predict(X)) ** 2)))


def power_run(name: str, setting: dict, seed: int) -> dict:
    task = load_task(name, seed=seed, **setting)
    X, y = task.train.X, task.train.y
    began = time.process_time()
    model = HRMRegressor(random_state=seed).fit(X, y)
    seconds = time.process_time() - began
    inv = task.invariant
    named = np.array([n.startswith(("vb", "psi")) for n in task.feature_names])
    spurious = named & (task.identifiable | (name == "anti_causal"))
    oracle = LinearRegression().fit(X[:, inv], y)
    plain = LinearRegression().fit(X, y)
    ours = [rmse(model, *test) for test in task.test.values()]
    best = [rmse(oracle, A[:, inv], b) for A, b in task.test.values()]
    erm = [rmse(plain, *test) for test in task.test.values()]
    return {
        "seed": seed,
        "exact": task.recovered(model.support_),
        "strict": bool(model.support_[inv].all() and not model.support_[spurious].any()),
        "ratio": np.mean(ours) / np.mean(best),
        "erm": np.mean(erm) / np.mean(best),
        "seconds": seconds,
        "kept": np.flatnonzero(model.support_).tolist(),
    }


def power(cells: dict, seeds: list[int], jobs: int) -> None:
    total = []
    print(
        "cell | exact | counting what cannot be identified | RMSE over oracle | ERM over oracle"
        " | CPU s a fit"
    )
    for label, (name, setting) in cells.items():
        runs = Parallel(jobs)(delayed(power_run)(name, setting, s) for s in seeds)
        total += runs
        missed = [(r["seed"], r["kept"], round(r["ratio"], 3)) for r in runs if not r["exact"]]
        print(
            f"{label} | {np.mean([r['exact'] for r in runs]):.2f} | "
            f"{np.mean([r['strict'] for r in runs]):.2f} | "
            f"{np.mean([r['ratio'] for r in runs]):.4f} | {np.mean([r['erm'] for r in runs]):.3f}"
            f" | {np.mean([r['seconds'] for r in runs]):.2f} {missed if missed else ''}",
            flush=True,
        )
    print(f"overall | {np.mean([r['exact'] for r in total]):.3f}")


def harm_run(draw: Callable, seed: int) -> tuple[float, str]:
    X, y, A, b = draw(seed, 2000, 10)
    model = HRMRegressor(random_state=seed).fit(X, y)
    return rmse(model, A, b) / rmse(LinearRegression().fit(X, y), A, b), model.verdict_


def harm(seeds: list[int], jobs: int) -> None:
    print("family | unharmed (RMSE <= 1.02 of least squares) | worst | verdicts not homogeneous")
    every = []
    for label, draw in families().items():
        runs = Parallel(jobs)(delayed(harm_run)(draw, s) for s in seeds)
        ratios = np.array([r for r, _ in runs])
        other = sum(v != "homogeneous" for _, v in runs)
        every += ratios.tolist()
        print(f"{label} | {np.mean(ratios <= 1.02):.2f} | {ratios.max():.3f} | {other}", flush=True)
    print(f"overall | {np.mean(np.array(every) <= 1.02):.4f}")
    print("labels: family | accuracy lost at most 0.01 | worst loss | verdicts not homogeneous")
    for label, draw in classification_families().items():
        runs = Parallel(jobs)(delayed(label_harm_run)(draw, s) for s in seeds)
        loss = np.array([r for r, _ in runs])
        other = sum(v != "homogeneous" for _, v in runs)
        print(f"{label} | {np.mean(loss <= 0.01):.2f} | {loss.max():.3f} | {other}", flush=True)


def label_harm_run(draw: Callable, seed: int) -> tuple[float, str]:
    X, y, A, b = draw(seed, 4000, 10)
    model = HRMClassifier(random_state=seed).fit(X, y)
    scale = X.std(axis=0) + 1e-12
    plain = LogisticRegression(C=1e6, max_iter=2000).fit(X / scale, y)
    return plain.score(A / scale, b) - model.score(A, b), model.verdict_


NOISES: dict[str, Callable] = {
    "normal": lambda rng, y, shape: rng.standard_normal(shape),
    "t3": lambda rng, y, shape: rng.standard_t(3, shape),
    "exponential": lambda rng, y, shape: rng.exponential(1.0, shape),
    "follows y": lambda rng, y, shape: (0.3 + np.abs(y))[:, None] * rng.standard_normal(shape),
    "two spreads": lambda rng, y, shape: (
        np.where(rng.random(shape) < 0.1, 3.0, 1.0) * rng.standard_normal(shape)
    ),
}


def steady_run(noise: Callable, skewed: bool, n_phi: int, n_psi: int, seed: int) -> np.ndarray:
    """Environments that shift causes of y, and effects of y with one mechanism everywhere."""
    rng = np.random.default_rng(seed)
    n = 1200
    phi = rng.standard_normal((n, n_phi))
    phi[:, 3:5] += np.array([[1, 1], [1, -1], [-1, 1]])[
        rng.choice(3, n, p=[10 / 12, 1 / 12, 1 / 12])
    ]
    phi = np.exp(0.7 * phi) if skewed else phi
    y = phi @ rng.normal(1.0, 1.0, n_phi) + 0.3 * rng.standard_normal(n)
    psi = np.outer(y, rng.normal(0.5, 0.1, n_psi))
    psi += 0.5 * noise(rng, (y - y.mean()) / y.std(), psi.shape)
    model = HRMRegressor(random_state=seed).fit(np.hstack([phi, psi]), y)
    out = ~model.support_
    return np.array([out[n_phi:].mean(), out[:n_phi].any(), out.any()])


def steady(seeds: list[int], jobs: int) -> None:
    print("noise | share of steady effects left out | runs with a cause left out | with anything")
    for name, noise in NOISES.items():
        for skewed in (False, True):
            for n_phi, n_psi in ((9, 1), (5, 5)):
                setting = (noise, skewed, n_phi, n_psi)
                runs = Parallel(jobs)(delayed(steady_run)(*setting, s) for s in seeds)
                shares = "  ".join(f"{share:.3f}" for share in np.mean(runs, axis=0))
                label = f"{name}{', log-normal causes' if skewed else ''}, {n_phi}/{n_psi}"
                print(f"{label} | {shares}", flush=True)


def shortcut(rng: np.random.Generator, n: int, disagree: np.ndarray, spread: float):
    """Five causes of a label, four features of noise, and one that mostly repeats the label."""
    X = rng.standard_normal((n, 10))
    strength = np.array([1.0, -1.0, 1.5, 0.7, -1.2])
    y = (rng.random(n) < 1 / (1 + np.exp(-X[:, :5] @ strength))).astype(int)
    repeated = np.where(rng.random(n) < disagree, 1 - y, y)
    X[:, 9] = 2 * repeated - 1 + spread * rng.standard_normal(n)
    return X, y


def label_run(seed: int, spread: float) -> dict:
    rng = np.random.default_rng(seed)
    n = 4000
    X, y = shortcut(rng, n, np.where(rng.random(n) < 0.95, 0.05, 0.9), spread)
    model = HRMClassifier(random_state=seed).fit(X, y)
    oracle = LogisticRegression(C=1e6).fit(X[:, :5], y)
    tests = [
        shortcut(rng, 4000, np.full(4000, 1 - agree), spread)
        for agree in (0.98, 0.75, 0.5, 0.25, 0.02)
    ]
    ours = min(model.score(A, b) for A, b in tests)
    best = min(oracle.score(A[:, :5], b) for A, b in tests)
    exact = bool(model.support_[:5].all() and not model.support_[9])
    return {"exact": exact, "gap": best - ours}


def labels(seeds: list[int], jobs: int) -> None:
    print("shortcut | exact | worst accuracy within 0.01 of the causes' | largest gap")
    for name, spread in (("a label", 0.0), ("a label with noise 0.3", 0.3), ("noise 1", 1.0)):
        runs = Parallel(jobs)(delayed(label_run)(s, spread) for s in seeds)
        gaps = np.array([r["gap"] for r in runs])
        print(
            f"{name} | {np.mean([r['exact'] for r in runs]):.2f} | {np.mean(gaps <= 0.01):.2f} | "
            f"{gaps.max():.3f}",
            flush=True,
        )


def calibration_run(draw: Callable, seed: int) -> np.ndarray:
    X, y, _, _ = draw(seed, 2000, 10)
    return HRMRegressor(random_state=seed).fit(X, y).evidence_.p_value


def calibration(seeds: list[int], jobs: int) -> None:
    print("family | share of p-values below 0.01, 0.05, 0.1, 0.5")
    every = []
    for label in ("linear", "correlated", "counts", "t3", "skewed", "growing", "weak", "quadratic"):
        runs = Parallel(jobs)(delayed(calibration_run)(families()[label], s) for s in seeds)
        p = np.concatenate(runs)
        every.append(p)
        shares = "  ".join(f"{np.mean(p < level):.3f}" for level in (0.01, 0.05, 0.1, 0.5))
        print(f"{label} | {shares}", flush=True)
    p = np.concatenate(every)
    print("overall | " + "  ".join(f"{np.mean(p < level):.3f}" for level in (0.01, 0.05, 0.1, 0.5)))


def boosted(seeds: list[int]) -> None:
    print("mean RMSE over unseen environments: boosted trees behind HRM, linear oracle")
    for seed in seeds:
        task = load_task("selection_bias", seed=seed)
        X, y = task.train.X, task.train.y
        model = HRMRegressor(
            final_estimator=HistGradientBoostingRegressor(random_state=seed), random_state=seed
        ).fit(X, y)
        inv = task.invariant
        oracle = LinearRegression().fit(X[:, inv], y)
        ours = np.mean([rmse(model, *test) for test in task.test.values()])
        best = np.mean([rmse(oracle, A[:, inv], b) for A, b in task.test.values()])
        print(f"seed {seed}: {ours:.3f} {best:.3f}", flush=True)


def houses() -> None:
    """Train on each period of the year built in turn, test on the other five."""
    task = load_task("house_price")
    periods = {"1900-1919": (task.train.X, task.train.y), **task.test}
    print("trained on | mean RMSE over the others: HRM, ERM, ridge CV, one-standard-error ridge")
    for name, (X, y) in periods.items():
        models = [
            HRMRegressor(random_state=0, feature_groups=task.feature_groups),
            LinearRegression(),
            make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 33))),
            OneStandardErrorRidgeRegressor(),
        ]
        fitted = [model.fit(X, y) for model in models]
        others = [test for other, test in periods.items() if other != name]
        errors = [np.mean([rmse(model, *test) for test in others]) for model in fitted]
        print(f"{name} | " + "  ".join(f"{e:.3f}" for e in errors) + f" | {fitted[0].verdict_}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=[*CHOICES])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    seeds = list(range(given.first, given.first + given.seeds))
    if given.what == "power":
        power(CELLS, seeds, given.jobs)
    elif given.what == "variations":
        power(VARIATIONS, seeds, given.jobs)
    elif given.what == "boosted":
        boosted(seeds)
    elif given.what == "houses":
        houses()
    else:
        parts = {"harm": harm, "steady": steady, "labels": labels, "calibration": calibration}
        parts[given.what](seeds, given.jobs)


if __name__ == "__main__":
    main()
