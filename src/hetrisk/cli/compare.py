"""``hetrisk compare``: every method, tested in the environment it did not see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hetrisk.cli.arguments import DATA, OUTPUT, check_output, read, reading_options

EPILOG = """
\b
Examples:
  hetrisk compare houses.csv --target price --environment decade
  hetrisk compare patients.csv --target outcome --environment hospital --plot compare.png
  hetrisk compare houses.csv -t price -e decade --method erm --method hrm --json

Each environment is left out in turn: the methods learn from the others and are tested on it.
anchor, irm, vrex and group-dro are told which training row came from where; the others, hrm among
them, are not.
"""


@click.command(epilog=EPILOG)
@click.argument("data", type=DATA)
@click.option("--target", "-t", required=True, metavar="COL", help="The column to predict.")
@click.option(
    "--environment", "-e", required=True, metavar="COL", help="Says where each row came from."
)
@click.option(
    "--task",
    type=click.Choice(["auto", "regression", "classification"]),
    default="auto",
    show_default=True,
    help="What to predict: a number or a class.",
)
@click.option("--features", "-f", multiple=True, metavar="COL", help="Use only these columns.")
@click.option("--drop", "-d", multiple=True, metavar="COL", help="Do not use this column.")
@click.option("--category", multiple=True, metavar="COL", help="Numbers here are names.")
@click.option("--method", "-m", "methods", multiple=True, help="Only this method; repeat for more.")
@click.option(
    "--rows",
    type=click.IntRange(min=100),
    default=20_000,
    show_default=True,
    help="Compare on a random sample of at most this many rows.",
)
@click.option("--plot", type=OUTPUT, metavar="FILE", help="Draw the comparison here (.png).")
@click.option("--seed", type=int, default=0, show_default=True, help="Of every random choice.")
@click.option("--json", "as_json", is_flag=True, help="Print every error as JSON.")
@reading_options
def compare(
    data: Path,
    plot: Path | None,
    as_json: bool,
    encoding: str,
    delimiter: str | None,
    **options: Any,
) -> None:
    """Compare methods on the table in DATA by leaving one environment out at a time."""
    check_output(plot, "--plot", data)
    from hetrisk.cli.contest import METHODS, hold, show
    from hetrisk.cli.terminal import console, error_console, print_json, say_notes

    unknown = [name for name in options["methods"] if name not in METHODS]
    if unknown:
        message = f"{unknown[0]!r} is not one of {', '.join(METHODS)}."
        raise click.BadParameter(message, param_hint="--method")
    table = read(data, encoding, delimiter)
    record = hold(table, **options)
    if plot is not None:
        record["plot"] = _draw(record, plot)
    if as_json:
        print_json(record)
        return
    say_notes(record["notes"])
    show(record, console())
    if plot is not None and record["plot"] is None:
        error_console().print("Note: no plot: matplotlib is missing, pip install 'hetrisk[plot]'.")


def _draw(record: dict[str, Any], plot: Path) -> str | None:
    """Write the picture and return its path; None where matplotlib is not installed."""
    from hetrisk import atomic

    try:
        from hetrisk.cli.contestplot import picture
    except ImportError:
        return None
    atomic.write_bytes(plot, picture(record))
    return str(plot)
