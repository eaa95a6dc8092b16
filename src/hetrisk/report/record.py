"""A summary as plain values, for ``--json``: everything the page shows, and nothing else."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from hetrisk.report.summary import Summary


def record(summary: Summary) -> dict[str, Any]:
    """Return a summary as dictionaries, lists, texts and numbers; the decision first."""
    values: dict[str, Any] = plain_record(summary)
    decision = values.pop("decision")
    decision["action"] = summary.decision.action.name.lower()
    origin = values.pop("origin")
    for kind in ("notes", "left_out"):
        origin[kind] = [{"column": column, "text": text} for column, text in origin[kind]]
    return {"decision": decision, **origin, **values}


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
