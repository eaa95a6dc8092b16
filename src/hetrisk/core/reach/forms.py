"""The forms an answer can take: columns left out, or directions shrunk.

A form makes a model of the problem and says how it does on other rows. A new one is a
function here and a line in `FORMS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.core.reach.curve import Line, model_line
from hetrisk.core.reach.directions import (
    choose_strength,
    direction_line,
    direction_lines,
    fit_directions,
)
from hetrisk.core.reach.leave_one_out import Refit
from hetrisk.core.reach.regret import Environments, fit_set
from hetrisk.core.reach.resampling import ResampledSets
from hetrisk.core.reach.set_errors import evaluate_sets


@dataclass(frozen=True)
class DecisionProblem:
    """What a form is made from.

    Attributes
    ----------
    cells : moments of each partition's environments and folds.
    environments : the same environments side by side.
    reach : k.
    rivals : (m, d) the best sets of columns met, that of all columns among them.
    resampled : nested sets of columns, and the rivals, on resampled rows.
    at, full : numbers of the set that was chosen, and of that of all columns.
    """

    cells: list[CellMoments]
    environments: Environments
    reach: float
    rivals: BoolArray
    resampled: ResampledSets
    at: int
    full: int


@dataclass(frozen=True)
class Model:
    """A model to choose.

    Attributes
    ----------
    support, coef : see `hetrisk.core.reach.decision.Decision`.
    line : its E_k; lines : the same, and that of plain ERM, on resampled rows.
    agreement : share of other rows on which it pays; where : the same in words.
    refit : fits it to other environments.
    dense : whether it uses the linear scores ``coef`` in place of columns.
    """

    support: BoolArray
    coef: FloatArray
    line: Line
    lines: tuple[Line, Line]
    agreement: float
    where: str
    refit: Refit
    dense: bool = False


def columns(problem: DecisionProblem) -> Model:
    """Leave columns out: least squares on those that stay."""
    support, resampled = problem.resampled.sets[problem.at], problem.resampled
    coef = fit_set(problem.environments, support).coef[0]
    agreement = resampled.agreement(problem.at, problem.full)
    return Model(
        support,
        coef,
        model_line(problem.environments, coef, support),
        resampled.lines(problem.at, problem.full),
        agreement,
        _in_resamples(agreement, len(resampled.expected)),
        partial(refit_columns, rivals=problem.rivals, reach=problem.reach),
    )


def refit_columns(rest: Environments, rivals: BoolArray, reach: float) -> FloatArray:
    """Choose anew among the best sets met."""
    found = evaluate_sets(rest, rivals).costs
    best = found.best(reach, found.cured(int(rivals.all(axis=1).argmax())))
    coef = np.empty((len(best), 1 + rest.n_columns, rest.n_targets))
    for i in np.unique(best):
        coef[best == i] = refit_set(rest.some(best == i), rivals[i])
    return coef


def refit_set(rest: Environments, columns: BoolArray) -> FloatArray:
    """Fit the same columns anew."""
    coef: FloatArray = fit_set(rest, columns).coef[:, 0]
    return coef


def directions(problem: DecisionProblem) -> Model:
    """Shrink directions of all columns."""
    environments = problem.environments
    strength = choose_strength(problem.cells, environments, problem.reach)
    if strength == 0.0:
        return plain(problem)
    coef = fit_directions(environments, strength)
    _, other = problem.resampled.lines(problem.full, problem.full)
    lines = (direction_lines(problem.cells, environments, strength), other)
    ours, theirs = (line.expected(np.array([problem.reach])) for line in lines)
    agreement = float((ours <= theirs).mean())
    return Model(
        np.ones(environments.n_columns, dtype=bool),
        coef,
        direction_line(environments, coef),
        lines,
        agreement,
        _in_resamples(agreement, len(ours)),
        partial(fit_directions, reach=strength),
        dense=True,
    )


def plain(problem: DecisionProblem) -> Model:
    """Plain ERM on all columns."""
    full = np.ones(problem.environments.n_columns, dtype=bool)
    coef = fit_set(problem.environments, full).coef[0]
    return Model(
        full,
        coef,
        model_line(problem.environments, coef, full),
        problem.resampled.lines(problem.full, problem.full),
        1.0,
        "on all rows",
        partial(refit_set, columns=full),
    )


def _in_resamples(agreement: float, count: int) -> str:
    return f"in {agreement * count:.0f} of {count} resamples"


@dataclass(frozen=True)
class Form:
    """A form of the answer.

    Attributes
    ----------
    make : makes the model.
    sentence : what the model does, where it leaves no column out but uses other linear scores of
        all of them; empty where columns leave.
    """

    make: Callable[[DecisionProblem], Model]
    sentence: str = ""

    @property
    def leaves_columns(self) -> bool:
        """Whether the answer is a set of columns."""
        return not self.sentence


FORMS: Final[dict[str, Form]] = {
    "columns": Form(columns),
    "directions": Form(directions, "Directions along which environments differ are shrunk"),
}
