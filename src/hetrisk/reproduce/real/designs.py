"""Designs beside the real tables: shortcuts, drifting causes, and environments that mean nothing.

They are scored against the *minimax* predictor: the linear one whose worst error over the test
environments is least, found knowing the tests. Not against "the stable columns": where a cause
drifts those are not what one should use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.datasets import ShiftTask, load_task
from hetrisk.reproduce.real.lot import LABELS, NUMBERS, Lot
from hetrisk.reproduce.real.ordinary import Predictor
from hetrisk.reproduce.real.split import Half, Table

DESIGN = "design"
DRAWS, STEPS = 3, 60
DESIGNS: dict[str, tuple[str, dict[str, Any], str]] = {
    "selection on the target": ("selected_on_target", {}, NUMBERS),
    "effects that spread": ("spreading_effects", {}, NUMBERS),
    "copied labels": ("copied_label", {}, LABELS),
    "cause and effect (Aubin 1)": ("cause_and_effect", {}, NUMBERS),
    "cows and camels (Aubin 2)": ("cows_and_camels", {}, LABELS),
    "small margin (Aubin 3)": ("small_margin", {}, LABELS),
    "one cause drifts": ("drifting_causes", {"n_drifting": 1}, NUMBERS),
    "every slope moves": ("drifting_causes", {"n_drifting": 5}, NUMBERS),
    "environments mean nothing": ("drifting_causes", {"n_drifting": 0}, NUMBERS),
}


def designs() -> Iterator[Lot]:
    """Yield the designs, three draws each."""
    for name, (_, _, kind) in DESIGNS.items():
        for seed in range(DRAWS):
            yield Lot(DESIGN, name, str(seed), None, "environment", kind)


def split_design(lot: Lot) -> Table:
    """Draw a design; its environments are sites."""
    task_name, setting, kind = DESIGNS[lot.item]
    task: ShiftTask = load_task(task_name, int(lot.target), **setting)
    X = np.concatenate([rows.X for rows in task.test.values()])
    y = np.concatenate([rows.y for rows in task.test.values()])
    # Environments of the tests are none of those learned from.
    codes = np.repeat(1000.0 + np.arange(len(task.test)), [len(r.y) for r in task.test.values()])
    known = task.train.environments.astype(float)
    train = Half(task.train.X, task.train.y.astype(float), None, known)
    return Table(kind == LABELS, train, Half(X, y.astype(float), None, codes))


def minimax(table: Table, _: Half) -> Predictor:
    """Return the linear predictor with the least worst error over the tests, knowing them.

    Multiplicative weights: environments that suffer count for more, round by round.
    """
    test = table.test
    codes = np.unique(test.environment, return_inverse=True)[1]
    sizes = np.bincount(codes)
    weight = np.ones(len(sizes)) / len(sizes)
    best: tuple[float, Any] = (np.inf, None)
    for _step in range(STEPS):
        inner = LogisticRegression(max_iter=500, C=100.0) if table.labels else LinearRegression()
        model = make_pipeline(StandardScaler(), inner)
        rows: FloatArray = weight[codes] / sizes[codes] * len(codes)
        model.fit(test.X, test.y, **{f"{model.steps[-1][0]}__sample_weight": rows})
        errors = table.errors(table.losses(table.predicted(model, test.X), test))
        if errors.max() < best[0]:
            best = (float(errors.max()), model)
        weight = weight * np.exp(errors / errors.max())
        weight = weight / weight.sum()
    return lambda half: table.predicted(best[1], half.X)
