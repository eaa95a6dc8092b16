"""Rows and the values that add up over blocks of them."""

from dataclasses import dataclass

import numpy as np
import pytest

from hetrisk.core.numerics.rows import Rows, Summed, wide_view


@dataclass(frozen=True)
class Pair(Summed):
    total: float
    counts: np.ndarray


@dataclass(frozen=True)
class Nested(Summed):
    pair: Pair
    n: int


def test_length_of_rows():
    rows = Rows(np.zeros((7, 2)), np.zeros(7), np.ones(7))
    assert len(rows) == 7


@pytest.mark.parametrize("n", [0, 1, 63, 64, 96, 128])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_side_by_side_are_the_same_numbers_in_the_same_columns(n, order):
    table = np.asarray(np.random.default_rng(0).normal(size=(n, 3)), order=order)
    wide, n_wide = wide_view(table)
    assert np.array_equal(wide.reshape(n, 3), table)
    moved = (wide - np.tile([1.0, 2.0, 3.0], n_wide)).reshape(n, 3)
    assert np.array_equal(moved, table - [1.0, 2.0, 3.0])


def test_summed_adds_field_by_field_and_keeps_its_type():
    added = Pair(1.0, np.array([1, 2])) + Pair(0.5, np.array([10, 20]))
    assert isinstance(added, Pair)
    assert added.total == 1.5
    np.testing.assert_array_equal(added.counts, [11, 22])


def test_summed_values_nest():
    part = Nested(Pair(1.0, np.ones(2)), 3)
    added = part + part
    assert added.n == 6
    assert added.pair.total == 2.0
