"""``hetrisk demo``: a real table whose past is learned from, and what came after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hetrisk.cli.arguments import OUTPUT, check_outputs

if TYPE_CHECKING:
    import pandas as pd

    from hetrisk.cli.describing import Fitted

TARGET, TIME = "psavert", "date"
LEARNED_UNTIL = "1995-01-01"
SPAN = 5  # years that are judged together
EPILOG = """
\b
Examples:
  hetrisk demo
  hetrisk demo --report demo.html
  hetrisk demo --table economy.csv      then: hetrisk fit economy.csv -t psavert --time date

The table: the economy of the United States by month, 1967 to 2015 (public domain; Bureau of
Economic Analysis, Census Bureau, Bureau of Labor Statistics). The share of income that people save
is predicted from what they spend, how many they are, and how many are without work for how long.
Nothing is written unless asked for.
"""


@click.command(epilog=EPILOG)
@click.option("--report", "-r", type=OUTPUT, metavar="FILE", help="Write the page here (.html).")
@click.option("--table", type=OUTPUT, metavar="FILE", help="Write the table here (.csv).")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def demo(report: Path | None, table: Path | None, as_json: bool) -> None:
    """Learn from the past of a real table, foretell the error to come, and see what came."""
    check_outputs({"--report": report, "--table": table})
    from hetrisk import atomic
    from hetrisk.cli.terminal import console, print_json, progress
    from hetrisk.datasets import load_economy
    from hetrisk.report import write_report

    frame = load_economy()
    with progress("backtesting"):
        fitted = learn(frame)
    spans = came_true(fitted, frame)
    if report is not None:
        title = "hetrisk demo: the economy of the United States"
        write_report(fitted.summary, report, title=title)
    if table is not None:
        atomic.write_bytes(table, frame.to_csv(index=False, lineterminator="\n").encode())
    written = [str(path) for path in (report, table) if path is not None]
    if as_json:
        from hetrisk.report.record import record

        print_json({**record(fitted.summary), "came_true": spans, "written": written})
    else:
        _show(fitted, spans, written, console())


def learn(frame: pd.DataFrame) -> Fitted:
    """Fit to the rows up to the cut."""
    from hetrisk.cli.fitting import fit_table
    from hetrisk.cli.wishes import Wishes
    from hetrisk.tables import Table

    past = frame[frame[TIME] < LEARNED_UNTIL]
    wishes = Wishes(target=TARGET, time=TIME)
    command = f"hetrisk fit economy.csv --target {TARGET} --time {TIME}"
    return fit_table(Table(past.reset_index(drop=True), "economy.csv"), wishes, command)


def came_true(fitted: Fitted, frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return errors in the years after the cut: this model, plain least squares, the mean."""
    import numpy as np
    from sklearn.linear_model import LinearRegression

    learned = frame[TIME] < LEARNED_UNTIL
    columns = [name for name in frame.columns if name not in (TARGET, TIME)]
    past, later = frame[learned], frame[~learned]
    plain = LinearRegression().fit(past[columns], past[TARGET])
    predicted = {
        "model": fitted.deployed.predict(later),
        "plain": plain.predict(later[columns]),
        "constant": np.full(len(later), past[TARGET].mean()),
    }
    first = later[TIME].dt.year.min()
    span = (later[TIME].dt.year - first) // SPAN
    spans = []
    for k in sorted(span.unique()):
        inside = (span == k).to_numpy()
        years = later[TIME].dt.year[inside]
        errors = {
            name: float(np.sqrt(np.mean((later[TARGET] - values)[inside] ** 2)))
            for name, values in predicted.items()
        }
        spans.append({"years": f"{years.min()} to {years.max()}", **errors})
    return spans


def _show(fitted: Fitted, spans: list[dict[str, Any]], written: list[str], screen: Any) -> None:
    from hetrisk.cli import summary
    from hetrisk.cli.terminal import grid
    from hetrisk.report.labels import number

    screen.print(
        "The economy of the United States by month, 1967 to 1994. To predict: the percent of "
        "income that people save (psavert).\n"
    )
    summary.show(fitted.summary, screen, written)
    screen.print("\nWhat came after 1994 (RMSE):")
    lines = [(s["years"], *(number(s[k]) for k in ("model", "plain", "constant"))) for s in spans]
    heads = [("years", "left"), ("this model", "right"), ("plain", "right"), ("the mean", "right")]
    screen.print(grid(heads, lines))
