"""The ``hetrisk`` command: which commands there are, and what becomes of an error.

Commands are imported when they are called, so that ``hetrisk --help`` answers at once. An error
its owner can mend ends with one sentence and exit code 1; wrong usage with 2; ``--debug`` shows
the traceback behind either.
"""

from __future__ import annotations

import errno
import sys
import traceback
import warnings
from importlib import import_module
from typing import Any, NoReturn

import click

import hetrisk
from hetrisk import atomic
from hetrisk.cli.process import ending_on_signals, received

COMMANDS = {
    "demo": "See the point: a real table, its past learned from, and what came after.",
    "fit": "Find out which model to deploy, and how wrong it will be.",
    "predict": "Predict with a fitted model.",
    "check": "Hold new rows against what a model was told to expect.",
    "adapt": "Move a model to a new environment with a few labelled rows.",
    "report": "Write the page that explains a fitted model.",
    "reproduce": "Make the paper's tables and the comparison on real tables again.",
}
DEBUG, TYPED = "hetrisk.debug", "hetrisk.typed"


class Commands(click.Group):
    """Commands imported on demand, with one treatment of errors for all of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and return the command in it."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"hetrisk.cli.{cmd_name}"), cmd_name)
        if all(parameter.name != "debug" for parameter in command.params):
            command.params.append(_debug_option())
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table above: nothing is imported for ``--help``."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run the command line, and end with its exit code."""
        atomic.forget()
        with ending_on_signals():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # what matters is in the verdict and the notes
                    code = super().main(*args, **{**extra, "standalone_mode": False})
            except BaseException as error:
                code = _ended(error)
        sys.exit(code)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the arguments, and remember them as they were typed."""
        typed = ["hetrisk", *args[1]]
        context = super().make_context(*args, **extra)
        context.meta[TYPED] = typed
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; turn what goes wrong into a sentence."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # the reader of a pipe went away, as `| head` does: click ends quietly
            if ctx.meta.get(DEBUG):
                traceback.print_exc()
            raise click.ClickException(_sentence(error)) from None


def _ended(error: BaseException) -> Any:
    """Say why a command ended; return its exit code. A signal decides it wherever it came."""
    stopped = received()  # a library that is interrupted while it loads fails in its own way
    if isinstance(error, SystemExit) and (stopped is None or not error.code):
        return error.code
    if stopped is not None or isinstance(error, click.Abort):
        cause = stopped or error.__cause__
        click.echo(str(cause) or _stopped(), err=True)
        return getattr(cause, "exit_code", 130)
    if not isinstance(error, click.ClickException):
        raise error
    from hetrisk.tables.errors import shown

    # What is mistyped is shown, never obeyed.
    clean = "\n".join(shown(line, 2000) for line in error.message.split("\n"))
    error.message = clean  # type: ignore[misc]
    error.show()
    return error.exit_code


def _stopped() -> str:
    """What is true when a command is stopped: which of its files are there already."""
    written = atomic.written()
    if not written:
        return "Stopped. No file was changed."
    # Nothing is imported here: the signal may have come in the middle of an import.
    return f"Stopped. Already written: {', '.join(ascii(path.name) for path in written)}."


def _sentence(error: Exception) -> str:
    # Imported late: a command that never got as far as reading a table answers at once.
    from hetrisk.modelfile import ModelFileError
    from hetrisk.tables.errors import TableError, shown

    if isinstance(error, MemoryError):
        return "there is not enough memory for this table"
    if isinstance(error, OSError) and error.strerror:
        names = [str(name) for name in (error.filename, error.filename2) if name is not None]
        if not names and error.errno == errno.ENOSPC:  # of a file, it would be named
            names = ["standard output"]
        return f"{shown(names[0], 200)}: {error.strerror}" if names else error.strerror
    if isinstance(error, (TableError, ModelFileError, OSError)):
        return shown(error.in_flags if isinstance(error, TableError) else error, 1000)
    return (
        f"something unforeseen went wrong ({type(error).__name__}: {shown(error, 300)}). "
        "This is a fault in hetrisk: run again with --debug and report what it prints"
    )


def _debug_option() -> click.Option:
    def note(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta[DEBUG] = True

    return click.Option(
        ["--debug"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=note,
        help="Show the traceback behind an error.",
    )


@click.command(
    "hetrisk",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    params=[_debug_option()],
    epilog="Start with: hetrisk demo, then hetrisk fit your.csv --target COLUMN. "
    "Each command explains itself: hetrisk fit --help.",
)
@click.version_option(hetrisk.__version__, prog_name="hetrisk")
def cli() -> None:
    """Which model to deploy where it was not trained, and how wrong it will be there.

    Give hetrisk a table with a column of time, or of where rows come from. It learns from some
    periods or places and predicts the others, as deployment will; chooses among ordinary models,
    from the mean to boosted trees; foretells the error to come; and later checks what came.
    """
