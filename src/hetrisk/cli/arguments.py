"""Arguments several commands share, and checks that save a long wait for a late error."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from hetrisk.modelfile import Deployed
    from hetrisk.tables import Table

F = TypeVar("F", bound=Callable[..., Any])

DATA = click.Path(path_type=Path)
OUTPUT = click.Path(path_type=Path)
DRAWN_ROWS = 20_000  # of a table too large for memory, where a sample is enough


def _text_encoding(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """Refuse what Python knows no text encoding by: some of its codecs are no encodings."""
    try:
        "".encode(value)
    except (LookupError, ValueError):
        raise click.BadParameter(f"'{value}' is not an encoding.") from None
    return value


def _one_character(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    value = {"\\t": "\t", "tab": "\t"}.get(value, value)
    if len(value) != 1 or value in '"\r\n':
        raise click.BadParameter("one character is needed.")
    return value


def reading_options(command: F) -> F:
    """Add the options that say how to read a text file."""
    delimiter = click.option(
        "--delimiter",
        metavar="CHAR",
        callback=_one_character,
        help="Between fields; found by itself if left out.",
    )
    encoding = click.option(
        "--encoding",
        default="utf-8",
        show_default=True,
        callback=_text_encoding,
        help="Encoding of a text file.",
    )
    return encoding(delimiter(command))


def read(path: Path, encoding: str, delimiter: str | None, sample: bool = False) -> Table:
    """Read a table, with progress; where a sample will do, one of what is too large for memory."""
    from hetrisk.cli.terminal import progress
    from hetrisk.tables import read_table
    from hetrisk.tables.errors import shown
    from hetrisk.tables.large import drawn, is_large
    from hetrisk.tables.spooled import in_parquet

    with progress(f"reading {shown(path.name or path)}"):
        if not (sample and is_large(path)):
            return read_table(path, encoding=encoding, delimiter=delimiter)
        with in_parquet(path, None, encoding, delimiter) as large:
            return drawn(large, DRAWN_ROWS)


def open_model(path: Path) -> Deployed:
    """Open a model file, with progress and a note where a later version wrote it."""
    import warnings

    from hetrisk import modelfile
    from hetrisk.cli.terminal import progress, say_notes

    with progress("opening the model"), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", modelfile.NewerModelWarning)
        deployed = modelfile.load(path)
    say_notes(note.message for note in told)
    return deployed


def check_outputs(outputs: dict[str, Path | None], *inputs: Path | None) -> None:
    """Refuse outputs that could not be written, or would destroy something, before any work.

    Parameters
    ----------
    outputs : the file each option is to write, or None.
    inputs : files and folders being read; no output may be one of them or lie in one.
    """
    places: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        _check_output(path, option, *(source for source in inputs if source is not None))
        if path.exists() and not path.is_file():
            continue  # a pipe or /dev/null takes whatever comes
        other = places.setdefault(path.resolve(), option)
        if other != option:
            raise click.BadParameter(f"{other} writes the same file.", param_hint=option)


def _check_output(path: Path, option: str, *inputs: Path) -> None:
    place = _resolved(path, option)
    wrong = ""
    if path.is_dir():
        wrong = f"'{path}' is a folder."
    elif not path.parent.is_dir():
        wrong = f"there is no folder '{path.parent}'."
    elif not os.access(place.parent, os.W_OK):
        raise PermissionError(13, "no permission to write in this folder", str(place.parent))
    for source in inputs:
        if place == _resolved(source, "DATA") or (place.exists() and _same_file(place, source)):
            wrong = wrong or "it would overwrite the data."
        elif source.is_dir() and place.is_relative_to(source.resolve()):
            wrong = wrong or f"it lies in '{source}', among the data: give a place outside."
    if wrong:
        raise click.BadParameter(wrong, param_hint=option)


def _resolved(path: Path, option: str) -> Path:
    """Where a path leads; two links that point at each other lead nowhere."""
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            message = f"'{path}' is a link that leads back to itself."
            raise click.BadParameter(message, param_hint=option) from None
    return path.resolve()


def _same_file(place: Path, source: Path) -> bool:
    """Whether both are one file under two names, or a file in the folder under another name."""
    if source.is_dir():
        return any(_same_file(place, part) for part in source.rglob("*") if part.is_file())
    return source.exists() and place.samefile(source)
