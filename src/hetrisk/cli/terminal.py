"""What a person sees: text on the terminal, progress, and nothing that a file made up."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from hetrisk.tables.columns import Note
from hetrisk.tables.errors import counted, listed, shown

QUIET_SECONDS = 2.0
MOST_NOTES = 12
_ASIDE = re.compile(r" \([^)]*\)")  # of a note: an example, a share


def console() -> Console:
    """Return the console results go to."""
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False)


def error_console() -> Console:
    """Return the console notes and progress go to."""
    return Console(file=sys.stderr, highlight=False, markup=False, emoji=False)


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Say what is being done while it is: a spinner on a terminal, a line after two seconds.

    Parameters
    ----------
    what : the work, as "searching for environments".
    """
    screen = error_console()
    if screen.is_terminal:
        with screen.status(Text(f"{what} …")):
            yield
        return
    timer = threading.Timer(QUIET_SECONDS, lambda: screen.print(f"{what} …"))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def words(text: object, longest: int) -> str:
    """Return text made safe for the terminal; spaces that may not break are spaces there."""
    return shown(str(text).replace("\u00a0", " "), longest)


def grid(title: str, columns: Iterable[tuple[str, str]], rows: Iterable[Iterable[object]]) -> Group:
    """Return a table for the terminal.

    Parameters
    ----------
    title : above the table.
    columns : name and alignment ("left" or "right") of each.
    rows : cells; text is made safe for the terminal here.
    """
    table = Table(box=None)
    for name, justify in columns:
        table.add_column(Text(name), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(words(cell, 80)) for cell in row))
    # A title of the table's own would be wrapped to the width of the table.
    return Group(Text(title, style="bold"), table) if title else Group(table)


def say_notes(notes: Iterable[object], *, every: bool = False) -> None:
    """Print notes to the standard error, the first dozen unless all are asked for."""
    screen = error_console()
    lines = [shown(note, 400) for note in _together(notes)]
    most = len(lines) if every else MOST_NOTES
    for line in lines[:most]:
        screen.print(f"Note: {line}", soft_wrap=True)
    if len(lines) > most:
        more = counted(len(lines) - most, "more note")
        screen.print(f"... and {more}; --json lists them all.")


def _together(notes: Iterable[object]) -> list[str]:
    """Say once what was done to several columns alike, with the example of the first."""
    groups: dict[object, list[object]] = {}
    for note in notes:
        alike = _ASIDE.sub("", note.text) if isinstance(note, Note) and note.column else note
        groups.setdefault(alike, []).append(note)
    told = []
    for group in groups.values():
        first = group[0]
        if isinstance(first, Note) and len(group) > 1:
            names = listed([note.column for note in group if isinstance(note, Note)])
            told.append(f"{names}: {first.text}")
        else:
            told.append(str(first))
    return told


def print_json(record: Any) -> None:
    """Print a record as JSON: NaN and infinity, which JSON lacks, become null."""
    from hetrisk.report.record import plain_record

    sys.stdout.write(json.dumps(plain_record(record), indent=2, ensure_ascii=True) + "\n")
