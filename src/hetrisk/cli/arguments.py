"""Arguments several commands share, and checks that save a long wait for a late error."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from hetrisk.tables import Table

F = TypeVar("F", bound=Callable[..., Any])

DATA = click.Path(path_type=Path)
OUTPUT = click.Path(path_type=Path)
DECIMAL_MARKS = {"point": ".", "comma": ","}
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


def finite(ctx: click.Context, parameter: click.Parameter, value: float) -> float:
    """Refuse infinity and what is no number: both are within any range click knows."""
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number.")
    return value


def _added(command: F, options: Sequence[Callable[[F], F]]) -> F:
    for option in reversed(options):
        command = option(command)
    return command


def reading_options(command: F) -> F:
    """Add the options that say how to read a text file."""
    return _added(
        command,
        [
            click.option(
                *("--encoding",),
                default="utf-8",
                show_default=True,
                callback=_text_encoding,
                help="Encoding of a text file.",
            ),
            click.option(
                "--delimiter",
                metavar="CHAR",
                callback=_one_character,
                help="Between fields; found by itself if left out.",
            ),
        ],
    )


def column_options(command: F) -> F:
    """Add the options that say what to predict and how the columns of a table are understood."""
    return _added(
        command,
        [
            click.option(
                *("--target", "-t"), required=True, metavar="COL", help="The column to predict."
            ),
            click.option(
                "--task",
                type=click.Choice(["auto", "regression", "classification"]),
                default="auto",
                show_default=True,
                help="A number or a class? 'auto' decides from the target, and says so.",
            ),
            click.option(
                *("--feature", "-f", "features"),
                multiple=True,
                metavar="COL",
                help="Use only these columns.",
            ),
            click.option(
                *("--drop", "-d"), multiple=True, metavar="COL", help="Do not use this column."
            ),
            click.option(
                "--category", multiple=True, metavar="COL", help="Numbers here are names."
            ),
            click.option(
                "--number", multiple=True, metavar="COL", help="What looks like names are numbers."
            ),
            click.option(
                "--decimal",
                type=click.Choice(list(DECIMAL_MARKS)),
                callback=lambda ctx, parameter, value: DECIMAL_MARKS.get(value),
                help="The decimal mark, where the numbers do not show it: is 1,234 a little "
                "over 1?",
            ),
            click.option(
                "--dayfirst/--monthfirst",
                default=None,
                help="Is 01/02/2020 the first of February, or the second of January?",
            ),
        ],
    )


def read(path: Path, encoding: str, delimiter: str | None) -> Table:
    """Read a table, with progress."""
    from hetrisk.cli.terminal import progress
    from hetrisk.tables import read_table
    from hetrisk.tables.errors import shown

    with progress(f"reading {shown(path.name)}"):
        return read_table(path, encoding=encoding, delimiter=delimiter)


def read_or_draw(path: Path, encoding: str, delimiter: str | None) -> Table:
    """Read a table; of one too large for memory a random sample of its rows."""
    from hetrisk.cli.terminal import progress
    from hetrisk.tables.errors import shown
    from hetrisk.tables.large import drawn, is_large
    from hetrisk.tables.spooled import in_parquet

    if not is_large(path):
        return read(path, encoding, delimiter)
    with (
        progress(f"reading {shown(path.name)}"),
        in_parquet(path, None, encoding, delimiter) as large,
    ):
        return drawn(large, DRAWN_ROWS)


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
        check_output(path, option, *(source for source in inputs if source is not None))
        if path.exists() and not path.is_file():
            continue  # a pipe or /dev/null takes whatever comes
        other = places.setdefault(path.resolve(), option)
        if other != option:
            raise click.BadParameter(f"{other} writes the same file.", param_hint=option)


def check_output(path: Path, option: str, *inputs: Path) -> None:
    """Refuse one output; see `check_outputs`."""
    place = _resolved(path, option)
    if path.is_dir():
        raise click.BadParameter(f"'{path}' is a folder.", param_hint=option)
    if not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder '{path.parent}'.", param_hint=option)
    if not os.access(place.parent, os.W_OK):
        raise PermissionError(13, "no permission to write in this folder", str(place.parent))
    for source in inputs:
        if place == _resolved(source, "DATA") or (place.exists() and _same_file(place, source)):
            raise click.BadParameter("it would overwrite the data.", param_hint=option)
        if source.is_dir() and place.is_relative_to(source.resolve()):
            raise click.BadParameter(
                f"it lies in '{source}', among the data: give a place outside.", param_hint=option
            )


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
