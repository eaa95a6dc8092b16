"""The optimisation of the gates: from moments alone, so its cost does not depend on the rows."""

from __future__ import annotations

from functools import partial

import numpy as np

from hetrisk.bench.clock import shortest
from hetrisk.bench.fits import selection_bias
from hetrisk.bench.metric import Metric, Size
from hetrisk.blocks import ArrayBlocks
from hetrisk.core.numerics.environment_fits import environment_moments
from hetrisk.core.paper.invariance import InvarianceProblem, environment_risks
from hetrisk.core.paper.solve import fit_gates

ROWS = (2_000, 200_000)
DRAWS = 5
"""Tables of each size: an optimiser takes a few steps more on one draw than on another."""


def gate_optimisation(size: Size) -> list[Metric]:
    """The gates of 200,000 rows against those of 2,000."""
    problems = {str(n): partial(_solve, [_problem(n, i) for i in range(DRAWS)]) for n in ROWS}
    times = shortest(problems, max(5, size.repeats))
    few, many = (times[str(n)] for n in ROWS)
    return [
        Metric(
            "fits",
            "gate optimisation, n = 200,000 / n = 2,000",
            many / few,
            bound=1.2,
            guarded=True,
            note=f"{1e3 * few / DRAWS:.1f} ms each, d = 10, two environments, {DRAWS} draws",
        )
    ]


def _problem(n: int, seed: int) -> InvarianceProblem:
    X, y = selection_bias(n, 10, seed)
    labels = np.repeat(np.eye(2), [n - n // 20, n // 20], axis=0)
    m = environment_moments(ArrayBlocks(X, y, None, labels), None)
    groups = np.arange(-1, 10)  # the intercept has no gate
    return InvarianceProblem(environment_risks(m), groups, 0.1, 1.0, 0.01)


def _solve(problems: list[InvarianceProblem]) -> None:
    for problem in problems:
        fit_gates(problem)
