"""The tests hold their level, see what they should, and count weights as rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hetrisk.metrics import (
    column_differs,
    each_slope_differs,
    noise_differs,
    slopes_differ,
    spreads_differ,
)

from .made import drifting_cause, homogeneous, shifting_effect

TESTS = {
    "slopes": slopes_differ,
    "noise": noise_differs,
    "column": column_differs,
    "spreads": lambda X, y, e, w=None: spreads_differ(y - X.sum(axis=1), e, w),
}


def draw(rng, n=300, d=3, K=5, heavy=True):
    X, e = rng.standard_normal((n, d)), rng.integers(0, K, n)
    # Noise of another size in every row: the errors have to be robust.
    noise = (0.5 + np.abs(X[:, 0])) * (rng.standard_t(4, n) if heavy else rng.standard_normal(n))
    return X, X.sum(axis=1) + noise, e


@pytest.mark.parametrize("name", TESTS)
def test_level(name):
    rng = np.random.default_rng(0)
    p = np.array([TESTS[name](*draw(rng)) for _ in range(200)])
    # Where noise grows with a column and has heavy tails, its size is compared with less calm.
    assert (p < 0.05).mean() < (0.15 if name == "noise" else 0.11)
    assert (p < 0.01).mean() < 0.05
    assert p.mean() > 0.35


def test_level_where_rows_are_few():
    rng = np.random.default_rng(1)
    p = np.array([slopes_differ(*draw(rng, n=160, K=8)) for _ in range(200)])  # five a coefficient
    assert (p < 0.05).mean() < 0.1


def test_power():
    X, y, e = drifting_cause(0)
    assert slopes_differ(X, y, e) < 1e-10
    each = each_slope_differs(X, y, e)
    assert each[3] < 1e-10
    assert each[:3].min() > 1e-3
    assert noise_differs(X, y, e) > 0.01
    X, y, e = shifting_effect(0)
    assert slopes_differ(X, y, e) < 1e-10
    assert noise_differs(X, y, e) < 1e-10
    assert column_differs(X[:, :3], X[:, 3], e) < 1e-10
    assert slopes_differ(X[:, :3], y, e) > 0.01


def test_two_environments_are_welchs_t_test():
    rng = np.random.default_rng(2)
    residual, e = rng.standard_normal(200), np.repeat([0, 1], 100)
    size = np.abs(residual)
    t = stats.ttest_ind(size[e == 0], size[e == 1], equal_var=False)
    assert spreads_differ(residual, e) == pytest.approx(t.pvalue, rel=1e-6)


def test_one_environment_says_nothing():
    X, y, e = homogeneous()
    for test in TESTS.values():
        assert test(X, y, 0 * e) == 1.0
    assert each_slope_differs(X, y, 0 * e).tolist() == [1.0] * 4


def test_rows_in_no_environment_take_no_part():
    X, y, e = drifting_cause(0)
    far = np.vstack([X, 100 + X[:5]]), np.append(y, 1e3 * y[:5]), np.append(e, [-1] * 5)
    assert slopes_differ(*far) == pytest.approx(slopes_differ(X, y, e), rel=1e-6)


@given(seed=st.integers(0, 200), name=st.sampled_from(sorted(TESTS)))
def test_a_weight_of_two_is_the_row_twice(seed, name):
    rng = np.random.default_rng(seed)
    X, y, e = draw(rng, n=80, K=3)
    times = rng.integers(0, 3, 80)
    twice = np.repeat(np.arange(80), times)
    test = TESTS[name]
    expected = test(X[twice], y[twice], e[twice])
    assert test(X, y, e, times.astype(float)) == pytest.approx(expected, rel=1e-6)


@given(seed=st.integers(0, 200), name=st.sampled_from(sorted(TESTS)))
def test_order_and_names_do_not_matter(seed, name):
    rng = np.random.default_rng(seed)
    X, y, e = draw(rng, n=90, K=3)
    rows, columns, names = rng.permutation(90), rng.permutation(3), rng.permutation(3)
    test = TESTS[name]
    expected = test(X, y, e)
    moved = test(X[rows][:, columns], y[rows], names[e][rows])
    assert moved == pytest.approx(expected, rel=1e-6, abs=1e-12)
