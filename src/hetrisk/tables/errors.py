"""What is wrong with a table, as one sentence."""

from __future__ import annotations

from hetrisk.columns.words import counted, figure, listed, quoted, shown, spelled
from hetrisk.tables.remedies import Remedy

__all__ = ["TableError", "counted", "figure", "listed", "needs", "quoted", "shown", "spelled"]


class TableError(ValueError):
    """A table that cannot be used, and why, in a sentence its owner can act on.

    Parameters
    ----------
    message : what is wrong.
    remedy : what to say to mend it: the sentence ends with it.

    Attributes
    ----------
    in_flags : the sentence with the remedy of the command line; ``str`` has that of Python.
    """

    def __init__(self, message: str, remedy: Remedy | None = None) -> None:
        super().__init__(f"{message} {remedy.python}" if remedy else message)
        self.in_flags = f"{message} {remedy.flag}" if remedy else message


def needs(what: str, package: str, extra: str) -> TableError:
    """Return the error that says which line installs what is missing."""
    return TableError(f"{what} needs {package}: pip install 'hetrisk[{extra}]'")
