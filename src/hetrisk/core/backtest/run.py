"""The backtest: every candidate learns from some cells and is judged in those left out.

Also what needs the same trainings: the errors of the model that is chosen, row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetrisk.core.backtest.candidates.base import Candidate
from hetrisk.core.backtest.cuts import Left, Split
from hetrisk.core.backtest.losses import LogLosses, Losses, SquaredLosses, row_losses
from hetrisk.core.backtest.training import SampleRows, Training
from hetrisk.core.numerics.floors import ROUNDING, TINY
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.predictor import IDENTITY, SOFTMAX, Part, Predictor

Run = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]
LARGEST = 1e100  # of a prediction: squares of larger ones overflow, and nobody tells them apart


@dataclass(frozen=True)
class Problem:
    """All rows, as trainings are made of them.

    Attributes
    ----------
    training : a function of (C,) cells to learn from.
    rows : those at hand, which models are judged on.
    n_outputs : scores: 1 for numbers, K for labels.
    n_cells : cells of the layout.
    """

    training: Callable[[BoolArray], Training]
    rows: SampleRows
    n_outputs: int
    n_cells: int

    @property
    def link(self) -> str:
        """What turns scores into predictions."""
        return IDENTITY if self.n_outputs == 1 else SOFTMAX


@dataclass(frozen=True)
class Judged:
    """Rows of one environment left out, and what each candidate predicted for them.

    Attributes
    ----------
    split : number of the training; left : the environment.
    index : (n,) the rows; prediction : (n, F, K), NaN for candidates that failed.
    """

    split: int
    left: Left
    index: IntArray
    prediction: FloatArray


@dataclass(frozen=True)
class Tests:
    """What a backtest brings back.

    Attributes
    ----------
    names : (F,) of the candidates that did not fail anywhere.
    judged : one entry an environment and training.
    losses : in environments, each the mean over the trainings it was judged after.
    numbers : (E,) of the environments, as the entries of ``judged`` give them.
    failed : name -> why.
    """

    names: tuple[str, ...]
    judged: tuple[Judged, ...]
    losses: Losses
    numbers: tuple[int, ...]
    failed: dict[str, str]

    def mixed(self, judged: Judged, weight: FloatArray) -> FloatArray:
        """(n, K) predictions of a mixture with (F,) weights."""
        used = weight > 0
        return np.tensordot(judged.prediction[:, used], weight[used], axes=(1, 0))

    def noise(self, rows: SampleRows, other: int, weight: FloatArray) -> float:
        """Variance of the log ratio of losses of a mixture and a candidate, as rows alone give it.

        That of a ratio of two means over the same rows, to first order; the mean over environments.
        """
        variance = []
        for j in self.judged:
            y, w = rows.y[j.index], rows.weight[j.index]
            a = row_losses(self.mixed(j, weight), y)
            b = row_losses(j.prediction[:, other], y)
            of_a, of_b = (max(float(np.average(loss, weights=w)), TINY) for loss in (a, b))
            variance.append(float(w @ (a / of_a - b / of_b) ** 2) / float(w.sum()) ** 2)
        return float(np.mean(variance))


def backtest(
    problem: Problem, splits: Sequence[Split], candidates: Sequence[Candidate], run: Run
) -> Tests:
    """Fit every candidate to every training, and judge it in the environments left out."""
    rows = problem.rows
    index = [[np.flatnonzero(left.cells[rows.cell]) for left in split.left] for split in splits]
    tasks = [
        _Task(problem, split, np.concatenate(where), candidate)
        for split, where in zip(splits, index, strict=True)
        for candidate in candidates
    ]
    answers = run(_fit_and_predict, tasks)
    failed: dict[str, str] = {}
    for task, answer in zip(tasks, answers, strict=True):
        if isinstance(answer, str):
            failed.setdefault(task.candidate.name, answer)
    kept = [k for k, c in enumerate(candidates) if c.name not in failed]
    judged = []
    for s, (split, where) in enumerate(zip(splits, index, strict=True)):
        found = [answers[s * len(candidates) + k] for k in kept]
        prediction = np.stack(found, axis=1)
        start = 0
        for left, rows_of in zip(split.left, where, strict=True):
            part = prediction[start : start + len(rows_of)]
            start += len(rows_of)
            if len(rows_of):
                judged.append(Judged(s, left, rows_of, part))
    numbers = tuple(sorted({j.left.environment for j in judged}))
    losses = _losses(problem, judged, numbers)
    names = tuple(candidates[k].name for k in kept)
    return Tests(names, tuple(judged), losses, numbers, failed)


@dataclass(frozen=True)
class _Task:
    problem: Problem
    split: Split
    index: IntArray
    candidate: Candidate


def _fit_and_predict(task: _Task) -> FloatArray | str:
    """(n, K) predictions, or why there are none."""
    problem, rows = task.problem, task.problem.rows
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[task.index] = True
    try:
        parts = task.candidate.fit(problem.training(task.split.train))
        model = Predictor((parts,), np.ones(1), problem.link)
        at = np.searchsorted(np.flatnonzero(chosen), task.index)
        prediction = model.predict(rows.take(chosen).inputs)[at]
    except Exception as error:  # whatever a user's own model raises is a line in the table
        return f"{type(error).__name__}: {error}"
    if not np.isfinite(prediction).all():
        return "it predicted values that are not finite"
    return np.clip(prediction, -LARGEST, LARGEST)


def _losses(problem: Problem, judged: Sequence[Judged], numbers: Sequence[int]) -> Losses:
    """Losses by environment: the mean over the trainings after which it was judged."""
    rows = problem.rows
    times = {e: sum(j.left.environment == e for j in judged) for e in numbers}
    if problem.n_outputs == 1:
        F = judged[0].prediction.shape[1]
        products = np.zeros((len(numbers), F, F))
        for j in judged:
            error = j.prediction[:, :, 0] - rows.y[j.index, None]
            weight = rows.weight[j.index] / rows.weight[j.index].sum()
            e = j.left.environment
            products[numbers.index(e)] += (error.T * weight) @ error / times[e]
        least = ROUNDING**2 * float(np.average(rows.y**2, weights=rows.weight))
        return SquaredLosses(products, least)
    shares, environment, probability = [], [], []
    for j in judged:
        label = rows.y[j.index].astype(np.int64)
        probability.append(j.prediction[np.arange(len(label)), :, label])
        e = j.left.environment
        shares.append(rows.weight[j.index] / rows.weight[j.index].sum() / times[e])
        environment.append(np.full(len(label), numbers.index(e)))
    return LogLosses(
        np.concatenate(probability), np.concatenate(shares), np.concatenate(environment)
    )


def refit(
    problem: Problem, candidates: Sequence[Candidate], weight: FloatArray
) -> tuple[Predictor, tuple[tuple[Part, ...], ...]]:
    """Fit the members of a mixture to all rows."""
    training = problem.training(np.ones(problem.n_cells, dtype=bool))
    used = np.flatnonzero(weight > 0).tolist()
    members = tuple(candidates[k].fit(training) for k in used)
    return Predictor(members, weight[used], problem.link), members
