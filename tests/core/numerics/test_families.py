"""Laws every family obeys, and each family against an independent formula."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import log_softmax

from hetrisk.core.numerics import families
from hetrisk.core.numerics.families import Bernoulli, Gaussian, Multinomial
from hetrisk.core.numerics.gram import pair_products, weighted_grams
from hetrisk.core.numerics.rows import Rows

FAMILIES = [Gaussian(), Bernoulli(), Multinomial(2), Multinomial(4)]
LABEL_FAMILIES = FAMILIES[1:]
every_family = pytest.mark.parametrize("family", FAMILIES, ids=repr)


def draw(family, seed, n=7, size=3.0):
    rng = np.random.default_rng(seed)
    if family == Gaussian():
        return rng.normal(size=n), rng.normal(size=n), 0.7
    if family == Bernoulli():
        return rng.integers(0, 2, n).astype(float), size * rng.normal(size=n), 1.0
    C = family.n_classes
    return rng.integers(0, C, n).astype(float), size * rng.normal(size=(n, C)), 1.0


def five_point(function, x, h=1e-3):
    """Derivative of a function of a number."""
    return (
        8 * (function(x + h) - function(x - h)) - (function(x + 2 * h) - function(x - 2 * h))
    ) / (12 * h)


def directions(eta):
    """One direction an output, applied to all rows at once."""
    if eta.ndim == 1:
        return [np.ones(1)]
    return list(np.eye(eta.shape[1]))


def gradient(family, y, eta, v=1.0):
    """Derivative of the log density in eta, an output a column."""
    slopes = [
        five_point(lambda t, u=u: family.log_density(y, eta + t * u, v), 0.0)
        for u in directions(eta)
    ]
    return np.stack(slopes, axis=-1).reshape(eta.shape)


@every_family
@given(seed=st.integers(0, 10**6))
def test_curvature_is_minus_the_second_derivative_of_the_log_density(family, seed):
    y, eta, v = draw(family, seed)
    outputs = 1 if eta.ndim == 1 else eta.shape[1]
    curvature = family.curvature(y, eta, v).reshape(len(y), outputs, outputs)
    for j, u in enumerate(directions(eta)):
        numeric = five_point(lambda t, u=u: gradient(family, y, eta + t * u, v), 0.0)
        np.testing.assert_allclose(curvature[:, :, j], -numeric.reshape(len(y), -1), atol=1e-6)


def test_gaussian_density_is_scipys():
    y, eta, v = draw(Gaussian(), 0)
    np.testing.assert_allclose(
        Gaussian().log_density(y, eta, v), stats.norm(eta, np.sqrt(v)).logpdf(y)
    )


def test_bernoulli_density_is_scipys():
    y, eta, _ = draw(Bernoulli(), 0)
    p = 1 / (1 + np.exp(-eta))
    np.testing.assert_allclose(Bernoulli().log_density(y, eta), stats.bernoulli(p).logpmf(y))


def test_multinomial_density_is_a_softmax():
    y, eta, _ = draw(Multinomial(4), 0)
    expected = log_softmax(eta, axis=1)[np.arange(len(y)), y.astype(int)]
    np.testing.assert_allclose(Multinomial(4).log_density(y, eta), expected)


def test_two_classes_are_a_bernoulli():
    y, eta, _ = draw(Bernoulli(), 1)
    both = np.stack([-eta / 2, eta / 2], axis=-1)
    np.testing.assert_allclose(Multinomial(2).log_density(y, both), Bernoulli().log_density(y, eta))


@pytest.mark.parametrize("family", [Bernoulli(), Multinomial(3)], ids=repr)
def test_distant_predictors_neither_overflow_nor_lose_their_value(family):
    y = np.array([0.0, 1.0])
    eta = np.array([1e4, 1e4])
    if family != Bernoulli():
        eta = np.array([[0.0, 1e4, -1e4], [0.0, 1e4, -1e4]])
    np.testing.assert_allclose(family.log_density(y, eta), [-1e4, 0.0])
    assert np.isfinite(family.curvature(y, eta)).all()


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_contrasts_are_orthonormal_and_sum_to_zero(n_classes):
    H = Multinomial(n_classes).coding
    np.testing.assert_allclose(H @ H.T, np.eye(n_classes - 1), atol=1e-14)
    np.testing.assert_allclose(H.sum(axis=1), 0.0, atol=1e-14)


@every_family
def test_predictor_applies_every_set_of_coefficients(family):
    rng = np.random.default_rng(0)
    rows = Rows(rng.normal(size=(5, 3)), np.zeros(5), np.ones(5))
    theta = rng.normal(size=(2, 4, len(family.coding), 4))
    eta = family.predictor(rows, theta)
    scores = rows.X @ theta[1, 2, :, 1:].T + theta[1, 2, :, 0]
    expected = scores @ family.coding
    np.testing.assert_allclose(eta[1, 2].reshape(5, -1), expected)


@pytest.mark.parametrize("family", LABEL_FAMILIES, ids=repr)
def test_sums_are_the_derivatives_of_the_weighted_log_likelihood(family):
    """The sums over rows lead where five-point differences of the likelihood say."""
    rng = np.random.default_rng(0)
    y, _, _ = draw(family, 0, n=20)
    rows = Rows(rng.normal(size=(20, 2)), y, np.ones(20))
    weight = rng.uniform(0.1, 1, size=20)
    theta = rng.normal(size=(len(family.coding), 3))

    def likelihood(flat):
        eta = family.predictor(rows, flat.reshape(theta.shape))
        return weight @ family.log_density(y, eta)

    sums = family.sums(family.design(rows), weight, family.predictor(rows, theta))
    numeric = [
        five_point(lambda t, u=u: likelihood(theta.ravel() + t * u), 0.0)
        for u in np.eye(theta.size)
    ]
    np.testing.assert_allclose(sums.gradient.ravel(), numeric, atol=1e-7)

    def gradient(flat):
        at = flat.reshape(theta.shape)
        return family.sums(family.design(rows), weight, family.predictor(rows, at)).gradient.ravel()

    numeric = [
        five_point(lambda t, u=u: gradient(theta.ravel() + t * u), 0.0) for u in np.eye(theta.size)
    ]
    np.testing.assert_allclose(sums.curvature, -np.array(numeric), atol=1e-7)


@given(st.integers(1, 20), st.integers(1, 5), st.integers(1, 4), st.integers(0, 10**6))
def test_weighted_grams_by_products_and_one_by_one_agree(n, p, sets, seed):
    rng = np.random.default_rng(seed)
    columns, weights = rng.normal(size=(n, p)), rng.normal(size=(2, sets, n))
    expected = np.einsum("rkn,ni,nj->rkij", weights, columns, columns)
    np.testing.assert_allclose(weighted_grams(columns, weights), expected, atol=1e-10)
    kept = weighted_grams(columns, weights, pair_products(columns))
    np.testing.assert_allclose(kept, expected, atol=1e-10)


def test_products_too_large_to_keep_are_not_kept():
    assert pair_products(np.zeros((1000, 100))) is None


def test_a_multinomial_has_two_classes_at_least():
    with pytest.raises(ValueError, match="n_classes must be at least 2; got 1"):
        Multinomial(1)


@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_many_classes_have_the_curvature_of_few(leading, monkeypatch):
    """The product taken apart for many classes is the one a pair of contrasts at a time."""
    rng = np.random.default_rng(0)
    family = Multinomial(5)
    rows = Rows(rng.normal(size=(40, 3)), rng.integers(0, 5, 40).astype(float), np.ones(40))
    design = family.design(rows)
    eta = rng.normal(size=(*leading, 40, 5))
    weight = rng.random((*leading, 40))
    few = family.sums(design, weight, eta)
    monkeypatch.setattr(families, "FEW_CLASSES", 2)
    many = family.sums(design, weight, eta)
    np.testing.assert_allclose(many.gradient, few.gradient, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(many.curvature, few.curvature, rtol=1e-10, atol=1e-12)


@every_family
@given(seed=st.integers(0, 10**6))
def test_any_smooth_function_of_the_target_is_in_its_basis(family, seed):
    """Of labels any function, of numbers near zero any cubic; their size goes with spreads."""
    y, _, _ = draw(family, seed, n=60)
    mean, spread = family.mean_basis(y, 3.0), family.spread_basis(y, 3.0)
    assert np.array_equal(spread[:, : mean.shape[1]], mean)
    wanted = [y, y**2, y**3] if np.abs(y).max() <= 3.0 or family != Gaussian() else [y]
    for basis, functions in ((mean, wanted), (spread, [*wanted, np.abs(y)])):
        design = np.column_stack([np.ones(len(y)), basis])
        for values in functions:
            fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
            np.testing.assert_allclose(fitted, values, atol=1e-6 * max(1.0, np.abs(values).max()))
