"""The one driver of iterations."""

import numpy as np
import pytest

from hetrisk.core.numerics.iteration import Status, iterate


def halve(x):
    return x / 2, -x


def test_stops_when_the_objective_settles():
    solution = iterate(halve, 1.0, tol=0.1, max_iter=100)
    assert solution.converged
    assert solution.status is Status.CONVERGED
    # The last two are the first that differ by no more than the tolerance.
    np.testing.assert_allclose(solution.path, [-1, -0.5, -0.25, -0.125, -0.0625])
    assert solution.n_iter == 5
    assert solution.value == pytest.approx(1 / 32)


def test_stops_at_the_limit_and_says_so():
    solution = iterate(halve, 1.0, tol=0.0, max_iter=3)
    assert not solution.converged
    assert solution.status is Status.MAX_ITER
    assert solution.n_iter == 3
    assert solution.value == pytest.approx(1 / 8)
    assert "limit" in solution.status.value
