"""Homogeneous data in many shapes: what a search for hidden environments must leave alone.

Every family has one P(Y given X) for all rows, but most break an assumption of a mixture of
linear regressions: a mean that bends, steps or multiplies; noise with heavy tails, skewed, or
growing; features that are correlated, binary, counted or skewed. On these a method does harm
if its test error exceeds that of plain ERM.

``families()`` and ``classification_families()`` map a name to a `Family`, which draws
``X_train, y_train, X_test, y_test = family(seed, n, d)``. In the simulated families the first
``d // 2`` features matter (``family.informative(d)``) and the others are pure noise. The real
tables have their own n and d: there ``seed`` chooses a random split (at most n training rows).

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
Draw = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
N_TEST = 5000
NOISE = 0.5


# Features: (rng, n, d) -> X.


def normal(rng: Rng, n: int, d: int) -> np.ndarray:
    return rng.standard_normal((n, d))


def correlated(rng: Rng, n: int, d: int) -> np.ndarray:
    """Autoregressive: neighbours correlate at 0.7."""
    z = rng.standard_normal((n, d))
    X = z.copy()
    for j in range(1, d):
        X[:, j] = 0.7 * X[:, j - 1] + np.sqrt(1 - 0.7**2) * z[:, j]
    return X


def common_factor(rng: Rng, n: int, d: int) -> np.ndarray:
    """All pairs correlate at 0.8."""
    return np.sqrt(0.8) * rng.standard_normal((n, 1)) + np.sqrt(0.2) * rng.standard_normal((n, d))


def binary(rng: Rng, n: int, d: int) -> np.ndarray:
    """Zeros and ones, from rare to even."""
    share = np.linspace(0.1, 0.5, d)
    return (rng.random((n, d)) < share).astype(float)


def counts(rng: Rng, n: int, d: int) -> np.ndarray:
    return rng.poisson(2.0, (n, d)).astype(float)


def log_normal(rng: Rng, n: int, d: int) -> np.ndarray:
    return np.exp(0.75 * rng.standard_normal((n, d)))


def mixed(rng: Rng, n: int, d: int) -> np.ndarray:
    """Normal, binary, count and log-normal columns in turn."""
    kinds = (normal, binary, counts, log_normal)
    return np.column_stack([kinds[j % 4](rng, n, 1) for j in range(d)])


# Means: X -> E[y given X].


def slopes(d: int) -> np.ndarray:
    """0.5, -1, 1.5, -0.5, 1, ... on the first half of the features, zero on the rest."""
    i = np.arange(d)
    return np.where(i < d // 2, np.where(i % 2 == 0, 1, -1) * (i % 3 + 1) / 2, 0.0)


def linear(X: np.ndarray) -> np.ndarray:
    return X @ slopes(X.shape[1])


def cubic(X: np.ndarray) -> np.ndarray:
    return linear(X) + X[:, 0] * X[:, 1] * X[:, 2]


def quadratic(X: np.ndarray) -> np.ndarray:
    return linear(X) + 0.5 * X[:, 0] ** 2


def product(X: np.ndarray) -> np.ndarray:
    return linear(X) + X[:, 0] * X[:, 1]


def steps(X: np.ndarray) -> np.ndarray:
    return linear(X) + 2.0 * (X[:, 0] > 0.5) - 1.5 * (X[:, 1] > -0.5)


def sines(X: np.ndarray) -> np.ndarray:
    return linear(X) + np.sin(3 * X[:, 0]) + np.sin(2 * X[:, 1])


def maxima(X: np.ndarray) -> np.ndarray:
    return linear(X) + 1.5 * np.maximum(X[:, 0], X[:, 1])


def regimes(X: np.ndarray) -> np.ndarray:
    """The slope of x1 turns round where x2 is positive: an interaction X explains fully."""
    return linear(X) + 1.5 * X[:, 0] * np.sign(X[:, 1])


def weak(X: np.ndarray) -> np.ndarray:
    """Slopes of 1 and, for every other true feature, 0.1."""
    i = np.arange(X.shape[1])
    return X @ np.where(i < X.shape[1] // 2, np.where(i % 2 == 0, 1.0, 0.1), 0.0)


def nothing(X: np.ndarray) -> np.ndarray:
    return np.zeros(len(X))


# Noise: (rng, X) -> mean-zero noise.


def gaussian(rng: Rng, X: np.ndarray) -> np.ndarray:
    return NOISE * rng.standard_normal(len(X))


def student(rng: Rng, X: np.ndarray) -> np.ndarray:
    return NOISE * rng.standard_t(3, len(X))


def skewed(rng: Rng, X: np.ndarray) -> np.ndarray:
    return NOISE * (rng.exponential(1.0, len(X)) - 1.0)


def growing(rng: Rng, X: np.ndarray) -> np.ndarray:
    return NOISE * (0.3 + np.abs(X[:, 0])) * rng.standard_normal(len(X))


def fanning(rng: Rng, X: np.ndarray) -> np.ndarray:
    """Standard deviation exponential in x1: a tenfold range within two deviations."""
    return NOISE * np.exp(0.6 * X[:, 0]) * rng.standard_normal(len(X))


def two_scales(rng: Rng, X: np.ndarray) -> np.ndarray:
    """One row in ten is four times as noisy, whatever its features."""
    scale = np.where(rng.random(len(X)) < 0.1, 4.0, 1.0)
    return NOISE * scale * rng.standard_normal(len(X))


@dataclass(frozen=True)
class Family:
    """One homogeneous distribution, drawn as train and test."""

    draw: Callable[[Rng, int, int], tuple[np.ndarray, np.ndarray]]
    has_signal: bool = True

    def __call__(self, seed: int, n: int = 2000, d: int = 10) -> Draw:
        if d < 6:
            raise ValueError(f"d must be at least 6; got {d}.")
        rng = np.random.default_rng(seed)
        return (*self.draw(rng, n, d), *self.draw(rng, N_TEST, d))

    def informative(self, d: int = 10) -> np.ndarray | None:
        """Which features the mean depends on."""
        return (np.arange(d) < d // 2) & self.has_signal


@dataclass(frozen=True)
class RealFamily:
    """Random splits of a bundled table, a quarter of the rows for testing."""

    load: Callable[[], tuple[np.ndarray, np.ndarray]]

    def __call__(self, seed: int, n: int = 2000, d: int = 10) -> Draw:
        X, y = self.load()
        split = train_test_split(X, y, test_size=0.25, random_state=seed)
        X_train, X_test, y_train, y_test = split
        return X_train[:n], y_train[:n], X_test, y_test

    def informative(self, d: int = 10) -> np.ndarray | None:
        """Unknown."""
        return None


@dataclass(frozen=True)
class Regression:
    """y = mean(X) + noise(X)."""

    features: Callable[[Rng, int, int], np.ndarray] = normal
    mean: Callable[[np.ndarray], np.ndarray] = linear
    noise: Callable[[Rng, np.ndarray], np.ndarray] = gaussian

    def __call__(self, rng: Rng, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
        X = self.features(rng, n, d)
        return X, self.mean(X) + self.noise(rng, X)


@dataclass(frozen=True)
class Logistic:
    """y = 1 with log odds mean(X) + intercept."""

    features: Callable[[Rng, int, int], np.ndarray] = normal
    mean: Callable[[np.ndarray], np.ndarray] = linear
    intercept: float = 0.0

    def __call__(self, rng: Rng, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
        X = self.features(rng, n, d)
        return X, (rng.random(n) < expit(self.mean(X) + self.intercept)).astype(int)


def multinomial(rng: Rng, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Three classes; each scores the true features in another order."""
    X = normal(rng, n, d)
    b = slopes(d)
    b[: d // 2] *= 1.5
    scores = X @ np.column_stack([np.zeros(d), b, np.r_[b[: d // 2][::-1], b[d // 2 :]]])
    cumulated = softmax(scores, axis=1).cumsum(axis=1)
    return X, (rng.random((n, 1)) > cumulated).sum(axis=1).clip(0, 2)


def _diabetes() -> tuple[np.ndarray, np.ndarray]:
    return load_diabetes(return_X_y=True, scaled=False)


def _cell_geometry() -> tuple[np.ndarray, np.ndarray]:
    """Mean fractal dimension of cell nuclei, from the nine other mean measurements."""
    X = load_breast_cancer().data[:, :10]
    return X[:, :9], 1000 * X[:, 9]


def _breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    return load_breast_cancer(return_X_y=True)


def families() -> dict[str, Family | RealFamily]:
    """Return the homogeneous regression families by name."""
    simulated = {
        "linear": Regression(),
        "correlated": Regression(features=correlated),
        "common_factor": Regression(features=common_factor),
        "binary": Regression(features=binary),
        "counts": Regression(features=counts),
        "log_normal": Regression(features=log_normal),
        "mixed": Regression(features=mixed),
        "cubic": Regression(mean=cubic),
        "quadratic": Regression(mean=quadratic),
        "product": Regression(mean=product),
        "steps": Regression(mean=steps),
        "sines": Regression(mean=sines),
        "maxima": Regression(mean=maxima),
        "regimes": Regression(mean=regimes),
        "t3": Regression(noise=student),
        "skewed": Regression(noise=skewed),
        "growing": Regression(noise=growing),
        "fanning": Regression(noise=fanning),
        "two_scales": Regression(noise=two_scales),
        "weak": Regression(mean=weak),
        "cubic_t3": Regression(mean=cubic, noise=student),
        "quadratic_correlated": Regression(features=correlated, mean=quadratic),
        "cubic_growing": Regression(mean=cubic, noise=growing),
        "log_normal_product": Regression(features=log_normal, mean=product),
        "correlated_t3": Regression(features=correlated, noise=student),
    }
    made: dict[str, Family | RealFamily] = {k: Family(draw) for k, draw in simulated.items()}
    made["nothing"] = Family(Regression(mean=nothing), has_signal=False)
    made["diabetes"] = RealFamily(_diabetes)
    made["cell_geometry"] = RealFamily(_cell_geometry)
    return made


def classification_families() -> dict[str, Family | RealFamily]:
    """Return the homogeneous classification families by name."""
    simulated: dict[str, Callable[[Rng, int, int], tuple[np.ndarray, np.ndarray]]] = {
        "logistic": Logistic(),
        "logistic_correlated": Logistic(features=correlated),
        "logistic_binary": Logistic(features=binary),
        "logistic_log_normal": Logistic(features=log_normal, intercept=-1.0),
        "logistic_product": Logistic(mean=product),
        "logistic_cubic": Logistic(mean=cubic),
        "logistic_quadratic": Logistic(mean=quadratic, intercept=-0.5),
        "logistic_imbalanced": Logistic(intercept=-4.0),
        "logistic_weak": Logistic(mean=weak),
        "multiclass": multinomial,
    }
    made: dict[str, Family | RealFamily] = {k: Family(draw) for k, draw in simulated.items()}
    made["logistic_nothing"] = Family(Logistic(mean=nothing), has_signal=False)
    made["breast_cancer"] = RealFamily(_breast_cancer)
    return made
