"""One regression or two slopes: batches, likelihoods, nesting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetrisk.core.sources.design import BatchDesign
from hetrisk.core.sources.one_regression import log_normal, one_regression
from hetrisk.core.sources.slopes import gains, gains_from, two_slopes


def table(seed: int, n: int = 300, p: int = 4):
    rng = np.random.default_rng(seed)
    Z = np.column_stack([np.ones(n), rng.standard_normal((n, p - 1))])
    y = Z @ rng.standard_normal(p) + rng.standard_normal(n)
    return Z, y.astype(np.float32)


def every(B: int, p: int) -> np.ndarray:
    return np.ones((B, p), dtype=bool)


@given(seed=st.integers(0, 1000), p=st.integers(2, 6))
@settings(max_examples=15, deadline=None)
def test_weighted_fits_are_weighted_least_squares(seed, p):
    Z, y = table(seed, 60, p)
    w = np.random.default_rng(seed).random((2, 60)).astype(np.float32)
    coef = BatchDesign(Z, np.ones(60)).fits(w, w * y, every(2, p))
    for i in (0, 1):
        root = np.sqrt(w[i])
        exact = np.linalg.lstsq(Z * root[:, None], y * root, rcond=None)[0]
        assert coef[i] == pytest.approx(exact, abs=2e-3)


def test_a_masked_column_is_held_at_zero_and_the_others_fit_without_it():
    Z, y = table(1)
    mask = every(1, 4)
    mask[0, 2] = False
    w = np.ones((1, 300), dtype=np.float32)
    coef = BatchDesign(Z, np.ones(300)).fits(w, w * y, mask)[0]
    rest = [0, 1, 3]
    exact = np.linalg.lstsq(Z[:, rest], y, rcond=None)[0]
    assert coef[2] == 0
    assert coef[rest] == pytest.approx(exact, abs=1e-3)


def test_a_column_of_zeros_and_a_repeated_column_end_no_fit():
    Z, y = table(2)
    Z = np.column_stack([Z, Z[:, 1], np.zeros(300)])
    gain, two, _ = gains(BatchDesign(Z, np.ones(300)), y[None])
    assert np.isfinite(gain).all()
    assert np.isfinite(two.coef).all()


@given(seed=st.integers(0, 300))
@settings(max_examples=10, deadline=None)
def test_the_likelihood_of_two_slopes_never_falls_with_more_iterations(seed):
    Z, y = table(seed)
    design, mask = BatchDesign(Z, np.ones(300)), every(1, 4)
    one = one_regression(design, y[None], mask)
    start = np.random.default_rng(seed).random((1, 300)).astype(np.float32)
    path = [
        float(two_slopes(design, y[None], start, one.noise, mask, k, -np.inf).log_likelihood[0])
        for k in (3, 6, 12, 24)
    ]
    assert np.all(np.diff(path) > -1e-4)


def test_two_slopes_gain_on_one_regression_and_find_slopes_that_differ():
    rng = np.random.default_rng(0)
    Z = np.column_stack([np.ones(800), rng.standard_normal((800, 2))])
    sign = np.where(rng.random(800) < 0.3, -1.0, 1.0)
    y = Z[:, 1] + 1.5 * sign * Z[:, 2] + 0.3 * rng.standard_normal(800)
    gain, two, one = gains(BatchDesign(Z, np.ones(800)), y[None])
    assert gain[0] > 0.3
    assert np.sort(two.coef[:, 0, 2]) == pytest.approx([-1.5, 1.5], abs=0.1)
    assert two.coef[:, 0, 1] == pytest.approx([1.0, 1.0], abs=0.1)
    assert one.coef[0, 1] == pytest.approx(1.0, abs=0.15)
    assert min(two.second.mean(), 1 - two.second.mean()) == pytest.approx(0.3, abs=0.05)


def test_heavy_tails_skewed_noise_and_outliers_are_no_gain():
    rng = np.random.default_rng(1)
    Z = np.column_stack([np.ones(1500), rng.standard_normal((1500, 3))])
    noises = [
        rng.standard_t(3, 1500),
        rng.gamma(4.0, 0.5, 1500),
        np.where(rng.random(1500) < 0.03, 10.0, 1.0) * rng.standard_normal(1500),
    ]
    Y = np.array([Z @ [0.0, 1.0, -1.0, 0.5] + noise for noise in noises])
    gain, _, _ = gains(BatchDesign(Z, np.ones(1500)), Y)
    assert np.all(gain > -1e-3)
    assert np.all(gain < 0.03)


def test_a_batch_gives_what_each_target_gives_alone():
    Z, y = table(3)
    other = table(4)[1]
    design = BatchDesign(Z, np.ones(300))
    together = gains(design, np.array([y, other]))[0]
    alone = [gains(design, target[None])[0][0] for target in (y, other)]
    assert together == pytest.approx(alone, abs=1e-4)


def test_a_noise_that_is_known_is_as_good_a_start_as_three():
    rng = np.random.default_rng(7)
    Z = np.column_stack([np.ones(1000), rng.standard_normal((1000, 2))])
    design = BatchDesign(Z, np.ones(1000))
    noise = np.stack([rng.gamma(2.0, 1.0, 1000), 3.0 * rng.gamma(2.0, 1.0, 1000)])
    Y = (Z @ [0.0, 1.0, -1.0] + noise).astype(np.float32)
    known = one_regression(design, Y[:1], every(1, 3)).noise
    searched = one_regression(design, Y, every(2, 3))
    told = one_regression(design, Y, every(2, 3), like=known)
    assert told.log_likelihood == pytest.approx(searched.log_likelihood, abs=1e-3)
    assert told.coef == pytest.approx(searched.coef, abs=0.05)


def test_a_few_wide_fits_are_those_of_a_batch():
    Z, y = table(8, 300, 30)
    design = BatchDesign(Z, np.ones(300))
    w = np.random.default_rng(8).random((8, 300)).astype(np.float32)
    batch = design.fits(w, w * y, every(8, 30))
    few = design.fits(w[:2], w[:2] * y, every(2, 30))
    assert few == pytest.approx(batch[:2], abs=1e-3)


def test_weights_count_rows():
    Z, y = table(5, 200)
    weight = np.random.default_rng(5).integers(1, 4, 200)
    repeated = np.repeat(np.arange(200), weight)
    one = one_regression(BatchDesign(Z, weight.astype(float)), y[None], every(1, 4))
    many = one_regression(
        BatchDesign(Z[repeated], np.ones(len(repeated))), y[repeated][None], every(1, 4)
    )
    assert one.log_likelihood == pytest.approx(many.log_likelihood, abs=1e-3)
    assert one.coef == pytest.approx(many.coef, abs=5e-3)


def test_without_the_column_that_differs_nothing_is_gained():
    rng = np.random.default_rng(6)
    Z = np.column_stack([np.ones(800), rng.standard_normal((800, 3))])
    sign = np.where(rng.random(800) < 0.3, -1.0, 1.0)
    y = Z[:, 1] + 1.5 * sign * Z[:, 2] + 0.3 * rng.standard_normal(800)
    design = BatchDesign(Z, np.ones(800))
    _, two, _ = gains(design, y[None])
    mask = every(3, 4)
    mask[np.arange(3), 1 + np.arange(3)] = False
    gain, risk = gains_from(design, y, two.second[0], mask)
    assert np.argmin(gain) == 1
    assert gain[1] < 0.03 < gain[2]
    assert risk[0] > risk[2]


@pytest.mark.parametrize("seed", range(3))
def test_a_slope_that_turns_in_few_rows_is_not_taken_for_heavy_tails(seed):
    """One regression gives such rows to the wider part of its noise; EM must get them back."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2500, 12))
    sign = np.where(rng.random(2500) < 0.06, -1.0, 1.0)
    y = X[:, :8].sum(axis=1) + 1.3 * sign * X[:, 11] + 0.5 * rng.standard_normal(2500)
    design = BatchDesign(np.column_stack([np.ones(2500), X]), np.full(2500, 1 / 2500))
    found, two, _ = gains(design, y[None])
    told = two_slopes(
        design,
        y[None].astype(np.float32),
        (sign[None] < 0).astype(np.float32),
        one_regression(design, y[None].astype(np.float32), np.ones((1, 13), dtype=bool)).noise,
        np.ones((1, 13), dtype=bool),
    )
    assert found[0] > 0.05
    assert two.log_likelihood[0] > told.log_likelihood[0] - 0.005


@pytest.mark.filterwarnings("error")
def test_a_part_that_holds_no_row_is_no_warning():
    one = np.ones(2, dtype=np.float32)
    log = log_normal(np.ones((2, 3), dtype=np.float32), one, np.array([0.5, 0.0], np.float32))
    assert np.exp(log[0]) == pytest.approx(0.5 * np.exp(-0.5), rel=1e-5)
    assert (np.exp(log[1]) < 1e-30).all()
