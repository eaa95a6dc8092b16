"""``hetrisk check``: new rows held against what a model was told to expect."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hetrisk.cli.arguments import DATA, OUTPUT, check_outputs, open_model, read, reading_options

if TYPE_CHECKING:
    from rich.console import Console

    from hetrisk.monitoring import Check

MOST_COLUMNS = 10
STYLE = {0: "bold green", 3: "bold yellow", 4: "bold red"}
FAIL_ON = {"look": 3, "alarm": 4, "never": 5}

EPILOG = """
\b
Examples:
  hetrisk check houses.hetrisk new.csv
  hetrisk check houses.hetrisk new.csv --report check.html
  hetrisk check patients.hetrisk new.parquet --json | jq .status
  hetrisk check houses.hetrisk new.csv --fail-on alarm || echo "stop"

With the target in NEW, the error alone judges: against the band foretold for so many periods ahead,
and against predicting the mean. Without it, whether columns in use moved: beyond chance (0.01 over
all columns together) and for a tenth of the rows or more; values missing, new or out of range
likewise.

Exit codes: 0 go on; 3 look: columns in use moved, or the error is above its band by no more than
chance explains; 4 stop: the error is beyond its band, or predicting the mean errs less. --fail-on
alarm ends with 0 instead of 3, --fail-on never with 0 instead of either. 1 when something in the
files has to be mended, 2 when the command was mistyped.
"""


@click.command(epilog=EPILOG)
@click.argument("model", type=DATA)
@click.argument("new", type=DATA)
@click.option("--report", "-r", type=OUTPUT, metavar="FILE", help="Write a page here (.html).")
@click.option(
    "--fail-on",
    type=click.Choice(list(FAIL_ON)),
    default="look",
    show_default=True,
    help="The least verdict that ends with an exit code of its own.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print the verdict alone.")
@click.option("--json", "as_json", is_flag=True, help="Print everything found as JSON.")
@reading_options
def check(
    model: Path,
    new: Path,
    report: Path | None,
    fail_on: str,
    quiet: bool,
    as_json: bool,
    encoding: str,
    delimiter: str | None,
) -> None:
    """Say whether the rows of NEW are as the model in the file MODEL was told to expect."""
    check_outputs({"--report": report}, model, new)
    from hetrisk.cli.terminal import console, print_json, progress, say_notes
    from hetrisk.monitoring import check as compare
    from hetrisk.monitoring.checking import targets_of
    from hetrisk.monitoring.page import write_check
    from hetrisk.report.stored import plain_record
    from hetrisk.tables.errors import shown

    deployed = open_model(model)
    table = read(new, encoding, delimiter, sample=True)
    with progress("comparing"):
        found = compare(deployed, table.frame, targets_of(deployed, table.frame))
    found = replace(found, notes=(*table.notes, *found.notes))
    if report is not None:
        write_check(found, report, f"Check of {table.source}")
    code = int(found.status) if found.status >= FAIL_ON[fail_on] else 0
    if as_json:
        said = {"status": found.status.name.lower(), "exit_code": code}
        print_json(plain_record(found) | said | {"report": report and str(report)})
        sys.exit(code)
    show(found, console(), quiet)
    say_notes([] if quiet else found.notes)
    if report is not None and not quiet:
        console().print(f"Report written to {shown(report, 200)}.", soft_wrap=True)
    sys.exit(code)


def show(found: Check, screen: Console, quiet: bool = False) -> None:
    """Print a check for a person: the verdict, where the error comes from, the columns."""
    from rich.text import Text

    from hetrisk.cli.terminal import grid, words
    from hetrisk.monitoring.words import column_words, lines_of
    from hetrisk.report.labels import fixed

    verdict, *more = lines_of(found)
    screen.print(Text(words(verdict, 600), style=STYLE[int(found.status)]))
    if quiet:
        return
    for line in more:
        screen.print(Text(words(line, 400)))
    shown = found.notable[:MOST_COLUMNS]
    if not shown:
        screen.print("No column moved.")
        return
    rows = [(c.name, fixed(c.weight), column_words(c)) for c in shown]
    screen.print(
        grid([("moved", "left"), ("weight", "right"), ("what is different", "left")], rows)
    )
    if len(found.notable) > len(shown):
        screen.print(f"... and {len(found.notable) - len(shown)} more: see --json.")
