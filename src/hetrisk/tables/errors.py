"""What is wrong with a table, as one sentence, and how to print text nobody vouches for."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

LONGEST_SHOWN = 60

# Direction overrides can make a printed name read as something it is not.
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HIDDEN = frozenset({"Cc", "Cs", "Zl", "Zp"})


class TableError(ValueError):
    """A table that cannot be used, and why, in a sentence its owner can act on."""


def needs(what: str, package: str, extra: str) -> TableError:
    """Return the error that says which line installs what is missing."""
    return TableError(f"{what} needs {package}: pip install 'hetrisk[{extra}]'")


def shown(text: object, longest: int = LONGEST_SHOWN) -> str:
    """Return ``text`` fit for a terminal or a message: no control codes, not too long.

    Column names and cells come from files anyone may have written: escape sequences, line
    breaks, lone surrogates and direction overrides are spelled out instead of obeyed.
    """
    clean = "".join(
        c.encode("unicode_escape").decode("ascii")
        if c in _BIDI or unicodedata.category(c) in _HIDDEN
        else c
        for c in str(text)[: longest + 1]
    )
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def quoted(text: object, longest: int = LONGEST_SHOWN) -> str:
    """Return ``text`` as `shown`, in single quotes."""
    return f"'{shown(text, longest)}'"


def listed(names: Iterable[object], most: int = 5) -> str:
    """Return the names quoted and joined by commas, with a count of those beyond ``most``."""
    names = list(names)
    text = ", ".join(quoted(name) for name in names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most:,} more"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return ``number`` with its noun: ``counted(1, "row")`` is "1 row"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
