"""Small tables with and without hidden environments."""

import numpy as np

from hetrisk.core.numerics.families import Gaussian
from hetrisk.core.numerics.rows import Held, Rows
from hetrisk.core.sources.question import Answer, Case
from hetrisk.core.sources.questions import ask
from hetrisk.core.thresholds import Thresholds


def standardised(X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> Rows:
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    weight = np.ones(len(y)) if weight is None else weight
    return Rows(np.ascontiguousarray(X), (y - y.mean()) / y.std(), weight)


def case_of(rows: Rows, family=None, level: float = 0.01, keep=None) -> Case:
    d = rows.X.shape[1]
    keep = np.zeros(d, dtype=bool) if keep is None else keep
    return Case(
        rows, family or Gaussian(), np.arange(d), keep, np.zeros(d, dtype=bool), level, Thresholds()
    )


def asked(rows: Rows, family=None, groups=None, keep=None) -> Answer:
    d = rows.X.shape[1]
    groups = np.arange(d) if groups is None else groups
    keep = np.zeros(d, dtype=bool) if keep is None else keep
    return ask(Held(rows), family or Gaussian(), groups, keep)


def flipping(seed: int, n: int = 600, share: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """The slope of the last of four columns turns round in a share of rows that look alike."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    sign = np.where(rng.random(n) < share, -1.0, 1.0)
    return X, X[:, :3] @ [1.0, -1.0, 0.5] + 1.5 * sign * X[:, 3] + 0.4 * rng.standard_normal(n)


def one_population(seed: int, n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Skewed, correlated columns, a bent mean, noise that grows and is skewed."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 4))
    X = np.exp(0.5 * (z + 0.7 * z[:, [0]]))
    mean = X @ [1.0, -0.5, 0.3, 0.0] + 0.3 * X[:, 0] * X[:, 1]
    return X, mean + 0.2 * (1 + X[:, 0]) * (rng.exponential(1.0, n) - 1.0)
