"""Directions shrunk between known environments."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from hetrisk.baselines import DirectionsClassifier, DirectionsRegressor
from hetrisk.baselines.directions import direction_coefficients, significant


@parametrize_with_checks([DirectionsRegressor(), DirectionsClassifier()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def mixed(seed=0, n=2000):
    """A cause and an effect whose noise differs between environments, mixed by a rotation."""
    rng = np.random.default_rng(seed)
    e = np.arange(n) % 2
    cause = rng.standard_normal(n) * np.array([1.0, 2.0])[e]
    y = cause + 0.5 * rng.standard_normal(n)
    effect = y + np.array([0.3, 1.5])[e] * rng.standard_normal(n)
    turn = np.linalg.qr(rng.standard_normal((2, 2)))[0]
    return np.column_stack([cause, effect]) @ turn, y, e, turn


def test_reach_zero_and_one_environment_are_least_squares():
    X, y, e, _ = mixed()
    plain = LinearRegression().fit(X, y).coef_
    np.testing.assert_allclose(DirectionsRegressor(0.0).fit(X, y).coef_, plain, rtol=1e-6)
    one = DirectionsRegressor(5.0).fit(X, y, environments=0 * e)
    np.testing.assert_allclose(one.coef_, plain, rtol=1e-6)


def test_the_effect_is_shrunk_though_no_column_holds_it():
    X, y, e, turn = mixed()
    plain, shrunk = (turn @ DirectionsRegressor(t).fit(X, y, environments=e).coef_ for t in (0, 4))
    assert abs(shrunk[1]) < 0.3 * abs(plain[1])
    assert shrunk[0] == pytest.approx(1.0, abs=0.1)


def test_axes_names_and_order_do_not_matter():
    X, y, e, _ = mixed(n=600)
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((2, 2)))[0]
    rows = np.random.default_rng(2).permutation(600)
    first = DirectionsRegressor(4.0).fit(X, y, environments=e)
    second = DirectionsRegressor(4.0).fit((X @ turn)[rows], y[rows], environments=1 - e[rows])
    np.testing.assert_allclose(first.predict(X), second.predict(X @ turn), atol=1e-6)


def test_noise_alone_makes_no_difference():
    rng = np.random.default_rng(0)
    Z = np.column_stack([np.ones(4000), rng.standard_normal((4000, 3))])
    means = np.stack([Z[k::4].T @ Z[k::4] / 1000 for k in range(4)])
    rows = np.full(4, 1000.0)
    gap = significant(means, rows) - means.mean(axis=0)
    assert np.abs(gap).max() < 0.1 * np.abs(means - means.mean(axis=0)).max()
    strong = direction_coefficients(means, rows, 100.0)
    np.testing.assert_allclose(strong, direction_coefficients(means, rows, 0.0), atol=0.05)


def test_labels():
    X, y, e, _ = mixed()
    model = DirectionsClassifier(4.0).fit(X, y > 0, environments=e)
    assert model.score(X, y > 0) > 0.8
    assert model.predict_proba(X).shape == (2000, 2)
    many = DirectionsClassifier().fit(X, np.digitize(y, [-1, 1]), environments=e)
    assert many.predict_proba(X).shape == (2000, 3)
    with pytest.raises(ValueError, match="two classes"):
        DirectionsClassifier().fit(X, np.zeros(2000))
