"""Risks, gradients and optima against finite differences, brute force and known answers."""

import copy
import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from sklearn.linear_model import LinearRegression, LogisticRegression

from hetrisk.baselines import (
    EIILRegressor,
    GroupDROClassifier,
    GroupDRORegressor,
    IRMClassifier,
    IRMRegressor,
    VRExClassifier,
    VRExRegressor,
    WassersteinDROClassifier,
    WassersteinDRORegressor,
)
from hetrisk.baselines.eiil import inferred_environments, scale_derivatives
from hetrisk.baselines.group_dro import worst_case_weights
from hetrisk.baselines.irm import irm_objective
from hetrisk.baselines.vrex import vrex_objective
from hetrisk.baselines.wasserstein import robust_logistic, worst_logit

from .conftest import table


def slope(function, w, step=1e-5):
    """Five-point finite differences."""
    columns = []
    for axis in np.eye(len(w)):
        at = [function(w + k * step * axis) for k in (-2, -1, 1, 2)]
        columns.append((at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step))
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("seed", range(3))
def test_risks_match_their_definition_and_derivatives(problem, seed):
    w = np.random.default_rng(seed).normal(size=4)
    risks = problem.risks()
    at = risks.evaluate(w)
    f = problem.Z @ w
    loss = np.logaddexp(0, f) - problem.y * f if problem.family.labels else (problem.y - f) ** 2
    direct = [loss[problem.environments[:, e] == 1].mean() for e in range(2)]
    np.testing.assert_allclose(at.risk, direct, atol=1e-4)
    np.testing.assert_allclose(
        at.gradient, slope(lambda v: risks.evaluate(v).risk, w), rtol=1e-6, atol=1e-7
    )
    v = np.random.default_rng(seed + 10).normal(size=(2, 4))
    hessians = slope(lambda u: risks.evaluate(u).gradient, w)
    np.testing.assert_allclose(
        risks.curvature(w, v), np.einsum("kij,kj->ki", hessians, v), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        problem.family.slope(f, problem.y),
        slope(
            lambda g: (
                np.logaddexp(0, f + g) - problem.y * (f + g)
                if problem.family.labels
                else (problem.y - f - g) ** 2
            ),
            np.zeros(1),
        )[:, 0],
        rtol=1e-6,
        atol=1e-8,
    )


@pytest.mark.parametrize("objective", [irm_objective, vrex_objective])
@pytest.mark.parametrize("penalty", [0.0, 0.7, 300.0])
def test_gradients_match_finite_differences(problem, objective, penalty):
    risks = problem.risks()
    of = partial(objective, risks=risks, penalty=penalty)
    for seed in range(3):
        w = np.random.default_rng(seed).normal(size=4)
        expected = slope(lambda v: of(v)[0], w)
        np.testing.assert_allclose(of(w)[1], expected, rtol=1e-5, atol=1e-7)


def test_irm_penalty_is_the_squared_slope_in_a_dummy_scale(problem):
    risks = problem.risks()
    w = np.array([0.3, -0.5, 0.8, 0.1])
    in_scale = slope(lambda s: risks.evaluate(s[0] * w).risk, np.ones(1))[:, 0]
    value, _ = irm_objective(w, risks, 5.0)
    expected = risks.evaluate(w).risk.mean() + 5.0 * np.mean(in_scale**2)
    assert value * 6 == pytest.approx(expected, rel=1e-8)


def two_feature_system(scales=(0.2, 2.0), n=4000):
    """Y = X1 + noise, X2 = Y + noise: the example of Arjovsky et al., exact in its moments."""
    rng = np.random.default_rng(0)
    X, y, environments = [], [], []
    for e, scale in enumerate(scales):
        noise = np.linalg.qr(rng.normal(size=(n, 3)) - 0.0)[0] * np.sqrt(n)
        noise -= noise.mean(axis=0)
        noise = np.linalg.qr(noise)[0] * np.sqrt(n)
        x1 = scale * noise[:, 0]
        target = x1 + scale * noise[:, 1]
        X.append(np.column_stack([x1, target + noise[:, 2]]))
        y.append(target)
        environments.append(np.full(n, e))
    return np.vstack(X), np.concatenate(y), np.concatenate(environments)


def test_irm_finds_the_cause_in_the_two_feature_system():
    X, y, environments = two_feature_system()
    assert LinearRegression().fit(X, y).coef_[1] > 0.6
    model = IRMRegressor(penalty=1e8).fit(X, y, environments=environments)
    np.testing.assert_allclose(model.coef_, [1.0, 0.0], atol=0.02)
    np.testing.assert_allclose(model.intercept_, 0.0, atol=1e-3)


