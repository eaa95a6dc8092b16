"""The kinds of column a model can use, each knowing how to turn its cells into numbers.

A `Column` is what was learnt about one column when the model was fitted: enough to encode the
same column of another table in the same way. It is a frozen value of plain strings and floats,
so it travels inside a model file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hetrisk.columns import BoolArray, FloatArray
from hetrisk.tables.cells import Cells
from hetrisk.tables.errors import TableError, counted, figure, listed, quoted
from hetrisk.tables.notation import PLAIN, Notation

OTHER = "(other)"
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
    """

    column: str
    text: str

    def __str__(self) -> str:
        return f"{quoted(self.column)}: {self.text}" if self.column else self.text


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
    def feature_names(self) -> list[str]:
        """Names of the encoded features, in order."""
        return [self.name]

    @abstractmethod
    def encode(self, cells: Cells) -> tuple[FloatArray, list[Note]]:
        """(n, features) numbers without NaN, and what had to be done to get them."""

    def observed(self, cells: Cells) -> FloatArray:
        """(n, features) numbers, NaN where the table holds nothing and `encode` would fill in."""
        return self.encode(cells)[0]


@dataclass(frozen=True)
class _Measured(Column):
    """A column encoded as one number a row; missing cells get ``fill``.

    Attributes
    ----------
    fill : what replaces a missing value: the median of the training rows.
    excused : texts that were treated as missing when the model was fitted.
    """

    fill: float
    excused: tuple[str, ...] = ()

    @property
    @abstractmethod
    def what(self) -> str:
        """What a cell has to be, as the end of the sentence "this is not"."""

    @abstractmethod
    def read(self, cells: Cells) -> FloatArray:
        """One number a row, NaN where there is none."""

    def observed(self, cells: Cells) -> FloatArray:
        """Return what was read, NaN where nothing could be."""
        return self.read(cells)[:, None]

    def encode(self, cells: Cells) -> tuple[FloatArray, list[Note]]:
        """Read, refuse what cannot be read, fill what is missing."""
        values = self.read(cells)
        missing = np.isnan(values)
        self._refuse_mistyped(cells, missing & ~cells.missing)
        notes = []
        if missing.any():
            text = f"{counted(int(missing.sum()), 'missing value')} replaced by {figure(self.fill)}"
            notes.append(Note(self.name, text))
        return np.where(missing, self.fill, values)[:, None], notes

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
        """What a cell has to be."""
        like = self.notation.example
        return f"a number written like {quoted(like)}" if like else "a number"

    def read(self, cells: Cells) -> FloatArray:
        """Return the cells as numbers, in the notation of the training rows."""
        return cells.numbers(self.notation)

    def _excuses(self, text: str) -> bool:
        # A number too large to compute with reads as NaN but is a number: missing, not mistyped.
        return text in self.excused or self.notation.spells(text)


@dataclass(frozen=True)
class TimeColumn(_Measured):
    """A time of day, encoded in hours since midnight."""

    kind: ClassVar[str] = "time"

    @property
    def what(self) -> str:
        """What a cell has to be."""
        return "a time of day"

    def read(self, cells: Cells) -> FloatArray:
        """Return the cells in hours."""
        return cells.hours()


@dataclass(frozen=True)
class BooleanColumn(_Measured):
    """Two words for true and false, encoded as 1 and 0.

    Attributes
    ----------
    words : the word for true and the one for false, in lower case; 1 and 0 are understood too.
    """

    words: tuple[str, str] = ("yes", "no")
    kind: ClassVar[str] = "boolean"

    @property
    def what(self) -> str:
        """What a cell has to be."""
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

    @property
    def what(self) -> str:
        """What a cell has to be."""
        return "a date in the same format"

    def read(self, cells: Cells) -> FloatArray:
        """Return the cells as days since 1970-01-01."""
        return cells.days(self.form)


@dataclass(frozen=True)
class CategoryColumn(Column):
    """A category, one-hot against its most frequent level.

    Attributes
    ----------
    reference : the most frequent level: a row of zeros.
    levels : the other levels with a feature of their own.
    other : whether rare levels share one more feature.
    absent : whether missing values have one more feature.
    """

    reference: str
    levels: tuple[str, ...]
    other: bool
    absent: bool
    kind: ClassVar[str] = "category"

    @property
    def feature_names(self) -> list[str]:
        """Names of the encoded features: ``column=level``."""
        extra = [OTHER] * self.other + [ABSENT] * self.absent
        return [f"{self.name}={level}" for level in (*self.levels, *extra)]

    def encode(self, cells: Cells) -> tuple[FloatArray, list[Note]]:
        """One-hot; an unseen level counts as a rare one, or as the reference if none was rare."""
        codes, values = cells.levels()
        position = {level: i for i, level in enumerate(self.levels)} | {self.reference: -1}
        rare = len(self.levels) if self.other else -1
        absent = len(self.levels) + self.other if self.absent else -1
        where = np.asarray([*(position.get(value, rare) for value in values), absent])[codes]
        features = np.zeros((len(cells), len(self.feature_names)))
        rows = np.flatnonzero(where >= 0)
        features[rows, where[rows]] = 1.0
        return features, self._notes(cells, codes, values)

    def _notes(self, cells: Cells, codes: np.ndarray, values: list[str]) -> list[Note]:
        notes = []
        seen = {self.reference, *self.levels}
        unseen = [code for code, value in enumerate(values) if value not in seen]
        rows = int(np.isin(codes, unseen).sum())
        if rows and not self.other:
            names = listed((values[code] for code in unseen), most=3)
            text = (
                f"{counted(rows, 'row')} with a category the model never saw ({names}) treated "
                f"as {quoted(self.reference)}"
            )
            notes.append(Note(self.name, text))
        absent = int(cells.missing.sum())
        if absent and not self.absent:
            text = f"{counted(absent, 'missing value')} treated as {quoted(self.reference)}"
            notes.append(Note(self.name, text))
        return notes
