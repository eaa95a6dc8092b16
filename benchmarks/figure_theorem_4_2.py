"""Draw docs/theorem-4-2.svg and print its table: `python benchmarks/figure_theorem_4_2.py`.

Cluster centres are the conditional distributions P^e(Y | columns) of the environments. The
theorem says that they lie further apart on the variant features alone than on all features;
here invariant features are left out one at a time and the distance is measured at each step.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("svg")
from matplotlib import pyplot as plt

from hetrisk.core.numerics.linear import least_squares
from hetrisk.core.numerics.moments import moments
from hetrisk.core.numerics.rows import Rows
from hetrisk.datasets import anti_causal_coefficients, make_anti_causal, make_selection_bias

HERE = Path(__file__).resolve().parent.parent / "docs" / "theorem-4-2.svg"
ROWS, SEEDS = 20_000, 10


def mean_squared_error(m, coef, intercept):
    """Of ``intercept + x @ coef`` on the rows behind the moments."""
    direction = np.append(-coef, 1.0)
    bias = float(m.mean @ direction) - intercept
    return float(direction @ m.covariance @ direction) + bias**2


def divergence(own, other, keep):
    """E over x of KL(P^own(Y|x), P^other(Y|x)) for Gaussian centres with linear means."""
    f, g = least_squares(own, keep), least_squares(other, keep)
    # what g misses in `own`, beyond the noise of f: the mean square gap between the two means
    gap = mean_squared_error(own, g.coef, g.intercept) - f.variance
    return 0.5 * (np.log(g.variance / f.variance) + (f.variance + gap) / g.variance - 1.0)


def cross_information(own, other, phi):
    """I^c(Y; Phi | Psi) and I(Y; Phi | Psi) of Gaussian centres: Assumption 4.1 asks c >= I."""
    everything = np.ones(len(phi), dtype=bool)

    def entropy(keep, at):
        fit = least_squares(at, keep)
        loss = mean_squared_error(own, fit.coef, fit.intercept)
        return 0.5 * (np.log(2 * np.pi * fit.variance) + loss / fit.variance)

    crossed = entropy(~phi, other) - entropy(everything, other)
    return crossed, entropy(~phi, own) - entropy(everything, own)


def selection_bias(seed):
    """Two environments, r = 1.9 and r = -1.1; five invariant columns of ten."""
    parts = [
        make_selection_bias(ROWS, r, random_state=2 * seed + i) for i, r in enumerate((1.9, -1.1))
    ]
    return parts, np.arange(10) < 5


def anti_causal(seed):
    """Environments e1 and e3; five invariant columns of ten."""
    theta = anti_causal_coefficients(5, 5, seed)
    parts = [
        make_anti_causal(ROWS, e, 5, 5, theta_phi=theta[0], theta_psi=theta[1], random_state=seed)
        for e in (1, 3)
    ]
    return parts, np.arange(10) < 5


def measure(world):
    """(SEEDS, 6) distances with 0 to 5 invariant features left out; share where 4.1 holds."""
    distances, holds = [], []
    for seed in range(SEEDS):
        parts, phi = world(seed)
        a, b = (moments(Rows(X, y, np.ones(len(y)))) for X, y in parts)
        line = []
        for left_out in range(phi.sum() + 1):
            keep = np.ones(len(phi), dtype=bool)
            keep[np.flatnonzero(phi)[:left_out]] = False
            line.append(0.5 * (divergence(a, b, keep) + divergence(b, a, keep)))
        distances.append(line)
        pairs = [cross_information(a, b, phi), cross_information(b, a, phi)]
        holds.append(min(c for c, _ in pairs) >= max(i for _, i in pairs))
    return np.array(distances), float(np.mean(holds))


def main(path=HERE):
    """Measure, print and draw."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharex=True)
    for axis, world in zip(axes, (selection_bias, anti_causal), strict=True):
        distances, holds = measure(world)
        name = world.__name__.replace("_", " ")
        mean = distances.mean(axis=0)
        print(f"{name}: {np.round(mean, 3)}, Assumption 4.1 holds in {holds:.0%} of seeds")
        axis.fill_between(range(6), distances.min(axis=0), distances.max(axis=0), alpha=0.2)
        axis.plot(range(6), mean, marker="o")
        axis.set(title=name, xlabel="invariant features left out", yscale="log")
    axes[0].set_ylabel("KL distance of the centres")
    figure.tight_layout()
    matplotlib.rcParams["svg.hashsalt"] = "hetrisk"
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
