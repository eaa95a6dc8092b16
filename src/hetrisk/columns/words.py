"""How messages print text that nobody vouches for, lists, counts and figures."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

LONGEST_SHOWN = 60

# Controls, surrogates, line ends, spaces that are not the space, and marks of format, among them
# the direction overrides and the letters of no width: a name with one looks like another name.
_HIDDEN = frozenset({"Cc", "Cs", "Zl", "Zp", "Zs", "Cf"})
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
# Emoji and several scripts are written with these: they stay behind a letter of such a script.
_JOINERS = frozenset({"\u200c", "\u200d", *map(chr, range(0xFE00, 0xFE10))})


def shown(text: object, longest: int = LONGEST_SHOWN) -> str:
    """Return ``text`` fit for a terminal or a message: no control codes, not too long.

    Column names and cells come from files anyone may have written: escape sequences, line
    breaks, lone surrogates and direction overrides are spelled out instead of obeyed, and so are
    letters that cannot be seen, by which two names that look alike differ.
    """
    clean = spelled(str(text)[: longest + 1])
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def spelled(text: str) -> str:
    """Return ``text`` with every character that acts or cannot be seen written as a code."""
    return "".join(
        c.encode("unicode_escape").decode("ascii") if _is_hidden(c, before) else c
        for before, c in zip(" " + text, text, strict=False)
    )


def _is_hidden(c: str, before: str) -> bool:
    if c in _JOINERS:
        return before.isascii()
    return c in _BLANK or (c != " " and unicodedata.category(c) in _HIDDEN)


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


def figure(value: float) -> str:
    """Return a number to six digits, millions written out: 4,800,000 and not 4.8e+06."""
    return f"{value:,.0f}" if 1e6 <= abs(value) < 1e12 else f"{value:.6g}"
