"""The published figures of the unit tests, and ours in the same units."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

from hetrisk.reproduce.gauntlet.cases import DESIGNS, FIRST_SEED, Stage
from hetrisk.reproduce.gauntlet.ratios import Found, record_of
from hetrisk.reproduce.records import OK

SQUARED = "cause_and_effect"  # its published error is the mean squared one


@lru_cache(maxsize=1)
def published() -> dict[str, Any]:
    """Test errors of Aubin et al. (arXiv:2102.10867), from the authors' repository."""
    text = files("hetrisk.reproduce.gauntlet").joinpath("unit_tests.json").read_text("utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def unit_stages() -> dict[str, Stage]:
    """Return the unit tests among the designs, by their name in the published figures."""
    stages = {}
    for stage in DESIGNS:
        name = stage.task + (", rotated" if stage.setting.get("rotated") else "")
        if name in published()["rows"]:
            stages[name] = stage
    return stages


def mean_error(stage: Stage, method: str, found: Found, n_seeds: int) -> float | None:
    """Return our error averaged over environments and seeds, in the units published."""
    seeds = range(FIRST_SEED, FIRST_SEED + n_seeds)
    records = [record_of(stage, method, found, seed) for seed in seeds]
    errors = [list(r["errors"].values()) for r in records if r is not None and r["status"] == OK]
    if not errors:
        return None
    values = np.array(errors)
    return float(np.mean(values**2 if stage.task == SQUARED else values))
