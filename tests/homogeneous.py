"""Homogeneous data in many shapes: what a search for hidden environments must leave alone.

Every family has one P(y given X) for all rows, but most break an assumption of a mixture of linear
regressions: a mean that bends, steps or multiplies; noise with heavy tails, skewed, or growing;
features that are correlated, binary, counted or skewed. A method does harm here if its test error
exceeds that of plain least squares.

``families()`` and ``classification_families()`` map a name to a function that draws
``X_train, y_train, X_test, y_test = family(seed, n, d)``. In the simulated ones the first half of
the features matters (``family.informative(d)``), the others are pure noise. The real tables have
their own n and d: there ``seed`` chooses a random split.

>>> X, y, X_test, y_test = families()["cubic"](seed=0, n=100, d=6)
>>> X.shape
(100, 6)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import train_test_split

Rng = np.random.Generator
Table = tuple[np.ndarray, np.ndarray]
N_TEST = 5000
NOISE = 0.5


def autoregressive(rng: Rng, n: int, d: int) -> np.ndarray:
    """(n, d) normal features whose neighbours correlate at 0.7."""
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = 0.7 * X[:, j - 1] + np.sqrt(1 - 0.7**2) * X[:, j]
    return X


def common_factor(rng: Rng, n: int, d: int) -> np.ndarray:
    """(n, d) normal features, all pairs of which correlate at 0.8."""
    return np.sqrt(0.8) * rng.standard_normal((n, 1)) + np.sqrt(0.2) * rng.standard_normal((n, d))


def mixed(rng: Rng, n: int, d: int) -> np.ndarray:
    """(n, d) normal, binary, count and log-normal columns in turn."""
    kinds = [FEATURES[name] for name in ("normal", "binary", "counts", "log_normal")]
    return np.column_stack([kinds[j % 4](rng, n, 1) for j in range(d)])


FEATURES: dict[str, Callable[[Rng, int, int], np.ndarray]] = {
    "normal": lambda rng, n, d: rng.standard_normal((n, d)),
    "correlated": autoregressive,
    "common_factor": common_factor,
    "binary": lambda rng, n, d: (rng.random((n, d)) < np.linspace(0.1, 0.5, d)).astype(float),
    "counts": lambda rng, n, d: rng.poisson(2.0, (n, d)).astype(float),
    "log_normal": lambda rng, n, d: np.exp(0.75 * rng.standard_normal((n, d))),
    "mixed": mixed,
}


def linear(X: np.ndarray, slopes: np.ndarray | None = None) -> np.ndarray:
    """0.5, -1, 1.5, -0.5, ... times the first half of the features."""
    i = np.arange(X.shape[1])
    usual = np.where(i % 2 == 0, 1, -1) * (i % 3 + 1) / 2
    return X @ np.where(i < X.shape[1] // 2, usual if slopes is None else slopes, 0.0)


MEANS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": linear,
    "cubic": lambda X: linear(X) + X[:, 0] * X[:, 1] * X[:, 2],
    "quadratic": lambda X: linear(X) + 0.5 * X[:, 0] ** 2,
    "product": lambda X: linear(X) + X[:, 0] * X[:, 1],
    "steps": lambda X: linear(X) + 2.0 * (X[:, 0] > 0.5) - 1.5 * (X[:, 1] > -0.5),
    "sines": lambda X: linear(X) + np.sin(3 * X[:, 0]) + np.sin(2 * X[:, 1]),
    "maxima": lambda X: linear(X) + 1.5 * np.maximum(X[:, 0], X[:, 1]),
    # The slope of x1 turns round where x2 is positive: an interaction that X explains fully.
    "regimes": lambda X: linear(X) + 1.5 * X[:, 0] * np.sign(X[:, 1]),
    "weak": lambda X: linear(X, np.where(np.arange(X.shape[1]) % 2 == 0, 1.0, 0.1)),
    "nothing": lambda X: np.zeros(len(X)),
}
NOISES: dict[str, Callable[[Rng, np.ndarray], np.ndarray]] = {
    "gaussian": lambda rng, X: rng.standard_normal(len(X)),
    "t3": lambda rng, X: rng.standard_t(3, len(X)),
    "skewed": lambda rng, X: rng.exponential(1.0, len(X)) - 1.0,
    "growing": lambda rng, X: (0.3 + np.abs(X[:, 0])) * rng.standard_normal(len(X)),
    "fanning": lambda rng, X: np.exp(0.6 * X[:, 0]) * rng.standard_normal(len(X)),
    "two_scales": lambda rng, X: (
        np.where(rng.random(len(X)) < 0.1, 4.0, 1.0) * rng.standard_normal(len(X))
    ),
}


@dataclass(frozen=True)
class Family:
    """One homogeneous distribution, drawn as train and test."""

    target: Callable[[Rng, np.ndarray], np.ndarray]
    features: str = "normal"
    has_signal: bool = True

    def __call__(self, seed: int, n: int = 2000, d: int = 10) -> tuple[np.ndarray, ...]:
        """Draw train and test rows."""
        if d < 6:
            raise ValueError(f"d must be at least 6; got {d}.")
        rng = np.random.default_rng(seed)
        drawn: list[np.ndarray] = []
        for size in (n, N_TEST):
            X = FEATURES[self.features](rng, size, d)
            drawn += [X, self.target(rng, X)]
        return tuple(drawn)

    def informative(self, d: int = 10) -> np.ndarray | None:
        """Which features the mean depends on."""
        return (np.arange(d) < d // 2) & self.has_signal


@dataclass(frozen=True)
class RealFamily:
    """Random splits of a table that comes with scikit-learn, a quarter of the rows for testing."""

    load: Callable[[], Table]

    def __call__(self, seed: int, n: int = 2000, d: int = 10) -> tuple[np.ndarray, ...]:
        """Split the table, with at most n rows to train on."""
        X, y = self.load()
        split = train_test_split(X, y, test_size=0.25, random_state=seed)
        X_train, X_test, y_train, y_test = split
        return X_train[:n], y_train[:n], X_test, y_test

    def informative(self, d: int = 10) -> np.ndarray | None:
        """Unknown."""
        return None


def _numbers(features: str = "normal", mean: str = "linear", noise: str = "gaussian") -> Family:
    def target(rng: Rng, X: np.ndarray) -> np.ndarray:
        return MEANS[mean](X) + NOISE * NOISES[noise](rng, X)

    return Family(target, features, mean != "nothing")


def _labels(features: str = "normal", mean: str = "linear", intercept: float = 0.0) -> Family:
    def target(rng: Rng, X: np.ndarray) -> np.ndarray:
        return (rng.random(len(X)) < expit(MEANS[mean](X) + intercept)).astype(int)

    return Family(target, features, mean != "nothing")


def _three_classes(rng: Rng, X: np.ndarray) -> np.ndarray:
    """Each class scores the true features in another order."""
    d = X.shape[1]
    turned = np.column_stack([X[:, : d // 2][:, ::-1], X[:, d // 2 :]])
    scores = 1.5 * np.column_stack([np.zeros(len(X)), linear(X), linear(turned)])
    return (rng.random((len(X), 1)) > softmax(scores, axis=1).cumsum(axis=1)).sum(axis=1).clip(0, 2)


def _cell_geometry() -> Table:
    """Mean fractal dimension of cell nuclei, from the nine other mean measurements."""
    X = load_breast_cancer().data[:, :10]
    return X[:, :9], 1000 * X[:, 9]


def families() -> dict[str, Family | RealFamily]:
    """Return the homogeneous regression families by name."""
    return {
        **{name: _numbers(mean=name) for name in MEANS},
        **{name: _numbers(features=name) for name in FEATURES if name != "normal"},
        **{name: _numbers(noise=name) for name in NOISES if name != "gaussian"},
        "cubic_t3": _numbers(mean="cubic", noise="t3"),
        "quadratic_correlated": _numbers("correlated", "quadratic"),
        "cubic_growing": _numbers(mean="cubic", noise="growing"),
        "log_normal_product": _numbers("log_normal", "product"),
        "correlated_t3": _numbers("correlated", noise="t3"),
        "diabetes": RealFamily(lambda: load_diabetes(return_X_y=True, scaled=False)),
        "cell_geometry": RealFamily(_cell_geometry),
    }


def classification_families() -> dict[str, Family | RealFamily]:
    """Return the homogeneous classification families by name."""
    means = ("product", "cubic", "weak", "nothing")
    return {
        "logistic": _labels(),
        **{f"logistic_{name}": _labels(mean=name) for name in means},
        "logistic_correlated": _labels("correlated"),
        "logistic_quadratic": _labels(mean="quadratic", intercept=-0.5),
        "logistic_imbalanced": _labels(intercept=-4.0),
        "multiclass": Family(_three_classes),
        "breast_cancer": RealFamily(lambda: load_breast_cancer(return_X_y=True)),
    }
