"""A fitted model in words and numbers: one record for ``--json``, and its picture in text."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text
from sklearn.pipeline import Pipeline

from hetrisk.cli.terminal import grid, number, percent
from hetrisk.tables.errors import counted, quoted, shown

MOST_COLUMNS = 30
MOST_ENVIRONMENTS = 20
STYLES = {"invariant": "bold green", "homogeneous": "bold cyan", "unstable": "bold yellow"}


def summarise(model: Pipeline) -> dict[str, Any]:
    """Return what `fit` found, as plain values.

    Parameters
    ----------
    model : a pipeline from `hetrisk.tables.model.fit_table`.
    """
    table = model[0].description_
    return {
        "source": table.source,
        "rows": table.n_rows,
        "columns_in_table": table.n_columns,
        "target": table.target,
        "task": table.task,
        "task_reason": table.reason,
        "leaks": [
            {"column": leak.column, "kind": leak.kind, "sentence": leak.sentence}
            for leak in table.leaks
        ],
        "verdict": model[-1].verdict_,
        "reason": model[-1].verdict_reason_,
        "columns": columns(model),
        "left_out": [{"column": out.name, "reason": out.reason} for out in table.left_out],
        "environments": environments(model),
        "risk_name": model[-1].environment_summary_.risk_name,
        "notes": [{"column": note.column, "note": note.text} for note in table.notes],
    }


def columns(model: Pipeline) -> list[dict[str, Any]]:
    """One record a column: what became of it and the strongest evidence about its features."""
    encoder, final = model[0], model[-1]
    evidence, names = final.evidence_, encoder.get_feature_names_out()
    records, start = [], 0
    for column in encoder.columns_:
        span = slice(start, start + len(column.feature_names))
        start = span.stop
        instability = np.asarray(evidence.instability[span], dtype=float)
        worst = span.start + int(np.argmax(np.nan_to_num(instability, nan=-1.0)))
        records.append(
            {
                "column": column.name,
                "kind": column.kind,
                "features": list(names[span]),
                "kept": bool(np.any(final.support_[span])),
                "instability": float(evidence.instability[worst]),
                "cost": float(np.max(evidence.cost[span])),
                "saving": float(np.max(evidence.saving[span])),
                "p_value": float(np.min(evidence.p_value[span])),
                "reason": evidence.reason[worst],
            }
        )
    return records


def environments(model: Pipeline) -> list[dict[str, Any]]:
    """One record an environment: its share of the rows, and the risk of the model and of ERM."""
    found = model[-1].environment_summary_
    return [
        {
            "environment": k + 1,
            "share": float(found.weight[k]),
            "risk": float(found.risk[k]),
            "risk_erm": float(found.risk_erm[k]),
        }
        for k in range(len(found.weight))
    ]


def show(summary: dict[str, Any], screen: Console) -> None:
    """Print a summary for a person."""
    for leak in summary["leaks"]:
        screen.print(Text(f"LEAK: {shown(leak['sentence'], 300)}", style="bold red"))
    rows = counted(summary["rows"], "row")
    screen.print(
        f"{shown(summary['source'])}: {rows}, {counted(summary['columns_in_table'], 'column')}. "
        f"{summary['task'].capitalize()}: {shown(summary['task_reason'], 200)}."
    )
    verdict = Text(summary["verdict"].upper(), style=STYLES.get(summary["verdict"], "bold"))
    screen.print(Text("\nVerdict: ") + verdict + Text(f". {shown(summary['reason'], 600)}\n"))
    screen.print(_column_grid(summary))
    screen.print()
    screen.print(_environment_grid(summary))


def _column_grid(summary: dict[str, Any]) -> Any:
    # Most suspicious first. Not by instability: a column that does nothing has a small mean for
    # its index to be relative to, and can show any number by chance.
    records = sorted(summary["columns"], key=lambda r: (r["kept"], r["p_value"], -r["cost"]))
    rows: list[tuple[object, ...]] = [
        (
            record["column"],
            record["kind"],
            Text("kept", style="green") if record["kept"] else Text("left out", style="red"),
            number(record["instability"], 2),
            _chance(record["p_value"]),
            percent(record["cost"]),
        )
        for record in records[:MOST_COLUMNS]
    ]
    hidden = len(records) - len(rows)
    if hidden:
        rows.append((f"… and {hidden:,} more: see --json", "", "", "", "", ""))
    heads = [
        ("column", "left"),
        ("kind", "left"),
        ("decision", "left"),
        ("instability", "right"),
        ("p-value", "right"),
        ("error if left out", "right"),
    ]
    return grid("Columns", heads, rows)


def _chance(p_value: float) -> str:
    return "< 0.0001" if p_value < 1e-4 else number(p_value, 4)


def _environment_grid(summary: dict[str, Any]) -> Any:
    risk = summary["risk_name"]
    rows = [
        (
            record["environment"],
            f"{record['share']:.1%}",
            number(record["risk"]),
            number(record["risk_erm"]),
        )
        for record in summary["environments"]
    ]
    heads = [
        ("environment", "right"),
        ("share of rows", "right"),
        (f"{risk}, this model", "right"),
        (f"{risk}, plain ERM", "right"),
    ]
    return grid("Environments found", heads, rows)


def show_known(known: dict[str, Any], screen: Console) -> None:
    """Print the comparison for a person."""
    rows = [
        (r["environment"], f"{r['rows']:,}", number(r["risk"]), number(r["risk_erm"]))
        for r in known["environments"][:MOST_ENVIRONMENTS]
    ]
    heads = [
        ("environment", "left"),
        ("rows", "right"),
        ("error, this model", "right"),
        ("error, plain ERM", "right"),
    ]
    screen.print()
    screen.print(grid(f"Known environments: {quoted(known['column'])}", heads, rows))
    hidden = len(known["environments"]) - len(rows)
    if hidden:
        screen.print(f"… and {counted(hidden, 'more')}; --json lists them all.")
    screen.print(
        f"Agreement with the environments found (adjusted Rand index, 0 is chance, 1 is the same): "
        f"{known['agreement']:.2f}"
    )