def test_irm_is_the_lowest_point_of_a_grid():
    X, y, environments = two_feature_system((1.0, 2.0))
    model = IRMRegressor(penalty=10.0).fit(X, y, environments=environments)
    unit, grid = y.std(), np.linspace(-0.5, 1.5, 41)

    def value(coef):
        risk, pull = [], []
        for e in (0, 1):
            rows, target = X[environments == e], y[environments == e]
            f = rows @ coef
            risk.append(np.mean((target - f) ** 2) / unit**2)
            pull.append(np.mean(2 * (f - target) * f) / unit**2)
        return np.mean(risk) + 10 * np.mean(np.square(pull))

    assert value(model.coef_) <= min(map(value, itertools.product(grid, grid)))


@pytest.mark.parametrize("penalty", [1.0, 100.0])
def test_vrex_cannot_be_improved_from_anywhere_near(penalty):
    X, y, environments, _ = table()
    model = VRExRegressor(penalty).fit(X, y, environments=environments)
    unit = y.std()

    def value(w):
        losses = ((y - X @ w[:-1] - w[-1]) / unit) ** 2
        risk = np.array([losses[environments == e].mean() for e in (0, 1)])
        return losses.mean() + penalty * risk.var()

    at = np.append(model.coef_, model.intercept_)
    rng = np.random.default_rng(3)
    found = min(
        optimize.minimize(
            value,
            at + rng.normal(size=4),
            method="Nelder-Mead",
            options={"maxiter": 4000, "maxfev": 4000, "xatol": 1e-7, "fatol": 1e-10},
        ).fun
        for _ in range(4)
    )
    assert value(at) <= found + 1e-6


def labels_of(f, seed=1):
    return (np.random.default_rng(seed).random(len(f)) < 1 / (1 + np.exp(-f))).astype(int)


@pytest.mark.parametrize(
    "model",
    [
        VRExRegressor(0.0),
        WassersteinDRORegressor(0.0),
    ],
)
def test_strength_zero_is_least_squares(model):
    X, y, environments, _ = table()
    if isinstance(model, VRExRegressor):
        model.fit(X, y, environments=environments)
    else:
        model.fit(X, y)
    plain = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-7)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, rtol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        VRExClassifier(0.0),
        WassersteinDROClassifier(0.0),
    ],
)
def test_strength_zero_is_logistic_regression(model):
    X, _, environments, f = table()
    y = labels_of(f)
    if isinstance(model, VRExClassifier):
        model.fit(X, y, environments=environments)
    else:
        model.fit(X, y)
    plain = LogisticRegression(C=1e12, tol=1e-10, solver="newton-cholesky").fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("model", [IRMRegressor(1e3), VRExRegressor(1e3), GroupDRORegressor()])
