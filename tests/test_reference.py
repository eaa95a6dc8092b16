"""What is remembered of training rows, and what it says about new ones."""

from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from hetrisk.core.drift.reference import distances, measure, profile
from hetrisk.core.drift.strength import (
    Estimate,
    Origin,
    reach_of,
    strength_of_labels,
    strength_of_numbers,
)
from hetrisk.core.numerics.multiplicity import holm
from hetrisk.core.numerics.rows import Held, Rows


def rows(X, y=None, weight=None):
    y = np.zeros(len(X)) if y is None else y
    return Rows(X, y, np.ones(len(X)) if weight is None else weight)


@dataclass(frozen=True)
class Split:
    """Rows in several blocks."""

    parts: list
    whole: Rows

    def sum(self, function):
        return reduce(add, map(function, self.parts))

    def sample(self, size, seed):
        return self.whole


def test_moments_and_extremes_are_those_of_the_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(3, 2, size=(500, 3)), rng.normal(size=500)
    found = measure(Held(rows(X, y)))
    Z = np.column_stack([X, y])
    np.testing.assert_allclose(found.mean, Z.mean(axis=0))
    np.testing.assert_allclose(found.sd, Z.std(axis=0))
    np.testing.assert_array_equal(found.low, Z.min(axis=0))
    np.testing.assert_array_equal(found.high, Z.max(axis=0))
    assert found.n_rows == 500


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 60), st.integers(0, 1000))
def test_blocks_merge_to_the_whole(block, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(1e6, 1, 60), rng.integers(0, 2, 60)])
    whole = measure(Held(rows(X)))
    parts = measure(Split([rows(X[i : i + block]) for i in range(0, 60, block)], rows(X)))
    for name in ("mean", "sd", "low", "high", "cdf", "indicator"):
        np.testing.assert_allclose(
            getattr(parts, name), getattr(whole, name), rtol=1e-9, atol=1e-9, err_msg=name
        )


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 300), st.integers(0, 1000))
def test_points_are_quantiles_and_shares_are_counted(n, seed):
    X = np.random.default_rng(seed).integers(0, 50, (n, 2)) / 7.0
    found = measure(Held(rows(X)))
    levels = np.linspace(0, 1, len(found.points))
    wanted = np.quantile(X, levels, axis=0, method="higher")
    np.testing.assert_array_equal(found.points[:, :2], wanted)
    shares = [(X[:, j] <= wanted[:, j, None]).mean(axis=1) for j in (0, 1)]
    np.testing.assert_allclose(found.cdf[:, :2], np.column_stack(shares))


def test_weights_count_in_the_scale_and_not_in_the_reference():
    X, weight = np.arange(6.0)[:, None], np.array([0.0, 1.0, 2.0, 1.0, 5.0, 0.5])
    found = profile(rows(X, weight=weight))
    assert found.weighted.centre[0] == pytest.approx(np.average(X[:, 0], weights=weight))
    assert found.columns.centre[0] == pytest.approx(3.0)
    assert found.n == 5


def test_rows_of_no_weight_do_not_count():
    X = np.array([[0.0], [1.0], [99.0]])
    found = measure(Held(rows(X, weight=np.array([1.0, 1.0, 0.0]))))
    assert found.high[0] == 1.0
    assert found.n_rows == 2


@pytest.mark.parametrize("n", [30, 300])
def test_p_values_are_valid_when_nothing_moved(n):
    rng = np.random.default_rng(n)
    small = np.zeros(5)
    for _ in range(200):
        both = np.column_stack(
            [
                rng.normal(size=400 + n),
                rng.standard_cauchy(size=400 + n),
                rng.integers(0, 2, 400 + n),
                rng.integers(0, 4, 400 + n),
                rng.random(400 + n) < 0.02,
            ]
        )
        _, p = distances(measure(Held(rows(both[:400]))), both[400:])
        small += p < 0.05
    assert np.all(small / 200 < 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 200))


def test_a_shift_is_found_and_measured():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=2000), rng.integers(0, 2, 2000), rng.normal(size=2000)])
    new = np.column_stack([rng.normal(1, 1, 500), rng.random(500) < 0.8, rng.normal(size=500)])
    distance, p = distances(measure(Held(rows(X))), new)
    # The distribution functions of N(0, 1) and N(1, 1) are 0.383 apart at one half.
    assert distance[0] == pytest.approx(0.383, abs=0.05)
    assert distance[1] == pytest.approx(0.3, abs=0.05)
    assert np.all(p[:2] < 1e-6)
    assert p[2] > 0.01


