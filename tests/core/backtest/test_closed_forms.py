"""Closed forms against loops, numpy and scikit-learn."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import check_grad
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from hetrisk import BacktestRegressor
from hetrisk.blocks import ArrayBlocks
from hetrisk.core.backtest.candidates import LINEAR
from hetrisk.core.backtest.cells import CellPass, cell_moments
from hetrisk.core.backtest.cuts import Layout, merge_periods
from hetrisk.core.backtest.logistic import logistic
from hetrisk.core.backtest.prepare import prepare
from hetrisk.core.backtest.solve import RIDGES, Pooled, combine, solve, within_environments
from hetrisk.core.backtest.training import LAST_ROWS, NumbersTraining
from hetrisk.core.numerics.moments import Moments, moments
from hetrisk.core.numerics.rows import Rows
from hetrisk.core.predictor import Predictor, single

N, D, CELLS = 150, 4, 5
seeds = st.integers(0, 10_000)


def pool(m):
    return Pooled(float(m.weight), m.mean, m.covariance)


def draw(seed: int = 0, n_cells: int = CELLS):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * [1, 10, 0.1, 3] + [0, 100, -2, 1e3]
    y = X @ [1, 0.2, -4, 0.1] + rng.normal(size=N) + 50
    weight = rng.uniform(0.2, 3, N)
    return X, y, weight, rng.integers(0, n_cells, N)


def of_cells(seed: int = 0):
    X, y, weight, cell = draw(seed)
    Z = np.column_stack([X, y])
    centre = Z.mean(axis=0)
    return cell_moments(Z - centre, weight, cell, CELLS, centre), X, y, weight, cell


@given(seeds)
def test_moments_of_cells_add_up_and_are_those_of_loops(seed) -> None:
    cells, X, y, weight, cell = of_cells(seed)
    for c in range(CELLS):
        own = moments(Rows(X[cell == c], y[cell == c], weight[cell == c]))
        np.testing.assert_allclose(cells.weight[c], own.weight)
        np.testing.assert_allclose(cells.mean[c], own.mean)
        np.testing.assert_allclose(cells.scatter[c], own.scatter, rtol=1e-8, atol=1e-8)
    whole = moments(Rows(X, y, weight))
    np.testing.assert_allclose(cells.pooled().scatter, whole.scatter, rtol=1e-9, atol=1e-8)
    scale = np.random.default_rng(seed).uniform(0, 2, CELLS)
    some = pool(moments(Rows(X, y, weight * scale[cell])))
    mixed = combine(cells, scale)
    np.testing.assert_allclose(mixed.mean, some.mean)
    np.testing.assert_allclose(mixed.covariance, some.covariance, rtol=1e-8, atol=1e-8)
    worth = (weight * scale[cell]).sum() ** 2 / (weight * scale[cell] ** 2).sum()
    assert mixed.effective(cells.weight, scale) == pytest.approx(worth)


def test_moments_of_blocks_add_up() -> None:
    X, y, weight, _ = draw()
    time = np.arange(N) % 3 + 1.0
    aside = np.column_stack([time, np.full(N, np.nan)])
    layout = Layout(merge_periods(np.array([1.0, 2.0, 3.0]), np.full(3, 50.0)), None)
    one = CellPass(layout, np.zeros(D + 2))
    whole = one(Rows(X, y, weight, None, aside))
    parts = [one(Rows(X[s], y[s], weight[s], None, aside[s])) for s in (slice(70), slice(70, None))]
    merged = parts[0] + parts[1]
    np.testing.assert_allclose(merged.weight, whole.weight)
    np.testing.assert_allclose(merged.scatter, whole.scatter, rtol=1e-8, atol=1e-6)


@given(seeds)
def test_least_squares_are_those_of_numpy(seed) -> None:
    cells, X, y, weight, cell = of_cells(seed)
    scale = np.array([1.0, 0.5, 2.0, 0.0, 1.0])
    w = weight * scale[cell]
    coef = solve(combine(cells, scale), np.ones(D, dtype=bool), 1.0, False)
    root = np.sqrt(w)[:, None]
    design = np.column_stack([np.ones(N), X])
    expected = np.linalg.lstsq(root * design, root[:, 0] * y, rcond=None)[0]
    np.testing.assert_allclose(coef, expected[1:], rtol=1e-7)
    some = np.array([True, False, True, False])
    own = LinearRegression().fit(X[:, some], y, sample_weight=w).coef_
    left = solve(combine(cells, scale), some, 1.0, False)
    np.testing.assert_allclose(left[some], own, rtol=1e-7)
    assert (left[~some] == 0).all()


@given(seeds)
def test_levels_of_periods_are_dummies(seed) -> None:
    cells, X, y, weight, cell = of_cells(seed)
    period = np.array([0, 0, 1, 2, 2])
    hot = np.equal.outer(period[cell], np.arange(3)).astype(float)
    own = LinearRegression(fit_intercept=False)
    own.fit(np.column_stack([X - X.mean(axis=0), hot]), y, sample_weight=weight)
    inner = within_environments(cells, np.ones(CELLS), period)
    coef = solve(inner, np.ones(D, dtype=bool), 1.0, False)
    np.testing.assert_allclose(coef, own.coef_[:D], rtol=1e-7)
    np.testing.assert_allclose(inner.mean, combine(cells, np.ones(CELLS)).mean)


def test_the_ridge_is_that_of_least_generalised_cross_validation() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 12)) * np.arange(1, 13)
    y = X[:, 0] + 2 * rng.normal(size=40)
    m = pool(moments(Rows(X, y, np.ones(40))))
    coef = solve(m, np.ones(12, dtype=bool), 40.0, True)
    Z = StandardScaler().fit_transform(X)
    scores = []
    for r in RIDGES:
        own = Ridge(alpha=r * 40).fit(Z, y)
        hat = Z @ np.linalg.solve(Z.T @ Z + r * 40 * np.eye(12), Z.T)
        scores.append(np.mean((y - own.predict(Z)) ** 2) / (1 - (1 + np.trace(hat)) / 40) ** 2)
    best = Ridge(alpha=RIDGES[int(np.argmin(scores))] * 40).fit(Z, y)
    np.testing.assert_allclose(coef * X.std(axis=0), best.coef_, rtol=1e-8)


def test_columns_that_repeat_others_or_stand_still() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    X = np.column_stack([x, 3 * x + 7, np.full(100, 1e6), np.zeros(100)])
    y = 2 * x + rng.normal(size=100)
    coef = solve(pool(moments(Rows(X, y, np.ones(100)))), np.ones(4, dtype=bool), 100.0, False)
    assert (coef[2:] == 0).all()
    # The least norm in standardised columns: the twins share the slope.
    np.testing.assert_allclose(coef[0], 3 * coef[1])
    slope = np.cov(x, y)[0, 1] / x.var(ddof=1)
    np.testing.assert_allclose(coef[0] + 3 * coef[1], slope)


@pytest.mark.parametrize("value", [0.0, 1.0, -3.7, 1e6])
def test_a_column_that_stands_still_in_the_cells_learned_from(value) -> None:
    """What is left of it there is rounding, about a centre that is that of all rows."""
    rng = np.random.default_rng(0)
    cell = np.repeat(np.arange(3), 50)
    x = np.where(cell == 2, rng.normal(size=N), value)
    y = rng.normal(size=N)
    Z = np.column_stack([rng.normal(size=N), x, y])
    centre = np.array([0.3, 0.31237, 0.7])
    cells = cell_moments(Z - centre, rng.uniform(1, 2, N), cell, 3, centre)
    coef = solve(combine(cells, np.array([1.0, 1.0, 0.0])), np.ones(2, dtype=bool), 100.0, False)
    assert coef[1] == 0
    assert abs(coef[0]) < 1


def labels(seed: int, n_classes: int):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3)) * [1, 5, 0.01] + [0, 3, 1]
    y = np.digitize(X[:, 0] + rng.normal(size=N), np.linspace(-1, 1, n_classes - 1))
    return X, y.astype(float), rng.uniform(0.5, 2, N)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_is_that_of_scikit_learn(n_classes) -> None:
    X, y, weight = labels(0, n_classes)
    centre = np.average(X, axis=0, weights=weight)
    scale = np.sqrt(np.average((X - centre) ** 2, axis=0, weights=weight))
    Z = (X - centre) / scale
    own = LogisticRegression(C=1.0, tol=1e-12, max_iter=10_000).fit(Z, y, sample_weight=weight)
    coef, intercept = logistic(X, y, weight, n_classes)
    scores = X @ coef + intercept
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    # Intercepts have a ridge of a ten-thousandth here, and none there.
    np.testing.assert_allclose(p, own.predict_proba(Z), atol=2e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_is_a_minimum(n_classes) -> None:
    """Finite differences: no step lowers what the module says it minimises."""
    X, y, weight = labels(1, n_classes)
    coef, intercept = logistic(X, y, weight, n_classes)
    centre = np.average(X, axis=0, weights=weight)
    spread = np.sqrt(np.average((X - centre) ** 2, 0, weight))
    Z, codes = (X - centre) / spread, y.astype(int)

    def loss(flat):
        b = flat.reshape(4, n_classes)
        scores = Z @ b[1:] + b[0]
        log_p = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        slopes = b[1:, 1:] - b[1:, :1] if n_classes == 2 else b[1:]
        return -weight @ log_p[np.arange(N), codes] + 0.5 * (slopes**2).sum()

    at = np.vstack([intercept + centre @ coef, coef * spread[:, None]]).ravel()
    gradient = check_grad(loss, lambda b: np.zeros_like(b), at, epsilon=1e-6)
    assert gradient < 1e-3


@pytest.mark.parametrize("n_classes", [2, 5])
def test_logistic_knows_no_order_and_no_units(n_classes) -> None:
    """To more digits than a comparison of values gives."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1500, 30))
        X[:, 0] = X[:, 1] + 0.02 * X[:, 0]
        score = X[:, 2] + X[:, 3] ** 2 + rng.normal(size=1500)
        y, weight = np.digitize(score, np.linspace(-1, 2, n_classes - 1)), np.ones(1500)
        coef, intercept = logistic(X, y, weight, n_classes)
        order = rng.permutation(30)
        changed = 7.3 * X[:, order]
        again, level = logistic(changed, y, weight, n_classes)
        np.testing.assert_allclose(changed @ again + level, X @ coef + intercept, atol=1e-9)


