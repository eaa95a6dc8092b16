"""The simulators against brute force, closed forms and the published numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from hetrisk.datasets import (
    anti_causal_coefficients,
    make_anti_causal,
    make_cats_and_dogs,
    make_selection_bias,
    selection_bias_coefficients,
)
from hetrisk.datasets.selection_bias import _normal_laplace, log_survival


def rejected(n_proposals, r, n_features, n_biased, beta, rng):
    """The paper's own recipe: propose everything, keep by a coin."""
    n_phi = n_features // 2
    z = rng.standard_normal((n_proposals, n_phi + 1))
    phi = 0.8 * z[:, :-1] + 0.2 * z[:, 1:]
    psi = rng.standard_normal((n_proposals, n_features - n_phi))
    theta = selection_bias_coefficients(n_phi)
    f = phi @ theta + beta * phi[:, 0] * phi[:, 1] * phi[:, 2]
    distance = np.abs(f[:, None] - np.sign(r) * psi[:, :n_biased])
    keep = rng.random(n_proposals) <= np.prod(abs(r) ** (-5 * distance), axis=1)
    y = f + 0.3 * rng.standard_normal(n_proposals)
    return np.hstack([phi, psi])[keep], y[keep]


@pytest.mark.parametrize("r", [1.5, 1.9, 3.0, -1.1, -2.3])
@pytest.mark.parametrize("n_biased", [1, 2])
def test_selection_bias_is_what_rejection_sampling_gives(r, n_biased):
    rng = np.random.default_rng(3)
    X, y = rejected(400_000, r, 10, n_biased, 1.0, rng)
    assert len(y) > 3000
    X2, y2 = make_selection_bias(20_000, r, 10, n_biased, random_state=rng)
    for j in range(10):
        assert stats.ks_2samp(X[:, j], X2[:, j]).pvalue > 1e-4
    assert stats.ks_2samp(y, y2).pvalue > 1e-4
    # The correlations are what the bias is about: within four standard errors of each other.
    for j in range(5, 10):
        a, b = np.corrcoef(X[:, j], y)[0, 1], np.corrcoef(X2[:, j], y2)[0, 1]
        error = np.hypot((1 - a**2) / np.sqrt(len(y)), (1 - b**2) / np.sqrt(len(y2)))
        assert abs(np.arctanh(a) - np.arctanh(b)) < 4.5 * error / (1 - a**2)


def test_selection_bias_distance_from_f_matches_rejection_sampling():
    """The joint law of V_b and f, through |f - s v|, which the selection acts on."""
    rng = np.random.default_rng(0)
    theta = selection_bias_coefficients(5)

    def distance(X):
        return np.abs(X[:, :5] @ theta + np.prod(X[:, :3], axis=1) + X[:, 5])

    kept = distance(rejected(400_000, -1.9, 10, 1, 1.0, rng)[0])
    exact = distance(make_selection_bias(20_000, -1.9, random_state=rng)[0])
    assert stats.ks_2samp(kept, exact).pvalue > 1e-4


@pytest.mark.parametrize("r", [1.1, 1.9, 3.0])
def test_survival_is_the_expected_selection_probability(r):
    rate = 5 * np.log(r)
    for f in (-4.0, -0.7, 0.0, 1.3, 6.0):
        integral = integrate.quad(
            lambda v, f=f: stats.norm.pdf(v) * r ** (-5 * abs(f - v)), -12, 12, points=[f, 0]
        )[0]
        assert log_survival(np.array([f]), rate)[0] == pytest.approx(np.log(integral), abs=1e-6)


@given(
    f=st.floats(-30, 30), rate=st.floats(0, 20), size=st.integers(1, 4), seed=st.integers(0, 2**32)
)
@settings(max_examples=60, deadline=None)
def test_survival_peaks_at_zero_and_draws_stay_finite(f, rate, size, seed):
    at = log_survival(np.array([f, -f, 0.0]), rate)
    assert np.isfinite(at).all()
    assert at[0] == pytest.approx(at[1], abs=1e-8)
    assert at[0] <= at[2] + 1e-9
    draws = _normal_laplace(np.full(50, f), rate, size, np.random.default_rng(seed))
    assert draws.shape == (50, size)
    assert np.isfinite(draws).all()


