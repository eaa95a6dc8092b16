"""A summary as plain values, for ``--json``: everything the page shows, and nothing else."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from hetrisk.report.summary import Feature, Summary, by_importance


def record(summary: Summary) -> dict[str, Any]:
    """Return a summary as dictionaries, lists, texts and numbers.

    What a table calls a column is under ``columns``, most important first; ``features`` are the
    numbers the model sees of them, to which coefficients and spreads refer.
    """
    values = plain_record(summary)
    values["columns"] = [_feature(f) for f in by_importance(summary.features)]
    values["features"] = [_feature(f) for f in summary.columns]
    origin = values.pop("origin") or {}
    values["rows"] = values.pop("n_rows")
    values["source"], values["target"] = origin.get("source"), origin.get("target")
    values["columns_in_table"] = origin.get("n_columns")
    values["task_reason"] = origin.get("reason")
    values["notes"] = [{"column": column, "note": note} for column, note in origin.get("notes", [])]
    values["leaks"] = [
        {"column": column, "kind": kind, "sentence": sentence}
        for column, kind, sentence in origin.get("leaks", [])
    ]
    values["left_out"] = [
        {"column": column, "reason": reason} for column, reason in origin.get("left_out", [])
    ]
    return values


def _feature(feature: Feature) -> dict[str, Any]:
    values: dict[str, Any] = plain_record(feature)
    return {"column": values.pop("name"), "kept": values.pop("used"), **values}


def plain_record(value: Any) -> Any:
    """Return dataclasses, enumerations and arrays as what JSON knows; no NaN, no infinity."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain_record(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return plain_record(value.value)
    if isinstance(value, dict):
        return {str(key): plain_record(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain_record(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain_record(item) for item in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value if value is None else str(value)
