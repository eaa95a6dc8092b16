"""The parts of a rise: exact, and those of Shapley by brute force."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetrisk.core.drift.rise import misses, rise


def populations(seed, d, outputs, n=60):
    rng = np.random.default_rng(seed)
    X0, X1 = rng.normal(size=(n, d)), rng.normal(size=(n + 7, d)) * 1.7 + rng.normal(size=d)
    r0 = X0 @ rng.normal(size=(d, outputs)) + rng.normal(size=(n, outputs))
    r1 = X1 @ rng.normal(size=(d, outputs)) + 2 * rng.normal(size=(n + 7, outputs)) + 1
    centre = X0.mean(axis=0)
    return misses(X0, r0, centre), misses(X1, r1, centre), r0, r1


def shapley(before, now):
    """By definition: the mean over orders of what each change adds."""
    d = len(before.line)
    players = range(d + 1)  # the lines, and the place

    def value(changed):
        line = before.line.copy()
        for i in changed:
            if i < d:
                line[i] = now.line[i]
        products = now.products if d in changed else before.products
        return np.sum(line * (products @ line))

    parts = np.zeros(d + 1)
    for i in players:
        others = [j for j in players if j != i]
        for size in range(d + 1):
            share = math.factorial(size) * math.factorial(d - size) / math.factorial(d + 1)
            for group in combinations(others, size):
                parts[i] += share * (value({*group, i}) - value(group))
    return parts


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), d=st.integers(1, 4), outputs=st.integers(1, 3))
def test_parts_are_those_of_shapley_and_add_up(seed, d, outputs):
    before, now, r0, r1 = populations(seed, d, outputs)
    parts = rise(before, now)
    whole = np.mean(np.sum(r1**2, axis=1)) - np.mean(np.sum(r0**2, axis=1))
    assert parts.total == pytest.approx(whole)
    assert parts.level + parts.slopes.sum() + parts.place + parts.noise == pytest.approx(whole)
    expected = shapley(before, now)
    assert [parts.level, *parts.slopes, parts.place] == pytest.approx(expected)


def world(rng, n, slope=1.0, level=0.0, noise=1.0, at=0.0):
    X = rng.normal(size=(n, 2)) + at
    return X, slope * X[:, 0] + level + noise * rng.normal(size=n)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"slope": 2.0}, "slopes"),
        ({"level": 1.5}, "level"),
        ({"noise": 2.0}, "noise"),
    ],
)
def test_what_changed_is_what_is_named(change, part):
    rng = np.random.default_rng(0)
    (X0, y0), (X1, y1) = world(rng, 4000), world(rng, 4000, **change)
    centre = X0.mean(axis=0)
    model = lambda X: X[:, :1] * 1.0  # noqa: E731 - the truth of the first world
    parts = rise(
        misses(X0, y0[:, None] - model(X0), centre), misses(X1, y1[:, None] - model(X1), centre)
    )
    shares = {"level": parts.level, "slopes": parts.slopes.sum(), "noise": parts.noise}
    assert shares.pop(part) / parts.total == pytest.approx(1, abs=0.15)
    assert parts.p_slopes[0] < 1e-6 if part == "slopes" else parts.p_slopes[0] > 1e-3
    assert parts.p_level < 1e-6 if part == "level" else parts.p_level > 1e-3


def test_rows_that_lie_elsewhere_raise_the_error_of_a_line_that_was_wrong_already():
    rng = np.random.default_rng(1)
    (X0, y0), (X1, y1) = world(rng, 4000), world(rng, 4000, at=3.0)
    centre = X0.mean(axis=0)
    parts = rise(
        misses(X0, y0[:, None] - 0.5 * X0[:, :1], centre),
        misses(X1, y1[:, None] - 0.5 * X1[:, :1], centre),
    )
    assert parts.place / parts.total > 0.9


def test_more_columns_than_rows_still_add_up():
    before, now, *_ = populations(3, 30, 1, n=12)
    parts = rise(before, now)
    assert np.all(parts.p_slopes == 1)
    total = parts.level + parts.slopes.sum() + parts.place + parts.noise
    assert total == pytest.approx(parts.total)
