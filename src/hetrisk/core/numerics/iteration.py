"""One driver for every iteration: step from state to state until the objective settles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

import numpy as np

from hetrisk.core.numerics.rows import FloatArray

S = TypeVar("S")


class Status(Enum):
    """How an iteration ended, as a sentence a person can read."""

    CONVERGED = "The objective settled within the tolerance."
    MAX_ITER = "The iteration limit was reached before the objective settled."


@dataclass(frozen=True)
class Solution(Generic[S]):
    """Where an iteration ended: the last state, why it stopped, and the path of the objective."""

    value: S
    status: Status
    path: FloatArray

    @property
    def n_iter(self) -> int:
        """Number of steps taken."""
        return len(self.path)

    @property
    def converged(self) -> bool:
        """Whether the objective settled."""
        return self.status is Status.CONVERGED


def iterate(
    step: Callable[[S], tuple[S, float]], start: S, *, tol: float, max_iter: int
) -> Solution[S]:
    """Step until two objectives in a row differ by at most ``tol``.

    ``step(state)`` returns the next state and the objective *of the state it was given* (an
    E-step learns the likelihood of the parameters it starts from).
    """
    state, path = start, []
    for _ in range(max_iter):
        state, objective = step(state)
        path.append(objective)
        if len(path) > 1 and abs(path[-1] - path[-2]) <= tol:
            return Solution(state, Status.CONVERGED, np.asarray(path))
    return Solution(state, Status.MAX_ITER, np.asarray(path))
