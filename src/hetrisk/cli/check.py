"""``hetrisk check``: new rows held against what a model learned from."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hetrisk.cli.arguments import DATA, OUTPUT, check_outputs, read_or_draw, reading_options

if TYPE_CHECKING:
    from rich.console import Console

    from hetrisk.monitoring import Check

MOST_COLUMNS = 20
STYLE = {0: "bold green", 3: "bold yellow", 4: "bold red"}

EPILOG = """
\b
Examples:
  hetrisk check houses.hetrisk new.csv
  hetrisk check houses.hetrisk new.csv --report check.html
  hetrisk check patients.hetrisk new.parquet --json | jq .status
  hetrisk check houses.hetrisk new.csv || echo "look at it"

If NEW has the target column, relations are checked too: whether the one the model left out has
broken, how far along the reach curve the world has come, and whether plain ERM would have done
worse. A column moved if that is beyond chance (0.01 over all columns together) and at least a tenth
of the rows are not where they were.

Exit codes: 0 fine, 3 columns, the mix of environments or the error (by a tenth or more) moved
beyond chance, 4 a relation broke or the error is beyond the reach the model was fitted for; 1 when
something in the files has to be mended, 2 when the command was mistyped.
"""


@click.command(epilog=EPILOG)
@click.argument("model", type=DATA)
@click.argument("new", type=DATA)
@click.option("--report", "-r", type=OUTPUT, metavar="FILE", help="Write a page here (.html).")
@click.option("--json", "as_json", is_flag=True, help="Print everything found as JSON.")
@reading_options
def check(
    model: Path,
    new: Path,
    report: Path | None,
    as_json: bool,
    encoding: str,
    delimiter: str | None,
) -> None:
    """Say whether the rows of NEW are still those the model in the file MODEL was made for."""
    check_outputs({"--report": report}, model, new)
    from hetrisk.cli.predict import open_model
    from hetrisk.cli.terminal import console, print_json, progress, say_notes
    from hetrisk.monitoring.page import write_check
    from hetrisk.tables.errors import shown

    pipeline = open_model(model)
    table = read_or_draw(new, encoding, delimiter)
    with progress("comparing"):
        found = _checked(pipeline, table)
    if report is not None:
        write_check(found, report, f"Check of {table.source}")
    if as_json:
        print_json(_record(found) | {"report": None if report is None else str(report)})
    else:
        show(found, console())
        say_notes(found.notes)
        if report is not None:
            console().print(f"Report written to {shown(report, 200)}.", soft_wrap=True)
    sys.exit(int(found.status))


def _checked(pipeline: Any, table: Any) -> Check:
    from hetrisk.monitoring import check as compare
    from hetrisk.tables import TableError

    y, environments = _targets(pipeline, table), _environments(pipeline, table)
    try:
        found = compare(pipeline, table.frame, y, environments=environments)
        return replace(found, notes=(*table.notes, *found.notes))
    except TableError:
        raise
    except ValueError as error:
        raise TableError(str(error)) from error


def _targets(pipeline: Any, table: Any) -> Any:
    """Return the target column where the table has it, missing where a row has none."""
    import numpy as np

    from hetrisk.tables import read_target

    description = pipeline[0].description_
    if description.target not in [str(name) for name in table.frame.columns]:
        return None
    target = read_target(table.frame, description.target, description.task, pipeline[0].decimal)
    numbers = description.task == "regression"
    values = np.full(len(table.frame), np.nan, dtype=float if numbers else object)
    values[target.known] = target.values
    return values


def _environments(pipeline: Any, table: Any) -> Any:
    """Return the column of environments, where the model was told one and the table has it."""
    import numpy as np

    from hetrisk.tables.roles import read_roles

    column = pipeline[0].description_.environment
    if column is None or column not in [str(name) for name in table.frame.columns]:
        return None
    every = np.ones(len(table.frame), dtype=bool)
    return read_roles(table.frame, every, column, (), None).environments


def _record(found: Check) -> dict[str, Any]:
    from hetrisk.report.record import plain_record

    record: dict[str, Any] = plain_record(found)
    record["exit_code"] = int(found.status)
    record["status"] = found.status.name.lower()
    if found.outcome is not None:
        record["outcome"]["beyond_reach"] = found.outcome.beyond
        record["outcome"]["risen"] = found.outcome.risen
        record["outcome"]["relation_broke"] = found.outcome.weakened
    return record


def show(found: Check, screen: Console) -> None:
    """Print a check for a person: what to do, what was looked at, and the columns."""
    from rich.text import Text

    from hetrisk.cli.terminal import grid, words
    from hetrisk.report.labels import count_of, fixed, percent, precise, probability

    screen.print(Text(words(found.sentence, 600), style=STYLE[int(found.status)]))
    for point in found.points:
        line = Text(f"  {point.question}: ", style="bold")
        screen.print(line + Text(words(point.answer, 600), style="not bold"))
    rows: list[tuple[object, ...]] = [
        (
            c.name,
            Text("yes", style="red") if c.moved else Text("no", style="green"),
            percent(c.distance, False, 1),
            probability(c.p_value),
            percent(c.before) if c.level else precise(c.before, c.sd),
            percent(c.now) if c.level else precise(c.now, c.sd),
            c.level or f"{fixed(c.shift)} SD",
            "yes" if c.used else "no",
        )
        for c in found.columns[:MOST_COLUMNS]
    ]
    hidden = len(found.columns) - len(rows)
    if hidden:
        rows.append((f"… and {hidden:,} more: see --json", *[""] * 7))
    heads = [
        ("column", "left"),
        ("moved", "left"),
        ("distance", "right"),
        ("p-value", "right"),
        ("before", "right"),
        ("now", "right"),
        ("level or shift", "right"),
        ("used", "left"),
    ]
    screen.print()
    title = (
        f"Columns, the furthest moved first ({count_of(found.n_rows, 'new row')}, "
        f"{count_of(found.n_reference, 'training row')})"
    )
    screen.print(grid(title, heads, rows))
