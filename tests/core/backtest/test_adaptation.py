"""Adaptation against dense Bayesian computations; the evidence of the variances found."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from hetrisk import BacktestRegressor
from hetrisk.core.backtest import adaptation as room
from hetrisk.core.backtest.adaptation import Drift, adapt
from hetrisk.core.predictor import SOFTMAX, Inputs, LinearPart, Predictor, single

seeds = st.integers(0, 10_000)
CENTRE, SCALE = np.array([1.0, -2.0]), np.array([2.0, 0.5])
VARIANCE = np.array([0.5, 0.2, 0.0])


@pytest.fixture
def one_prior(monkeypatch):
    """The prior as it was learned alone, not beside those of no move and of levels alone."""
    monkeypatch.setattr(room, "SHARES", ((1.0, 1.0),))


function_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def rows_of(seed: int, m: int = 12):
    rng = np.random.default_rng(seed)
    X = CENTRE + SCALE * rng.uniform(-2, 2, size=(m, 2))
    return rng, X, rng.uniform(0.5, 2.0, m)


def plain(K: int = 1) -> Predictor:
    coef = np.array([[0.5], [1.0]]) if K == 1 else np.linspace(-1, 1, 2 * K).reshape(2, K)
    return single(
        LinearPart(coef, np.zeros(K), np.zeros(K)), link="identity" if K == 1 else SOFTMAX
    )


@pytest.mark.usefixtures("one_prior")
@function_fixture
@given(seeds)
def test_numbers_move_to_the_posterior_mean(seed) -> None:
    rng, X, weight = rows_of(seed)
    y = X @ [0.5, 1.0] + 1.0 + rng.normal(size=len(X))
    drift = Drift(CENTRE, SCALE, VARIANCE, 0.7, 9)
    moved, told = adapt(plain(), drift, Inputs(X), y, weight)
    A = np.column_stack([np.ones(len(X)), (X - CENTRE) / SCALE])
    # A dense Gaussian: residuals have covariance A Omega A' + s^2 / w.
    r = y - X @ [0.5, 1.0]
    covariance = A * VARIANCE @ A.T + np.diag(0.7 / weight)
    delta = VARIANCE[:, None] * A.T @ np.linalg.solve(covariance, r)
    expected = X @ [0.5, 1.0] + A @ delta
    np.testing.assert_allclose(moved.predict(Inputs(X))[:, 0], expected, rtol=1e-8)
    left = VARIANCE[0] - VARIANCE[0] ** 2 * A[:, 0] @ np.linalg.solve(covariance, A[:, 0])
    assert told.shift == pytest.approx(delta[0])
    assert told.shift_error == pytest.approx(np.sqrt(left))
    assert told.share == pytest.approx(1 - left / VARIANCE[0])
    assert told.before == pytest.approx(np.sqrt(np.average(r**2, weights=weight)))


@pytest.mark.usefixtures("one_prior")
def test_the_error_after_leaves_each_row_out() -> None:
    rng, X, weight = rows_of(3)
    y = X @ [0.5, 1.0] + 1.0 + rng.normal(size=len(X))
    drift = Drift(CENTRE, SCALE, VARIANCE, 0.7, 9)
    _, told = adapt(plain(), drift, Inputs(X), y, weight)
    missed = []
    for i in range(len(X)):
        inside = np.arange(len(X)) != i
        moved, _ = adapt(plain(), drift, Inputs(X[inside]), y[inside], weight[inside])
        missed.append(float(y[i] - moved.predict(Inputs(X[i : i + 1]))[0, 0]))
    assert told.after == pytest.approx(np.sqrt(np.average(np.square(missed), weights=weight)))
    assert f"{len(X)} labelled rows" in str(told)


@pytest.mark.parametrize(
    ("shift", "level"),
    [
        (-74_812.3, "the level moved by −74,800 (standard error 112) and the slopes with it"),
        (4.8e-10, "the slopes moved, and the level did not"),
    ],
)
def test_what_moved_is_said_in_numbers_people_read(shift, level) -> None:
    told = room.Adaptation(30, shift, 111.8, 0.5, 23_456.7, 20_812.0)
    assert str(told) == (
        f"On 30 labelled rows {level}; leaving out each row in turn, the error went from 23,500 to "
        "20,800 (−11 %)."
    )


def test_columns_beyond_those_that_may_move_cost_nothing(monkeypatch) -> None:
    shapes = []
    known = room._variances
    monkeypatch.setattr(room, "MOST_COLUMNS", 1)
    monkeypatch.setattr(room, "_variances", lambda g, c: shapes.append(g.shape) or known(g, c))
    rng = np.random.default_rng(0)
    X, site = rng.normal(size=(120, 3)), np.repeat(np.arange(6), 20)
    model = BacktestRegressor(environment="site", candidates=["plain"])
    frame = pd.DataFrame(X, columns=list("abc")).assign(site=site)
    moved = model.fit(frame, X[:, 0] + site).adapt(frame[:20], X[:20, 0] - 5.0)
    assert shapes[0][1:] == (1, 1)
    assert moved.adaptation_.shift < 0


def test_no_drift_seen_no_move() -> None:
    rng, X, weight = rows_of(0)
    drift = Drift(CENTRE, SCALE, np.zeros(3), 1.0, 9)
    moved, told = adapt(plain(), drift, Inputs(X), rng.normal(size=12) + 99, weight)
    np.testing.assert_allclose(moved.predict(Inputs(X)), plain().predict(Inputs(X)))
    assert told.shift == 0
    assert told.share == 0


def test_many_rows_move_everything() -> None:
    rng, X, weight = rows_of(1, m=4000)
    y = X @ [0.5, 1.0] + 3.0 + 0.5 * (X[:, 0] - CENTRE[0]) + rng.normal(size=4000)
    drift = Drift(CENTRE, SCALE, np.array([1.0, 1.0, 1.0]), 1.0, 9)
    moved, _ = adapt(plain(), drift, Inputs(X), y, weight)
    left = y - moved.predict(Inputs(X))[:, 0]
    design = np.column_stack([np.ones(4000), X])
    np.testing.assert_allclose(np.linalg.lstsq(design, left, rcond=None)[0], 0, atol=0.05)


@pytest.mark.usefixtures("one_prior")
@settings(function_fixture, max_examples=15)
@given(seeds, st.sampled_from([2, 3]))
def test_labels_move_to_the_posterior_mode(seed, K) -> None:
    rng, X, weight = rows_of(seed, m=25)
    y = rng.integers(0, K, 25).astype(float)
    variance = np.array([0.5, 0.2, 0.1])
    drift = Drift(CENTRE, SCALE, variance, 1.0, 9)
    moved, _ = adapt(plain(K), drift, Inputs(X), y, weight)
    A = np.column_stack([np.ones(25), (X - CENTRE) / SCALE])
    base = np.log(plain(K).predict(Inputs(X)))
    free = K - 1 if K == 2 else K  # of two classes the first keeps its score

    def objective(flat):
        delta = np.zeros((3, K))
        delta[:, K - free :] = flat.reshape(3, free)
        scores = base + A @ delta
        log_p = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        prior = 0.5 * (delta**2 / variance[:, None]).sum()
        return -weight @ log_p[np.arange(25), y.astype(int)] + prior

    found = minimize(objective, np.zeros(3 * free), options={"gtol": 1e-8})
    delta = np.zeros((3, K))
    delta[:, K - free :] = found.x.reshape(3, free)
    scores = base + A @ delta
    expected = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
    np.testing.assert_allclose(moved.predict(Inputs(X)), expected, atol=2e-4)


@given(seeds)
def test_priors_are_weighed_by_rows_left_out(seed) -> None:
    """The move is an average of no move, a level, and slopes too: those that predict better."""
    rng, X, weight = rows_of(seed, m=40)
    drift = Drift(CENTRE, SCALE, np.array([1.0, 1.0, 1.0]), 1.0, 9)
    base = X @ [0.5, 1.0]
    moved, told = adapt(plain(), drift, Inputs(X), base + 4.0 + rng.normal(size=40), weight)
    assert np.mean(moved.predict(Inputs(X))[:, 0] - base) == pytest.approx(4.0, abs=1.0)
    assert told.after < told.before
    still, told = adapt(plain(), drift, Inputs(X), base + rng.normal(size=40), weight)
    assert np.abs(still.predict(Inputs(X))[:, 0] - base).mean() < 0.7
    assert told.after < 1.1 * told.before


def environments(seed: int, E: int = 12, scale=(1.0, 0.5, 0.0), rows: int = 30):
    """Precisions and right-hand sides of environments with noise of variance one; rows."""
    rng = np.random.default_rng(seed)
    grams, cross, data = [], [], []
    for _ in range(E):
        A = np.column_stack([np.ones(rows), rng.normal(size=(rows, len(scale) - 1))])
        r = A @ (np.array(scale) * rng.normal(size=len(scale))) + rng.normal(size=rows)
        grams.append(A.T @ A)
        cross.append(A.T @ r)
        data.append((A, r))
    return np.array(grams), np.array(cross), data


def evidence(variance, data) -> float:
    """Log marginal likelihood of the residuals, dense."""
    return sum(
        multivariate_normal(np.zeros(len(r)), A * variance @ A.T + np.eye(len(r))).logpdf(r)
        for A, r in data
    )


@pytest.mark.parametrize("seed", range(4))
def test_variances_are_of_greatest_evidence(seed, monkeypatch) -> None:
    monkeypatch.setattr(room, "COMMON", 0.0)
    gram, cross, data = environments(seed)
    before = -np.inf
    for steps in (1, 3, 10, 40, 400):
        monkeypatch.setattr(room, "STEPS", steps)
        variance = room._variances(gram, cross)
        reached = evidence(variance, data)
        assert reached >= before - 1e-2 * abs(before)
        before = reached
    for factor in (0.9, 1.1):
        for j in np.flatnonzero(variance > 1e-4):
            other = variance.copy()
            other[j] *= factor
            assert evidence(other, data) <= before + 1e-6


def test_variances_are_near_those_drawn() -> None:
    gram, cross, _ = environments(0, E=60)
    variance = room._variances(gram, cross)
    assert variance[0] == pytest.approx(1.0, rel=0.4)
    assert variance[1] == pytest.approx(0.25, rel=0.5)
    assert variance[2] < 0.05


def test_columns_out_of_use_have_no_variance() -> None:
    gram, cross, _ = environments(1)
    gram[:, 2], gram[:, :, 2], cross[:, 2] = 0, 0, 0
    variance = room._variances(gram, cross)
    assert variance[2] == 0
    assert variance[0] > 0
    assert np.isfinite(variance).all()
