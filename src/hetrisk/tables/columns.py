"""The kinds of column a model can use, each knowing how to turn its cells into numbers.

A `Column` is what was learnt about one column when the encoder was fitted: enough to encode the
same column of another table in the same way. It is a frozen value of plain texts and numbers, and
so is its record, from which it can be made again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hetrisk.columns import BoolArray, FloatArray
from hetrisk.columns.dates import MISSING
from hetrisk.tables.cells import Cells
from hetrisk.tables.errors import TableError, counted, figure, quoted
from hetrisk.tables.notation import PLAIN, Notation
from hetrisk.tables.remedies import Remedy

ABSENT = "(missing)"
# A word for true and one for false, of one language; a column must hold both of a pair.
TRUE_WORDS = (
    *(("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"), ("on", "off")),
    *(("ja", "nein"), ("ja", "nee"), ("ja", "nej"), ("ja", "nei"), ("j", "n"), ("wahr", "falsch")),
    *(("oui", "non"), ("o", "n"), ("vrai", "faux"), ("sí", "no"), ("si", "no"), ("sì", "no")),
    *(("s", "n"), ("verdadero", "falso"), ("vero", "falso"), ("sim", "não"), ("sim", "nao")),
    *(("verdadeiro", "falso"), ("tak", "nie"), ("ano", "ne"), ("da", "ne"), ("da", "nu")),
    *(("да", "нет"), ("igen", "nem"), ("kyllä", "ei"), ("evet", "hayır"), ("ναι", "όχι")),
    *(
        ("是", "否"),
        ("はい", "いいえ"),
        ("예", "아니요"),
        ("نعم", "لا"),
        ("כן", "לא"),
        ("हाँ", "नहीं"),
    ),
)


@dataclass(frozen=True)
class Note:
    """Something done to a column that its owner should know.

    Attributes
    ----------
    column : the column, or "" when the note is about the whole table.
    text : what was done, as a clause.
    remedy : what to say where that was wrong; the clause ends with it.
    """

    column: str
    text: str
    remedy: Remedy | None = None

    def __str__(self) -> str:
        return self._with(self.remedy.python if self.remedy else "")

    @property
    def in_flags(self) -> str:
        """The note with the remedy of the command line."""
        return self._with(self.remedy.flag if self.remedy else "")

    def _with(self, remedy: str) -> str:
        text = f"{self.text} {remedy}" if remedy else self.text
        return f"{quoted(self.column)}: {text}" if self.column else text


@dataclass(frozen=True)
class Column(ABC):
    """One column as the model uses it.

    Attributes
    ----------
    name : the column's name in the table.
    """

    name: str
    kind: ClassVar[str]

    @property
    def missing_words(self) -> frozenset[str]:
        """Words that mean a value is missing."""
        return MISSING

    @property
    @abstractmethod
    def feature_names(self) -> list[str]:
        """Names of the encoded features, in order."""

    @abstractmethod
    def encode(self, cells: Cells) -> tuple[FloatArray, list[Note]]:
        """(n, features) numbers without NaN, and what had to be done to get them."""

    @abstractmethod
    def observed(self, cells: Cells) -> FloatArray:
        """(n, k) numbers or levels, NaN where the table holds nothing and `encode` fills in."""


@dataclass(frozen=True)
class _Measured(Column):
    """A column encoded as one number a row; missing cells get ``fill``.

    Attributes
    ----------
    fill : what replaces a missing value: the median of the training rows.
    excused : texts that were treated as missing when the encoder was fitted.
    gaps : whether one more feature says where a value was missing.
    """

    fill: float
    excused: tuple[str, ...] = ()
    gaps: bool = False

    @property
    def feature_names(self) -> list[str]:
        return [self.name, f"{self.name}={ABSENT}"] if self.gaps else [self.name]

    @property
    @abstractmethod
    def what(self) -> str:
        """What a cell has to be, as the end of the sentence "this is not"."""

    @abstractmethod
    def read(self, cells: Cells) -> FloatArray:
        """One number a row, NaN where there is none."""

    def observed(self, cells: Cells) -> FloatArray:
        return self.read(cells)[:, None]

    def encode(self, cells: Cells) -> tuple[FloatArray, list[Note]]:
        """Read, refuse what cannot be read, fill what is missing."""
        values = self.read(cells)
        missing = np.isnan(values)
        if not missing.any():
            gaps = (np.zeros(len(values)),) if self.gaps else ()
            return np.column_stack([values, *gaps]), []
        self._refuse_mistyped(cells, missing & ~cells.missing)
        text = f"{counted(int(missing.sum()), 'missing value')} replaced by {figure(self.fill)}"
        filled = np.where(missing, self.fill, values)
        gaps = (missing,) if self.gaps else ()
        return np.column_stack([filled, *gaps]), [Note(self.name, text)]

    def _refuse_mistyped(self, cells: Cells, unread: BoolArray) -> None:
        if not unread.any():
            return
        codes, levels = cells.levels()
        strange = {code for code in np.unique(codes[unread]) if not self._excuses(levels[code])}
        if strange:
            row = int(np.flatnonzero(unread & np.isin(codes, list(strange)))[0])
            raise TableError(
                f"column {quoted(self.name)}, row {row + 1}: {quoted(levels[codes[row]])} is not "
                f"{self.what}, which this column held when the model was fitted."
            )

    def _excuses(self, text: str) -> bool:
        return text in self.excused


@dataclass(frozen=True)
class NumberColumn(_Measured):
    """A measured quantity.

    Attributes
    ----------
    notation : how the training rows wrote their numbers.
    """

    notation: Notation = PLAIN
    kind: ClassVar[str] = "number"

    @property
    def what(self) -> str:
        like = self.notation.example
        return f"a number written like {quoted(like)}" if like else "a number"

    def read(self, cells: Cells) -> FloatArray:
        return cells.numbers(self.notation)

    def _excuses(self, text: str) -> bool:
        # A number too large to compute with reads as NaN but is a number: missing, not mistyped.
        return text in self.excused or self.notation.spells(text)


@dataclass(frozen=True)
class ClockColumn(_Measured):
    """A time of day, encoded in hours since midnight."""

    kind: ClassVar[str] = "clock"
    what: ClassVar[str] = "a time of day"  # type: ignore[misc]

    def read(self, cells: Cells) -> FloatArray:
        return cells.hours()


@dataclass(frozen=True)
class BooleanColumn(_Measured):
    """Two words for true and false, encoded as 1 and 0.

    Attributes
    ----------
    words : the word for true and the one for false, in lower case; 1 and 0 are understood too.
    """

    words: tuple[str, str] = ("true", "false")
    kind: ClassVar[str] = "boolean"

    @property
    def what(self) -> str:
        return f"{quoted(self.words[0])} or {quoted(self.words[1])}"

    def read(self, cells: Cells) -> FloatArray:
        """1 for true, 0 for false, NaN for anything else."""
        codes, levels = cells.levels()
        values = dict.fromkeys((self.words[0], "1"), 1.0) | dict.fromkeys((self.words[1], "0"), 0.0)
        return np.asarray([*(values.get(level.lower(), np.nan) for level in levels), np.nan])[codes]


@dataclass(frozen=True)
class DateColumn(_Measured):
    """A date, encoded as days since 1970-01-01.

    Attributes
    ----------
    form : the format the dates were written in, as for ``strptime``, or "ISO8601".
    """

    form: str = "ISO8601"
    kind: ClassVar[str] = "date"
    what: ClassVar[str] = "a date in the same format"  # type: ignore[misc]

    def read(self, cells: Cells) -> FloatArray:
        return cells.days(self.form)
