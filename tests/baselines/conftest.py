import numpy as np
import pytest

from hetrisk.baselines.problem import Problem
from hetrisk.baselines.risks import LogisticRisks, SquaredRisks


def table(seed=0, n=240, d=3, k=2):
    """Rows of k environments with coefficients and noise of their own."""
    rng = np.random.default_rng(seed)
    environments = rng.choice(k, size=n, p=np.arange(1, k + 1) / (k * (k + 1) / 2))
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3) + 0.5
    coef = rng.normal(size=(k, d))
    f = np.sum(X * coef[environments], axis=1)
    return X, f + rng.normal(size=n), environments, f


def squared_problem():
    X, y, environments, _ = table()
    Z = np.column_stack([X, np.ones(len(y))])
    return Problem(Z, y, np.eye(2)[environments], SquaredRisks)


def logistic_problem():
    X, _, environments, f = table()
    Z = np.column_stack([X, np.ones(len(f))])
    labels = (np.random.default_rng(1).random(len(f)) < 1 / (1 + np.exp(-f))).astype(float)
    return Problem(Z, labels, np.eye(2)[environments], LogisticRisks)


@pytest.fixture(params=[squared_problem, logistic_problem])
def problem(request):
    return request.param()


@pytest.fixture
def labelled():
    return logistic_problem()
