"""Stable columns on designs: what leaves, what stays, and what that gives.

    python benchmarks/study_stable.py drifting|told|every|random|cells|public|untouched|thin|speed
                                      [--seeds 10] [--first 0]
    python benchmarks/study_stable.py lot|laws|budgets TABLES.py    # tables(seed): name, X, y, e, _

Each prints a table. Errors are those of the worst test environment; the *way* is the share of the
gap between least squares on all columns and on the stable ones.
"""

from __future__ import annotations

import argparse
import runpy
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression

from hetrisk import StableClassifier, StableRegressor
from hetrisk.datasets import load_task

CELLS = [
    ("selection_bias", {"r": 1.5}),
    ("selection_bias", {"r": 1.9}),
    ("selection_bias", {"r": 2.3}),
    ("selection_bias", {"n_features": 20, "n_biased": 2}),
    ("selection_bias", {"n_features": 40, "n_biased": 4}),
    ("selection_bias", {"kappa": 0.9, "n_samples": 1000}),
    ("selection_bias", {"kappa": 0.975, "n_samples": 4000}),
    ("selection_bias", {"n_biased": 3}),
    ("selection_bias", {"n_biased": 5}),
    ("anti_causal", {"n_phi": 9, "n_psi": 1}),
    ("anti_causal", {"n_phi": 5, "n_psi": 5}),
]
DESIGNS: dict[str, tuple[str, dict[str, object]]] = {
    **{
        f"selected on y: {curve}": ("selected_on_target", {"curve": curve})
        for curve in ("product", "square", "exp", "step")
    },
    "selected on y: noise 1": ("selected_on_target", {"noise": 1.0}),
    "selected on y: 40 % minority": ("selected_on_target", {"share": 0.6}),
    "selected on y: 500 rows": ("selected_on_target", {"n_samples": 500}),
    "selected on y: 8000 rows": ("selected_on_target", {"n_samples": 8000}),
    "spreading effects": ("spreading_effects", {}),
    "spreading effects, mild": ("spreading_effects", {"spreads": (0.5, 0.8, 1.0)}),
    "copied label .7/.9": ("copied_label", {}),
    "copied label .8/.9": ("copied_label", {"rates": (0.8, 0.9)}),
    "cause and effect": ("cause_and_effect", {}),
    "cows and camels": ("cows_and_camels", {}),
    "small margin": ("small_margin", {}),
}
KNOWN_ONLY = ("copied_label", "cause_and_effect", "cows_and_camels", "small_margin")


def plain(X, y, columns, labels):
    model = LogisticRegression(max_iter=1000) if labels else LinearRegression()
    model.fit(X[:, columns], y)
    return lambda A: model.predict(A[:, columns])


def worst(predict, tests, labels):
    wrong = (
        (lambda a, b: np.mean(a != b)) if labels else (lambda a, b: np.mean((a - b) ** 2) ** 0.5)
    )
    return max(wrong(predict(A), b) for A, b in tests)


def way(task, support):
    """Share of the way from all columns to the stable ones; NaN where there is no way to go."""
    X, y, labels = task.train.X, task.train.y, task.task_type == "classification"
    stable = np.zeros(X.shape[1], dtype=bool)
    stable[task.invariant] = True
    tests = [(t.X, t.y) for t in task.test.values()]
    every = np.ones(X.shape[1], dtype=bool)
    full, ours, best = (
        worst(plain(X, y, c, labels), tests, labels) for c in (every, support, stable)
    )
    return (full - ours) / (full - best) if full > 1.01 * best + 1e-3 else np.nan


def support_of(X, y, reach=1.0, environments=None, labels=False):
    make = StableClassifier if labels else StableRegressor
    return make(reach=reach).fit(X, y, environments=environments).support_


def drift(seed, K, causes, rare, shift=0.0):
    """y = x'(b + d_e) + noise; tests at reach k have slopes b + k d_e."""
    rng = np.random.default_rng(seed)
    d = 4 + causes
    b = np.append(rng.choice([-1, 1], 4) * rng.uniform(0.5, 1.5, 4), rng.uniform(0.2, 1, causes))
    turn = rng.standard_normal((K, causes))
    turn -= turn.mean(axis=0)
    turn /= np.abs(turn).max(axis=0)
    centre = shift * rng.standard_normal((K, causes))
    spread = np.exp(0.5 * shift * rng.standard_normal((K, causes)))

    def draw(e, k, n):
        X = rng.standard_normal((n, d))
        X[:, 4:] = centre[e] + spread[e] * X[:, 4:]
        slope = b.copy()
        slope[4:] += k * turn[e]
        return X, X @ slope + 0.5 * rng.standard_normal(n)

    sizes = [600 if K == 2 else 400 if K == 3 else 200] * K
    sizes[0] = sizes[0] // 10 if rare else sizes[0]
    parts = [draw(e, 1, n) for e, n in enumerate(sizes)]
    X, y = (np.concatenate(p) for p in zip(*parts, strict=True))
    tests = {k: [draw(e, k, 1500) for e in range(K)] for k in (1, 4)}
    return X, y, np.repeat(np.arange(K), sizes), tests


