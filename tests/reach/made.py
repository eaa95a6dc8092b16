"""Environments to judge by: rows, their moments, and the same by brute force."""

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.cells import Assignment, cell_moments
from hetrisk.core.numerics.families import Gaussian
from hetrisk.core.numerics.rows import Held, Rows


@dataclass(frozen=True)
class Given(Assignment):
    """Environments as given, for rows in one block."""

    given: np.ndarray
    count: int

    @property
    def n_environments(self):
        return self.count

    def codes(self, rows):
        return self.given[rows.start : rows.start + len(rows)]


def table(seed=0, n=400, d=4, K=3, flip=1.0):
    """The last column's slope differs by ``flip`` in the first environment."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    codes = rng.integers(0, K, n)
    y = X @ rng.standard_normal(d) + flip * (codes == 0) * X[:, -1] + rng.standard_normal(n)
    return X, y, codes


def cells_of(X, y, codes, n_folds=10, weight=None, family=None):
    weight = np.ones(len(y)) if weight is None else weight
    rows = Held(Rows(X, y, weight))
    given = Given(codes, int(codes.max()) + 1)
    return cell_moments(rows, family or Gaussian(), given, n_folds)
