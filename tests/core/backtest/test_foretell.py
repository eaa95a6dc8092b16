"""Errors to expect and intervals, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student

from hetrisk.core.backtest.foretell import (
    LEVELS,
    EnvironmentErrors,
    expected,
    half_width,
    interval_table,
)
from hetrisk.core.backtest.losses import LEAST_PROBABILITY


def errors_of(
    error, horizon=None, cut=None, quantiles=None, environment=None, learned=None, noise=0.0
):
    error = np.asarray(error, dtype=float)
    J = len(error)
    return EnvironmentErrors(
        environment=np.arange(J) if environment is None else np.asarray(environment),
        cut=np.zeros(J) if cut is None else np.asarray(cut),
        horizon=np.ones(J) if horizon is None else np.asarray(horizon, dtype=float),
        error=error,
        learned=np.full(J, 100.0) if learned is None else np.asarray(learned, dtype=float),
        quantiles=np.outer(error, norm.ppf(0.5 + np.array(LEVELS) / 2))
        if quantiles is None
        else quantiles,
        noise=noise,
    )


def test_the_band_is_a_t_interval_for_a_further_environment() -> None:
    error = np.array([1.0, 1.5, 2.0, 1.2])
    found = expected(errors_of(error, noise=0.02))
    variance = (0.02 + 4 * np.log(error).var()) / 4
    wide = student.ppf(0.95, 4) * np.sqrt(variance * (1 + 1 / 4))
    assert found.mean == pytest.approx(error.mean())
    assert found.lower == pytest.approx(error.mean() * np.exp(-wide))
    assert found.upper == pytest.approx(error.mean() * np.exp(wide))


def test_no_band_goes_beyond_the_largest_log_loss() -> None:
    labels = errors_of([0.01, 2.5, 0.3], quantiles=np.zeros((3, 0)))
    assert expected(labels).upper == pytest.approx(-np.log(LEAST_PROBABILITY))
    assert expected(errors_of([0.01, 2.5, 0.3])).upper > 100


def test_larger_trainings_say_more() -> None:
    errors = errors_of([1.0, 3.0], learned=[100, 200])
    assert expected(errors).mean == pytest.approx((1 * 1 + 4 * 3) / 5)


@given(st.floats(0, 1.5))
def test_errors_grow_with_the_horizon_as_they_did(slope) -> None:
    horizon = np.tile(np.arange(1.0, 21.0), 2)
    cut = np.repeat([0, 1], 20)
    error = np.where(cut == 0, 1.0, 3.0) * horizon**slope
    errors = errors_of(error, horizon, cut)
    growth = errors.growth
    x = np.log(horizon) - np.log(np.arange(1.0, 21.0)).mean()
    assert growth == pytest.approx(slope * (x @ x) / (x @ x + 1))
    near, far = expected(errors, 1.0), expected(errors, 10.0)
    assert far.mean / near.mean == pytest.approx(10**growth)
    assert near.lower <= near.mean <= near.upper


def test_errors_that_fall_with_the_horizon_are_not_foretold_to() -> None:
    errors = errors_of([3.0, 2.0, 1.0], [1, 2, 3])
    assert errors.growth == 0
    assert expected(errors, 9.0).mean == pytest.approx(expected(errors, 1.0).mean)


def test_half_widths_are_upper_quantiles_over_environments() -> None:
    """Twenty environments: at 0.9 the second largest of their 0.9 quantiles, or the next."""
    rng = np.random.default_rng(0)
    errors = errors_of(rng.uniform(1, 2, 20))
    table = interval_table(errors, np.ones(1))
    for k, level in enumerate(LEVELS[:6]):
        own = np.sort(errors.quantiles[:, k])
        place = int(np.ceil(level * 19 - 1e-9))
        assert table[0, 1 + k] == pytest.approx(own[place])


def test_of_few_environments_the_upper_end_of_a_t_interval() -> None:
    error = np.array([1.0, 1.5, 2.0, 1.2])
    errors = errors_of(error, noise=0.02)
    table = interval_table(errors, np.ones(1))
    k = LEVELS.index(0.9)
    logs = np.log(errors.quantiles[:, k])
    variance = (0.02 + 4 * logs.var()) / 4
    upper = np.exp(logs.mean() + student.ppf(0.9, 4) * np.sqrt(variance * 1.25))
    assert table[0, 1 + k] == pytest.approx(upper)


def test_environments_weigh_the_same_however_often_they_are_judged() -> None:
    once = errors_of([1.0, 2.0, 4.0])
    often = errors_of([1.0, 1.0, 1.0, 2.0, 4.0], environment=[0, 0, 0, 1, 2])
    np.testing.assert_allclose(interval_table(once, np.ones(1)), interval_table(often, np.ones(1)))


def test_widths_between_what_is_held() -> None:
    """Errors that are normal: widths at any level are normal quantiles."""
    errors = errors_of(np.full(12, 2.0))
    table = interval_table(errors, np.array([1.0, 2.0]))
    for level in (0.2, 0.55, 0.9, 0.93, 0.99, 0.999):
        found = half_width(table, level, np.array([1.0, 1.5, 7.0]))
        np.testing.assert_allclose(found, 2.0 * norm.ppf(0.5 + level / 2), rtol=1e-9)


@given(st.integers(0, 1000))
def test_widths_never_fall_with_the_level_or_the_horizon(seed) -> None:
    rng = np.random.default_rng(seed)
    J = int(rng.integers(1, 30))
    quantiles = np.sort(rng.lognormal(size=(J, len(LEVELS))), axis=1)
    errors = errors_of(quantiles[:, 3], rng.integers(1, 9, J), rng.integers(0, 3, J), quantiles)
    table = interval_table(errors, np.array([1.0, 2.0, 4.0, 9.0]))
    levels = np.linspace(0.01, 0.995, 40)
    widths = np.array([half_width(table, v, np.array([1.0, 3.0, 20.0])) for v in levels])
    assert np.isfinite(widths).all()
    assert (np.diff(widths, axis=0) >= -1e-9).all()
    assert (np.diff(widths, axis=1) >= -1e-9).all()