def drifting(seeds):
    """Causes whose slopes differ: harmed (2 % more error) and acting, of 24 a seed."""
    for shift in (0.0, 0.5, 1.0):
        harmed = acts = count = 0
        for K in (2, 3, 8):
            for causes in (1, 2):
                for rare in (False, True):
                    for seed in seeds:
                        X, y, e, tests = drift(seed, K, causes, rare, shift)
                        for k in (1, 4):
                            S = support_of(X, y, float(k), e)
                            errors = [
                                worst(plain(X, y, c, False), tests[k], False)
                                for c in (S, np.ones_like(S))
                            ]
                            count, acts = count + 1, acts + (not S.all())
                            harmed += errors[0] > 1.02 * errors[1]
        print(f"distributions shift {shift}: harmed {harmed}, acts {acts}, of {count}")


def told(seeds, known=True):
    """Known environments (or none): share of the way, at reach 4 and 10."""
    means = []
    for name, (task, setting) in DESIGNS.items():
        if not known and task in KNOWN_ONLY:
            continue
        ways = []
        for reach in (4.0, 10.0) if known else (1.0,):
            for seed in seeds:
                t = load_task(task, seed, **setting)
                e = t.train.environments if known else None
                labels = t.task_type == "classification"
                ways.append(way(t, support_of(t.train.X, t.train.y, reach, e, labels)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            means.append(np.nanmean(ways))
        print(f"{name:32} {means[-1]:5.2f}", flush=True)
    print(f"{'mean':32} {np.nanmean(means):5.2f}")


def public(seeds):
    """The same where nothing is known."""
    told(seeds, known=False)


def every(seeds):
    """Tables in which every slope moves: how often something leaves."""
    acts = count = 0
    for seed in seeds:
        for K in (3, 6, 12):
            rng = np.random.default_rng(seed)
            slopes = rng.standard_normal(6) + 0.5 * rng.standard_normal((K, 6))
            X, e = rng.standard_normal((150 * K, 6)), np.repeat(np.arange(K), 150)
            y = (X * slopes[e]).sum(axis=1) + 0.5 * rng.standard_normal(len(e))
            for reach in (1.0, 4.0):
                acts, count = acts + (not support_of(X, y, reach, e).all()), count + 1
    print(f"acts {acts} of {count}")


def families():
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    import homogeneous

    return homogeneous.families()


def random(seeds):
    """Homogeneous families with labels dealt at random: how often something leaves."""
    acts, count = [], 0
    for name, draw in families().items():
        for seed in seeds:
            X, y = draw(seed)[:2]
            for K in (2, 5, 50):
                e = np.random.default_rng(seed).integers(0, K, len(y))
                for reach in (1.0, 4.0):
                    count += 1
                    if not support_of(X, y, reach, e)[X.std(axis=0) > 0].all():
                        acts.append((name, seed, K))
    print(f"acts {len(acts)} of {count}", acts[:10])


def untouched(seeds):
    """Homogeneous families, nothing known: how often something leaves."""
    acts, count = [], 0
    for name, draw in families().items():
        for seed in seeds:
            X, y = draw(seed)[:2]
            count += 1
            if not support_of(X, y)[X.std(axis=0) > 0].all():
                acts.append((name, seed))
    print(f"acts {len(acts)} of {count}", acts)


def cells(seeds):
    """The paper's settings, nothing known: causes stay, and what is spurious leaves."""
    total = 0
    for name, setting in CELLS:
        exact, missed = 0, []
        for seed in seeds:
            task = load_task(name, seed, **setting)
            S = support_of(task.train.X, task.train.y)
            cause = np.zeros(len(S), dtype=bool)
            cause[task.invariant] = True
            spurious = ~cause
            if name == "selection_bias":  # the others are noise: they may stay
                half = len(S) // 2
                spurious[half + setting.get("n_biased", 1) :] = False
            good = bool(S[cause].all() and not S[spurious].any())
            exact += good
            missed += [] if good else [seed]
        total += exact
        print(f"{name} {setting}: {exact} of {len(seeds)} {missed}", flush=True)
    print(f"all: {total} of {len(CELLS) * len(seeds)}")


def thin(seeds):
    """An effect whose gain differs between thin sites, or drifts: how often it leaves."""
    for kind, J, n in (("site", 100, 2000), ("site", 200, 2000), ("date", 200, 2000)):
        for what in ("as they are", "dealt at random"):
            left = 0
            for seed in seeds:
                rng = np.random.default_rng(seed)
                level = np.repeat(np.arange(J), n // J)
                X = rng.standard_normal((n, 5))
                y = X @ rng.normal(1, 0.3, 5) + 0.5 * rng.standard_normal(n)
                gain = np.linspace(1.5, -0.2, J)
                if kind == "site":
                    gain = np.where(rng.random(J) < 0.85, 1.0, -1.0)
                Z = np.column_stack([X, gain[level] * y + 0.5 * rng.standard_normal(n)])
                e = level if what == "as they are" else rng.permutation(level)
                left += not support_of(Z, y, 1.0, e + 0.5 if kind == "date" else e)[5]
            print(f"{J} {kind}s, {what}: left out in {left} of {len(seeds)}", flush=True)


def lot(seeds, tables):
    """Real tables: half of the environments learned from, the others judged; permutations."""
    ratios, moved, rng = [], 0, np.random.default_rng(0)
    for name, X, y, e, ordered in runpy.run_path(tables)["tables"](seeds[0]):
        names = np.unique(e)
        half = names[: len(names) // 2] if ordered else rng.permutation(names)[: len(names) // 2]
        seen = np.isin(e, half)
        A, b = X[seen][:3000], y[seen][:3000]
        tests = [(X[e == v], y[e == v]) for v in names if v not in half and (e == v).sum() >= 20]
        some = A.std(axis=0) > 1e-9
        if len(half) < 2 or len(A) < 150 or not tests or some.sum() > 80:
            continue
        codes = e[seen][:3000] if ordered else np.unique(e[seen][:3000], return_inverse=True)[1]
        if len(np.unique(codes)) < 2:
            continue
        A, tests = A[:, some], [(B[:, some], c) for B, c in tests]
        S = support_of(A, b, 1.0, codes)
        rows, columns = rng.permutation(len(b)), rng.permutation(A.shape[1])
        other = codes[rows] if ordered else rng.permutation(codes.max() + 1)[codes][rows]
        again = support_of(A[rows][:, columns], b[rows], 1.0, other)
        moved += bool((again != S[columns]).any())
        errors = [worst(plain(A, b, c, False), tests, False) for c in (S, np.ones_like(S))]
        ratios.append(errors[0] / max(errors[1], 1e-300))
        if not S.all():
            print(f"{name}: {int((~S).sum())} of {len(S)} left out, {ratios[-1]:.3f}", flush=True)
    r = np.array(ratios)
    print(f"{len(r)} tables: harmed {(r > 1.02).sum()}, helped {(r < 0.98).sum()}, moved {moved}")


def laws(seeds, tables=None, most=20):
    """One table, one answer: in any order of rows, columns and sources, under any names."""
    moved, fits = [], 0
    for name, X, y, e, classes in law_tables(tables, most):
        for labels in (False, True):
            target = y if not labels else classes
            for how in ("labels", "ordered", "several", "inferred"):
                first, least = None, 0.0
                for seed in [None, *seeds]:
                    got = answer(X, target, e, how, labels, seed)
                    first = first or got
                    fits += seed is not None
                    if got[:2] != first[:2]:
                        moved.append((name, how, labels, seed))
                        print("moved:", *moved[-1], first[0], got[0], flush=True)
                    else:
                        least = max(least, float(np.abs(got[2] - first[2]).max()))
                if least > 1e-8:
                    moved.append((name, how, labels, None))
                    print("predictions:", *moved[-1], f"{least:.1e}", flush=True)
    print(f"{fits} permuted fits: {len(moved)} answers moved")


def budgets(seeds, tables=None, most=20):
    """Every number called a budget, halved and doubled: decisions that change."""
    made = [(*t[:4], how) for t in law_tables(tables, most) for how in ("labels", "inferred")]
    before = [answer(*t[1:], False, None)[:2] for t in made]
    for name, holders in budget_numbers():
        value = getattr(holders[0], name)
        for factor in (0.5, 2.0):
            other = changed(name, value, factor)
            for module in holders:
                setattr(module, name, other)
            after = [answer(*t[1:], False, None)[:2] for t in made]
            for module in holders:
                setattr(module, name, value)
            which = [(t[0], t[4]) for t, a, b in zip(made, before, after, strict=True) if a != b]
            print(f"{name} {value} to {other}: {len(which)} of {len(made)} {which}", flush=True)


def budget_numbers():
    """Names of budgets in the rooms of stable columns, and the modules that hold each."""
    every = [m for name, m in sys.modules.items() if name.startswith("hetrisk.")]
    for module in every:
        if "core.stable" in module.__name__ or "core.environments" in module.__name__:
            for name, kind in getattr(module, "__annotations__", {}).items():
                if "Budget" in str(kind):
                    yield name, [module, *(m for m in every if getattr(m, name, None) is not None)]


def changed(name, value, factor):
    """A number, several, or a grid of quantiles, of half or twice the size."""
    if name == "KNOTS":
        return np.linspace(0.1, 0.9, int(len(value) * factor))
    if isinstance(value, tuple):
        return tuple(type(v)(v * factor) for v in value)
    return max(1, int(value * factor)) if isinstance(value, int) else value * factor


def law_tables(tables, most):
    """Real tables, and some made with effects, drifting causes, thin sites, copies and ties."""
    real = runpy.run_path(tables)["tables"](0) if tables else ()
    for count, (name, X, y, e, _) in enumerate(real):
        if count == most:
            break
        X, y, e = X[:2000], y[:2000], np.unique(e[:2000], return_inverse=True)[1]
        some = X.std(axis=0) > 1e-9
        if e.max() > 0:
            yield name, X[:, some], y, e, y > y.mean()
    made = ["anti_causal", "selection_bias", "selected_on_target", "spreading_effects"]
    for seed, task in enumerate([*made, "cause_and_effect"]):
        t = load_task(task, seed).train
        e = np.unique(t.environments, return_inverse=True)[1]
        yield task, t.X, t.y, e, np.digitize(t.y, np.quantile(t.y, [0.3, 0.7]))
    for K, shift in ((2, 0.0), (8, 1.0)):
        X, y, e, _ = drift(K, K, 2, False, shift)
        yield f"drift {K}", X, y, e, y > 0
    rng = np.random.default_rng(22)
    X, e = rng.standard_normal((22_000, 4)), rng.integers(0, 4, 22_000)
    y = X.sum(axis=1) + rng.standard_normal(22_000)
    X[:, 3] = y + np.array([0.3, 1.0, 2.0, 1.0])[e] * rng.standard_normal(22_000)
    yield "more rows than are tested on", X, y, e, y > 0
    for J in (60, 61, 100):
        rng = np.random.default_rng(J)
        e = np.arange(1500) * J // 1500
        X = rng.standard_normal((1500, 4)).round(1)
        y = X @ [1.0, -1.0, 0.5, 0.7] + 0.5 * rng.standard_normal(1500)
        gain = np.where(np.arange(J) % 6 == 0, -1.0, 1.0)[e]
        X = np.column_stack([X, gain * y + 0.5 * rng.standard_normal(1500), X[:, 0] > 0])
        yield f"{J} sites", X, y, e, y > 0


def answer(X, y, e, how, labels, seed):
    """Verdict, support and predictions, after a permutation that these must not show."""
    rng = np.random.default_rng(seed)
    rows, columns, names = (
        np.arange(m) if seed is None else rng.permutation(m) for m in (*X.shape, e.max() + 1)
    )
    sources = {
        "a": names[e],
        "b": X[:, 0] > X[:, 0].mean(),
        "c": e + 0.5,
        "d": (7 * e) % 3,
    }
    frame = pd.DataFrame(sources).iloc[rows, (rng.permutation(4) if seed is not None else range(4))]
    given = {"labels": frame["a"], "ordered": frame["c"], "several": frame, "inferred": None}[how]
    model = (StableClassifier if labels else StableRegressor)()
    model.fit(X[rows][:, columns], y[rows], environments=given)
    back = np.argsort(columns)
    predict = model.predict_proba if labels else model.predict
    said = predict(X[:, columns]) / (1.0 if labels else np.std(y))
    return model.verdict_, tuple(model.support_[back]), said


def speed(seeds):
    """Seconds of a fit, and passes of a Gram product that it takes."""
    rng = np.random.default_rng(seeds[0])
    for n, d in ((2000, 10), (1_000_000, 20)):
        X, e = rng.standard_normal((n, d)), rng.integers(0, 5, n)
        y = X @ rng.standard_normal(d) + rng.standard_normal(n)
        X[:, -1] = 0.5 * y + np.array([0.3, 1.0, 2.0, 1.0, 0.5])[e] * rng.standard_normal(n)
        gram = seconds(np.dot, X.T, X)
        for name, given in (("known", e), ("inferred", None)):
            took = seconds(support_of, X, y, 1.0, given)
            print(f"{n} x {d}, {name}: {took:.3f} s, {took / gram:.0f} Gram products", flush=True)


def seconds(task, *given):
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        task(*given)
        best = min(best, time.perf_counter() - start)
    return best


STUDIES = {
    f.__name__: f
    for f in (
        drifting,
        told,
        public,
        every,
        random,
        untouched,
        cells,
        thin,
        lot,
        laws,
        budgets,
        speed,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    STUDIES[given.study](seeds, *given.tables)


if __name__ == "__main__":
    main()