@pytest.mark.parametrize(("f", "rate"), [(0.0, 3.2), (1.5, 0.5), (-2.0, 5.5), (9.0, 3.2)])
def test_draws_of_the_biased_column_follow_their_density(f, rate):
    rng = np.random.default_rng(1)
    draws = _normal_laplace(np.full(4000, f), rate, 1, rng)[:, 0]
    grid = np.linspace(-12, 12, 200_001)
    density = np.exp(-(grid**2) / 2 - rate * np.abs(f - grid))
    cdf = np.cumsum(density) / density.sum()
    assert stats.kstest(draws, lambda v: np.interp(v, grid, cdf)).pvalue > 1e-3


def test_no_bias_at_r_one():
    X, y = make_selection_bias(50_000, 1.0, n_biased=3, random_state=0)
    assert np.abs(np.corrcoef(X[:, 5:].T, y)[-1, :-1]).max() < 0.02
    assert np.cov(X[:, :5].T)[0, 1] == pytest.approx(0.16, abs=0.02)
    assert X[:, 0].var() == pytest.approx(0.68, abs=0.02)


@given(r=st.floats(1.05, 4.0), n_biased=st.integers(1, 5), seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_the_mirror_image_of_r_mirrors_the_biased_columns(r, n_biased, seed):
    X, y = make_selection_bias(50, r, n_biased=n_biased, random_state=seed)
    X2, y2 = make_selection_bias(50, -r, n_biased=n_biased, random_state=seed)
    sign = np.where((np.arange(10) >= 5) & (np.arange(10) < 5 + n_biased), -1, 1)
    np.testing.assert_allclose(X2, X * sign)
    np.testing.assert_allclose(y2, y)


def test_many_biased_columns_do_not_starve():
    X, y = make_selection_bias(2000, 3.0, n_features=40, n_biased=20, random_state=0)
    assert X.shape == (2000, 40)
    assert np.corrcoef(X[:, 20:].T, y)[-1, :-1].min() > 0.3


def test_coefficients_as_published():
    np.testing.assert_allclose(selection_bias_coefficients(6), [0.5, -1, 1.5, -0.5, 1, -1.5])
    X, y = make_selection_bias(40_000, 1.0, beta=0.0, random_state=0)
    slopes = np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(slopes[:5], [0.5, -1, 1.5, -0.5, 1], atol=0.02)
    assert np.std(y - X @ slopes) == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0, "r": 2.0}, "n_samples must be at least 1; got 0"),
        ({"n_samples": 2.5, "r": 2.0}, "n_samples must be an integer; got 2.5"),
        ({"n_samples": 5, "r": 0.5}, r"r must be finite with \|r\| >= 1; got 0.5"),
        ({"n_samples": 5, "r": np.nan}, r"r must be finite with \|r\| >= 1; got nan"),
        ({"n_samples": 5, "r": np.inf}, r"r must be finite"),
        ({"n_samples": 5, "r": 2.0, "n_features": 5}, "n_features must be at least 6; got 5"),
        ({"n_samples": 5, "r": 2.0, "n_biased": 6}, "n_biased must be between 0 and 5"),
    ],
)
def test_selection_bias_errors(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make_selection_bias(**arguments)


@pytest.mark.parametrize("environment", [1, 3, 10])
def test_anti_causal_moments(environment):
    theta_phi, theta_psi = np.linspace(-1, 2, 6), np.array([0.5, -0.2])
    X, y = make_anti_causal(
        200_000,
        environment,
        n_phi=6,
        n_psi=2,
        theta_phi=theta_phi,
        theta_psi=theta_psi,
        random_state=0,
    )
    sigma = {1: 0.2, 3: 1.0, 10: 15.0}[environment]
    centre = {1: (1, 1), 3: (-1, 1), 10: (-1, -1)}[environment]
    np.testing.assert_allclose(X[:, :6].mean(axis=0), [0, 0, 0, *centre, 0], atol=0.015)
    np.testing.assert_allclose(np.cov(X[:, :6].T), np.eye(6), atol=0.015)
    noise = X[:, 6:] - np.outer(y, theta_psi)
    np.testing.assert_allclose(np.cov(noise.T), sigma * np.eye(2), atol=0.02 * sigma)
    residual = y - X[:, :6] @ theta_phi - 0.1 * np.prod(X[:, :3], axis=1)
    assert residual.std() == pytest.approx(0.3, abs=0.003)


def test_anti_causal_coefficients():
    theta_phi, theta_psi = anti_causal_coefficients(50_000, 50_000, 0)
    assert theta_phi.mean() == pytest.approx(1, abs=0.02)
    assert theta_phi.var() == pytest.approx(1, abs=0.02)
    assert theta_psi.mean() == pytest.approx(0.5, abs=0.01)
    assert theta_psi.std() == pytest.approx(0.1, abs=0.003)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"environment": 0}, "environment must be one of 1, .*; got 0"),
        ({"environment": 11}, "environment must be one of 1, .*; got 11"),
        ({"theta_phi": [np.nan] * 9}, "theta_phi must be finite"),
        ({"n_phi": 4}, "n_phi must be at least 5; got 4"),
        ({"theta_phi": [1.0]}, r"theta_phi must have shape \(9,\); got \(1,\)"),
    ],
)
def test_anti_causal_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_anti_causal(10, **arguments)


