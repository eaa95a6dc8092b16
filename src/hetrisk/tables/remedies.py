"""What to do about a table, in Python and on the command line: each message knows both."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from hetrisk.columns.words import shown


@dataclass(frozen=True)
class Remedy:
    """How to say what a table leaves open.

    Attributes
    ----------
    python : the argument, as it is written in Python.
    flag : the option of the command line.
    """

    python: str
    flag: str


DAYFIRST = Remedy("dayfirst=True or dayfirst=False", "--dayfirst or --monthfirst")
DECIMAL = Remedy("decimal='.' or decimal=','", "--decimal point or --decimal comma")
DELIMITER = Remedy("delimiter=", "--delimiter")
LABELS = Remedy("task='classification'", "--task classification")
ENCODING = Remedy("encoding='latin-1'", "--encoding latin-1")


def category(name: str) -> Remedy:
    """Take a column as a category."""
    return Remedy(f"category=[{shown(name)!r}]", f"--category {shlex.quote(shown(name))}")


def number(name: str) -> Remedy:
    """Take a column as numbers."""
    return Remedy(f"number=[{shown(name)!r}]", f"--number {shlex.quote(shown(name))}")
