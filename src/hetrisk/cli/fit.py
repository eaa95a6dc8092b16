"""``hetrisk fit``: a table in, a stable model, a page and a summary out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hetrisk.cli.arguments import (
    DATA,
    OUTPUT,
    SEED,
    check_outputs,
    dask_client,
    read,
    reading_options,
)

EPILOG = """
\b
Examples:
  hetrisk fit houses.csv --target price
  hetrisk fit houses.csv --target price --out houses.hetrisk --report houses.html
  hetrisk fit patients.parquet --target outcome --drop visit --category ward
  hetrisk fit shops/ --target sales             a folder of Parquet files, larger than memory
  hetrisk fit houses.csv --target price --json | jq .verdict
  zcat houses.csv.gz | hetrisk fit - --target price

Exit codes: 0 when all went well, 1 when something in the data or on the disk has to be mended, 2
when the command was mistyped.
"""


@click.command(epilog=EPILOG)
@click.argument("data", type=DATA)
@click.option("--target", "-t", required=True, metavar="COL", help="The column to predict.")
@click.option(
    "--task",
    type=click.Choice(["auto", "regression", "classification"]),
    default="auto",
    show_default=True,
    help="What to predict: a number or a class. 'auto' decides from the target, and says so.",
)
@click.option("--features", "-f", multiple=True, metavar="COL", help="Use only these columns.")
@click.option("--drop", "-d", multiple=True, metavar="COL", help="Do not use this column.")
@click.option("--category", multiple=True, metavar="COL", help="Numbers here are names.")
@click.option(
    "--decimal",
    type=click.Choice(["point", "comma"]),
    help="The decimal mark, where the numbers do not show it: is 1,234 a little over 1?",
)
@click.option(
    "--environment",
    metavar="COL",
    help="Where each row came from, if you know. Not used for learning: the summary compares the "
    "environments found with it, and shows the error in each.",
)
@click.option("--out", "-o", type=OUTPUT, metavar="FILE", help="Write the model here (.hetrisk).")
@click.option("--report", "-r", type=OUTPUT, metavar="FILE", help="Write the page here (.html).")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of every random choice.")
@click.option("--dask", metavar="ADDRESS", help="Scheduler of a dask cluster, for Parquet data.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@reading_options
def fit(
    data: Path,
    target: str,
    out: Path | None,
    report: Path | None,
    environment: str | None,
    as_json: bool,
    dask: str | None,
    encoding: str,
    delimiter: str | None,
    **options: Any,
) -> None:
    """Fit a stable model to the table in DATA.

    CSV, TSV or JSON lines (gzipped or not), Parquet (a file or a folder), Feather, Excel or Stata;
    a dash reads standard input. Columns are understood by themselves: numbers as people write
    them, yes and no, categories, dates, times. Missing values
    are filled in; identifiers and constant columns are left out; every such step is noted. Then
    hetrisk looks for hidden environments and leaves out the columns whose relation to the target
    changes between them.
    """
    check_outputs({"--out": out, "--report": report}, data)
    from hetrisk.tables.parquet import is_large

    options["decimal"] = {"point": ".", "comma": ","}.get(options["decimal"])
    if environment is not None:
        options["drop"] = (*options["drop"], environment)
    if dask is not None or is_large(data):
        if environment is not None:
            raise click.UsageError("--environment needs a table that fits in memory.")
        model, pair, known = _fit_large(data, target, dask, options), None, None
    else:
        table = read(data, encoding, delimiter)
        if environment is not None:
            from hetrisk.tables.environments import environment_labels

            environment_labels(table, environment)  # a wrong name is said before the search
        model, pair = _fit(table, target, options)
        known = _known_environments(table, model, environment)
    _write(model, pair, out, report)
    _say(model, known, out, report, as_json)


def _fit_large(data: Path, target: str, dask: str | None, options: dict[str, Any]) -> Any:
    from hetrisk.cli.terminal import progress
    from hetrisk.tables.large import fit_parquet

    with progress("searching for environments"), dask_client(dask) as client:
        return fit_parquet(data, target, cluster=client is not None, **options)


def _fit(table: Any, target: str, options: dict[str, Any]) -> tuple[Any, tuple[Any, Any]]:
    from hetrisk.cli.terminal import progress
    from hetrisk.tables.model import fit_table
    from hetrisk.tables.target import read_target

    with progress("searching for environments"):
        model = fit_table(table, target, **options)
    wanted = read_target(table.frame, target, options["task"], options["decimal"])
    return model, (table.frame.loc[wanted.known], wanted.values)


def _known_environments(table: Any, model: Any, environment: str | None) -> Any:
    if environment is None:
        return None
    from hetrisk.tables.environments import compare_with_known

    return compare_with_known(table, model, environment)


def _write(model: Any, pair: Any, out: Path | None, report: Path | None) -> None:
    from hetrisk.cli.terminal import progress

    if report is not None:
        from hetrisk.report import render

        with progress("drawing the report"):
            page = render(model, data=pair)
    if out is not None:
        from hetrisk import modelfile

        modelfile.save(model, out)
    if report is not None:
        from hetrisk import atomic

        atomic.write_bytes(report, page.encode("utf-8"))


def _say(model: Any, known: Any, out: Path | None, report: Path | None, as_json: bool) -> None:
    from hetrisk.cli import summary, terminal

    found = summary.summarise(model)
    found["known_environments"] = known
    found["model"] = None if out is None else str(out)
    found["report"] = None if report is None else str(report)
    if as_json:
        terminal.print_json(found)
        return
    screen = terminal.console()
    summary.show(found, screen)
    if known is not None:
        summary.show_known(known, screen)
    description = model[0].description_
    terminal.say_notes([*(f"{_left(x)}" for x in description.left_out), *description.notes])
    _say_files(screen, out, report)


def _left(out: Any) -> str:
    from hetrisk.tables.errors import quoted

    return f"{quoted(out.name)} is not used: {out.reason}"


def _say_files(screen: Any, out: Path | None, report: Path | None) -> None:
    from hetrisk.tables.errors import shown

    screen.print()
    if out is not None:
        screen.print(f"Model written to {shown(out, 200)}.", soft_wrap=True)
    if report is not None:
        screen.print(f"Report written to {shown(report, 200)}.", soft_wrap=True)
    if out is None and report is None:
        screen.print(
            "Nothing was written: add --out model.hetrisk or --report page.html to keep it."
        )