CATS_AND_DOGS = {  # (class): background is grass, signature is Eric's, as printed in the table
    "e1": {0: (0, 0), 1: (1, 1)},
    "e2": {0: (1, 1), 1: (0, 0)},
    "e3": {0: (0, 1), 1: (1, 0)},
    "e4": {0: (1, 0), 1: (0, 1)},
}


@pytest.mark.parametrize("environment", list(CATS_AND_DOGS))
def test_cats_and_dogs_table(environment):
    X, y = make_cats_and_dogs(200, environment, random_state=0)
    np.testing.assert_array_equal(X[:, 0], y)
    for label, expected in CATS_AND_DOGS[environment].items():
        assert {tuple(row) for row in X[y == label, 1:].astype(int)} == {expected}


@pytest.mark.parametrize(("environment", "major"), [("e5", "e1"), ("e6", "e3")])
def test_cats_and_dogs_mixtures(environment, major):
    X, y = make_cats_and_dogs(20_000, environment, random_state=0)
    expected = np.array([CATS_AND_DOGS[major][label] for label in y])
    assert (X[:, 1:] == expected).all(axis=1).mean() == pytest.approx(0.9, abs=0.01)
    assert (X[:, 1:] == 1 - expected).all(axis=1).mean() == pytest.approx(0.1, abs=0.01)
    assert y.mean() == pytest.approx(0.5, abs=0.02)


def test_cats_and_dogs_noise_and_errors():
    X, y = make_cats_and_dogs(20_000, "e5", noise=0.25, random_state=0)
    assert (X[:, 0] != y).mean() == pytest.approx(0.25, abs=0.02)
    with pytest.raises(ValueError, match=r"environment must be one of 'e1', .*; got 'e7'"):
        make_cats_and_dogs(10, "e7")
    with pytest.raises(ValueError, match=r"noise must be between 0 and 1; got 1\.5"):
        make_cats_and_dogs(10, noise=1.5)


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: make_selection_bias(20, 1.9, random_state=seed),
        lambda seed: make_anti_causal(20, random_state=seed),
        lambda seed: make_cats_and_dogs(20, random_state=seed),
    ],
)
def test_seeds_decide_everything(make):
    (X, y), (X2, y2), (X3, _) = make(7), make(7), make(8)
    np.testing.assert_array_equal(X, X2)
    np.testing.assert_array_equal(y, y2)
    assert not np.array_equal(X, X3)
    X4, _ = make(np.random.default_rng(7))
    np.testing.assert_array_equal(X, X4)
