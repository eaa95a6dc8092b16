"""Do the simulators match the paper's definitions and numbers?

    python benchmarks/study_simulators.py [--seeds 10]

Prints, for the selection-bias mechanism, the correlation of V_b and y at each r by the exact
sampler and by brute-force rejection; then, for every cell of the paper's simulation tables, the
error of plain least squares (ERM) beside the published one, and that of the oracle: least squares
on the true invariant features, which no linear method can beat.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.linear_model import LinearRegression

from hetrisk.datasets import ShiftTask, load_task, make_selection_bias
from hetrisk.datasets.selection_bias import selection_bias_coefficients
from hetrisk.metrics import environment_errors, max_error, mean_error, std_error
from hetrisk.reproduce.paper import environment_numbers, spread_numbers

# Settings of tables 1 and 3, with the place of each in the paper's numbers.
SELECTION_BIAS = [
    ({"r": 1.5}, ("table1", "scenario1", 0)),
    ({"r": 1.9}, ("table1", "scenario1", 1)),
    ({"r": 2.3}, ("table1", "scenario1", 2)),
    ({"n_features": 20, "n_biased": 2}, ("table1", "scenario2", 1)),
    ({"n_features": 40, "n_biased": 4}, ("table1", "scenario2", 2)),
    ({"kappa": 0.9, "n_samples": 1000}, ("table3", "scenario3", 0)),
    ({"kappa": 0.975, "n_samples": 4000}, ("table3", "scenario3", 2)),
    ({"n_biased": 3}, ("table3", "scenario4", 1)),
    ({"n_biased": 5}, ("table3", "scenario4", 2)),
]
ANTI_CAUSAL = [((9, 1), "scenario1"), ((5, 5), "scenario2")]  # table 2


def rejection(n: int, r: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """V_b and y of one biased column, by proposing rows and tossing the coin."""
    z = rng.standard_normal((n, 6))
    phi, v = 0.8 * z[:, :-1] + 0.2 * z[:, 1:], rng.standard_normal(n)
    f = phi @ selection_bias_coefficients(5) + phi[:, 0] * phi[:, 1] * phi[:, 2]
    keep = rng.random(n) <= abs(r) ** (-5 * np.abs(f - np.sign(r) * v))
    return v[keep], f[keep] + 0.3 * rng.standard_normal(keep.sum())


def correlations() -> None:
    print("Correlation of V_b and y (d = 10, n_b = 1)")
    print(f"{'r':>6} {'exact':>8} {'rejection':>10} {'kept':>7} {'z':>6}")
    rng = np.random.default_rng(0)
    for r in (1.1, 1.5, 1.9, 2.3, 3.0, -1.1, -1.7, -3.0):
        X, y = make_selection_bias(100_000, r, random_state=rng)
        v, target = rejection(1_000_000, r, rng)
        exact, brute = np.corrcoef(X[:, 5], y)[0, 1], np.corrcoef(v, target)[0, 1]
        z = (np.arctanh(exact) - np.arctanh(brute)) / np.sqrt(1e-5 + 1 / len(v))
        print(f"{r:6.1f} {exact:8.4f} {brute:10.4f} {len(v) / 1e6:7.2%} {z:6.2f}")


class Oracle:
    """Least squares on the invariant features."""

    def __init__(self, task: ShiftTask) -> None:
        self.columns = task.invariant
        self.model = LinearRegression().fit(task.train.X[:, self.columns], task.train.y)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model.predict(X[:, self.columns])


def errors(name: str, seeds: int, **setting: object) -> tuple[np.ndarray, np.ndarray]:
    """(seeds, environments) errors of ERM and of the oracle."""
    rows: tuple[list, list] = ([], [])
    for seed in range(seeds):
        task = load_task(name, seed, **setting)
        erm = LinearRegression().fit(task.train.X, task.train.y)
        for found, model in zip(rows, (erm, Oracle(task)), strict=True):
            found.append(list(environment_errors(model, task).values()))
    return np.array(rows[0]), np.array(rows[1])


def selection_bias_rows(seeds: int) -> None:
    print(f"\nSelection bias, mean / std / max over test environments, {seeds} seeds")
    print(f"{'setting':38} {'ERM paper':>21} {'ERM here':>21} {'largest gap':>12} {'oracle':>21}")
    for setting, place in SELECTION_BIAS:
        paper = list(spread_numbers(*place)["ERM"].values())
        made = [
            np.mean([[f(e) for f in (mean_error, std_error, max_error)] for e in errs], axis=0)
            for errs in errors("selection_bias", seeds, **setting)
        ]
        gap = np.abs(made[0] - paper).max()
        cells = [" / ".join(f"{value:.3f}" for value in row) for row in (paper, *made)]
        name = ", ".join(f"{k}={v}" for k, v in setting.items())
        print(f"{name:38} {cells[0]:>21} {cells[1]:>21} {gap:12.3f} {cells[2]:>21}")


def anti_causal_rows(seeds: int) -> None:
    print(f"\nAnti-causal, RMSE on e1 to e10, {seeds} seeds (standard error over seeds below ERM)")
    for (n_phi, n_psi), scenario in ANTI_CAUSAL:
        paper = list(environment_numbers(scenario)["ERM"].values())
        erm, oracle = errors("anti_causal", seeds, n_phi=n_phi, n_psi=n_psi)
        rows = {
            "ERM paper": np.array(paper),
            "ERM here": erm.mean(axis=0),
            "  +-": erm.std(axis=0, ddof=1) / np.sqrt(seeds),
            "gap": erm.mean(axis=0) - paper,
            "oracle": oracle.mean(axis=0),
        }
        print(f"n_phi={n_phi}, n_psi={n_psi}")
        for name, row in rows.items():
            print(f"  {name:10} " + " ".join(f"{value:7.3f}" for value in row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args().seeds
    correlations()
    selection_bias_rows(seeds)
    anti_causal_rows(seeds)


if __name__ == "__main__":
    main()
