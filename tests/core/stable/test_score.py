"""One population or two slopes; one mechanism or several; effects told from causes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetrisk.core.stable.flexible import flexible_mean
from hetrisk.core.stable.mechanism import mechanisms_differ, weighted_chi_squared
from hetrisk.core.stable.roles import effects
from hetrisk.core.stable.score import two_slope_score
from hetrisk.core.stable.two_slopes import Design, gains, one_regression, two_regressions


def two_slopes(seed, n=800, share=0.2, noise=0.4):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    slope = np.where(rng.random(n) < share, -1.0, 1.0)
    return x, slope * x + noise * rng.standard_normal(n), slope < 0


@pytest.mark.parametrize("seed", range(3))
def test_two_slopes_are_found_and_told_apart(seed):
    x, v, other = two_slopes(seed)
    score = two_slope_score(x[:, None], v, np.ones(len(x)))
    assert score.p_value < 0.01
    far = np.abs(x) > 1
    assert np.mean((score.second > 0.5)[far] == other[far]) > 0.9
    assert score.gain.mean() > 0


@pytest.mark.parametrize("noise", ["normal", "heavy", "skewed", "growing", "outliers"])
def test_one_population_is_left_at_that(noise):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(800)
    u = {
        "normal": rng.standard_normal(800),
        "heavy": rng.standard_t(3, 800),
        "skewed": rng.exponential(size=800),
        "growing": rng.standard_normal(800) * (0.3 + np.abs(x)),
        "outliers": rng.standard_normal(800) * np.where(rng.random(800) < 0.05, 8, 1),
    }[noise]
    for curve in (x, x + 0.5 * x**2):
        # Ten tests in all: the least of ten p-values.
        assert two_slope_score(x[:, None], curve + 0.5 * u, np.ones(800)).p_value > 0.005


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), p=st.integers(1, 3))
def test_two_regressions_hold_one(seed, p):
    rng = np.random.default_rng(seed)
    Z = np.column_stack([np.ones(120), rng.standard_normal((120, p))])
    Y = Z @ rng.standard_normal((p + 1, 3)) + rng.standard_normal((120, 3))
    design = Design(Z, np.ones(120))
    one = one_regression(design, Y.T)
    two = two_regressions(design, Y.T, one)
    gain, _ = gains(design, Y.T)
    np.testing.assert_allclose(gain, two.likelihood - one.likelihood)
    assert gain.min() > -1e-3  # a local maximum may be as good as one regression, hardly worse
    np.testing.assert_allclose(two.belongs.sum(axis=0), 1.0)
    # A target beside others is fitted as it is alone.
    alone = one_regression(design, Y.T[:1])
    np.testing.assert_allclose(alone.coef[0, 0], one.coef[0, 0], atol=1e-8)


def test_normal_noise_gives_least_squares():
    rng = np.random.default_rng(0)
    Z = np.column_stack([np.ones(2000), rng.standard_normal((2000, 2))])
    y = Z @ [1.0, 2.0, -1.0] + rng.standard_normal(2000)
    fit = one_regression(Design(Z, np.ones(2000)), y[None])
    # The second part of the noise has a mean of its own, which the constant makes up for.
    line = np.linalg.lstsq(Z, y, rcond=None)[0]
    np.testing.assert_allclose(fit.coef[0, 0, 1:], line[1:], atol=0.02)


def anti_causal(seed, spreads, n=900):
    rng = np.random.default_rng(seed)
    e = np.arange(n) % 3
    X = rng.standard_normal((n, 3)) + rng.standard_normal((3, 3))[e]
    y = X.sum(axis=1) + 0.5 * rng.standard_normal(n)
    effect = 0.8 * y + np.array(spreads)[e] * rng.standard_normal(n)
    return np.column_stack([X, effect]), y


@pytest.mark.parametrize("seed", range(3))
def test_effects_and_their_mechanism(seed):
    for spreads, moved in (((0.3, 1.0, 2.0), True), ((1.0, 1.0, 1.0), False)):
        X, y = anti_causal(seed, spreads)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        w, g = np.ones(len(y)), np.arange(4)
        known = np.column_stack([y, y**2, y**3])
        assert effects(X, known, g, w).tolist() == [False, False, False, True]
        spread = np.column_stack([w, known, np.abs(y)])
        (p,) = mechanisms_differ(X, spread, np.array([3]), g, w)
        assert (p < 1e-3) if moved else (p > 0.01)


def test_weighted_chi_squared():
    from scipy.stats import chi2

    assert weighted_chi_squared(7.0, np.ones(3)) == pytest.approx(chi2.sf(7.0, 3))
    rng = np.random.default_rng(0)
    weights = np.array([3.0, 1.0, 0.5])
    drawn = rng.standard_normal((200_000, 3)) ** 2 @ weights
    for q in (5.0, 10.0, 20.0):
        assert weighted_chi_squared(q, weights) == pytest.approx((drawn > q).mean(), rel=0.1)
    assert weighted_chi_squared(1.0, np.zeros(2)) == 1.0


def test_a_mean_that_bends():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 4))
    w = np.ones(1500)
    noise = 0.3 * rng.standard_normal(1500)
    for curve in (X[:, 0] * X[:, 1] * X[:, 2], X[:, 0] ** 2, np.abs(X[:, 3] - 0.5)):
        left = X[:, 0] + curve + noise - flexible_mean(X, X[:, 0] + curve + noise, w)
        assert left.std() < 0.4
    straight = X @ [1.0, -1.0, 0.0, 2.0] + noise
    Z = np.column_stack([np.ones(1500), X])
    line = Z @ np.linalg.lstsq(Z, straight, rcond=None)[0]
    np.testing.assert_allclose(flexible_mean(X, straight, w), line, atol=1e-8)
