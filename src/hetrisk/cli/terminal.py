"""What a person sees: text on the terminal, progress, and nothing that a file made up."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hetrisk.tables.errors import counted, shown

MOST_NOTES = 12


def console() -> Console:
    """Return the console results go to."""
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False)


def error_console() -> Console:
    """Return the console notes and progress go to."""
    return Console(file=sys.stderr, highlight=False, markup=False, emoji=False)


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Say on a terminal what is being done while it is, as "reading table.csv"."""
    screen = error_console()
    with screen.status(Text(f"{what} …")) if screen.is_terminal else nullcontext():
        yield


def words(text: object, longest: int) -> str:
    """Return text made safe for the terminal; spaces that may not break are spaces there."""
    return shown(str(text).replace("\u00a0", " "), longest)


def grid(columns: Iterable[tuple[str, str]], rows: Iterable[Iterable[object]]) -> Table:
    """Return a table for the terminal.

    Parameters
    ----------
    columns : name and alignment ("left" or "right") of each.
    rows : cells; text is made safe for the terminal here.
    """
    table = Table(box=None)
    for name, justify in columns:
        table.add_column(Text(name), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(words(cell, 80)) for cell in row))
    return table


def say_notes(notes: Iterable[object]) -> None:
    """Print notes to the standard error, the first dozen of them."""
    screen = error_console()
    lines = [shown(note, 400) for note in notes]
    for line in lines[:MOST_NOTES]:
        screen.print(f"Note: {line}", soft_wrap=True)
    if len(lines) > MOST_NOTES:
        more = counted(len(lines) - MOST_NOTES, "more note")
        screen.print(f"... and {more}; --json lists them all.")


def print_json(record: Any) -> None:
    """Print a record as JSON: NaN and infinity, which JSON lacks, become null."""
    from hetrisk.report.stored import plain_record

    sys.stdout.write(json.dumps(plain_record(record), indent=2, ensure_ascii=True) + "\n")
