"""A summary as the plain record that a model file keeps of it, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

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
        return decide_without_backtest(
            record["verdict"],
            record["verdict_reason"],
            record["evidence"],
            record["forecast"],
            record["ranking"],
        )
    names = ("ranking", "backtest", "forecast", "reach_curve")
    ranking, backtest, forecast, curve = (record[name] for name in names)
    return decide(ranking, backtest, forecast, curve)


def _items(value: Any) -> Mapping[str, Any]:
    """Fields of a record, before it was stored and after."""
    return value if isinstance(value, Mapping) else vars(value)
