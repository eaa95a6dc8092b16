"""One pass over the rows says what two passes say, or nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetrisk import HRMRegressor
from hetrisk.blocks import ArrayBlocks
from hetrisk.core.drift.reference import profile
from hetrisk.core.numerics.cells import cell_moments
from hetrisk.core.numerics.families import Bernoulli, Gaussian
from hetrisk.core.result import NamedEnvironments
from hetrisk.core.sources.levels import n_folds
from hetrisk.core.sources.named import assignment
from hetrisk.estimators import first_pass as module
from hetrisk.estimators.first_pass import FEW, first_pass
from hetrisk.estimators.scales import measure_scale

LABELS = NamedEnvironments(("a", "b", "c"), 0, False)


def table(seed=0, n=500, unit=1.0, origin=0.0, **given):
    """Three columns: numbers in a unit, zeros and ones, and one that never varies."""
    rng = np.random.default_rng(seed)
    number = (rng.standard_normal(n) + origin) * unit
    X = np.column_stack([number, rng.integers(0, 2, n), np.full(n, 3.0)])
    codes = rng.integers(0, 3, (n, 1)).astype(float)
    y = 2.0 * X[:, 1] + rng.standard_normal(n)
    return ArrayBlocks(X, y, **given).carrying(None, codes)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 1000),
    st.integers(2, 3000),
    st.floats(-12, 12).map(lambda power: 10.0**power),
    st.floats(-1e5, 1e5),
)
def test_one_pass_is_two_passes(seed, n, unit, origin):
    rows = table(seed, n, unit, origin)
    first = first_pass(rows, Gaussian(), LABELS)
    wanted = rows.sum(profile)
    assert first.profile.n == wanted.n == n
    for name in ("weighted", "columns"):
        one, other = getattr(first.profile, name), getattr(wanted, name)
        assert np.array_equal(one.low, other.low)
        assert np.array_equal(one.high, other.high)
        assert np.array_equal(one.constant, other.constant)
        assert np.allclose(one.centre, other.centre, rtol=1e-12, atol=1e-12 * unit)
        assert np.allclose(one.spread, other.spread, rtol=1e-10, atol=0.0)
    assert np.array_equal(first.profile.indicator, wanted.indicator)
    scale = measure_scale(rows, Gaussian(), None, first.profile.weighted)
    standard = rows.standardised(scale.centre, scale.divisor)
    cells = cell_moments(standard, Gaussian(), assignment(LABELS), n_folds(3))
    moved = first.standardised(scale)
    assert np.array_equal(moved.weight, cells.weight)
    assert np.allclose(moved.gram, cells.gram, rtol=0.0, atol=1e-9 * n)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 1234, 2999])
def test_the_pass_itself_sees_what_is_missing_or_infinite(number, row):
    """Nobody looks for it beforehand, so the pass may not answer; the error names the input."""
    rows = table(n=3000)
    rows.X[row, 0] = number
    assert first_pass(rows, Gaussian(), LABELS) is None
    environments = rows.aside[:, 0].astype(int)
    what = "NaN" if np.isnan(number) else "infinity"
    with pytest.raises(ValueError, match=f"^Input X contains {what}"):
        HRMRegressor().fit(rows.X, rows.y, environments=environments)


def test_rows_far_from_the_few_get_a_second_pass(monkeypatch):
    """Rows that are looked at first are far from the others: sums about them cost digits."""
    rows = table(n=400 * FEW)
    rows.X[::400, 0] += 1e6
    near = first_pass(rows, Gaussian(), LABELS)  # some twenty spreads of all rows: a few digits
    assert np.allclose(near.profile.columns.spread, rows.sum(profile).columns.spread, rtol=1e-9)
    monkeypatch.setattr(module, "FAR", 10.0)
    assert first_pass(rows, Gaussian(), LABELS) is None


@pytest.mark.parametrize("size", [1e80, 1e-80, 1e250])
def test_numbers_whose_squares_are_no_doubles_get_a_second_pass(size):
    rows = table(unit=size)
    assert first_pass(rows, Gaussian(), LABELS) is None
    rows = table(n=3 * FEW)
    rows.X[1, 0] = max(size, 1.0)  # not among the few
    found = first_pass(rows, Gaussian(), LABELS)
    assert (found is None) == (size > 1e60)


def test_weights_labels_and_shares_get_a_second_pass():
    assert first_pass(table(weight=np.ones(500)), Gaussian(), LABELS) is None
    assert first_pass(table(), Bernoulli(), LABELS) is None
    assert first_pass(table(), Gaussian(), None) is None
    assert first_pass(table(), Gaussian(), NamedEnvironments(("1", "2"), None, False)) is None
