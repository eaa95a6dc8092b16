"""``hetrisk compare``: every method, tested in the environment it did not see."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hetrisk.cli.arguments import (
    DATA,
    OUTPUT,
    SEED,
    check_outputs,
    column_options,
    read_or_draw,
    reading_options,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hetrisk.compare import Comparison, MethodErrors

MOST_SHOWN = 6  # environments with a column of their own

EPILOG = """
\b
Examples:
  hetrisk compare houses.csv --target price --environment decade
  hetrisk compare patients.csv --target outcome --environment hospital --plot compare.png
  hetrisk compare patients.csv -t outcome -e hospital --hint admitted --hint ward
  hetrisk compare houses.csv -t price -e decade --method erm --method hrm-told --json

Each environment is left out in turn: the methods learn from the others and are tested on it.
Methods marked * (anchor, irm, vrex, group-dro and hrm-told) are told which training row came from
where; hrm-hinted, marked +, is given the columns of --hint; the others know neither.
"""


@click.command(epilog=EPILOG)
@click.argument("data", type=DATA)
@column_options
@click.option(
    "--environment", "-e", required=True, metavar="COL", help="Says where each row came from."
)
@click.option(
    "--hint", "hints", multiple=True, metavar="COL", help="May go along with where rows come from."
)
@click.option("--method", "-m", "methods", multiple=True, help="Only this method; repeat for more.")
@click.option(
    "--rows",
    type=click.IntRange(min=100),
    default=20_000,
    show_default=True,
    help="Compare on a random sample of at most this many rows.",
)
@click.option("--plot", type=OUTPUT, metavar="FILE", help="Draw the comparison here (.png).")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of every random choice.")
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
    check_outputs({"--plot": plot}, data)
    from hetrisk.cli.terminal import Countdown, console, error_console, print_json, say_notes
    from hetrisk.compare import METHODS, leave_one_environment_out

    unknown = [name for name in options["methods"] if name not in METHODS]
    if unknown:
        message = f"{unknown[0]!r} is not one of {', '.join(METHODS)}."
        raise click.BadParameter(message, param_hint="--method")
    table = read_or_draw(data, encoding, delimiter, options["rows"], options["seed"])
    found = leave_one_environment_out(table, progress=Countdown(), **options)
    drawn = None if plot is None else _draw(found, plot)
    if as_json:
        print_json(asdict(found) | ({} if plot is None else {"plot": drawn}))
        return
    say_notes(found.notes)
    show(found, console())
    if plot is not None and drawn is None:
        error_console().print("Note: no plot: matplotlib is missing, pip install 'hetrisk[plot]'.")


def _draw(found: Comparison, plot: Path) -> str | None:
    """Write the picture and return its path; None where matplotlib is not installed."""
    from hetrisk import atomic

    try:
        from hetrisk.cli.comparisonplot import picture
    except ImportError:
        return None
    atomic.write_bytes(plot, picture(found))
    return str(plot)


def show(found: Comparison, screen: Console) -> None:
    """Print the comparison for a person, best mean first."""
    import numpy as np
    from rich.text import Text

    from hetrisk.cli.terminal import grid, words
    from hetrisk.tables.errors import shown

    # To six digits: rounding does not rank methods that say the same.
    methods = sorted(found.methods, key=lambda m: float(f"{np.nan_to_num(m.mean, nan=np.inf):.6g}"))
    environments = list(methods[0].errors)
    columns = environments if len(environments) <= MOST_SHOWN else []
    best = {key: min(getattr(m, key) for m in methods) for key in ("mean", "worst")}
    rows = []
    for method in methods:
        mark = " *" if method.told_environments else " +" if method.given_hints else ""
        cells: list[object] = [method.method + mark]
        cells += [_figure(method, key, best) for key in ("mean", "std", "worst")]
        cells += [_cell(method.errors[name]) for name in columns]
        rows.append(cells)
    heads = [("method", "left"), ("mean", "right"), ("std", "right"), ("worst", "right")]
    heads += [(shown(name, 20), "right") for name in columns]
    title = f"{found.risk_name} in the environment left out ({len(environments)} environments)"
    for leak in found.leaks:
        screen.print(Text(f"LEAK: {words(leak.sentence, 400)}", style="bold red"))
    screen.print(grid(title, heads, rows))
    if any(method.told_environments for method in methods):
        screen.print("* is told which training row came from which environment.")
    if any(method.given_hints for method in methods):
        screen.print("+ is given the columns of --hint.")
    _say_failures(methods, screen)


def _figure(method: MethodErrors, key: str, best: dict[str, float]) -> Text:
    from rich.text import Text

    from hetrisk.report.labels import number

    value = getattr(method, key)
    return Text(number(value), style="bold green" if value == best.get(key) else "")


def _cell(error: float | str) -> str:
    from hetrisk.report.labels import number

    return number(error) if isinstance(error, float) else "failed"


def _say_failures(methods: list[MethodErrors], screen: Console) -> None:
    from hetrisk.tables.errors import quoted

    for method in methods:
        for name, error in method.errors.items():
            if isinstance(error, str):
                screen.print(f"{method.method} failed without {quoted(name)}: {error}")
