"""Frozen cases: one method on one draw of one task, and the grids that make up each table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """One method on one draw of one task.

    Attributes
    ----------
    task : name, as `hetrisk.datasets.load_task` knows it.
    setting : of the task, as sorted (name, value) pairs.
    seed : of the task's draw and of the method.
    method : key in `hetrisk.reproduce.methods.METHODS`.
    """

    task: str
    setting: tuple[tuple[str, Any], ...]
    seed: int
    method: str

    @property
    def key(self) -> str:
        """The case in one line: what makes two cases the same."""
        return json.dumps([self.task, dict(self.setting), self.seed, self.method], sort_keys=True)


def grid(
    task: str, settings: Sequence[Mapping[str, Any]], seeds: Iterable[int], methods: Iterable[str]
) -> list[Case]:
    """Return every method on every seed of every setting, the cases of one draw together."""
    methods = tuple(methods)
    return [
        Case(task, tuple(sorted(setting.items())), seed, method)
        for seed in seeds
        for setting in settings
        for method in methods
    ]
