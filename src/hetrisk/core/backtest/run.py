"""The backtest: every candidate learns from some cells and is judged in those left out.

Also what needs the same trainings: the errors of the model that is chosen, row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetrisk.core.backtest.candidates import Candidate
from hetrisk.core.backtest.cuts import Left, Split
from hetrisk.core.backtest.losses import LogLosses, Losses, SquaredLosses, row_losses
from hetrisk.core.backtest.training import SampleRows, Training
from hetrisk.core.numerics.floors import ROUNDING, TINY
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.predictor import IDENTITY, SOFTMAX, Predictor

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
    index : (n,) the rows; prediction : (n, F, K), of those that did not fail.
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
    failed : name -> why.
    """

    names: tuple[str, ...]
    judged: tuple[Judged, ...]
    losses: Losses
    failed: dict[str, str]

    def mixed(self, judged: Judged, weight: FloatArray) -> FloatArray:
        """(n, K) predictions of a mixture with (F,) weights."""
        return np.tensordot(judged.prediction, weight, axes=(1, 0))

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
        (problem, split, np.concatenate(where), candidate)
        for split, where in zip(splits, index, strict=True)
        for candidate in candidates
    ]
    answers = run(_fit_and_predict, tasks)
    failed: dict[str, str] = {}
    for (*_, candidate), answer in zip(tasks, answers, strict=True):
        if isinstance(answer, str):
            failed.setdefault(candidate.name, answer)
    kept = [k for k, c in enumerate(candidates) if c.name not in failed]
    judged = []
    for s, (split, where) in enumerate(zip(splits, index, strict=True)):
        found = [answers[s * len(candidates) + k] for k in kept]
        parts = np.split(np.stack(found, axis=1), np.cumsum([len(at) for at in where])[:-1])
        held = zip(split.left, where, parts, strict=True)
        judged += [Judged(s, left, at, part) for left, at, part in held if len(at)]
    names = tuple(candidates[k].name for k in kept)
    return Tests(names, tuple(judged), _losses(problem, judged), failed)


def _fit_and_predict(task: tuple[Problem, Split, IntArray, Candidate]) -> FloatArray | str:
    """(n, K) predictions, or why there are none."""
    problem, split, index, candidate = task
    try:
        parts = candidate.fit(problem.training(split.train))
        model = Predictor((parts,), np.ones(1), problem.link)
        prediction = model.predict(problem.rows.take(index).inputs)
    except Exception as error:  # whatever a user's own model raises is a line in the table
        return f"{type(error).__name__}: {error}"
    if not np.isfinite(prediction).all():
        return "it predicted values that are not finite"
    return np.clip(prediction, -LARGEST, LARGEST)


def _losses(problem: Problem, judged: Sequence[Judged]) -> Losses:
    """Losses by environment: the mean over the trainings after which it was judged."""
    rows = problem.rows
    of = np.unique([j.left.environment for j in judged], return_inverse=True)[1]
    times = np.bincount(of)
    weights = [rows.weight[j.index] for j in judged]
    shares = [w / w.sum() / times[e] for e, w in zip(of, weights, strict=True)]
    if problem.n_outputs == 1:
        F = judged[0].prediction.shape[1]
        products = np.zeros((len(times), F, F))
        for e, j, share in zip(of, judged, shares, strict=True):
            error = j.prediction[:, :, 0] - rows.y[j.index, None]
            products[e] += (error.T * share) @ error
        least = ROUNDING**2 * float(np.average(rows.y**2, weights=rows.weight))
        return SquaredLosses(products, least)
    probability = [
        j.prediction[np.arange(len(j.index)), :, rows.y[j.index].astype(np.int64)] for j in judged
    ]
    environment = np.repeat(of, [len(j.index) for j in judged])
    return LogLosses(np.concatenate(probability), np.concatenate(shares), environment)


def refit(problem: Problem, candidates: Sequence[Candidate], weight: FloatArray) -> Predictor:
    """Fit the members of a mixture to all rows."""
    training = problem.training(np.ones(problem.n_cells, dtype=bool))
    used = np.flatnonzero(weight > 0).tolist()
    members = tuple(candidates[k].fit(training) for k in used)
    return Predictor(members, weight[used], problem.link)
