"""Least squares from moments, against solvers that see the rows."""

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from hetrisk.core.numerics.linear import (
    cross_validated_ridge,
    least_squares,
    least_squares_many,
)
from hetrisk.core.numerics.moments import Moments, moments
from hetrisk.core.numerics.rows import Rows


def draw_rows(seed, n=60, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(rng.normal(size=d), rng.uniform(0.1, 10, size=d), (n, d))
    y = X @ rng.normal(size=d) + 1.5 + rng.normal(size=n)
    return Rows(X, y, rng.uniform(0.1, 2.0, size=n))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_agrees_with_statsmodels(seed, d):
    rows = draw_rows(seed, d=d)
    fit = least_squares(moments(rows))
    reference = sm.WLS(rows.y, sm.add_constant(rows.X), rows.weight).fit()
    np.testing.assert_allclose(fit.coef, reference.params[1:], rtol=1e-8)
    assert fit.intercept == pytest.approx(reference.params[0])
    # statsmodels divides the residual sum of squares by n - d - 1, these moments by the weight.
    scale = reference.scale * (len(rows) - d - 1) / rows.weight.sum()
    assert fit.variance == pytest.approx(scale)
    error = reference.bse[1:] * np.sqrt(scale / reference.scale)
    np.testing.assert_allclose(np.sqrt(np.diag(fit.coef_covariance)), error, rtol=1e-6)
    assert fit.status == "Cholesky"


def test_ridge_agrees_with_scikit_learn():
    rows = draw_rows(0)
    fit = least_squares(moments(rows), ridge=0.3)
    reference = Ridge(alpha=0.3 * rows.weight.sum()).fit(rows.X, rows.y, rows.weight)
    np.testing.assert_allclose(fit.coef, reference.coef_, rtol=1e-8)
    assert fit.intercept == pytest.approx(reference.intercept_)
    error = (rows.y - rows.X @ fit.coef - fit.intercept) ** 2
    assert fit.variance == pytest.approx(np.average(error, weights=rows.weight))


def test_columns_left_out_have_zero_coefficients():
    rows = draw_rows(1, d=4)
    keep = np.array([True, False, True, False])
    fit = least_squares(moments(rows), keep)
    alone = least_squares(moments(Rows(rows.X[:, keep], rows.y, rows.weight)))
    np.testing.assert_array_equal(fit.coef[~keep], 0.0)
    np.testing.assert_allclose(fit.coef[keep], alone.coef)
    covariance = fit.coef_covariance
    np.testing.assert_allclose(covariance[np.ix_(keep, keep)], alone.coef_covariance)
    np.testing.assert_array_equal(covariance[~keep], 0.0)


def test_no_columns_is_the_mean():
    rows = draw_rows(2)
    fit = least_squares(moments(rows), np.zeros(3, dtype=bool))
    assert fit.intercept == pytest.approx(np.average(rows.y, weights=rows.weight))
    assert fit.status == "no columns"


def test_duplicated_columns_share_their_coefficient_and_constant_ones_have_none():
    rows = draw_rows(3, d=2)
    wide = np.column_stack([rows.X, rows.X[:, 0], np.full(len(rows), 4.0)])
    fit = least_squares(moments(Rows(wide, rows.y, rows.weight)))
    plain = least_squares(moments(rows))
    assert "minimum-norm" in fit.status
    np.testing.assert_allclose(fit.coef[[0, 2]], plain.coef[0] / 2, rtol=1e-6)
    assert fit.coef[3] == pytest.approx(0.0, abs=1e-8)
    assert fit.variance == pytest.approx(plain.variance)


def stacked(parts):
    return Moments(
        *(np.stack([getattr(m, f) for m in parts]) for f in ("weight", "mean", "scatter"))
    )


@pytest.mark.parametrize("singular", [False, True])
def test_many_fits_at_once_are_the_fits_one_by_one(singular):
    parts = [draw_rows(seed) for seed in range(4)]
    if singular:
        one = parts[2]
        parts[2] = Rows(one.X[:, [0, 1, 0]], one.y, one.weight)
    parts = [moments(rows) for rows in parts]
    coef, intercept, variance = least_squares_many(stacked(parts))
    for k, m in enumerate(parts):
        fit = least_squares(m)
        np.testing.assert_allclose(coef[k], fit.coef, rtol=1e-7)
        assert intercept[k] == pytest.approx(fit.intercept)
        assert variance[k] == pytest.approx(fit.variance)


def test_a_set_without_weight_fits_nothing():
    m = moments(draw_rows(0), np.stack([np.ones(60), np.zeros(60)], axis=1))
    coef, _, variance = least_squares_many(m)
    np.testing.assert_allclose(coef[0], least_squares(m[0]).coef)
    np.testing.assert_array_equal(coef[1], 0.0)
    assert variance[1] == 0.0


@given(st.integers(0, 10_000), st.floats(-320, 0), st.booleans())
def test_a_set_that_shrinks_to_a_few_rows_ends_no_fit(seed, smallest, binary):
    """Weights down to the smallest numbers there are: finite coefficients, and no error."""
    rng = np.random.default_rng(seed)
    X = (rng.random((30, 4)) < 0.2).astype(float) if binary else rng.normal(size=(30, 4))
    y = rng.normal(size=30)
    shares = np.column_stack([np.ones(30), 10.0 ** rng.uniform(smallest, 0, 30)])
    coef, intercept, variance = least_squares_many(moments(Rows(X, y, np.ones(30)), shares))
    assert np.isfinite(coef).all()
    assert np.isfinite(intercept).all()
    assert (variance >= 0).all()


def test_moments_that_are_not_finite_leave_the_others_alone():
    rng = np.random.default_rng(0)
    m = moments(Rows(rng.normal(size=(50, 3)), rng.normal(size=50), np.ones(50)))
    scatter = np.stack([m.scatter, np.full_like(m.scatter, np.nan)])
    both = Moments(np.stack([m.weight] * 2), np.stack([m.mean] * 2), scatter)
    coef, _, _ = least_squares_many(both)
    np.testing.assert_allclose(coef[0], least_squares(m).coef, rtol=1e-10)
    np.testing.assert_array_equal(coef[1], 0.0)


def test_a_column_that_is_constant_in_one_set_has_no_coefficient_there():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    X[:30, 1] = 1.0
    shares = np.column_stack([np.arange(60) < 30, np.arange(60) >= 30]).astype(float)
    y = X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=60)
    coef, _, _ = least_squares_many(moments(Rows(X, y, np.ones(60)), shares))
    assert coef[0, 1] == 0.0
    np.testing.assert_allclose(coef[[0, 1, 1], [0, 0, 1]], 1.0, atol=0.1)


def test_more_columns_than_rows_do_not_repeat_the_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 100))
    y = X[:, 0] + 0.5 * rng.normal(size=60)
    m = moments(Rows(X, y, np.ones(60)))
    chosen = cross_validated_ridge(m, 60)
    far = rng.normal(size=(2000, 100))

    def error(ridge):
        fit = least_squares(m, ridge=ridge)
        return np.mean((far @ fit.coef + fit.intercept - far[:, 0]) ** 2)

    best = min(error(r) for r in np.logspace(-2, 3, 40))
    assert error(chosen) < 1.1 * best
    assert error(chosen) < error(1e-9)


def test_the_ridge_of_noise_shrinks_everything():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(50, 80)), rng.normal(size=50)
    m = moments(Rows(X, y, np.ones(50)))
    fit = least_squares(m, ridge=cross_validated_ridge(m, 50))
    assert np.std(X @ fit.coef) < 0.5 * np.std(y)
