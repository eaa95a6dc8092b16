"""Losses of mixtures by brute force, X_t, and the choice against all mixtures of tenths."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetrisk.core.backtest import run
from hetrisk.core.backtest.candidates import Candidate
from hetrisk.core.backtest.choice import MEMBERS, choose, compare, least
from hetrisk.core.backtest.cuts import Left, Split
from hetrisk.core.backtest.decision import name_of
from hetrisk.core.backtest.losses import LogLosses, SquaredLosses, extrapolated
from hetrisk.core.backtest.training import SampleRows
from hetrisk.core.predictor import LinearPart

seeds = st.integers(0, 10_000)


def squared(seed: int, n_environments: int = 6, n_candidates: int = 3):
    """Errors of candidates, rows by environment, and the losses they make."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n_environments, 40, 1))
    level = rng.normal(scale=0.5, size=(n_environments, 1, n_candidates))
    errors = shared + rng.normal(size=(n_environments, 40, n_candidates)) + level
    return errors, SquaredLosses(np.einsum("eni,enj->eij", errors, errors) / 40)


def logs(seed: int, n_candidates: int = 3):
    rng = np.random.default_rng(seed)
    probability = rng.uniform(0.05, 0.95, size=(60, n_candidates))
    environment = np.repeat(np.arange(4), 15)
    return probability, LogLosses(probability, np.full(60, 1 / 15), environment)


@given(seeds)
def test_losses_of_mixtures_by_brute_force(seed) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.ones(3), size=4)
    errors, losses = squared(seed)
    expected = [((errors @ w) ** 2).mean(axis=1) for w in weights]
    np.testing.assert_allclose(losses.of(weights), expected)
    np.testing.assert_allclose(losses.singles, (errors**2).mean(axis=1).T)
    probability, losses = logs(seed)
    expected = [-np.log(probability @ w).reshape(4, 15).mean(axis=1) for w in weights]
    np.testing.assert_allclose(losses.of(weights), expected)
    np.testing.assert_allclose(losses.single(1), -np.log(probability[:, 1]).reshape(4, 15).mean(1))


def test_the_impossible_costs_a_bounded_amount() -> None:
    losses = LogLosses(np.zeros((2, 1)), np.array([0.5, 0.5]), np.zeros(2, dtype=int))
    assert losses.single(0)[0] == pytest.approx(-np.log(1e-3))


@given(st.lists(st.floats(0.1, 9), min_size=1, max_size=10), st.floats(0, 5))
def test_x_t_of_few_environments(values, reach) -> None:
    losses = np.array(values)
    expected = losses.mean() + reach * (losses.max() - losses.mean())
    assert extrapolated(losses, reach) == pytest.approx(expected)
    assert extrapolated(losses, 0.0) == pytest.approx(losses.mean())
    assert extrapolated(losses, 1.0) == pytest.approx(losses.max())


@given(seeds)
def test_splitting_environments_in_two_changes_x_t_little(seed) -> None:
    """Each of forty environments twice: the worst tenth is the same."""
    losses = np.random.default_rng(seed).lognormal(size=40)
    assert extrapolated(np.repeat(losses, 2), 1.0) == pytest.approx(float(extrapolated(losses, 1)))


def test_halves_of_environments_change_x_t_little() -> None:
    """Halves with noise of their own, beside the largest of all, which would be off."""
    rng = np.random.default_rng(0)
    change = []
    for _ in range(200):
        level = rng.normal(scale=0.3, size=40)
        rows = np.exp(level[:, None]) * rng.chisquare(1, size=(40, 200))
        whole = rows.mean(axis=1)
        halves = np.concatenate([rows[:, :100].mean(axis=1), rows[:, 100:].mean(axis=1)])
        change.append(float(np.log(extrapolated(halves, 1.0) / extrapolated(whole, 1.0))))
    assert np.abs(np.mean(change)) < 0.05
    assert np.abs(change).max() < 0.2


def tenths(n: int):
    return [np.array(w) / 10 for w in product(range(11), repeat=n) if sum(w) == 10]


@pytest.mark.parametrize("reach", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("make", [squared, logs])
def test_the_choice_against_all_mixtures_of_tenths(make, reach) -> None:
    """Losses are convex in the weights at reach 0 and 1: what steps find is the least."""
    for seed in range(12):
        _, losses = make(seed)
        found = float(extrapolated(losses.of(least(losses, reach)[None]), reach)[0])
        every = float(extrapolated(losses.of(np.array(tenths(3))), reach).min())
        assert every <= found * (1 + 1e-9)
        assert found <= every * (1.0 + (1e-9 if reach == 0 else 0.02))


@given(seeds)
def test_weights_are_tenths_of_a_few(seed) -> None:
    _, losses = squared(seed, n_candidates=9)
    weight = least(losses, 1.0)
    assert weight.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(10 * weight, np.round(10 * weight))
    assert np.count_nonzero(weight) <= MEMBERS
    best = extrapolated(losses.singles, 1.0).min()
    assert extrapolated(losses.of(weight[None]), 1.0)[0] <= best * (1 + 1e-12)


def test_the_gate_is_two_standard_errors_of_the_log_ratio() -> None:
    losses, plain = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.5, 3.2])
    comparison = compare(losses, plain, 0.5, 0.01)
    ratio = extrapolated(losses, 0.5) / extrapolated(plain, 0.5)
    assert comparison.log_ratio == pytest.approx(float(np.log(ratio)))
    logs_of = np.log(losses / plain)
    variance = (0.01 + ((logs_of - logs_of.mean()) ** 2).sum()) / 3
    assert comparison.standard_error == pytest.approx(np.sqrt(variance / 3))
    assert comparison.mean_ratio == pytest.approx(logs_of.mean())
    wide = comparison.log_ratio + 2 * comparison.standard_error
    mean = comparison.mean_ratio + comparison.standard_error
    assert (not comparison.refused) == (wide < 0 and mean < 0)
    # Better in the worst environment alone, and worse in the others.
    worst_alone = compare(np.array([1.1, 1.1, 1.1, 2.0]), np.array([1.0, 1.0, 1.0, 4.0]), 1.0, 0.0)
    assert worst_alone.log_ratio < -0.6
    assert worst_alone.refused == "not by one standard error in the average environment"
    assert compare(plain, plain, 1.0, 0.0).refused == "not by two standard errors"
    assert compare(losses[:1], plain[:1], 1.0, 0.0).refused


