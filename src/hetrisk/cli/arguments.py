"""Arguments several commands share, and checks that save a long wait for a late error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from hetrisk.tables import Table

F = TypeVar("F", bound=Callable[..., Any])

DATA = click.Path(path_type=Path)
OUTPUT = click.Path(path_type=Path)
SECONDS_TO_ANSWER = 10  # for a dask scheduler


def reading_options(command: F) -> F:
    """Add the options that say how to read a text file."""
    for option in (
        click.option(
            "--delimiter", metavar="CHAR", help="Between fields; found by itself if left out."
        ),
        click.option(
            "--encoding", default="utf-8", show_default=True, help="Encoding of a text file."
        ),
    ):
        command = option(command)
    return command


def read(path: Path, encoding: str, delimiter: str | None) -> Table:
    """Read a table, with progress."""
    from hetrisk.cli.terminal import progress
    from hetrisk.tables import read_table
    from hetrisk.tables.errors import shown

    if delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise click.BadParameter("one character is needed.", param_hint="--delimiter")
    with progress(f"reading {shown(path.name)}"):
        return read_table(path, encoding=encoding, delimiter=delimiter)


def check_output(path: Path | None, option: str, *inputs: Path) -> None:
    """Refuse an output that could not be written, before any work is done.

    Parameters
    ----------
    path : the file to be written, or None.
    option : its name on the command line.
    inputs : files being read, which must not be overwritten.
    """
    if path is None:
        return
    parent = path.parent
    if path.is_dir():
        raise click.BadParameter(f"'{path}' is a folder.", param_hint=option)
    if not parent.is_dir():
        raise click.BadParameter(f"there is no folder '{parent}'.", param_hint=option)
    if not os.access(parent, os.W_OK):
        raise PermissionError(13, "no permission to write in this folder", str(parent))
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise click.BadParameter("it would overwrite the data.", param_hint=option)


@contextmanager
def dask_client(address: str | None) -> Iterator[Any]:
    """Connect to a dask scheduler for the time of a fit; None without an address."""
    if address is None:
        yield None
        return
    from hetrisk.tables import TableError

    try:
        from dask.distributed import Client
    except ImportError:
        raise TableError("--dask needs dask: pip install 'hetrisk[dask]'") from None
    try:
        client = Client(address, timeout=SECONDS_TO_ANSWER)
    except (OSError, ValueError, TypeError) as error:
        message = f"no dask scheduler answers there ({str(error) or type(error).__name__})."
        raise click.BadParameter(message, param_hint="--dask") from None
    with client:
        yield client
