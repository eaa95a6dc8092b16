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
    from hetrisk.cli.fitting import fit_table
    from hetrisk.cli.terminal import console, print_json, progress
    from hetrisk.cli.wishes import Wishes
    from hetrisk.datasets import load_economy
    from hetrisk.report import write_report
    from hetrisk.report.stored import record
    from hetrisk.tables import Table

    frame = load_economy()
    learned = frame[TIME] < LEARNED_UNTIL
    past = Table(frame[learned], "economy.csv")
    command = f"hetrisk fit economy.csv --target {TARGET} --time {TIME}"
    with progress("backtesting"):
        fitted = fit_table(past, Wishes(target=TARGET, time=TIME), command)
    spans = came_true(fitted, past.frame, frame[~learned])
    if report is not None:
        write_report(fitted.summary, report)
    if table is not None:
        atomic.write_bytes(table, frame.to_csv(index=False, lineterminator="\n").encode())
    written = [str(path) for path in (report, table) if path is not None]
    if as_json:
        print_json({**record(fitted.summary), "came_true": spans, "written": written})
    else:
        _show(fitted, spans, written, console())


def came_true(fitted: Fitted, past: pd.DataFrame, later: pd.DataFrame) -> list[dict[str, Any]]:
    """Return errors in the years after the cut: this model, plain least squares, the mean."""
    import pandas as pd
    from sklearn.linear_model import LinearRegression

    columns = [name for name in past.columns if name not in (TARGET, TIME)]
    plain = LinearRegression().fit(past[columns], past[TARGET])
    predicted = {
        "model": fitted.deployed.predict(later),
        "plain": plain.predict(later[columns]),
        "constant": past[TARGET].mean(),
    }
    square = pd.DataFrame({name: (later[TARGET] - v) ** 2 for name, v in predicted.items()})
    year = later[TIME].dt.year
    return [
        {
            "years": f"{first} to {min(first + SPAN - 1, year.max())}",
            **(square[year.between(first, first + SPAN - 1)].mean() ** 0.5).to_dict(),
        }
        for first in range(year.min(), year.max() + 1, SPAN)
    ]


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
