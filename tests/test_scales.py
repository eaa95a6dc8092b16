"""Standardised columns and the way back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetrisk.blocks import ArrayBlocks
from hetrisk.core.numerics.families import Bernoulli, Gaussian
from hetrisk.estimators.scales import measure_scale


@given(st.integers(-30, 30), st.integers(0, 10**6))
def test_a_unit_of_measurement_makes_no_column_constant(power, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    scale = measure_scale(ArrayBlocks(X * 10.0**power, y), Gaussian())
    assert not scale.constant.any()
    standard = measure_scale(ArrayBlocks(X, y), Gaussian()).features(X)
    np.testing.assert_allclose(scale.features(X * 10.0**power), standard, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, -3e5])
def test_a_column_that_varies_by_rounding_alone_is_constant(value):
    X = np.column_stack([np.full(77, value), np.arange(77.0)])
    assert measure_scale(ArrayBlocks(X, X[:, 1]), Gaussian()).constant.tolist() == [True, False]


def test_labels_keep_their_codes():
    X, y = np.arange(10.0)[:, None], np.arange(10.0) % 2
    scale = measure_scale(ArrayBlocks(X, y), Bernoulli())
    np.testing.assert_array_equal(scale.target(y), y)


@given(st.integers(0, 10**6))
def test_coefficients_travel_back_with_their_predictions(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(3.0, 5.0, size=(30, 3)), rng.normal(-2.0, 7.0, size=30)
    scale = measure_scale(ArrayBlocks(X, y), Gaussian())
    coef, intercept = rng.normal(size=3), rng.normal()
    there = scale.features(X) @ coef + intercept
    here = X @ scale.coef(coef) + scale.intercept(coef, intercept)
    np.testing.assert_allclose(scale.target(here), there, atol=1e-9)
