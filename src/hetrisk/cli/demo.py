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

The data is simulated as in the paper: the target depends on five of ten features (phi), four are
noise (psi), and one (vb1) goes with the target in 95 % of the training rows and against it in the
rest. Nobody tells either model which rows are which.
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
    """Fit ERM and HRM to simulated data, then shift the data under them.

    ERM is the usual model: least squares on all features. HRM looks for hidden environments
    first. Both are tested where the relation of one feature to the target goes from as in
    training to the opposite.
    """
    check_outputs({"--report": report})
    from hetrisk import atomic
    from hetrisk.cli.terminal import console, print_json, progress

    with progress("simulating, fitting and drawing"):
        record, model = _run(seed)
        page = _page(model)
    atomic.write_bytes(report, page)
    record["report"] = str(report)
    if as_json:
        print_json(record)
    else:
        _show(record, console())


def _run(seed: int) -> tuple[dict[str, Any], Any]:
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
    record = {
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
    return record, hrm


def _not_causes(task: Any) -> list[str]:
    """Features the target does not depend on, as the simulator knows."""
    return [n for n, stable in zip(task.feature_names, task.invariant, strict=True) if not stable]


def _rmse(model: Any, X: Any, y: Any) -> float:
    import numpy as np

    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


def _page(model: Any) -> bytes:
    from hetrisk.report import render

    return render(model, title="hetrisk demo: simulated selection bias").encode()


def _show(record: dict[str, Any], screen: Any) -> None:
    from rich.text import Text

    from hetrisk.cli.terminal import grid
    from hetrisk.tables.errors import listed, shown

    screen.print(
        f"{record['rows']:,} simulated rows; in 95 % of them the feature vb1 goes with the "
        "target, in 5 % against it. Nobody says which rows are which.\n"
    )
    screen.print(f"HRM's verdict: {record['verdict']}. {shown(record['reason'], 600)}")
    screen.print(f"It leaves out {listed(record['left_out'], 12) or 'nothing'}.\n")
    rows: list[tuple[object, ...]] = [
        (
            row["environment"],
            f"{row['erm']:.3f}",
            f"{row['hrm']:.3f}",
            Text("█" * round(30 * row["erm"] / record["worst"]["erm"]), style="red"),
        )
        for row in record["environments"]
    ]
    for key in ("mean", "worst"):
        rows.append((key, f"{record[key]['erm']:.3f}", f"{record[key]['hrm']:.3f}", ""))
    heads = [
        ("test environment", "left"),
        ("ERM", "right"),
        ("HRM", "right"),
        ("ERM, drawn", "left"),
    ]
    screen.print(grid("Error (RMSE) where the data has shifted", heads, rows))
    screen.print(
        f"\nThe page that explains the model: {shown(record['report'], 200)}", soft_wrap=True
    )
