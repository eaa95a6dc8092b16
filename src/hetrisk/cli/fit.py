"""``hetrisk fit``: a table in, one answer out: which model, how wrong it will be, what to watch."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hetrisk.cli.arguments import (
    DATA,
    OUTPUT,
    check_outputs,
    column_options,
    finite,
    read,
    reading_options,
)

if TYPE_CHECKING:
    from hetrisk.cli.describing import Fitted
    from hetrisk.cli.wishes import Wishes

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


def candidate_names(
    ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """Refuse what no candidate is called."""
    if not value:
        return ()
    from hetrisk.cli.columns import close_to
    from hetrisk.estimators.candidates import BUILT_IN

    names = [part for v in value for part in _parts(v, BUILT_IN)]
    for name in names:
        if name not in BUILT_IN:
            raise click.BadParameter(
                f"there is no candidate '{name}'; {close_to(name, list(BUILT_IN))}"
                f"there are {', '.join(BUILT_IN)}."
            )
    return tuple(dict.fromkeys(names))


def _parts(value: str, known: Any) -> list[str]:
    """Names between commas; a name may hold one itself."""
    return [value] if value in known else [part.strip() for part in value.split(",")]


@click.command(epilog=EPILOG)
@click.argument("data", type=DATA)
@column_options
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
    callback=candidate_names,
    help="Only these models take part, beside plain and the constant.",
)
@click.option(
    "--reach",
    type=click.FloatRange(min=0.0),
    callback=finite,
    default=1.0,
    show_default=True,
    help="How far the world may go: 0 the average environment, 1 the worst left out, 2 that again.",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="COL",
    help="Never leave this column out, where stable ones are sought (with neither).",
)
@click.option("--weight", metavar="COL", help="How much each row counts. No feature.")
@click.option("--out", "-o", type=OUTPUT, metavar="FILE", help="Write the model here (.hetrisk).")
@click.option("--report", "-r", type=OUTPUT, metavar="FILE", help="Write the page here (.html).")
@click.option("--quiet", "-q", is_flag=True, help="Print one line.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@reading_options
def fit(
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
    from hetrisk.cli.wishes import Wishes

    wishes = Wishes(**options)
    command = repeated(data, wishes, encoding, delimiter)
    fitted = _fitted(data, wishes, command, encoding, delimiter)
    written = _write(fitted, out, report)
    _say(fitted, written, quiet, as_json)


def _fitted(
    data: Path, wishes: Wishes, command: str, encoding: str, delimiter: str | None
) -> Fitted:
    """Fit with progress: the backtest counts its fits and the time left, on a terminal."""
    from hetrisk.cli.fitting import fit_large, fit_table
    from hetrisk.cli.terminal import error_console, progress
    from hetrisk.tables.large import is_large
    from hetrisk.tables.spooled import in_parquet

    backtest = wishes.time is not None or wishes.environment is not None
    counts = backtest and error_console().is_terminal
    what = "backtesting" if backtest else "looking for groups of rows that differ"
    with ExitStack() as stack:
        if is_large(data):
            large = stack.enter_context(in_parquet(data, wishes.target, encoding, delimiter))
            stack.enter_context(progress(f"{what}, in blocks"))
            return fit_large(large, wishes, command)
        table = read(data, encoding, delimiter)
        if not counts:
            stack.enter_context(progress(what))
        return fit_table(table, wishes, command, verbose=int(counts))


def repeated(data: Path, w: Wishes, encoding: str, delimiter: str | None) -> str:
    """Return the command that fits the same again, as it is typed."""
    typed = ["hetrisk", "fit", str(data), "--target", w.target]
    for flag in ("time", "environment", "weight"):
        value = getattr(w, flag)
        typed += [] if value is None else [f"--{flag}", value]
    flags = {"features": "feature"}
    for field in ("candidate", "features", "drop", "category", "number", "keep"):
        typed += [
            part for name in getattr(w, field) for part in (f"--{flags.get(field, field)}", name)
        ]
    typed += ["--task", w.task] if w.task != "auto" else []
    typed += ["--reach", f"{w.reach:g}"] if w.reach != 1 else []
    if w.decimal is not None:
        typed += ["--decimal", "point" if w.decimal == "." else "comma"]
    if w.dayfirst is not None:
        typed.append("--dayfirst" if w.dayfirst else "--monthfirst")
    typed += ["--encoding", encoding] if encoding != "utf-8" else []
    typed += ["--delimiter", delimiter] if delimiter is not None else []
    return shlex.join(typed)


def _write(fitted: Fitted, out: Path | None, report: Path | None) -> dict[str, Path]:
    from hetrisk import atomic, modelfile
    from hetrisk.cli.terminal import progress
    from hetrisk.report import render

    page = b""
    if report is not None:
        with progress("drawing the report"):
            page = render(fitted.summary).encode("utf-8", errors="replace")
    if out is not None:
        modelfile.save(out, fitted.deployed)
    if report is not None:
        atomic.write_bytes(report, page)
    return {k: v for k, v in (("model", out), ("report", report)) if v is not None}


def _say(fitted: Fitted, written: dict[str, Path], quiet: bool, as_json: bool) -> None:
    from hetrisk.cli import summary, terminal
    from hetrisk.report.record import record
    from hetrisk.tables.errors import shown

    if as_json:
        files = {
            kind: str(written[kind]) if kind in written else None for kind in ("model", "report")
        }
        terminal.print_json(record(fitted.summary) | files)
        return
    screen = terminal.console()
    if quiet:
        screen.print(terminal.words(summary.one_line(fitted.summary), 1000), soft_wrap=True)
        return
    summary.show(fitted.summary, screen, [shown(path, 200) for path in written.values()])
