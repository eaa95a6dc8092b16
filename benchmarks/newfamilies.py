"""More homogeneous families: skewed, correlated, non-elliptical columns, bent means, odd targets.

Each has one P(y given x) for all rows; they were made after the search, to catch it out.
"""

from __future__ import annotations

import numpy as np

from hetrisk.datasets.homogeneous import Family, Rng


def gamma_copula(rng: Rng, n: int, d: int) -> np.ndarray:
    """Skewed columns that share a factor: cubes of correlated normals, shifted and bent."""
    z = 0.6 * rng.standard_normal((n, 1)) + 0.8 * rng.standard_normal((n, d))
    return np.where(z > 0, z + 0.5 * z**2, 0.4 * z)


def log_normal_factor(rng: Rng, n: int, d: int) -> np.ndarray:
    """Log-normal columns that all go along."""
    return np.exp(0.35 * rng.standard_normal((n, 1)) + 0.5 * rng.standard_normal((n, d)))


def banana(rng: Rng, n: int, d: int) -> np.ndarray:
    """Every other column is a noisy parabola of the one before it."""
    X = rng.standard_normal((n, d))
    X[:, 1::2] = 0.5 * X[:, : d - d % 2 : 2] ** 2 + 0.7 * X[:, 1::2]
    return X


def clusters(rng: Rng, n: int, d: int) -> np.ndarray:
    """Three clouds of different place and shape."""
    which = rng.integers(3, size=n)
    centre = np.array([[-1.5, 0.0, 1.5]]).T * np.where(np.arange(d) % 2 == 0, 1.0, -0.6)
    return centre[which] + np.array([0.6, 1.0, 0.8])[which, None] * rng.standard_normal((n, d))


def _slopes(d: int) -> np.ndarray:
    i = np.arange(d)
    return np.where(i < d // 2, (-1.0) ** i * (i % 3 + 1) / 2, 0.0)


def bent(X: np.ndarray) -> np.ndarray:
    """Linear, a square and a product, in standard units of the columns."""
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    return z @ _slopes(X.shape[1]) + 0.6 * z[:, 0] ** 2 + 0.6 * z[:, 1] * z[:, 2]


def saturating(X: np.ndarray) -> np.ndarray:
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    return 3.0 * np.tanh(z @ _slopes(X.shape[1]) / 2.0)


def skew_bent(rng: Rng, n: int, d: int):
    X = gamma_copula(rng, n, d)
    return X, bent(X) + 0.5 * rng.standard_normal(n)


def factor_bent(rng: Rng, n: int, d: int):
    X = log_normal_factor(rng, n, d)
    return X, bent(X) + 0.5 * rng.standard_t(5, n)


def banana_bent(rng: Rng, n: int, d: int):
    X = banana(rng, n, d)
    return X, bent(X) + 0.5 * rng.standard_normal(n)


def clusters_bent(rng: Rng, n: int, d: int):
    X = clusters(rng, n, d)
    return X, bent(X) + 0.5 * rng.standard_normal(n)


def waiting_times(rng: Rng, n: int, d: int):
    """Multiplicative exponential noise."""
    X = gamma_copula(rng, n, d)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, np.exp(0.3 * z @ _slopes(d)) * rng.gamma(2.0, 0.5, n)


def poisson_counts(rng: Rng, n: int, d: int):
    X = rng.standard_normal((n, d))
    return X, rng.poisson(np.exp(0.5 + 0.4 * X @ _slopes(d))).astype(float)


def censored(rng: Rng, n: int, d: int):
    """Nothing is recorded below zero or above three."""
    X = gamma_copula(rng, n, d)
    return X, np.clip(bent(X) + 0.7 * rng.standard_normal(n), 0.0, 3.0)


def heavy_effects(rng: Rng, n: int, d: int):
    """Causes, and effects of the target with heavy tails, one mechanism everywhere."""
    causes = rng.standard_normal((n, d - 3))
    y = causes @ _slopes(2 * (d - 3))[: d - 3] + 0.5 * rng.standard_normal(n)
    return np.column_stack([causes, 0.8 * y[:, None] + 0.7 * rng.standard_t(3, (n, 3))]), y


def rounded_saturating(rng: Rng, n: int, d: int):
    X = log_normal_factor(rng, n, d)
    return X, np.round(2.0 * (saturating(X) + 0.5 * rng.standard_normal(n)))


NEW = (
    skew_bent,
    factor_bent,
    banana_bent,
    clusters_bent,
    waiting_times,
    poisson_counts,
    censored,
    heavy_effects,
    rounded_saturating,
)


def new_families() -> dict[str, Family]:
    """Return the families by name."""
    return {draw.__name__: Family(draw) for draw in NEW}
