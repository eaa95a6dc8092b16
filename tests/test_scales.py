"""Units and origins: a search on X times anything, or plus anything, is the same search."""

from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hetrisk import (
    EnvironmentMixture,
    InvariantRegressor,
    StableClassifier,
    StableRegressor,
    baselines,
)
from hetrisk.blocks import ArrayBlocks
from hetrisk.core.numerics.families import Gaussian
from hetrisk.estimators.scales import measure_scale

N, D = 300, 5
RNG = np.random.default_rng(0)
# Multiples of 2^-10, so that adding up to 1e12 costs no digit.
X = np.round(RNG.normal(size=(N, D)) * 1024) / 1024
SIGN = np.where(RNG.random(N) < 0.3, -1.0, 1.0)
Y = np.round((X[:, 0] - X[:, 1] + SIGN * X[:, 2] + 0.3 * RNG.normal(size=N)) * 1024) / 1024
SITE = np.where(SIGN > 0, "a", "b")

units = st.floats(-95, 95).map(lambda power: 10.0**power)
offsets = st.floats(-1e12, 1e12)


def fitted(X, y=Y):
    return StableRegressor().fit(X, y, environments=SITE)


@cache
def plain_model():
    return fitted(X)


def assert_same(model, plain, X_new, y_unit=1.0, tolerance=1e-6):
    assert model.verdict_ == plain.verdict_
    np.testing.assert_array_equal(model.support_, plain.support_)
    np.testing.assert_allclose(
        model.predict(X_new) / y_unit, plain.predict(X), rtol=0, atol=tolerance
    )


@settings(max_examples=12, deadline=None)
@given(st.lists(units, min_size=D, max_size=D))
@example([1e-95] * D)
@example([1e95] * D)
@example([1e-19, 1e90, 1e-12, 1.0, 1e12])
def test_the_unit_of_a_column_decides_nothing(scales):
    plain = plain_model()
    assert_same(fitted(X * scales), plain, X * scales)


@settings(max_examples=8, deadline=None)
@given(units)
@example(1e-95)
@example(1e95)
def test_the_unit_of_the_target_decides_nothing(unit):
    plain = plain_model()
    model = fitted(X, Y * unit)
    assert_same(model, plain, X, unit)
    assert np.isfinite(model.coef_).all()


@settings(max_examples=8, deadline=None)
@given(st.lists(offsets, min_size=D, max_size=D))
@example([1e12] * D)
def test_the_origin_of_a_column_decides_nothing(shifts):
    plain = plain_model()
    moved = X + np.round(shifts)
    # A number near 1e12 is known to four digits after the point; so is what is computed from it.
    assert_same(fitted(moved), plain, moved, tolerance=1e-2)


@settings(max_examples=8, deadline=None)
@given(offsets)
def test_the_origin_of_the_target_decides_nothing(shift):
    shift = np.round(shift)
    model = fitted(X, Y + shift)
    plain = plain_model()
    assert model.verdict_ == plain.verdict_
    np.testing.assert_array_equal(model.support_, plain.support_)
    np.testing.assert_allclose(model.predict(X) - shift, plain.predict(X), rtol=0, atol=1e-2)


def test_without_environments_units_decide_nothing_either():
    hidden = np.where(RNG.random(N) < 0.3, -1.0, 1.0) * X[:, 2] + X[:, 0]
    plain = StableRegressor().fit(X, hidden)
    for unit in (1e-12, 1e90):
        model = StableRegressor().fit(X * unit, hidden * 1e-12)
        assert model.verdict_ == plain.verdict_
        np.testing.assert_array_equal(model.support_, plain.support_)


@pytest.mark.parametrize("unit", [1e-95, 1e-19, 1e95])
def test_every_estimator_takes_every_unit(unit):
    labels = np.where(Y > 0, "up", "down")
    classifier = StableClassifier().fit(X * unit, labels, environments=SITE)
    np.testing.assert_array_equal(
        classifier.predict(X * unit),
        StableClassifier().fit(X, labels, environments=SITE).predict(X),
    )
    invariant = InvariantRegressor().fit(X * unit, Y * unit, environments=SITE)
    np.testing.assert_allclose(
        invariant.predict(X * unit) / unit,
        InvariantRegressor().fit(X, Y, environments=SITE).predict(X),
        1e-5,
    )
    mixture = EnvironmentMixture(n_environments=2, random_state=0).fit(X * unit, Y)
    assert np.isfinite(mixture.predict_proba(X * unit, Y)).all()


@pytest.mark.parametrize("name", ["AnchorRegressor", "VRExRegressor"])
@pytest.mark.parametrize("unit", [1e-95, 1e-19, 1e95])
def test_baselines_take_every_unit(name, unit):
    baseline = getattr(baselines, name)
    plain, scaled = (
        baseline().fit(X, Y, environments=SITE),
        baseline().fit(X * unit, Y, environments=SITE),
    )
    np.testing.assert_allclose(scaled.predict(X * unit), plain.predict(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        (X * [1e105, 1, 1, 1, 1], Y, r"column 0 of X holds numbers beyond 1e\+100"),
        (X * [1, 1e-105, 1, 1, 1], Y, r"column 1 of X varies by less than 1e-100"),
        (X, Y * 1e105, r"y holds numbers beyond 1e\+100"),
        (X, Y * 1e-105, r"y varies by less than 1e-100"),
    ],
)
def test_what_cannot_be_squared_is_named(X, y, match):
    with pytest.raises(ValueError, match=match):
        fitted(X, y)


def test_the_column_is_named_where_it_has_a_name():
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcde")).assign(b=X[:, 1] * 1e-105)
    with pytest.raises(ValueError, match="column 'b' of X"):
        fitted(frame)


@pytest.mark.parametrize("value", [0.0, 0.1, -3e-90, 1e12 / 3, 7e90])
def test_a_constant_column_is_constant_in_any_unit(value):
    table = X.copy()
    table[:, 3] = value
    scale = measure_scale(ArrayBlocks(table, Y), Gaussian())
    assert scale.constant.tolist() == [False, False, False, True, False]
    table[::2, 3] = value * (1 + 2e-16)  # by rounding
    assert measure_scale(ArrayBlocks(table, Y), Gaussian()).constant[3]


def test_rows_without_weight_do_not_vary_a_column():
    table = X.copy()
    table[:, 3] = 5.0
    table[:7, 3] = 6.0
    weight = np.ones(N)
    weight[:7] = 0.0
    assert measure_scale(ArrayBlocks(table, Y, weight), Gaussian()).constant[3]
