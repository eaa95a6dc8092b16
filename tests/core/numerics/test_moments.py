"""Moments: what they are, and that those of parts merge to those of the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetrisk.core.numerics.moments import moments
from hetrisk.core.numerics.rows import Rows


@st.composite
def blocks(draw, largest=30):
    n, d = draw(st.integers(2, largest)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shift = draw(st.sampled_from([0.0, -3.0, 1e4]))
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], size=n)
    weight[0] = 1.0
    return Rows(rng.normal(shift, 2.0, (n, d)), rng.normal(size=n), weight)


def part(rows, index):
    return Rows(rows.X[index], rows.y[index], rows.weight[index])


def assert_same(a, b):
    np.testing.assert_allclose(a.weight, b.weight, rtol=1e-12)
    np.testing.assert_allclose(a.mean, b.mean, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(a.scatter, b.scatter, rtol=1e-9, atol=1e-8)


def brute_force(rows):
    z = np.column_stack([rows.X, rows.y])
    mean = np.average(z, axis=0, weights=rows.weight)
    return mean, sum(w * np.outer(r - mean, r - mean) for w, r in zip(rows.weight, z, strict=True))


@given(blocks())
def test_moments_are_weighted_sums(rows):
    m = moments(rows)
    mean, scatter = brute_force(rows)
    assert m.weight == pytest.approx(rows.weight.sum())
    np.testing.assert_allclose(m.mean, mean, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(m.scatter, scatter, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(m.covariance, scatter / rows.weight.sum(), rtol=1e-9, atol=1e-8)


@given(blocks(), st.data())
def test_parts_merge_to_the_whole(rows, data):
    cut = data.draw(st.integers(0, len(rows)))
    merged = moments(part(rows, slice(cut))) + moments(part(rows, slice(cut, None)))
    assert_same(merged, moments(rows))


@given(blocks(), st.data())
def test_merging_is_associative_and_commutes(rows, data):
    a, b = sorted(data.draw(st.tuples(*[st.integers(0, len(rows))] * 2)))
    one, two, three = (moments(part(rows, slice(*s))) for s in [(0, a), (a, b), (b, len(rows))])
    assert_same((one + two) + three, one + (two + three))
    assert_same(one + two, two + one)


@given(blocks(), st.integers(1, 4))
def test_environments_pool_to_the_whole(rows, K):
    shares = np.random.default_rng(K).dirichlet(np.ones(K), size=len(rows))
    m = moments(rows, shares)
    assert m.weight.shape == (K,)
    assert_same(m.pooled(), moments(rows))
    assert_same(m[0], moments(Rows(rows.X, rows.y, rows.weight * shares[:, 0])))


@given(blocks())
def test_a_row_of_weight_zero_is_no_row(rows):
    assert_same(moments(part(rows, rows.weight > 0)), moments(rows))


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_a_large_mean_costs_no_digits(seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(1000, 3))
    rows = Rows(1e6 + z[:, :2], z[:, 2], np.ones(1000))
    m = moments(part(rows, slice(300))) + moments(part(rows, slice(300, None)))
    # 1e6 + z itself is rounded at 1e-10: no more may be lost than that.
    np.testing.assert_allclose(m.covariance, np.cov(z.T, ddof=0), atol=1e-9)


def test_no_rows_weigh_nothing():
    empty = moments(Rows(np.zeros((0, 2)), np.zeros(0), np.zeros(0)))
    full = moments(Rows(np.ones((2, 2)), np.array([0.0, 1.0]), np.ones(2)))
    assert_same(empty + full, full)
    np.testing.assert_array_equal(empty.covariance, np.zeros((3, 3)))


@pytest.mark.parametrize("spoiled", [np.nan, np.inf])
def test_rows_that_are_not_finite_give_moments_that_are_not(spoiled):
    X = np.array([[1.0], [spoiled], [3.0]])
    m = moments(Rows(X, np.arange(3.0), np.ones(3)))
    assert np.isnan(m.covariance[0, 0])
    assert m.mean[1] == 1.0
