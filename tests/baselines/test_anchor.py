"""Anchor regression: from moments, from rows, and beside the peers' implementation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from hetrisk.baselines import AnchorRegressor
from hetrisk.baselines.anchor import anchor_fit
from hetrisk.core.numerics.moments import moments
from hetrisk.core.numerics.rows import Rows

from .conftest import table


def shifted(seed=0, n=240, d=3, k=4):
    """Rows whose environments differ in their means, too."""
    X, y, environments, f = table(seed, n, d, k)
    rng = np.random.default_rng(seed + 1)
    X = X + rng.normal(size=(k, d))[environments]
    return X, y + rng.normal(size=k)[environments], environments, f


def by_rows(X, y, environments, gamma):
    """Least squares after the transformation I - P_A + sqrt(gamma) P_A of centred rows."""
    z = np.column_stack([X, y])
    z = z - z.mean(axis=0)
    means = np.stack([z[environments == e].mean(axis=0) for e in range(environments.max() + 1)])
    moved = z + (np.sqrt(gamma) - 1) * means[environments]
    return np.linalg.lstsq(moved[:, :-1], moved[:, -1], rcond=None)[0]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 1000),
    k=st.integers(1, 6),
    d=st.integers(1, 5),
    gamma=st.sampled_from([0.0, 0.3, 1.0, 5.0, 400.0]),
)
def test_moments_give_what_the_rows_give(seed, k, d, gamma):
    X, y, environments, _ = shifted(seed, 120, d, k)
    environments = np.unique(environments, return_inverse=True)[1]
    m = moments(Rows(X, y, np.ones(len(y))), np.eye(environments.max() + 1)[environments])
    fit = anchor_fit(m, gamma)
    np.testing.assert_allclose(fit.coef, by_rows(X, y, environments, gamma), rtol=1e-7, atol=1e-9)
    assert fit.intercept == pytest.approx(y.mean() - X.mean(axis=0) @ fit.coef)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 5.0, 20.0, 500.0])
def test_the_peers_find_the_same(gamma):
    models = pytest.importorskip("ivmodels.models", reason="pip install 'hetrisk[peers]'")
    X, y, environments, _ = shifted()
    anchors = np.eye(4)[environments][:, 1:]
    peer = models.AnchorRegression(gamma=gamma).fit(X, y, Z=anchors)
    model = AnchorRegressor(gamma=gamma).fit(X, y, environments=environments)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=0, atol=1e-8)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-8)


def test_one_is_least_squares_and_a_large_gamma_evens_the_mean_residuals():
    X, y, environments, _ = shifted(k=3, d=3)
    plain = LinearRegression().fit(X, y)
    np.testing.assert_allclose(
        AnchorRegressor(1.0).fit(X, y, environments=environments).coef_, plain.coef_
    )

    def unevenness(model):
        r = y - model.predict(X)
        return np.std([r[environments == e].mean() for e in range(3)])

    # Three environments and three columns: their means can be met exactly.
    assert unevenness(
        AnchorRegressor(1e8).fit(X, y, environments=environments)
    ) < 1e-3 * unevenness(plain)


def test_without_environments_it_is_least_squares():
    X, y, _, _ = shifted()
    np.testing.assert_allclose(
        AnchorRegressor(50.0).fit(X, y).coef_, LinearRegression().fit(X, y).coef_
    )


def test_the_rule_prefers_protection_where_it_costs_nothing():
    """A column whose mean moves with the environment and misleads: the worst one decides."""
    rng = np.random.default_rng(0)
    environments = rng.integers(0, 3, 3000)
    hidden = rng.normal(size=3000) + 3.0 * (environments - 1)
    cause = rng.normal(size=3000)
    y = cause + hidden + 0.5 * rng.normal(size=3000)
    X = np.column_stack([cause, hidden + rng.normal(size=3000)])
    model = AnchorRegressor().fit(X, y, environments=environments)
    assert model.choices_[0].value > 1