def test_noise_is_that_of_rows_drawn_again() -> None:
    """The variance of the log ratio of two losses over the same rows, beside a bootstrap."""
    rng = np.random.default_rng(0)
    n, y = 400, rng.normal(size=400)
    prediction = np.stack([0.2 * y, 0.5 * y + 0.2 * rng.normal(size=n)], axis=1)[:, :, None]
    rows = SampleRows(np.zeros((n, 1)), np.zeros(n), y, np.ones(n), *np.zeros((3, n), int))
    judged = run.Judged(0, Left(np.ones(1, bool), 0, "a"), np.arange(n), prediction)
    tests = run.Tests(("plain", "b"), (judged,), None, {})  # type: ignore[arg-type]
    loss = (prediction[:, :, 0] - y[:, None]) ** 2
    drawn = loss[rng.integers(0, n, (2000, n))].mean(axis=1)
    bootstrap = np.log(drawn[:, 1] / drawn[:, 0]).var()
    assert tests.noise(rows, 0, np.array([0.0, 1.0])) == pytest.approx(bootstrap, rel=0.15)
    assert tests.noise(rows, 0, np.array([1.0, 0.0])) == 0.0


def test_plain_stays_where_another_is_better_by_chance() -> None:
    chosen = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        errors = rng.normal(size=(6, 30, 1)) + 0.1 * rng.normal(size=(6, 1, 2))
        losses = SquaredLosses(np.einsum("eni,enj->eij", errors, errors) / 30)
        chosen += choose(losses, 0, 0.0, lambda weight: 0.0).weight[0] < 1.0
    assert chosen <= 12


def test_another_is_chosen_where_it_is_better() -> None:
    errors = np.random.default_rng(0).normal(size=(5, 30, 2))
    better = errors * [1.0, 0.3]
    losses = SquaredLosses(np.einsum("eni,enj->eij", better, better) / 30)
    choice = choose(losses, 0, 1.0, lambda weight: 0.0)
    assert choice.weight[1] >= 0.7
    np.testing.assert_array_equal(choice.weight, choice.best)


def test_of_fits_that_are_exact_none_is_better() -> None:
    """Squares of rounding tell nothing: the first of those that tie is taken."""
    errors = 1e-15 * np.random.default_rng(0).normal(size=(5, 30, 3)) * [1.0, 0.3, 0.5]
    products = np.einsum("eni,enj->eij", errors, errors) / 30
    choice = choose(SquaredLosses(products, 1e-24), 0, 1.0, lambda weight: 0.0)
    np.testing.assert_array_equal(choice.weight, [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(choice.best, choice.weight)


def test_names_of_averages() -> None:
    names = ("plain", "trees", "trend")
    assert name_of(names, np.array([0, 1.0, 0])) == "trees"
    assert name_of(names, np.array([0.2, 0.2, 0.6])) == "0.6 trend + 0.2 plain + 0.2 trees"


def fixed(name: str, value: float) -> Candidate:
    """Predicts a number."""
    part = LinearPart(np.zeros((1, 1)), np.array([value]), np.zeros(1))
    return Candidate(name, name, lambda training: (part,))


def cannot(training):
    raise ArithmeticError("cannot")


def test_a_backtest_by_hand() -> None:
    rng = np.random.default_rng(0)
    n = 30
    X, y, weight = np.zeros((n, 1)), rng.normal(size=n), rng.uniform(1, 2, n)
    cell, time = np.sort(np.arange(n) % 3), np.full(n, np.nan)
    rows = SampleRows(X, time, y, weight, cell, np.full(n, -1), np.arange(1))
    problem = run.Problem(lambda chosen: chosen, rows, 1, 3)
    at = np.arange(3)
    splits = [Split(at != k, (Left(at == k, k, f"e{k}"),)) for k in range(3)]
    # The third is judged after two trainings: each counts half.
    splits.append(Split(at == 0, (Left(at == 2, 2, "e2"),)))
    candidates = [fixed("zero", 0.0), Candidate("bad", "bad", cannot), fixed("one", 1.0)]
    tests = run.backtest(problem, splits, candidates, lambda f, tasks: [f(t) for t in tasks])
    assert tests.names == ("zero", "one")
    assert tests.failed == {"bad": "ArithmeticError: cannot"}
    for k, value in enumerate([0.0, 1.0]):
        error = (y - value) ** 2
        expected = [np.average(error[cell == e], weights=weight[cell == e]) for e in range(3)]
        np.testing.assert_allclose(tests.losses.single(k), expected)
    judged = tests.judged[0]
    np.testing.assert_allclose(tests.mixed(judged, np.array([0.3, 0.7]))[:, 0], 0.7)
    assert [len(j.index) for j in tests.judged] == [10, 10, 10, 10]
