"""``hetrisk fit``: a table in, a stable model, a page and a summary out."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from hetrisk.cli.arguments import (
    DATA,
    OUTPUT,
    SEED,
    check_outputs,
    column_options,
    dask_client,
    finite,
    read,
    reading_options,
)

EPILOG = """
\b
Examples:
  hetrisk fit houses.csv --target price
  hetrisk fit houses.csv --target price --out houses.hetrisk --report houses.html
  hetrisk fit patients.csv --target outcome --environment hospital --reach 3
  hetrisk fit sales.csv --target sales --hint date --hint shop --model boosted
  hetrisk fit patients.parquet --target outcome --drop visit --category ward
  hetrisk fit shops/ --target sales             a folder of Parquet files, larger than memory
  hetrisk fit houses.csv --target price --json | jq .verdict
  zcat houses.csv.gz | hetrisk fit - --target price

Exit codes: 0 when all went well, 1 when something in the data or on the disk has to be mended, 2
when the command was mistyped.
"""


@click.command(epilog=EPILOG)
@click.argument("data", type=DATA)
@column_options
@click.option(
    "--environment",
    "-e",
    metavar="COL",
    help="Says where each row came from. The search uses these environments, and it is no feature.",
)
@click.option(
    "--hint",
    "hints",
    multiple=True,
    metavar="COL",
    help="May go along with where rows come from: a date, a site, a batch. No feature.",
)
@click.option(
    "--reach",
    type=click.FloatRange(min=0.0),
    callback=finite,
    default=4.0,
    show_default=True,
    help="How far the world may move: 0 nothing shifts, 1 as far as between environments seen.",
)
@click.option(
    "--form",
    type=click.Choice(["columns", "directions"]),
    default="columns",
    show_default=True,
    help="Leave columns out, or shrink directions (of named or hinted environments) where columns "
    "are mixtures of causes.",
)
@click.option("--keep", multiple=True, metavar="COL", help="Never leave this column out.")
@click.option("--weight", metavar="COL", help="How much each row counts. No feature.")
@click.option(
    "--model",
    "model_name",
    default="linear",
    show_default=True,
    metavar="NAME",
    help="Final model on the columns kept: linear, boosted, forest, or an import path.",
)
@click.option("--allow-import", is_flag=True, help="Let --model import and run code.")
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
    model_name: str,
    allow_import: bool,
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
    hetrisk looks at the environments you name, at hints of them, or for hidden ones, and leaves
    out the columns whose relation to the target changes between them, where that pays at the
    reach asked for. Errors are out of fold.
    """
    check_outputs({"--out": out, "--report": report}, data)
    from hetrisk.cli.models import check_model
    from hetrisk.tables.large import is_large
    from hetrisk.tables.parquet import is_parquet

    check_model(model_name, allow_import)
    options["options"] = _repeated(options, model_name, allow_import)
    if dask is not None and data.exists() and not is_parquet(data):
        raise click.UsageError("--dask needs Parquet data, in a place that its workers see.")
    if dask is not None or is_large(data):
        reading = {"encoding": encoding, "delimiter": delimiter}
        model, pair = _fit_large(data, target, dask, options, model_name, reading), None
    else:
        table = read(data, encoding, delimiter)
        model, pair = _fit(table, target, options, model_name)
    _write(model, pair, out, report)
    _say(model, out, report, as_json)


def _fit_large(
    data: Path,
    target: str,
    dask: str | None,
    options: dict[str, Any],
    model_name: str,
    reading: dict[str, Any],
) -> Any:
    from hetrisk.cli.models import final_estimator
    from hetrisk.cli.terminal import progress
    from hetrisk.tables.errors import shown
    from hetrisk.tables.large import fit_parquet
    from hetrisk.tables.spooled import in_parquet

    with ExitStack() as stack:
        with progress(f"reading {shown(data.name)}"):
            table = stack.enter_context(in_parquet(data, target, **reading))
        stack.enter_context(progress("searching for environments"))
        client = stack.enter_context(dask_client(dask))
        return fit_parquet(
            table,
            target,
            cluster=client is not None,
            final_estimator=lambda task: final_estimator(model_name, task, options["seed"]),
            **options,
        )


def _repeated(options: dict[str, Any], model_name: str, allow_import: bool) -> list[str]:
    """Return the options a reader needs to repeat the fit, as they are typed."""
    typed: list[str] = []
    for flag in ("features", "drop", "category", "keep"):
        typed += [part for name in options[flag] for part in (f"--{flag}", name)]
    for flag, default in (("task", "auto"), ("reach", 4.0), ("form", "columns"), ("seed", 0)):
        if options[flag] != default:
            typed += [f"--{flag}", f"{options[flag]:g}" if flag == "reach" else str(options[flag])]
    if options["decimal"] is not None:
        typed += ["--decimal", "point" if options["decimal"] == "." else "comma"]
    if model_name != "linear":
        typed += ["--model", model_name, *(["--allow-import"] if allow_import else [])]
    return typed


def _fit(
    table: Any, target: str, options: dict[str, Any], model_name: str
) -> tuple[Any, tuple[Any, Any]]:
    from hetrisk.cli.models import final_estimator
    from hetrisk.cli.terminal import progress
    from hetrisk.tables.model import fit_table
    from hetrisk.tables.target import read_target

    wanted = read_target(table.frame, target, options["task"], options["decimal"])
    estimator = final_estimator(model_name, wanted.task, options["seed"])
    with progress("searching for environments"):
        model = fit_table(table, target, final_estimator=estimator, **options)
    return model, (table.frame.loc[wanted.known], wanted.values)


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


def _say(model: Any, out: Path | None, report: Path | None, as_json: bool) -> None:
    from hetrisk.cli import summary, terminal
    from hetrisk.report import summarize
    from hetrisk.report.record import record

    found = summarize(model)
    if as_json:
        files = {"model": out, "report": report}
        paths = {key: None if path is None else str(path) for key, path in files.items()}
        terminal.print_json(record(found) | paths)
        return
    screen = terminal.console()
    summary.show(found, screen)
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
