"""An order that follows from content."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hetrisk.core.backtest.content import content_order


def draw(seed: int):
    """Rows of few values: many are the same but for one column, or but for their environment."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(60, 4)).astype(float)
    X[:, 1] = rng.integers(0, 3, 60)
    time, level = rng.integers(0, 2, 60) + 2000.0, rng.integers(0, 3, 60)
    return rng, X, rng.integers(0, 2, 60).astype(float), time, rng.uniform(1, 2, 60), level


@given(st.integers(0, 10_000))
def test_the_same_rows_come_out_in_the_same_order(seed) -> None:
    rng, X, y, time, weight, level = draw(seed)
    rows, columns = content_order(X, y, time, weight, level)
    at, of = rng.permutation(60), rng.permutation(4)
    units = (X * np.array([1.0, 25.4, 1e-3, 7.0]) + 3)[np.ix_(at, of)]
    names = np.array([2, 0, 1])[level]
    again, columns_again = content_order(units, y[at], time[at], weight[at], names[at])
    held = np.column_stack([X, y, time, level])
    np.testing.assert_array_equal(held[at][again], held[rows])
    np.testing.assert_array_equal(of[columns_again], columns)


@given(st.integers(0, 10_000))
def test_rows_that_are_there_twice_change_no_order(seed) -> None:
    rng, X, y, time, _, level = draw(seed)
    copies = rng.integers(1, 4, 60)
    rows, columns = content_order(X, y, time, copies.astype(float), level)
    at = rng.permutation(np.repeat(np.arange(60), copies))
    one = np.ones(len(at))
    again, columns_again = content_order(X[at], y[at], time[at], one, level[at])
    np.testing.assert_array_equal(columns_again, columns)
    held = np.column_stack([X, y, time, level])
    np.testing.assert_array_equal(_distinct(held[at][again]), _distinct(held[rows]))


def _distinct(rows):
    """Each row but those that are the one before."""
    return rows[np.append(True, (rows[1:] != rows[:-1]).any(axis=1))]


def test_missing_values_are_one_value() -> None:
    X = np.array([[np.nan, 1.0], [2.0, np.nan], [np.nan, 1.0]])
    nothing = np.full(3, np.nan), np.ones(3), np.full(3, -1)
    rows, _ = content_order(X, np.zeros(3), *nothing)
    assert abs(rows.tolist().index(0) - rows.tolist().index(2)) == 1
