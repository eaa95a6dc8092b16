"""How each feature is spread in each environment: means always, histograms where rows are given."""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.report.summary import Spread

N_BINS = 24
FEW_VALUES = 12  # a feature of at most this many values is shown value by value


def spreads(
    mean: FloatArray,
    sd: FloatArray,
    Z: FloatArray | None = None,
    environments: FloatArray | None = None,
) -> tuple[Spread, ...]:
    """One `Spread` a feature.

    Parameters
    ----------
    mean, sd : (K, d) of the training rows in each environment.
    Z, environments : (n, d) rows in the model's columns and their environments (n,), or None.
    """
    mean, sd = np.asarray(mean, dtype=float), np.asarray(sd, dtype=float)
    if Z is None or environments is None:
        return tuple(Spread(mean[:, j], sd[:, j]) for j in range(mean.shape[1]))
    return tuple(
        _histogram(mean[:, j], sd[:, j], Z[:, j], environments) for j in range(mean.shape[1])
    )


def _histogram(mean: FloatArray, sd: FloatArray, x: FloatArray, environments: FloatArray) -> Spread:
    values = np.unique(x)
    if len(values) <= FEW_VALUES:
        # Halfway between neighbours; the outer edges are as far out as the inner ones.
        inner = (values[1:] + values[:-1]) / 2
        edges = np.concatenate([[-np.inf], inner, [np.inf]])
        return Spread(mean, sd, edges, _shares(x, environments, len(mean), edges), values)
    # The outermost hundredths go into the end bins: one far row must not flatten the picture.
    low, high = np.quantile(x, [0.01, 0.99])
    if low == high:
        low, high = values[0], values[-1]
    edges = np.linspace(low, high, N_BINS + 1)
    return Spread(mean, sd, edges, _shares(np.clip(x, low, high), environments, len(mean), edges))


def _shares(
    x: FloatArray, environments: FloatArray, n_environments: int, edges: FloatArray
) -> FloatArray:
    """(K, B) share of each environment's rows in each bin; zeros where it has no rows."""
    bins = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
    flat = environments.astype(int) * (len(edges) - 1) + bins
    counts = np.bincount(flat, minlength=n_environments * (len(edges) - 1)).reshape(
        n_environments, -1
    )
    total = counts.sum(axis=1, keepdims=True)
    shares: FloatArray = counts / np.where(total > 0, total, 1)
    return shares
