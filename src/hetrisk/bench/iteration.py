"""One EM iteration: against the products it cannot do without, by rows and by features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from hetrisk.bench.clock import shortest
from hetrisk.bench.metric import Metric, Size
from hetrisk.bench.rows import NOISE, table, true_mixture
from hetrisk.blocks import ArrayBlocks, Blocks
from hetrisk.core.mixture.mixture import MixtureParameters, em
from hetrisk.core.numerics.rows import Additive, FloatArray, Rows, RowSource

T = TypeVar("T", bound=Additive)
COMPONENTS = 3
ITERATIONS = 3


class SeenThrough:
    """Rows seen through another source."""

    def __init__(self, source: Any) -> None:
        self.source = source

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.source.n_features

    def sum(self, function: Callable[[Rows], T]) -> T:
        """Sum over the blocks of the source: one pass."""
        return self.source.sum(function)

    def sample(self, size: int, seed: int) -> Rows:
        """Sample the source."""
        return self.source.sample(size, seed)


class CountedPasses(SeenThrough):
    """Rows seen through another source, counting the passes over them."""

    def __init__(self, source: RowSource) -> None:
        super().__init__(source)
        self.passes = 0

    def sum(self, function: Callable[[Rows], T]) -> T:
        """Count one pass, and sum over the blocks of the source."""
        self.passes += 1
        return super().sum(function)


def standardised(source: Blocks) -> Blocks:
    """Return the rows as every search sees them; the columns here have spread one already."""
    p = source.n_features + 1
    return source.standardised(np.zeros(p), np.ones(p))


def away_from(mixture: MixtureParameters) -> MixtureParameters:
    """Return a mixture near another: EM has a way to go from it."""
    random = np.random.default_rng(0)
    coef = mixture.coef + 0.2 * random.normal(size=mixture.coef.shape)
    return replace(mixture, coef=coef, variance=np.full(len(coef), 4 * NOISE**2))


def climb(source: RowSource, start: MixtureParameters, iterations: int = ITERATIONS) -> int:
    """Run a few iterations of EM over all rows; return the number of passes they took."""
    counted = CountedPasses(source)
    em(counted, start, tol=-1.0, max_iter=iterations)
    return counted.passes


def iteration_seconds(source: RowSource, start: MixtureParameters, repeats: int) -> float:
    """Time of one EM iteration: E-step, M-step and likelihood in one pass over all rows."""
    passes = climb(source, start)  # also warms the caches
    return shortest({"em": partial(climb, source, start)}, repeats)["em"] / passes


def weighted_grams(z: FloatArray, weight: FloatArray) -> None:
    """Compute the K weighted Gram products alone, in plain numpy."""
    for w in weight.T:
        _ = z.T @ (z * w[:, None])


def gram_ratio(size: Size) -> list[Metric]:
    """One EM iteration over the K weighted Gram products alone."""
    X, y = table(size.rows, size.features)
    z = np.column_stack([X, y])
    weight = np.random.default_rng(0).dirichlet(np.ones(COMPONENTS), size=len(y))
    source, start = standardised(ArrayBlocks(X, y)), away_from(true_mixture(size.features))
    passes = climb(source, start)
    times = shortest(
        {"em": partial(climb, source, start), "gram": partial(weighted_grams, z, weight)},
        size.repeats,
    )
    one = times["em"] / passes
    note = f"n = {size.rows:,}, d = {size.features}, K = {COMPONENTS}"
    return [
        Metric(
            "iteration",
            "one EM iteration / K weighted Gram products in numpy",
            one / times["gram"],
            bound=2.0,
            guarded=True,
            note=note,
        ),
        Metric("iteration", "one EM iteration", 1e3 * one, "ms", note=note),
        Metric(
            "iteration", "K weighted Gram products in numpy", 1e3 * times["gram"], "ms", note=note
        ),
    ]


def by_rows(size: Size) -> tuple[list[Metric], dict[str, list[float]]]:
    """Cost per row as rows grow a hundredfold."""
    largest, d = max(size.rows_path), size.features
    X, y = table(largest, d)
    start = away_from(true_mixture(d))
    cost = []
    for n in size.rows_path:
        source = standardised(ArrayBlocks(X[:n], y[:n]))
        repeats = int(np.clip(3_000_000 // n, 2, 30))  # the same work for each, about
        cost.append(1e9 * iteration_seconds(source, start, repeats) / n)
    note = ", ".join(f"{c:.0f} ns at {n:,}" for n, c in zip(size.rows_path, cost, strict=True))
    metric = Metric(
        "iteration",
        "cost per row, most expensive number of rows / cheapest",
        max(cost) / min(cost),
        bound=1.25,
        guarded=True,
        note=f"one EM iteration, d = {d}: {note}",
    )
    return [metric], {"rows": list(map(float, size.rows_path)), "ns_per_row": cost}


def by_features(size: Size) -> tuple[list[Metric], dict[str, list[float]]]:
    """Cost per row as features grow tenfold."""
    cost = []
    for d in size.features_path:
        n = size.rows * size.features // d
        X, y = table(n, d)
        start = away_from(true_mixture(d))
        source = standardised(ArrayBlocks(X, y))
        cost.append(1e9 * iteration_seconds(source, start, size.repeats) / n)
    path = np.log(np.asarray(size.features_path, dtype=float))
    exponent = float((np.log(cost[-1]) - np.log(cost[0])) / (path[-1] - path[0]))
    note = ", ".join(f"{c:.0f} ns at {d}" for d, c in zip(size.features_path, cost, strict=True))
    metric = Metric(
        "iteration",
        "exponent of the cost per row in the number of features",
        exponent,
        bound=2.0,
        note=f"one EM iteration: {note}",
    )
    return [metric], {"features": list(map(float, size.features_path)), "ns_per_row": cost}
