"""Whole fits: the default search and the paper's, small, long and wide."""

from __future__ import annotations

from functools import partial

import numpy as np

from hetrisk.bench.clock import seconds, shortest
from hetrisk.bench.iteration import away_from, iteration_seconds, standardised
from hetrisk.bench.metric import Metric, Size
from hetrisk.bench.rows import table, true_mixture
from hetrisk.blocks import ArrayBlocks
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.datasets import make_selection_bias
from hetrisk.estimators.hrm import HRMRegressor


def fitted(X: FloatArray, y: FloatArray, method: str = "auto") -> HRMRegressor:
    """Fit with everything else at its default."""
    model: HRMRegressor = HRMRegressor(method=method, random_state=0).fit(X, y)
    return model


def selection_bias(n: int, d: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return the paper's simulator: 95 % of the rows with r = 1.9, the others with r = -1.1."""
    rare = max(n // 20, 1)
    parts = [
        make_selection_bias(n - rare, 1.9, n_features=d, random_state=2 * seed),
        make_selection_bias(rare, -1.1, n_features=d, random_state=2 * seed + 1),
    ]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def small_fits(size: Size) -> list[Metric]:
    """Fits of the size of the paper's experiments."""
    X, y = selection_bias(2000, 10)
    fitted(X, y), fitted(X, y, "gates")  # imports and caches
    times = shortest(
        {m: partial(fitted, X, y, m) for m in ("auto", "gates")}, max(2, size.repeats - 2)
    )
    note = "n = 2,000, d = 10, selection bias"
    return [
        Metric("fits", "default fit, n = 2,000", times["auto"], "s", bound=0.4, note=note),
        Metric(
            "fits", 'fit with method="gates", n = 2,000', times["gates"], "s", bound=0.5, note=note
        ),
    ]


def wide_fit(size: Size) -> list[Metric]:
    """One default fit with many features."""
    X, y = selection_bias(2000, size.wide_features)
    note = f"n = 2,000, d = {size.wide_features}, selection bias"
    taken = seconds(partial(fitted, X, y))
    return [Metric("fits", "default fit, many features", taken, "s", bound=60.0, note=note)]


def long_fit(size: Size) -> list[Metric]:
    """One default fit with many rows, in seconds and in EM iterations over all rows."""
    n, d = size.rows, size.features
    X, y = table(n, d)
    start = away_from(true_mixture(d))
    one = iteration_seconds(standardised(ArrayBlocks(X, y)), start, size.repeats)
    taken = seconds(partial(fitted, X, y))
    note = f"n = {n:,}, d = {d}, three regressions mixed"
    return [
        Metric("fits", "default fit, many rows", taken, "s", bound=60.0, note=note),
        Metric(
            "fits",
            "default fit / one EM iteration over all rows",
            taken / one,
            bound=60.0,
            guarded=True,
            note=f"{note}; {1e3 * one:.0f} ms an iteration",
        ),
    ]