def test_values_far_outside_are_told_from_those_at_the_edge():
    found = measure(Held(rows(np.array([[0.0, 0.0], [10.0, 1.0]]))))
    X = np.array([[10.5, 1.0], [11.5, 0.0], [-1.5, 0.5]])
    np.testing.assert_array_equal(
        found.outside(X, slice(0, 2)), [[False, False], [True, False], [True, False]]
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_a_p_value_nor_changes_the_order(values):
    p = np.array(values)
    corrected = holm(p)
    assert np.all(corrected >= p)
    assert np.all(corrected <= 1)
    assert np.all(np.diff(corrected[np.argsort(p, kind="stable")]) >= 0)
    assert corrected.min() == pytest.approx(min(1.0, len(p) * p.min()))


MANY = Origin(10**9, 1)  # training rows that leave no doubt


# --- strength ----------------------------------------------------------------------------------


def test_strength_is_one_on_the_training_rows_and_what_it_was_made_on_new_ones():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 2)) + rng.normal(size=(3000, 1))
    y = X @ [1.0, 0.8] + rng.normal(size=3000)
    g, f = LinearRegression().fit(X, y), LinearRegression().fit(X[:, :1], y)
    found = strength_of_numbers(y, f.predict(X[:, :1]), g.predict(X), MANY)
    assert found.value == pytest.approx(1.0, abs=1e-6)
    # Relative to what the first column says, the second keeps a quarter of its strength.
    said = g.predict(X) - f.predict(X[:, :1])
    new = f.predict(X[:, :1]) + 0.25 * said + rng.normal(size=3000) + 7.0
    found = strength_of_numbers(new, f.predict(X[:, :1]), g.predict(X), MANY)
    assert abs(found.value - 0.25) < 4 * found.error
    assert found.error < 0.1


@pytest.mark.parametrize("C", [2, 3])
@pytest.mark.parametrize("strength", [1.0, 0.2, -0.5])
def test_strength_of_labels(C, strength):
    rng = np.random.default_rng(C)
    n = 20_000
    f, said = rng.normal(size=(n, C)), rng.normal(size=(n, C))
    eta = f + strength * said
    y = (eta + rng.gumbel(size=(n, C))).argmax(axis=1)
    found = strength_of_labels(y, f, f + said, MANY)
    assert abs(found.value - strength) < 4 * found.error
    assert found.error < 0.05


@pytest.mark.parametrize("effect", [0.0, 0.03, 0.1])
def test_a_weak_relation_is_not_called_broken_where_nothing_changed(effect):
    """Fitted and tried on rows of one world: strengths are 1 within their errors, or not given."""
    z = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(800, 3))
        y = X[:, 0] + effect * X[:, 1] + rng.normal(size=800)
        old, new = slice(0, 400), slice(400, 800)
        g, f = LinearRegression().fit(X[old], y[old]), LinearRegression().fit(X[old, :1], y[old])
        said = strength_of_numbers(y[new], f.predict(X[new, :1]), g.predict(X[new]), Origin(400, 2))
        if said is not None:
            z.append((said.value + 2.58 * said.error) < 0.5)
    assert sum(z) <= 6


def test_models_that_say_the_same_have_no_strength():
    rng = np.random.default_rng(0)
    y, f = rng.normal(size=50), rng.normal(size=50)
    assert strength_of_numbers(y, f, f + 3.0, MANY) is None
    eta = rng.normal(size=(50, 3))
    assert strength_of_labels(rng.integers(0, 3, 50), eta, eta + 1.0, MANY) is None


def test_labels_that_can_be_separated_give_a_finite_strength():
    said = np.column_stack([np.zeros(20), np.r_[-np.ones(10), np.ones(10)]])
    found = strength_of_labels(np.repeat([0, 1], 10), np.zeros((20, 2)), said, MANY)
    assert np.isfinite(found.value)
    assert found.value > 1


# --- the place on a curve ------------------------------------------------------------------------


@given(st.floats(0.1, 10), st.floats(0, 5), st.floats(0.01, 5), st.floats(0, 20), st.booleans())
def test_a_place_on_the_curve_is_found_again(start, noise, rise, k, bounded):
    """Also where the curve ends flat: an error that can be no larger."""

    def curve(at):
        return np.sqrt(start**2 + noise * np.minimum(at, 1.0) + rise * at**2)

    reach = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0])
    expected = np.minimum(curve(reach), curve(3.0)) if bounded else curve(reach)
    place = reach_of(Estimate(float(curve(k)), 0.0), reach, expected)
    assert place.value == pytest.approx(k, rel=1e-3, abs=2e-2)


def test_a_flat_curve_has_no_place_and_a_smaller_error_is_at_the_start():
    reach, flat = np.array([0.0, 1.0, 2.0]), np.ones(3)
    assert reach_of(Estimate(1.5, 0.1), reach, flat).value == np.inf
    assert reach_of(Estimate(0.5, 0.1), reach, flat) == Estimate(0.0, 0.0)