def test_logistic_with_levels_and_classes_never_seen() -> None:
    X, y, weight = labels(2, 2)
    group = np.arange(N) % 3
    y = np.where(group == 2, 1.0, y)
    coef, _ = logistic(X, y, weight, 2, level=group)
    hot = np.equal.outer(group, np.arange(3)) * 1e3  # next to no ridge on the dummies
    Z = (X - X.mean(axis=0)) / np.sqrt(np.average((X - np.average(X, 0, weight)) ** 2, 0, weight))
    own = LogisticRegression(C=1.0, tol=1e-10, max_iter=100_000, fit_intercept=False)
    own.fit(np.column_stack([Z, hot]), y, sample_weight=weight)
    np.testing.assert_allclose((coef[:, 1] - coef[:, 0]) * X.std(0), own.coef_[0, :3], rtol=0.05)
    coef, intercept = logistic(X, y, weight, 4)
    scores = X @ coef + intercept
    assert np.isfinite(scores).all()
    assert (scores[:, 2:].max(axis=1) < scores[:, :2].max(axis=1)).all()
    coef, intercept = logistic(X, np.zeros(N), weight, 2)
    assert np.isfinite(coef).all()
    assert intercept[0] > intercept[1]


def problem(n_outputs: int = 1, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    time = np.arange(N) * 5 // N + 2000.0
    y = X @ [1, 2, 0] + 0.5 * (time - 2000) + rng.normal(size=N)
    if n_outputs > 1:
        y = np.digitize(y, np.quantile(y, np.linspace(0, 1, n_outputs + 1)[1:-1])).astype(float)
    aside = np.column_stack([time, np.full(N, np.nan)])
    blocks = ArrayBlocks(X, y, np.ones(N), aside=aside)
    return prepare(blocks, n_outputs, (), str).problem, X, y, time


def trained(name: str, n_outputs: int = 1):
    prob, X, y, time = problem(n_outputs)
    candidate = next(c for c in LINEAR if c.name == name)
    training = prob.training(np.ones(prob.n_cells, dtype=bool))
    return Predictor((candidate.fit(training),), np.ones(1), prob.link), prob, X, y, time


def predicted(model, prob):
    """Predictions in the order of the rows at hand, with them."""
    return model.predict(prob.rows.inputs), prob.rows


def test_plain_is_least_squares() -> None:
    model, prob, X, y, _ = trained("plain")
    found, rows = predicted(model, prob)
    own = LinearRegression().fit(X, y)
    np.testing.assert_allclose(found[:, 0], own.predict(rows.X), rtol=0, atol=1e-8)


def test_constants_and_levels_are_means() -> None:
    model, prob, _, y, time = trained("constant")
    np.testing.assert_allclose(predicted(model, prob)[0], y.mean())
    model, prob, _, y, time = trained("level")
    np.testing.assert_allclose(predicted(model, prob)[0], y[time == 2004].mean())
    for name in ("recent", "within"):
        model, prob, _, _, _ = trained(name)
        found, rows = predicted(model, prob)
        last = rows.time == 2004
        np.testing.assert_allclose(found[last, 0].mean(), rows.y[last].mean())


def test_rounding_of_weights_does_not_say_which_periods_are_last() -> None:
    period, rows = np.arange(3), np.array([50.0, 40.0, LAST_ROWS])
    for weight in (rows, rows * (1 - 1e-15)):
        cells = Moments(weight, np.zeros((3, 1)), np.zeros((3, 1, 1)))
        training = NumbersTraining(cells, period, None, 1)  # type: ignore[arg-type]
        np.testing.assert_array_equal(training.last(), [0, 0, 1])


def test_within_is_least_squares_with_dummies() -> None:
    model, _, X, y, time = trained("within")
    hot = np.equal.outer(time, np.unique(time)).astype(float)
    own = LinearRegression(fit_intercept=False).fit(np.column_stack([X, hot]), y)
    np.testing.assert_allclose(model.members[0][0].coef[:, 0], own.coef_[:3], rtol=1e-8)


def test_the_trend_is_a_column_of_time() -> None:
    model, prob, X, y, time = trained("trend")
    found, rows = predicted(model, prob)
    own = LinearRegression().fit(np.column_stack([X, time]), y)
    expected = own.predict(np.column_stack([rows.X, rows.time]))
    assert np.corrcoef(found[:, 0], expected)[0, 1] > 0.9999
    assert model.needs_time


@pytest.mark.parametrize("n_outputs", [2, 3])
def test_levels_of_labels_are_shares_of_classes(n_outputs) -> None:
    model, prob, _, y, time = trained("constant", n_outputs)
    share = np.bincount(y.astype(int), minlength=n_outputs)
    expected = (share + 1 / n_outputs) / (N + 1)
    np.testing.assert_allclose(predicted(model, prob)[0][0], expected, rtol=1e-8)
    model, prob, _, y, time = trained("level", n_outputs)
    last = y[time == 2004]
    expected = (np.bincount(last.astype(int), minlength=n_outputs) + 1 / n_outputs) / (
        len(last) + 1
    )
    np.testing.assert_allclose(predicted(model, prob)[0][0], expected, rtol=1e-8)
    model, prob, _, y, time = trained("recent", n_outputs)
    p, rows = predicted(model, prob)
    mean = p[rows.time == 2004].mean(axis=0)
    np.testing.assert_allclose(mean, expected, rtol=1e-6)


def test_plain_of_labels_is_logistic_regression() -> None:
    model, prob, X, y, _ = trained("plain", 2)
    Z = StandardScaler().fit(X)
    own = LogisticRegression(C=1.0, tol=1e-12, max_iter=1000).fit(Z.transform(X), y)
    p, rows = predicted(model, prob)
    np.testing.assert_allclose(p, own.predict_proba(Z.transform(rows.X)), atol=1e-5)


def test_splines_are_ridge_regression_on_hinges() -> None:
    model, prob, _, _, _ = trained("splines")
    line, part = model.members[0]
    found, rows = predicted(model, prob)
    hinges = np.maximum(rows.X[:, part.feature] - part.knot, 0.0)
    curve = rows.X @ line.coef + line.intercept + hinges @ part.coef
    np.testing.assert_allclose(found, curve)
    basis = np.column_stack([rows.X, hinges])
    kept = (basis - basis.mean(axis=0)) / np.maximum(basis.std(axis=0), 1e-300)
    r = [Ridge(alpha=ridge * N).fit(kept, rows.y).predict(kept) for ridge in RIDGES]
    assert min(np.abs(found[:, 0] - own).max() for own in r) < 1e-8
    assert single(line, part).predict(prob.rows.inputs).shape == (N, 1)


def test_among_too_many_columns_none_is_sought_that_is_stable(monkeypatch):
    room = importlib.import_module("hetrisk.core.backtest.candidates.stable")
    monkeypatch.setattr(room, "MOST_COLUMNS", 2)
    monkeypatch.setattr(room, "stable_columns", lambda *_: pytest.fail("it sought"))
    rng = np.random.default_rng(0)
    X, site = rng.normal(size=(120, 3)), np.repeat(np.arange(6), 20)
    frame = pd.DataFrame(X, columns=list("abc")).assign(site=site)
    model = BacktestRegressor(["stable"], environment="site").fit(frame, X[:, 0] + 0.1 * site)
    lines = {line.candidate: line for line in model.ranking_}
    assert lines["stable"].mean == lines["plain"].mean
