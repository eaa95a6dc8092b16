"""Centre and spread of columns, part by part."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hetrisk.core.numerics.rows import Rows
from hetrisk.core.numerics.spread import column_spread

units = st.floats(-95, 95).map(lambda power: 10.0**power)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 39), units, st.floats(0, 1e6))
def test_parts_merge_to_the_whole(seed, cut, unit, origin):
    """Law: the spread of parts merges to that of the whole, in any unit."""
    rng = np.random.default_rng(seed)
    z = (rng.normal(size=(40, 3)) + origin) * unit
    weight = rng.choice([0.0, 0.5, 2.0], 40)
    weight[0] = weight[-1] = 1.0
    rows = [Rows(z[part, :2], z[part, 2], weight[part]) for part in (slice(0, cut), slice(cut, 40))]
    merged = column_spread(rows[0]) + column_spread(rows[1])
    mean = np.average(z / unit, axis=0, weights=weight)
    spread = np.sqrt(np.average((z / unit - mean) ** 2, axis=0, weights=weight))
    np.testing.assert_allclose(merged.centre / unit, mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(merged.spread / unit, spread, rtol=1e-6)
    assert not merged.constant.any()


def test_a_block_without_weight_adds_nothing():
    X = np.random.default_rng(0).normal(size=(50, 5))
    Y = X[:, 0]
    rows = Rows(X, Y, np.ones(50))
    empty = column_spread(Rows(X[:3] + 9, Y[:3], np.zeros(3)))
    for merged in (column_spread(rows) + empty, empty + column_spread(rows)):
        np.testing.assert_array_equal(merged.centre, column_spread(rows).centre)
        np.testing.assert_allclose(merged.spread, column_spread(rows).spread, rtol=1e-15)
