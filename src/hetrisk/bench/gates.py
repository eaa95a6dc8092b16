"""The optimisation of the gates: from moments alone, so its cost does not depend on the rows."""

from __future__ import annotations

from functools import partial

import numpy as np

from hetrisk.bench.clock import shortest
from hetrisk.bench.fits import selection_bias
from hetrisk.bench.metric import Metric, Size
from hetrisk.blocks import ArrayBlocks
from hetrisk.core.comparison import environment_moments
from hetrisk.core.invariance import InvarianceProblem, environment_risks, fit_gates


def gate_optimisation(size: Size) -> list[Metric]:
    """The gates of 200,000 rows against those of 2,000: from moments, so the same cost."""
    problems = {}
    for n in (2_000, 200_000):
        X, y = selection_bias(n, 10)
        rare = max(n // 20, 1)
        labels = np.repeat(np.eye(2), [n - rare, rare], axis=0)
        m = environment_moments(ArrayBlocks(X, y, None, labels), None)
        problem = InvarianceProblem(environment_risks(m), np.arange(10), 0.1, 1.0, 0.01)
        problems[str(n)] = partial(_many, problem)
    times = shortest(problems, max(5, size.repeats))
    return [
        Metric(
            "fits",
            "gate optimisation, n = 200,000 / n = 2,000",
            times["200000"] / times["2000"],
            bound=1.2,
            guarded=True,
            note=f"{1e3 * times['2000'] / 10:.1f} ms each, d = 10, two environments",
        )
    ]


def _many(problem: InvarianceProblem) -> None:
    for _ in range(10):
        fit_gates(problem)
