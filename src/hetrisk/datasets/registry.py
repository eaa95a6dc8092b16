"""Tasks by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hetrisk.datasets.car_insurance import car_insurance_task
from hetrisk.datasets.checks import one_of
from hetrisk.datasets.designs import (
    copied_label_task,
    drifting_causes_task,
    selected_on_target_task,
    spreading_effects_task,
)
from hetrisk.datasets.house_price import house_price_task
from hetrisk.datasets.income import income_task
from hetrisk.datasets.simulations import anti_causal_task, cats_and_dogs_task, selection_bias_task
from hetrisk.datasets.task import ShiftTask
from hetrisk.datasets.unit_tests import (
    cause_and_effect_task,
    cows_and_camels_task,
    small_margin_task,
)

TASKS: dict[str, Callable[..., ShiftTask]] = {
    "selection_bias": selection_bias_task,
    "anti_causal": anti_causal_task,
    "cats_and_dogs": cats_and_dogs_task,
    "house_price": house_price_task,
    "income": income_task,
    "car_insurance": car_insurance_task,
    "selected_on_target": selected_on_target_task,
    "spreading_effects": spreading_effects_task,
    "copied_label": copied_label_task,
    "drifting_causes": drifting_causes_task,
    "cause_and_effect": cause_and_effect_task,
    "cows_and_camels": cows_and_camels_task,
    "small_margin": small_margin_task,
}


def load_task(name: str, seed: int = 0, **setting: Any) -> ShiftTask:
    """Make or load a task.

    Parameters
    ----------
    name : key of `TASKS`: the paper's simulations (``"selection_bias"``, ``"anti_causal"``,
        ``"cats_and_dogs"``) and real tasks (``"house_price"``, ``"income"``,
        ``"car_insurance"``), or a designed task.
    seed : of every draw the task makes: the same seed gives the same rows.
    setting : of the task, as the function behind it takes them: ``help(TASKS[name])``.

    Returns
    -------
    ShiftTask

    Examples
    --------
    >>> task = load_task("selection_bias", seed=1, r=2.3, n_features=20, n_biased=2)
    >>> task.train.X.shape, len(task.test)
    ((2000, 20), 10)
    >>> X, y = task.test["r=-3"]
    """
    one_of("name", name, TASKS)
    return TASKS[name](seed, **setting)
