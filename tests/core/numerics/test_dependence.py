"""What features say of each other before and after the target is known."""

import numpy as np
import pytest
import statsmodels.api as sm

from hetrisk.core.numerics.dependence import dependence


def covariances(X, y):
    X, y = X - X.mean(axis=0), y - y.mean()
    noise = X - np.outer(y, y @ X) / (y @ y)
    return X.T @ X / len(y), noise.T @ noise / len(y)


def table(seed, n=1000):
    """Three causes, an effect of the target, a column that goes along with the first cause."""
    rng = np.random.default_rng(seed)
    causes = rng.standard_normal((n, 3))
    y = causes.sum(axis=1) + 0.5 * rng.standard_normal(n)
    effect, twin = y + rng.standard_normal(n), causes[:, 0] + rng.standard_normal(n)
    return np.column_stack([causes, effect, twin]), y


@pytest.mark.parametrize("seed", range(3))
def test_an_effect_is_told_from_causes_and_their_company(seed):
    X, y = table(seed)
    found = dependence(*covariances(X, y), len(y), 1, np.arange(5))
    assert found.is_effect.tolist() == [False, False, False, True, False]


def test_p_values_are_those_of_the_f_test():
    X, y = table(0, 200)
    found = dependence(*covariances(X, y), len(y), 1, np.arange(5))
    fit = sm.OLS(X[:, 4], sm.add_constant(X[:, :4])).fit()
    assert found.before[4] == pytest.approx(fit.f_pvalue, rel=1e-6)


def test_columns_of_one_group_are_not_asked_about_each_other():
    X, y = table(1)
    found = dependence(*covariances(X, y), len(y), 1, np.array([0, 1, 2, 3, 0]))
    assert found.before[4] < 1e-6  # the effect still tells of it
    assert not found.is_effect[4]
