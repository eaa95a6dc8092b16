"""Generalised linear fits against statsmodels, and the laws they obey."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st

from hetrisk.blocks import ArrayBlocks
from hetrisk.core.numerics.families import Bernoulli, Gaussian, Multinomial
from hetrisk.core.numerics.glm import fit_glm, fit_glms
from hetrisk.core.numerics.rows import Rows

FAMILIES = [Gaussian(), Bernoulli(), Multinomial(3)]
every_family = pytest.mark.parametrize("family", FAMILIES, ids=repr)


def draw_rows(family, seed=0, n=300, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    eta = 0.3 + X @ rng.normal(size=(d, family.n_outputs))
    if family == Gaussian():
        y = eta[:, 0] + rng.normal(size=n)
    elif family == Bernoulli():
        y = (rng.logistic(size=n) < eta[:, 0]).astype(float)
    else:
        y = (eta + rng.gumbel(size=eta.shape)).argmax(axis=1).astype(float)
    return Rows(X, y, np.ones(n))


def fit_whole(rows, family, **options):
    """Fit to all rows in one block."""
    return fit_glm(ArrayBlocks(rows.X, rows.y, rows.weight), family, **options)


def in_blocks(rows, block_rows=64):
    source = ArrayBlocks(rows.X, rows.y, rows.weight)
    source.block_rows = block_rows
    return source


def first_feature_share(rows):
    """Responsibilities of two environments, from the rows alone."""
    share = 1 / (1 + np.exp(-rows.X[:, 0]))
    return np.stack([share, 1 - share], axis=1)


def assert_same(a, b, rtol=1e-6, atol=1e-8):
    np.testing.assert_allclose(a.coef, b.coef, rtol=rtol, atol=atol)
    np.testing.assert_allclose(a.intercept, b.intercept, rtol=rtol, atol=atol)
    np.testing.assert_allclose(a.covariance, b.covariance, rtol=1e-4, atol=atol)
    assert a.log_likelihood == pytest.approx(b.log_likelihood, rel=1e-9)
    assert a.variance == pytest.approx(b.variance)


def test_bernoulli_agrees_with_statsmodels():
    rows = draw_rows(Bernoulli())
    fit = fit_whole(rows, Bernoulli(), ridge=1e-12)
    reference = sm.Logit(rows.y, sm.add_constant(rows.X)).fit(disp=0, tol=1e-12)
    np.testing.assert_allclose(fit.coef[0], reference.params[1:], rtol=1e-6)
    np.testing.assert_allclose(fit.intercept[0], reference.params[0], rtol=1e-6)
    np.testing.assert_allclose(fit.standard_error[0], reference.bse[1:], rtol=1e-5)
    assert fit.log_likelihood == pytest.approx(reference.llf)
    assert "settled" in fit.status


def test_weighted_bernoulli_agrees_with_statsmodels():
    rows = draw_rows(Bernoulli(), 1)
    weight = np.random.default_rng(0).uniform(0.1, 3, size=len(rows))
    fit = fit_whole(replace(rows, weight=weight), Bernoulli(), ridge=1e-12)
    model = sm.GLM(rows.y, sm.add_constant(rows.X), sm.families.Binomial(), freq_weights=weight)
    np.testing.assert_allclose(fit.coef[0], model.fit(tol=1e-12).params[1:], rtol=1e-6)
    assert fit.weight == pytest.approx(weight.sum())


def test_multinomial_agrees_with_statsmodels_class_by_class():
    rows = draw_rows(Multinomial(3))
    fit = fit_whole(rows, Multinomial(3), ridge=1e-12)
    reference = sm.MNLogit(rows.y, sm.add_constant(rows.X)).fit(disp=0, method="newton", tol=1e-12)
    np.testing.assert_allclose(fit.coef.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(fit.intercept.sum(), 0.0, atol=1e-12)
    # statsmodels holds class 0 at zero: its coefficients are contrasts with that class.
    np.testing.assert_allclose((fit.coef - fit.coef[0])[1:], reference.params[1:].T, rtol=1e-5)
    covariance = fit.covariance.reshape(3, 3, 3, 3)
    contrast = np.array([-1.0, 1.0, 0.0])
    error = np.sqrt(np.diag(np.einsum("c,cied,e->id", contrast, covariance, contrast)))
    np.testing.assert_allclose(error, reference.bse[1:, 0], rtol=1e-4)
    assert fit.log_likelihood == pytest.approx(reference.llf)


def test_gaussian_agrees_with_statsmodels():
    rows = draw_rows(Gaussian())
    fit = fit_whole(rows, Gaussian())
    reference = sm.OLS(rows.y, sm.add_constant(rows.X)).fit()
    np.testing.assert_allclose(fit.coef[0], reference.params[1:])
    assert fit.log_likelihood == pytest.approx(reference.llf)
    assert "closed form" in fit.status


@every_family
def test_a_pass_over_blocks_finds_what_one_block_finds(family):
    rows = draw_rows(family)
    assert_same(fit_glm(in_blocks(rows), family), fit_whole(rows, family))


@every_family
def test_columns_left_out_have_zero_coefficients(family):
    rows = draw_rows(family)
    keep = np.array([True, False, True])
    alone = fit_whole(Rows(rows.X[:, keep], rows.y, rows.weight), family)
    fit = fit_glm(in_blocks(rows), family, columns=keep)
    np.testing.assert_array_equal(fit.coef[:, 1], 0.0)
    np.testing.assert_array_equal(fit.standard_error[:, 1], 0.0)
    np.testing.assert_allclose(fit.coef[:, keep], alone.coef, rtol=1e-6)
    np.testing.assert_allclose(fit.standard_error[:, keep], alone.standard_error, rtol=1e-4)


@every_family
def test_environments_are_fitted_side_by_side(family):
    rows = draw_rows(family)
    fits = fit_glms(in_blocks(rows), family, first_feature_share)
    assert len(fits) == 2
    for fit, share in zip(fits, first_feature_share(rows).T, strict=True):
        assert_same(fit, fit_whole(replace(rows, weight=share), family))


@every_family
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_a_weight_of_two_is_the_row_twice(family, seed):
    rows = draw_rows(family, seed, n=80, d=2)
    weight = np.random.default_rng(seed).integers(0, 3, size=80)
    twice = np.repeat(np.arange(80), weight)
    repeated = Rows(rows.X[twice], rows.y[twice], np.ones(len(twice)))
    weighted = fit_whole(replace(rows, weight=weight.astype(float)), family)
    assert_same(weighted, fit_whole(repeated, family), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES[1:], ids=repr)
def test_separable_data_stay_finite(family):
    x = np.linspace(-1, 1, 60)
    y = np.digitize(x, np.linspace(-1, 1, family.n_outputs + 1)[1:-1]).astype(float)
    if family == Bernoulli():
        y = (x > 0).astype(float)
    fit = fit_whole(Rows(x[:, None], y, np.ones(60)), family)
    assert "settled" in fit.status
    assert np.isfinite(fit.coef).all()
    assert np.isfinite(fit.covariance).all()
    assert 5 < np.abs(fit.coef).max() < 1e4
    assert fit.log_likelihood / 60 > -0.02


def test_one_class_only_stays_finite():
    rows = draw_rows(Gaussian())
    fit = fit_whole(Rows(rows.X, np.ones(300), rows.weight), Bernoulli())
    assert fit.intercept[0] > 5
    np.testing.assert_allclose(fit.coef, 0.0, atol=0.2)


def test_ridge_shrinks():
    rows = draw_rows(Bernoulli())
    sizes = [
        np.abs(fit_whole(rows, Bernoulli(), ridge=ridge).coef).sum() for ridge in (1e-6, 1e-1, 1e1)
    ]
    assert sizes[0] > sizes[1] > sizes[2]


@every_family
def test_standard_errors_match_repeated_samples(family):
    coefficients = []
    for seed in range(60):
        rows = draw_rows(family, 0, n=400)
        rng = np.random.default_rng(1000 + seed)
        index = rng.integers(400, size=400)
        sample = Rows(rows.X[index], rows.y[index], np.ones(400))
        coefficients.append(fit_whole(sample, family).coef)
    error = fit_whole(draw_rows(family, 0, n=400), family).standard_error
    np.testing.assert_allclose(np.std(coefficients, axis=0), error, rtol=0.45)


def test_fits_travel_as_picklable_functions():
    import pickle

    class Remote(ArrayBlocks):
        def sum(self, function):
            return super().sum(pickle.loads(pickle.dumps(function)))

    rows = draw_rows(Multinomial(3))
    source = Remote(rows.X, rows.y, rows.weight)
    weigh = partial(_by_threshold, threshold=0.0)
    fits = fit_glms(source, Multinomial(3), weigh)
    assert_same(fits[1], fit_whole(replace(rows, weight=weigh(rows)[:, 1]), Multinomial(3)))


def _by_threshold(rows, threshold):
    above = rows.X[:, 0] > threshold
    return np.stack([~above, above], axis=1).astype(float)