def test_without_labels_all_rows_are_one_environment(model):
    X, y, _, _ = table()
    plain = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.fit(X, y).coef_, plain.coef_, rtol=1e-5)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_group_dro_reaches_the_least_largest_risk(k):
    X, y, environments, _ = table(seed=k, k=k)
    model = GroupDRORegressor().fit(X, y, environments=environments)
    groups = [environments == e for e in range(k)]

    def risks(w):
        return np.array([np.mean((y[g] - X[g] @ w[:3] - w[3]) ** 2) for g in groups])

    limits = [{"type": "ineq", "fun": lambda v, e=e: v[4] - risks(v[:4])[e]} for e in range(k)]
    start = np.append(LinearRegression().fit(X, y).coef_, [0.0, 100.0])
    primal = optimize.minimize(
        lambda v: v[4],
        start,
        constraints=limits,
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    reached = risks(np.append(model.coef_, model.intercept_)).max()
    assert reached == pytest.approx(primal.fun, rel=1e-5)


def test_group_dro_with_labels_evens_out_or_ignores_the_easier_environment():
    X, _, environments, f = table()
    y = labels_of(f)
    model = GroupDROClassifier().fit(X, y, environments=environments)
    plain = LogisticRegression(C=1e9, tol=1e-8).fit(X, y)

    def worst(m):
        p = m.predict_proba(X)[np.arange(len(y)), y]
        return max(-np.log(p[environments == e]).mean() for e in (0, 1))

    rng = np.random.default_rng(0)
    for _ in range(200):
        moved = copy.copy(model)
        moved.coef_ = model.coef_ + rng.normal(scale=0.05, size=(1, 3))
        moved.intercept_ = model.intercept_ + rng.normal(scale=0.05, size=1)
        assert worst(moved) >= worst(model) - 1e-6
    assert worst(model) < worst(plain)


def test_group_dro_ignores_order_and_split_of_environments(problem):
    weights = worst_case_weights(problem.risks())
    flipped = problem.environments[:, ::-1]
    np.testing.assert_allclose(
        worst_case_weights(problem._risks_of(flipped)), weights, rtol=1e-4, atol=1e-5
    )


def test_eiil_environments_beat_every_assignment(problem):
    small = problem.take(np.arange(12))
    w = small.pooled().erm()
    s = scale_derivatives(small, w)
    f = small.Z @ w
    in_scale = slope(
        lambda t: (
            np.logaddexp(0, t[0] * f) - small.y * t[0] * f
            if small.family.labels
            else (small.y - t[0] * f) ** 2
        ),
        np.ones(1),
    )[:, 0]
    np.testing.assert_allclose(s, in_scale, rtol=1e-5, atol=1e-7)

    def penalty(u):
        return np.mean(u * s) ** 2 + np.mean((1 - u) * s) ** 2

    best = penalty(inferred_environments(small)[:, 0])
    hard = max(penalty(np.array(u)) for u in itertools.product((0.0, 1.0), repeat=12))
    soft = max(map(penalty, np.random.default_rng(0).random((2000, 12))))
    assert best == pytest.approx(hard, rel=1e-9)
    assert soft <= best


def test_eiil_is_irm_on_the_inferred_environments():
    X, y, _, _ = table()
    f = LinearRegression().fit(X, y).predict(X) - y.mean()
    split = (f - (y - y.mean())) * f > 0
    np.testing.assert_allclose(
        EIILRegressor(10.0).fit(X, y).coef_,
        IRMRegressor(10.0).fit(X, y, environments=split).coef_,
        rtol=1e-6,
    )


@pytest.mark.parametrize("radius", [0.05, 0.3, 1.0])
def test_dro_minimises_the_closed_form(radius):
    X, y, _, _ = table()
    model = WassersteinDRORegressor(radius).fit(X, y)

    def value(w):
        r = y - X @ w[:3] - w[3]
        return np.sqrt(np.mean(r**2)) + radius * np.linalg.norm(w[:3])

    at = np.append(model.coef_, model.intercept_)
    found = optimize.minimize(value, at + 0.1, method="BFGS", options={"gtol": 1e-9})
    assert value(at) <= found.fun + 1e-9
    np.testing.assert_allclose(at, found.x, atol=1e-4)


def test_dro_in_a_large_ball_predicts_the_mean():
    X, y, _, f = table()
    model = WassersteinDRORegressor(1e3).fit(X, y)
    np.testing.assert_allclose(model.coef_, 0.0)
    np.testing.assert_allclose(model.intercept_, y.mean())
    labels = labels_of(f)
    classifier = WassersteinDROClassifier(50.0).fit(X, labels)
    np.testing.assert_allclose(classifier.coef_, 0.0, atol=1e-3)
    np.testing.assert_allclose(classifier.predict_proba(X)[:, 1], labels.mean(), atol=5e-3)


@settings(max_examples=60, deadline=None)
@given(m=st.floats(-30, 30), c=st.floats(0, 200))
def test_worst_logit_is_the_inner_maximum(m, c):
    u = worst_logit(np.array([m]), c)[0]
    if c == 0:
        assert u == -m
        return
    grid = -m + np.linspace(0, c, 20001)
    value = np.logaddexp(0, grid) - (grid + m) ** 2 / (2 * c)
    assert np.logaddexp(0, u) - (u + m) ** 2 / (2 * c) >= value.max() - 1e-9


def test_robust_logistic_gradient(labelled):
    for seed in range(3):
        v = np.random.default_rng(seed).normal(size=5)
        of = partial(robust_logistic, problem=labelled, radius=0.4)
        np.testing.assert_allclose(
            of(v)[1], slope(lambda x, of=of: of(x)[0], v), rtol=1e-5, atol=1e-7
        )


def test_robust_logistic_regression_cannot_be_improved(labelled):
    model = WassersteinDROClassifier(0.2).fit(labelled.Z[:, :3], labelled.y)

    def value(w):
        at = partial(robust_logistic, problem=labelled, radius=0.2)
        search = optimize.minimize_scalar(
            lambda g: at(np.append(w, g))[0],
            bounds=(-6, 6),
            method="bounded",
            options={"xatol": 1e-9},
        )
        return search.fun

    w = np.append(model.coef_[0], model.intercept_)
    rng = np.random.default_rng(0)
    assert all(value(w) <= value(w + rng.normal(scale=0.05, size=4)) + 1e-9 for _ in range(60))


def test_irm_classifier_drops_a_label_that_flips():
    """Two environments in which a feature agrees with the label to different degrees."""
    rng = np.random.default_rng(0)
    n = 4000
    y = rng.integers(0, 2, n)
    environments = rng.integers(0, 2, n)
    cause = np.where(rng.random(n) < 0.75, y, 1 - y)
    agree = np.where(environments == 0, 0.95, 0.8)
    shortcut = np.where(rng.random(n) < agree, y, 1 - y)
    X = np.column_stack([cause, shortcut])
    plain = LogisticRegression(C=1e6).fit(X, y).coef_[0]
    model = IRMClassifier(penalty=1e6).fit(X, y, environments=environments)
    assert plain[1] > 1.5 * plain[0]
    assert abs(model.coef_[0, 1]) < 0.35 * model.coef_[0, 0]
