"""Tables with known environments, and moments of them."""

import numpy as np

from hetrisk.core.numerics.moments import moments
from hetrisk.core.numerics.rows import Rows


def of(X, y, environments):
    shares = np.eye(environments.max() + 1)[environments]
    return moments(Rows(X, y, np.ones(len(y))), shares)


def shifting_effect(seed=0, n=900, spreads=(0.3, 1.0, 2.0)):
    """Three causes and an effect of y that is noisier in some environments; the causes shift."""
    rng = np.random.default_rng(seed)
    e = np.repeat(np.arange(len(spreads)), n // len(spreads))
    X = rng.standard_normal((len(e), 3)) + rng.standard_normal((len(spreads), 3))[e]
    y = X @ [1.0, -1.0, 0.5] + 0.5 * rng.standard_normal(len(e))
    effect = 0.8 * y + np.array(spreads)[e] * rng.standard_normal(len(e))
    return np.column_stack([X, effect]), y, e


def drifting_cause(seed=0, slopes=(1.5, -0.5), n=600, shift=0.0):
    """Three causes whose slopes hold and one whose slope does not."""
    rng = np.random.default_rng(seed)
    e = np.repeat(np.arange(len(slopes)), n // len(slopes))
    X = rng.standard_normal((len(e), 4))
    X[:, 3] = X[:, 3] * np.exp(shift * rng.standard_normal(len(slopes)))[e]
    slope = np.array(slopes)[e]
    y = X[:, :3] @ [1.0, -1.0, 0.5] + slope * X[:, 3] + 0.5 * rng.standard_normal(len(e))
    return X, y, e


def homogeneous(seed=0, n=600, d=4, K=3):
    rng = np.random.default_rng(seed)
    X, e = rng.standard_normal((n, d)), rng.integers(0, K, n)
    return X, X @ np.linspace(1, -1, d) + rng.standard_normal(n), e
