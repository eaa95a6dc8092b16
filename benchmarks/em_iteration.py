"""What one EM iteration costs, against the weighted Gram products no EM can do without.

    python benchmarks/em_iteration.py [--rows 1000000] [--features 20] [--components 3]

Prints the time of an iteration of the mixture of regressions, the time of the K weighted Gram
products alone in plain numpy (same run, same data), their ratio, and the peak memory of an
iteration beyond the input as a share of the input.
"""

import argparse
import time
import tracemalloc
from dataclasses import dataclass

import numpy as np

from hetrisk.blocks import ArrayBlocks
from hetrisk.core.families import Gaussian
from hetrisk.core.mixture import MixtureParameters, em


@dataclass(frozen=True)
class IterationCost:
    """Seconds of an iteration and of the Gram products; memory beyond the input over input."""

    iteration: float
    gram_products: float
    memory_share: float

    @property
    def ratio(self):
        return self.iteration / self.gram_products


def weighted_grams(X, responsibilities):
    """K weighted Gram products in plain numpy."""
    return [X.T @ (X * r[:, None]) for r in responsibilities.T]


def em_iteration_cost(n_rows=1_000_000, n_features=20, n_components=3, repeats=5, seed=0):
    """Measure an iteration: the difference between two passes of EM and one, the least of a few."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    start = MixtureParameters(
        np.full(n_components, 1.0 / n_components),
        rng.normal(size=(n_components, n_features)),
        np.zeros(n_components),
        np.ones(n_components),
        Gaussian(),
    )
    y = (X * start.coef[rng.integers(n_components, size=n_rows)]).sum(axis=1)
    y += rng.normal(size=n_rows)
    source = ArrayBlocks(X, y)
    responsibilities = rng.dirichlet(np.ones(n_components), size=n_rows)

    def run(max_iter):
        em(source, start, tol=0.0, max_iter=max_iter)

    grams = _least(lambda: weighted_grams(X, responsibilities), repeats)
    # max_iter iterations take max_iter + 1 passes: the start has to be evaluated first.
    iteration = _least(lambda: run(1), repeats) / 2
    tracemalloc.start()
    run(1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return IterationCost(iteration, grams, peak / (X.nbytes + y.nbytes))


def _least(function, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--components", type=int, default=3)
    arguments = parser.parse_args()
    cost = em_iteration_cost(arguments.rows, arguments.features, arguments.components)
    print(f"one EM iteration        {1000 * cost.iteration:8.0f} ms")
    print(f"weighted Gram products  {1000 * cost.gram_products:8.0f} ms")
    print(f"ratio                   {cost.ratio:8.2f}  (at most 2)")
    print(f"memory beyond the input {cost.memory_share:8.1%}  (at most 50%)")


if __name__ == "__main__":
    main()
