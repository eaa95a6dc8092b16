"""The objective of invariant prediction: against brute force, finite differences and its traps."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from hetrisk.core.numerics.families import Bernoulli, Multinomial
from hetrisk.core.numerics.moments import moments
from hetrisk.core.numerics.rows import Rows
from hetrisk.core.paper.gates import gate_moments
from hetrisk.core.paper.invariance import (
    PENALTIES,
    InvarianceProblem,
    environment_risks,
    objective,
    penalty,
    risk,
)
from hetrisk.core.paper.labels import label_objective, label_problem
from hetrisk.core.paper.masks import mask_values, mask_weights
from hetrisk.core.paper.solve import fit_gates, flip, weights


def world(seed=0, n=400, d=5, K=3, shift=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + shift
    environment = rng.integers(K, size=n)
    beta = np.linspace(1.0, 2.0, d) * (-1.0) ** np.arange(d)
    y = X @ beta + (environment - 1) * X[:, -1] + rng.normal(size=n)
    return X, y, np.eye(K)[environment]


def problem_of(X, y, shares, groups=None, **kwargs):
    m = moments(Rows(X, y, np.ones(len(y))), shares)
    groups = np.arange(X.shape[1]) if groups is None else groups
    settings = {"noise": 0.2, "invariance": 3.0, "price": 0.05, **kwargs}
    return InvarianceProblem(environment_risks(m), np.append(-1, groups), **settings)


def slopes(function, x, h=1e-6):
    return np.array([(function(x + h * e) - function(x - h * e)) / (2 * h) for e in np.eye(len(x))])


def test_objective_matches_sampled_gates():
    X, y, shares = world()
    theta, mu = np.array([0.3, 1.0, -0.5, 0.2, 0.8, -1.0]), np.array([0.2, 0.6, 0.9, 0.1, 0.5])
    draws = np.random.default_rng(1).standard_normal((4000, 5))
    m = np.clip(mu + 0.2 * draws, 0, 1)
    losses, gradients = [], []
    for share in shares.T:
        A, t = X[share > 0], y[share > 0]
        losses.append(((t[:, None] - theta[0] - A @ (m * theta[1:]).T) ** 2).mean())
        gradients.append(-2 * A.T @ (t - theta[0] - A @ (m.mean(axis=0) * theta[1:])) / len(t))
    variance, opened = np.array(gradients).var(axis=0), (m > 0).mean(axis=0)
    expected = {"trace": variance @ opened, "masked": variance**2 @ opened}
    for form in PENALTIES:
        p = problem_of(X, y, shares, penalty=form)
        g = p.gates(mu)
        assert risk(p.risks, theta, g).value == pytest.approx(np.mean(losses), rel=0.02)
        assert penalty(p, theta, g).value == pytest.approx(expected[form], rel=0.05)
        price = 0.05 * gate_moments(mu, 0.2).open.sum()
        total = np.mean(losses) + 3.0 * expected[form] + price
        assert objective(p, theta, mu)[0] == pytest.approx(total, rel=0.05)


@pytest.mark.parametrize("form", PENALTIES)
@pytest.mark.parametrize("groups", [None, np.array([0, 1, 1, 2, 0])])
def test_gradients_match_finite_differences(form, groups):
    X, y, shares = world()
    p = problem_of(X, y, shares, groups, penalty=form)
    rng = np.random.default_rng(3)
    theta, mu = rng.normal(size=6), rng.uniform(-0.2, 1.2, p.n_gates)
    _, in_theta, in_mu = objective(p, theta, mu)
    np.testing.assert_allclose(
        in_theta, slopes(lambda t: objective(p, t, mu)[0], theta), rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(
        in_mu, slopes(lambda u: objective(p, theta, u)[0], mu), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("form", PENALTIES)
@pytest.mark.parametrize("family", [Bernoulli(), Multinomial(3)], ids=["binary", "three classes"])
def test_label_gradients_match_finite_differences(family, form):
    X, y, shares = world(n=150, d=4)
    codes = np.digitize(y, np.quantile(y, np.arange(1, family.n_outputs) / family.n_outputs))
    codes = (y > 0).astype(float) if family.n_outputs == 1 else codes.astype(float)
    groups = np.tile([-1, 0, 1, 1, 2], len(family.coding))
    gates = InvarianceProblem(problem_of(X, y, shares).risks, groups, 0.2, 3.0, 0.05, form)
    p = label_problem(gates, X, codes, shares, family, n_draws=8)
    rng = np.random.default_rng(3)
    theta, mu = rng.normal(size=len(groups)), rng.uniform(0.0, 1.0, 3)
    _, in_theta, in_mu = label_objective(p, theta, mu)
    np.testing.assert_allclose(
        in_theta, slopes(lambda t: label_objective(p, t, mu)[0], theta), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        in_mu, slopes(lambda u: label_objective(p, theta, u)[0], mu), rtol=1e-5, atol=1e-6
    )


def test_label_risk_is_the_mean_log_loss():
    X, y, shares = world(n=150, d=4)
    codes = (y > 0).astype(float)
    gates = InvarianceProblem(problem_of(X, y, shares).risks, np.arange(-1, 4), 0.2, 0.0, 0.0)
    p = label_problem(gates, X, codes, shares, Bernoulli(), n_draws=8)
    theta = np.array([0.1, 1.0, -1.0, 0.5, 0.2])
    eta = theta[0] + X @ theta[1:]
    loss = np.logaddexp(0, eta) - codes * eta
    by_environment = [loss[s > 0].mean() for s in shares.T]
    value, _, _ = label_objective(p, theta, np.full(4, 50.0))
    assert value == pytest.approx(np.mean(by_environment))


def test_profiled_weights_are_the_minimum():
    X, y, shares = world()
    p = problem_of(X, y, shares)
    mu = np.array([0.3, 0.6, 0.9, 0.4, 0.5])
    theta = weights(p, p.gates(mu))
    np.testing.assert_allclose(objective(p, theta, mu)[1], 0.0, atol=1e-6)


@pytest.mark.parametrize("form", PENALTIES)
@pytest.mark.parametrize("strength", [0.1, 3.0, 1e3])
def test_hard_values_are_minima_of_the_objective(form, strength):
    X, y, shares = world()
    p = problem_of(X, y, shares, penalty=form, invariance=strength)
    masks = np.array(list(itertools.product([False, True], repeat=5)))
    values = mask_values(p, masks)
    for mask, value in zip(masks, values, strict=True):
        mu, theta = np.where(mask, 50.0, -50.0), mask_weights(p, mask)
        found, in_theta, _ = objective(p, theta, mu)
        assert value == pytest.approx(found, rel=1e-6)
        np.testing.assert_allclose(in_theta, 0.0, atol=1e-4)


@pytest.mark.parametrize("form", PENALTIES)
def test_flipping_finds_a_mask_no_flip_improves(form):
    X, y, shares = world(seed=5)
    p = problem_of(X, y, shares, penalty=form)
    free = np.ones(5, dtype=bool)
    mask = flip(p, free)
    flips = np.repeat(mask[None], 5, axis=0)
    flips[np.arange(5), np.arange(5)] ^= True
    assert mask_values(p, flips).min() >= mask_values(p, mask[None])[0]
    assert mask_values(p, mask[None])[0] <= mask_values(p, free[None])[0]


def test_the_variant_feature_is_shut_and_the_others_stay():
    X, y, shares = world(n=5000, shift=0.0)
    fit = fit_gates(problem_of(X, y, shares, noise=0.1, invariance=10.0, price=0.01))
    assert fit.support.tolist() == [True, True, True, True, False]
    assert fit.gates[:4].min() > 0.95
    assert fit.gates[4] < 0.05


def test_the_masked_form_settles_at_a_minimum():
    X, y, shares = world(n=5000, shift=0.0)
    p = problem_of(X, y, shares, noise=0.1, price=0.01, penalty="masked")
    fit = fit_gates(p)
    assert fit.support[:4].all()
    _, in_theta, _ = objective(p, fit.theta, fit.mu)
    open_ = np.append(True, fit.support)
    assert np.abs(in_theta[open_]).max() < 1e-2
    assert fit.objective <= objective(p, fit.theta * 1.01, fit.mu)[0]
    assert fit.objective <= objective(p, fit.theta * 0.99, fit.mu)[0]


def test_soft_gates_that_would_all_shut_leave_the_hard_ones():
    X, y, shares = world(n=2000, shift=0.0)
    # noise this large makes every open gate cost more risk than the hard mask says
    p = problem_of(X, y, shares, noise=3.0, invariance=1e3, price=1e-3)
    assert fit_gates(p).support.any()


# The traps.


def test_shrinking_gates_do_not_escape_the_penalty():
    X, y, shares = world(shift=0.0)
    full, small = np.full(5, 1.5), np.full(5, 0.5)
    p = problem_of(X, y, shares, noise=0.1)
    theta = weights(replace(p, invariance=0.0), p.gates(full))
    grown = theta * np.append(1.0, p.gates(full).mean[1:] / p.gates(small).mean[1:])
    before = penalty(p, theta, p.gates(full)).value
    assert penalty(p, grown, p.gates(small)).value == pytest.approx(before, rel=1e-3)


def test_a_large_penalty_does_not_shut_every_gate():
    X, y, shares = world(n=600, shift=0.0)
    for strength in (1e2, 1e4, 1e6):
        fit = fit_gates(problem_of(X, y, shares, noise=0.1, invariance=strength, price=1e-3))
        assert fit.support.any()


def test_a_price_no_feature_is_worth_shuts_every_gate():
    X, y, shares = world(shift=0.0)
    assert not fit_gates(problem_of(X, y, shares, price=100.0)).support.any()


def test_environments_that_differ_in_level_alone_cost_nothing():
    X, y, shares = world(shift=0.0)
    rng = np.random.default_rng(0)
    y = X @ np.ones(5) + rng.normal(size=len(X))
    moved = y + shares @ np.array([0.0, 5.0, -5.0])
    A = X - shares @ (shares.T @ X / shares.sum(axis=0)[:, None])  # the same means everywhere
    still, shifted = problem_of(A, y, shares), problem_of(A, moved, shares)
    mu = np.full(5, 50.0)
    theta = np.append(0.7, np.ones(5))
    assert penalty(still, theta, still.gates(mu)).value == pytest.approx(
        penalty(shifted, theta, shifted.gates(mu)).value
    )
