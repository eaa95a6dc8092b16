"""The paper's numbers, from the data file beside this module."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

Numbers = Mapping[str, Mapping[str, float]]


@lru_cache(maxsize=1)
def paper() -> dict[str, Any]:
    """Every number of the paper's tables (ICML 2021, tables 1 to 3)."""
    text = files("hetrisk.reproduce").joinpath("paper.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def spread_numbers(table: str, scenario: str, index: int) -> Numbers:
    """Mean, std and max of every row of the paper for the ``index``-th value of a scenario."""
    rows = paper()[table][scenario]["rows"]
    return {name: dict(values[index]) for name, values in rows.items()}


def environment_numbers(scenario: str) -> Numbers:
    """Table 2's errors by environment, e1 to e10."""
    rows = paper()["table2"][scenario]["rows"]
    return {
        name: {f"e{i}": value for i, value in enumerate(values, start=1)}
        for name, values in rows.items()
    }
