"""The working fit: least squares and logistic regression with robust errors."""

import numpy as np
import pytest
import statsmodels.api as sm

from hetrisk.core.numerics.families import Bernoulli, Gaussian
from hetrisk.core.numerics.rows import Rows
from hetrisk.core.numerics.working import working_fit


def draw(family, n=400, d=4, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 2.0, 0.5, 1.0] + [0.0, 1.0, 0.0, -0.5]
    eta = 0.3 + X @ [1.0, -0.5, 0.8, 0.0]
    if family.closed_form:
        y = eta + (0.3 + np.abs(X[:, 0])) * rng.normal(size=n)
    else:
        y = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)
    weight = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    return Rows(X, y, weight)


def reference(family, rows, extra=None):
    columns = rows.X if extra is None else np.column_stack([rows.X, extra])
    design = sm.add_constant(columns)
    if family.closed_form:
        return sm.WLS(rows.y, design, weights=rows.weight).fit(cov_type="HC3")
    model = sm.GLM(rows.y, design, family=sm.families.Binomial(), freq_weights=rows.weight)
    return model.fit(tol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("family", [Gaussian(), Bernoulli()], ids=lambda f: f.name)
def test_coefficients_are_those_of_statsmodels(family, weighted):
    rows = draw(family, weighted=weighted)
    fit = working_fit(rows, family, rows.X[:, :1] ** 2)
    expected = reference(family, rows, rows.X[:, :1] ** 2)
    # The logistic fit carries a small ridge.
    np.testing.assert_allclose(fit.coef, expected.params, atol=1e-8 if family.closed_form else 2e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_robust_covariance_is_hc3(weighted):
    rows = draw(Gaussian(), weighted=weighted)
    fit = working_fit(rows, Gaussian(), np.empty((len(rows), 0)))
    expected = reference(Gaussian(), rows)
    np.testing.assert_allclose(fit.covariance, expected.cov_params(), rtol=1e-6)
    np.testing.assert_allclose(fit.z, expected.tvalues, rtol=1e-6)
    root = np.sqrt(rows.weight)[:, None] * fit.design
    hat = root @ np.linalg.pinv(root)
    np.testing.assert_allclose(fit.leverage, np.diag(hat), rtol=1e-6)


def test_logistic_bread_is_the_inverse_information():
    rows = draw(Bernoulli())
    fit = working_fit(rows, Bernoulli(), np.empty((len(rows), 0)))
    np.testing.assert_allclose(fit.bread, reference(Bernoulli(), rows).cov_params(), rtol=0.02)
    p = 1 / (1 + np.exp(-fit.design @ fit.coef))
    np.testing.assert_allclose(fit.curvature, p * (1 - p))
    np.testing.assert_allclose(fit.residual, rows.y - p)


def test_leverage_stays_below_one():
    rows = Rows(np.array([[0.0], [0.0], [0.0], [100.0]]), np.arange(4.0), np.ones(4))
    fit = working_fit(rows, Gaussian(), np.empty((4, 0)))
    assert fit.leverage.max() <= 0.9
    assert np.isfinite(fit.covariance).all()


@pytest.mark.parametrize("family", [Gaussian(), Bernoulli()], ids=lambda f: f.name)
def test_residualised_columns_are_orthogonal_to_the_design(family):
    rows = draw(family, weighted=True)
    fit = working_fit(rows, family, np.empty((len(rows), 0)))
    left = fit.residualised(np.column_stack([rows.X[:, 0] ** 2, rows.X[:, 1]]))
    inner = fit.design.T @ (fit.curvature[:, None] * left)
    assert np.abs(inner).max() < 1e-4
    assert np.abs(left[:, 1]).max() < 1e-5  # the design explains its own column


@pytest.mark.parametrize("family", [Gaussian(), Bernoulli()], ids=lambda f: f.name)
@pytest.mark.parametrize("value", [0.0, 7.0])
def test_a_constant_column_changes_nothing(family, value):
    rows = draw(family)
    wide = Rows(np.column_stack([rows.X, np.full(len(rows), value)]), rows.y, rows.weight)
    plain = working_fit(rows, family, np.empty((len(rows), 0)))
    fit = working_fit(wide, family, np.empty((len(rows), 0)))
    assert np.isfinite(fit.covariance).all()
    np.testing.assert_allclose(
        fit.design @ fit.coef, plain.design @ plain.coef, atol=1e-5 if family.closed_form else 1e-3
    )


def test_duplicated_columns_share_their_coefficient():
    rows = draw(Gaussian())
    wide = Rows(np.column_stack([rows.X, rows.X[:, 0]]), rows.y, rows.weight)
    fit = working_fit(wide, Gaussian(), np.empty((len(rows), 0)))
    alone = working_fit(rows, Gaussian(), np.empty((len(rows), 0)))
    np.testing.assert_allclose(fit.coef[1] + fit.coef[5], alone.coef[1], atol=1e-5)
    np.testing.assert_allclose(fit.coef[1], fit.coef[5], atol=1e-3)
