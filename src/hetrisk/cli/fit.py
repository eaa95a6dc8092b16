"""``hetrisk fit``: a table in, one answer out: which model, how wrong it will be, what to watch."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hetrisk.cli.app import TYPED
from hetrisk.cli.arguments import DATA, OUTPUT, check_outputs, read, reading_options

if TYPE_CHECKING:
    from hetrisk.cli.describing import Fitted
    from hetrisk.cli.wishes import Wishes

DECIMAL_MARKS = {"point": ".", "comma": ","}
EPILOG = """
\b
Examples:
  hetrisk fit sales.csv --target sales --time month
  hetrisk fit patients.csv --target outcome --environment hospital --out patients.hetrisk
  hetrisk fit sales.csv --target sales --time month --environment shop --report sales.html
  hetrisk fit sales.csv --target sales --time month --candidate trend,trees
  hetrisk fit patients.parquet --target outcome --drop visit,ward --category code
  hetrisk fit sales.csv --target sales --time month --json | jq .forecast
  zcat houses.csv.gz | hetrisk fit - --target price

Columns may be named by repeating an option or with commas. Exit codes: 0 when all went well, 1 when
something in the data or on the disk has to be mended, 2 when the command was mistyped.
"""


@click.command(epilog=EPILOG)
@click.argument("data", type=DATA)
@click.option("--target", "-t", required=True, metavar="COL", help="The column to predict.")
@click.option(
    "--task",
    type=click.Choice(["auto", "regression", "classification"]),
    default="auto",
    show_default=True,
    help="A number or a class? 'auto' decides from the target, and says so.",
)
@click.option("--feature", "-f", multiple=True, metavar="COL", help="Use only these columns.")
@click.option("--drop", "-d", multiple=True, metavar="COL", help="Do not use this column.")
@click.option("--category", multiple=True, metavar="COL", help="Numbers here are names.")
@click.option("--number", multiple=True, metavar="COL", help="What looks like names are numbers.")
@click.option(
    "--decimal",
    type=click.Choice(list(DECIMAL_MARKS)),
    callback=lambda ctx, parameter, value: DECIMAL_MARKS.get(value),
    help="The decimal mark, where the numbers do not show it: is 1,234 a little over 1?",
)
@click.option(
    "--dayfirst/--monthfirst",
    default=None,
    help="Is 01/02/2020 the first of February, or the second of January?",
)
@click.option("--time", metavar="COL", help="When each row was: later rows are predicted.")
@click.option(
    *("--environment", "-e"),
    metavar="COL",
    help="Where each row is from: rows from elsewhere are predicted.",
)
@click.option(
    "--candidate",
    multiple=True,
    metavar="NAME",
    help="Only these models take part, beside plain and the constant.",
)
@click.option(
    "--reach",
    type=click.FloatRange(min=0.0, max=1e6),
    default=1.0,
    show_default=True,
    help="How far the world may go: 0 the average environment, 1 the worst left out, 2 that again.",
)
@click.option("--weight", metavar="COL", help="How much each row counts. No feature.")
@click.option("--out", "-o", type=OUTPUT, metavar="FILE", help="Write the model here (.hetrisk).")
@click.option("--report", "-r", type=OUTPUT, metavar="FILE", help="Write the page here (.html).")
@click.option("--quiet", "-q", is_flag=True, help="Print one line.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@reading_options
@click.pass_context
def fit(
    ctx: click.Context,
    data: Path,
    out: Path | None,
    report: Path | None,
    quiet: bool,
    as_json: bool,
    encoding: str,
    delimiter: str | None,
    **options: Any,
) -> None:
    """Find out which model to deploy, and how wrong it will be where it was not trained.

    CSV, TSV or JSON lines (gzipped or not), Parquet (a file or a folder), Feather, Excel or Stata;
    a dash reads standard input. With --time, models learn from earlier rows and are judged on
    later ones; with --environment, they learn from some places and are judged on the others. With
    neither, hetrisk looks for groups of rows that differ and leaves out the columns that cannot
    be relied on.
    """
    check_outputs({"--out": out, "--report": report}, data)
    from hetrisk import modelfile
    from hetrisk.cli import summary, terminal
    from hetrisk.cli.columns import resolve
    from hetrisk.cli.wishes import Wishes
    from hetrisk.estimators.candidates import BUILT_IN
    from hetrisk.report import write_report
    from hetrisk.report.stored import record
    from hetrisk.tables.errors import shown

    known = list(BUILT_IN)
    options["candidate"] = resolve(options["candidate"], known, "--candidate", "candidate")
    typed = shlex.join(ctx.meta[TYPED])
    fitted = _fitted(data, Wishes(**options), typed, encoding, delimiter)
    if out is not None:
        modelfile.save(out, fitted.deployed)
    if report is not None:
        with terminal.progress("drawing the report"):
            write_report(fitted.summary, report)
    files = {"model": out, "report": report}
    written = {kind: None if path is None else str(path) for kind, path in files.items()}
    screen = terminal.console()
    if as_json:
        terminal.print_json(record(fitted.summary) | written)
    elif quiet:
        screen.print(terminal.words(summary.one_line(fitted.summary), 1000), soft_wrap=True)
    else:
        summary.show(
            fitted.summary, screen, [shown(path, 200) for path in written.values() if path]
        )


def _fitted(
    data: Path, wishes: Wishes, command: str, encoding: str, delimiter: str | None
) -> Fitted:
    """Fit with progress: the backtest counts its fits and the time left, on a terminal."""
    from hetrisk.cli.fitting import fit_table, understood
    from hetrisk.cli.terminal import error_console, progress
    from hetrisk.tables.large import is_large
    from hetrisk.tables.spooled import in_parquet

    what = "backtesting" if wishes.backtest else "looking for groups of rows that differ"
    with ExitStack() as stack:
        if is_large(data):
            large = stack.enter_context(in_parquet(data, wishes.target, encoding, delimiter))
            stack.enter_context(progress(f"{what}, in blocks"))
            return fit_table(understood(large), wishes, command, large=large)
        table = read(data, encoding, delimiter)
        counts = wishes.backtest and error_console().is_terminal
        if not counts:
            stack.enter_context(progress(what))
        return fit_table(table, wishes, command, verbose=int(counts))
