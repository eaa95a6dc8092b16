"""Rows told apart by content; levels summed, and merged where they are thin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetrisk.blocks import ArrayBlocks
from hetrisk.core.environments.content import keys, parts, sampled
from hetrisk.core.environments.levels import Levels, cell_sums, environments
from hetrisk.core.environments.memberships import Memberships
from hetrisk.core.environments.thin import kept, merge
from hetrisk.core.numerics.families import Gaussian
from hetrisk.core.numerics.rows import Rows


def held(r):
    return ArrayBlocks(r.X, r.y, r.weight, aside=r.aside)


def rows(seed=0, n=400, d=3, J=4):
    rng = np.random.default_rng(seed)
    X, e = rng.standard_normal((n, d)), rng.integers(0, J, n)
    y = X.sum(axis=1) + rng.standard_normal(n)
    return Rows(X, y, np.ones(n), aside=e[:, None].astype(float))


@given(seed=st.integers(0, 100))
def test_keys_know_content_and_no_order(seed):
    r, rng = rows(seed), np.random.default_rng(seed)
    order, columns = rng.permutation(400), rng.permutation(3)
    moved = Rows(r.X[order][:, columns], r.y[order], r.weight)
    assert (keys(moved) == keys(r)[order]).all()
    assert len(np.unique(keys(r))) == 400


def test_parts_and_samples_are_even():
    r = rows(n=20_000)
    assert np.bincount(parts(r, 5)).std() < 100
    few = sampled(held(r), 2000, 20_000)
    assert len(few) == pytest.approx(2000, rel=0.1)
    assert few.aside.shape == (len(few), 1)
    order = np.random.default_rng(1).permutation(20_000)
    moved = Rows(r.X[order], r.y[order], r.weight, aside=r.aside[order])
    again = sampled(held(moved), 2000, 20_000)
    np.testing.assert_array_equal(few.X, again.X)
    np.testing.assert_array_equal(few.aside, again.aside)


@given(seed=st.integers(0, 100), J=st.integers(1, 6))
def test_sums_by_cell(seed, J):
    rng = np.random.default_rng(seed)
    Z, w, cell = rng.standard_normal((50, 3)), rng.uniform(0, 2, 50), rng.integers(-1, J, 50)
    sums = cell_sums(Z, w, cell, J)
    for j in range(J):
        own = cell == j
        np.testing.assert_allclose(sums[j], (Z[own] * w[own, None]).T @ Z[own], atol=1e-12)


def test_levels_with_rows_enough_stay_as_they_are():
    levels = Levels("where", ("a", "b", "c", "d"), False, 0)
    found = environments(held(rows(n=2000)), Gaussian(), levels)
    assert found.names == ("a", "b", "c", "d")
    assert not found.merged.merged
    np.testing.assert_array_equal(found.codes(rows(n=2000)), rows(n=2000).aside[:, 0])


@pytest.mark.parametrize("ordered", [True, False])
def test_thin_levels_are_merged(ordered):
    r = rows(n=800, J=100)
    levels = Levels("when", tuple(map(str, range(100))), ordered, 0)
    found = environments(held(r), Gaussian(), levels)
    assert 2 <= len(found.names) <= 8
    codes = found.codes(r)
    assert codes.min() >= 0
    sizes = np.bincount(codes)
    assert sizes.min() > 0.3 * sizes.max()
    np.testing.assert_allclose(found.sums[:, 0, 0], sizes)
    if ordered:
        assert (np.diff(found.merged.lookup[0]) >= 0).all()
        assert (found.merged.lookup[0] == found.merged.lookup[-1]).all()


def test_a_level_of_a_few_rows_joins_the_others_or_none():
    sums = np.zeros((4, 3, 3))
    sums[:, 0, 0] = [500, 500, 3, 2]
    assert kept(sums, 1).lookup[0].tolist() == [0, 1, 2, 2]
    sums[:, 0, 0] = [500, 500, 2, 1]
    assert kept(sums, 1).lookup[0].tolist() == [0, 1, -1, -1]
    sums[:, 0, 0] = [20, 20, 20, 20]
    assert kept(sums, 1) is None
    assert merge(sums[None] + 1e-3 * np.eye(3), 1, True).count == 2


def test_memberships_follow_the_regression():
    rng = np.random.default_rng(0)
    X, e = rng.standard_normal((2000, 1)), np.arange(2000) % 2
    y = np.where(e == 0, 2.0, -2.0) * X[:, 0] + 0.3 * rng.standard_normal(2000)
    Z = np.column_stack([np.ones(2000), X, y])
    found = Memberships.of(cell_sums(Z, np.ones(2000), e, 2), Gaussian(), 1)
    share = found(Rows(X, y, np.ones(2000)))
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
    far = np.abs(X[:, 0]) > 0.5
    assert np.mean(share.argmax(axis=1)[far] == e[far]) > 0.98
