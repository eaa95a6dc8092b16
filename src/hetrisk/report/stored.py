"""A summary as the plain record that a model file keeps of it, and back; and as ``--json``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from hetrisk.report.decision import Decision, decide, decide_without_backtest
from hetrisk.report.summary import ColumnLine, Difference, Origin, Quality, Summary


def to_record(s: Summary) -> dict[str, Any]:
    """Return a summary as fields of ``SUMMARY`` in `hetrisk.modelfile.schema`.

    The decision is not among them: it is computed again from the backtest.
    """
    return {f.name: getattr(s, f.name) for f in fields(s) if f.name != "decision"}


def from_record(record: Mapping[str, Any]) -> Summary | None:
    """Return the summary of a record; None of a model that holds none."""
    if record.get("origin") is None or not record["ranking"]:
        return None
    quality = record["quality"]
    made = {
        "origin": Origin(**_items(record["origin"])),
        "columns": tuple(ColumnLine(**_items(c)) for c in record["columns"]),
        "differences": tuple(Difference(**_items(d)) for d in record["differences"]),
        "quality": None if quality is None else Quality(**_items(quality)),
    }
    return Summary(**{**record, **made}, decision=decision_of(record))


def decision_of(record: Mapping[str, Any]) -> Decision:
    """Say what to do, from what a record holds of a backtest or of a search without one."""
    if record["verdict"]:
        searched = ("verdict", "verdict_reason", "evidence", "forecast", "ranking")
        return decide_without_backtest(*(record[name] for name in searched))
    backtested = ("ranking", "backtest", "forecast", "reach_curve")
    return decide(*(record[name] for name in backtested))


def _items(value: Any) -> Mapping[str, Any]:
    """Fields of a record, before it was stored and after."""
    return value if isinstance(value, Mapping) else vars(value)


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
