"""A summary as the plain record that a model file keeps of it, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hetrisk.report.decision import decide, decide_without_backtest
from hetrisk.report.summary import ColumnLine, Difference, Origin, Quality, Summary

_ORIGIN = (
    *("source", "target", "task", "reason", "n_rows", "n_columns", "time", "environment"),
    *("weight", "command", "version"),
)
_SAME = ("reach", "ranking", "backtest", "forecast", "reach_curve", "break_even", "evidence")


def to_record(s: Summary) -> dict[str, Any]:
    """Return a summary as fields of ``SUMMARY`` in `hetrisk.modelfile.schema`.

    The decision is not among them: it is computed again from the backtest.
    """
    origin = s.origin
    columns = [
        {
            "name": c.name,
            "weight": c.weight,
            "p_slope": c.p_slope,
            "least_slope": c.slopes[0],
            "most_slope": c.slopes[1],
            "reason": c.reason,
        }
        for c in s.columns
    ]
    return {
        "table": {name: getattr(origin, name) for name in _ORIGIN},
        "notes": [{"column": column, "text": text} for column, text in origin.notes],
        "left_out": [{"column": column, "text": text} for column, text in origin.left_out],
        "leaks": [{"column": "", "text": text} for text in origin.leaks],
        "best": s.decision.candidate,
        "asked": s.asked,
        "verdict": s.verdict,
        "reason": s.verdict_reason,
        **{name: getattr(s, name) for name in _SAME},
        "columns": columns,
        "differences": [vars(d) for d in s.differences],
        "cautions": s.cautions,
        "advice": s.advice,
        "quality": None if s.quality is None else vars(s.quality),
    }


def from_record(record: Mapping[str, Any]) -> Summary | None:
    """Return the summary of a record; None of a model that holds none."""
    table = record.get("table")
    if table is None or not record["ranking"]:
        return None
    origin = Origin(
        **{name: table[name] for name in _ORIGIN},
        notes=_pairs(record["notes"]),
        left_out=_pairs(record["left_out"]),
        leaks=tuple(note["text"] for note in record["leaks"]),
    )
    same = {name: record[name] for name in _SAME}
    backtested = (same["ranking"], same["backtest"], same["forecast"], same["reach_curve"])
    if record["verdict"]:
        decision = decide_without_backtest(
            record["verdict"], record["reason"], same["evidence"], same["forecast"], same["ranking"]
        )
    else:
        decision = decide(*backtested, asked=record["asked"] or None)
    return Summary(
        origin=origin,
        decision=decision,
        **same,
        columns=tuple(_column(c) for c in record["columns"]),
        differences=tuple(Difference(**d) for d in record["differences"]),
        cautions=tuple(record["cautions"]),
        advice=tuple(record["advice"]),
        quality=None if record["quality"] is None else _quality(record["quality"]),
        asked=record["asked"],
        verdict=record["verdict"],
        verdict_reason=record["reason"],
    )


def _pairs(notes: Any) -> tuple[tuple[str, str], ...]:
    return tuple((note["column"], note["text"]) for note in notes)


def _column(c: Mapping[str, Any]) -> ColumnLine:
    slopes = (c["least_slope"], c["most_slope"])
    weight = c["weight"] if math.isfinite(c["weight"]) else 0.0
    return ColumnLine(c["name"], weight, c["p_slope"], slopes, c["reason"])


def _quality(q: Mapping[str, Any]) -> Quality:
    arrays = {n: tuple(q[n].tolist()) for n in ("predicted", "observed", "low", "high", "count")}
    return Quality(outcome=q["outcome"], held_out=q["held_out"], **arrays)
