"""Gates: closed forms against Monte Carlo, finite differences and limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetrisk.core.paper.gates import gate_draws, gate_moments

CENTRES = np.array([-1e3, -1.0, -0.3, -0.01, 0.0, 0.2, 0.5, 0.99, 1.0, 1.2, 1e3])


@pytest.mark.parametrize("noise", [1e-3, 0.1, 0.5, 2.0])
def test_moments_match_monte_carlo(noise):
    e = noise * np.random.default_rng(0).standard_normal((200_000, 1))
    m = np.clip(CENTRES + e, 0.0, 1.0)
    g = gate_moments(CENTRES, noise)
    np.testing.assert_allclose(g.mean, m.mean(axis=0), atol=4e-3)
    np.testing.assert_allclose(g.second, (m**2).mean(axis=0), atol=4e-3)
    np.testing.assert_allclose(g.open, (m > 0).mean(axis=0), atol=4e-3)
    np.testing.assert_allclose(g.variance, m.var(axis=0), atol=4e-3)


@pytest.mark.parametrize("noise", [1e-3, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("name", ["mean", "second", "open"])
def test_derivatives_match_finite_differences(noise, name):
    h = 1e-5 * noise
    up, down = gate_moments(CENTRES + h, noise), gate_moments(CENTRES - h, noise)
    numeric = (getattr(up, name) - getattr(down, name)) / (2 * h)
    exact = getattr(gate_moments(CENTRES, noise), f"d_{name}")
    np.testing.assert_allclose(exact, numeric, atol=1e-6 / noise * 1e-2 + 1e-7)


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 10.0))
def test_moments_are_those_of_something_between_0_and_1(mu, noise):
    g = gate_moments(np.array([mu]), noise)
    assert 0 <= g.second[0] <= g.mean[0] + 1e-12 <= g.open[0] + 2e-12 <= 1 + 4e-12
    assert g.second[0] + 1e-12 >= g.mean[0] ** 2
    for part in (g.d_mean, g.d_second, g.d_open, g.variance):
        assert np.isfinite(part).all()
    assert g.d_mean[0] >= 0
    assert g.d_open[0] >= 0


@given(st.floats(-5, 5), st.floats(1e-3, 2.0))
def test_a_gate_mirrors_about_one_half(mu, noise):
    g, mirror = gate_moments(np.array([mu, 1 - mu]), noise), None
    mirror = 1.0 - g.mean[1]
    assert g.mean[0] == pytest.approx(mirror, abs=1e-12)


def test_far_gates_are_open_or_shut():
    g = gate_moments(np.array([-1e3, 1e3]), 1e-3)
    np.testing.assert_array_equal(g.mean, [0.0, 1.0])
    np.testing.assert_array_equal(g.variance, [0.0, 0.0])


def test_draws_are_fixed_balanced_and_normal():
    draws = gate_draws(100, 7)
    assert draws.shape == (128, 7)
    np.testing.assert_array_equal(draws, gate_draws(100, 7))
    np.testing.assert_allclose(draws.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(draws.std(axis=0), 1.0, atol=0.05)
