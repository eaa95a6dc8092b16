"""The kinds of column a model can use, each knowing how to turn its cells into numbers.

A `Column` is what was learnt about one column when the encoder was fitted: enough to encode the
same column of another table in the same way. It is a frozen value of plain texts and numbers, and
so is its record, from which it can be made again.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hetrisk.columns import BoolArray, FloatArray
from hetrisk.columns.dates import DATE_FORMATS, MISSING
from hetrisk.tables.cells import Cells
from hetrisk.tables.errors import TableError, counted, figure, listed, quoted
from hetrisk.tables.notation import MARK_NAMES, PLAIN, Notation
from hetrisk.tables.records import Fields
from hetrisk.tables.remedies import Remedy

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

    @abstractmethod
    def to_record(self) -> dict[str, Any]:
        """Return the column as plain values."""


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
        """The column, and where it was missing."""
        return [self.name, f"{self.name}={ABSENT}"] if self.gaps else [self.name]

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

    def to_record(self) -> dict[str, Any]:
        """Return the column as plain values."""
        return {
            "kind": self.kind,
            "name": self.name,
            "fill": self.fill,
            "excused": list(self.excused),
            "gaps": self.gaps,
        }


def _measured(fields: Fields) -> dict[str, Any]:
    return {
        "name": fields.text("name"),
        "fill": fields.number("fill"),
        "excused": fields.texts("excused"),
        "gaps": fields.truth("gaps"),
    }


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

    def to_record(self) -> dict[str, Any]:
        """Return the column as plain values."""
        marks = {"decimal": self.notation.decimal, "thousands": self.notation.thousands}
        return super().to_record() | marks | {"unit": self.notation.unit}

    @classmethod
    def of(cls, fields: Fields) -> NumberColumn:
        """Return the column of a record."""
        notation = Notation(
            fields.text("decimal", among=(".", ",")),
            fields.text("thousands", among=("", *MARK_NAMES)),
            fields.text("unit"),
        )
        return cls(**_measured(fields), notation=notation)


@dataclass(frozen=True)
class ClockColumn(_Measured):
    """A time of day, encoded in hours since midnight."""

    kind: ClassVar[str] = "clock"

    @property
    def what(self) -> str:
        """What a cell has to be."""
        return "a time of day"

    def read(self, cells: Cells) -> FloatArray:
        """Return the cells in hours."""
        return cells.hours()

    @classmethod
    def of(cls, fields: Fields) -> ClockColumn:
        """Return the column of a record."""
        return cls(**_measured(fields))


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
        """What a cell has to be."""
        return f"{quoted(self.words[0])} or {quoted(self.words[1])}"

    def read(self, cells: Cells) -> FloatArray:
        """1 for true, 0 for false, NaN for anything else."""
        codes, levels = cells.levels()
        values = dict.fromkeys((self.words[0], "1"), 1.0) | dict.fromkeys((self.words[1], "0"), 0.0)
        return np.asarray([*(values.get(level.lower(), np.nan) for level in levels), np.nan])[codes]

    def to_record(self) -> dict[str, Any]:
        """Return the column as plain values."""
        return super().to_record() | {"words": list(self.words)}

    @classmethod
    def of(cls, fields: Fields) -> BooleanColumn:
        """Return the column of a record."""
        words = fields.texts("words")
        fields.need(len(words) == 2, "words", "two words")
        return cls(**_measured(fields), words=(words[0], words[1]))


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

    def to_record(self) -> dict[str, Any]:
        """Return the column as plain values."""
        return super().to_record() | {"form": self.form}

    @classmethod
    def of(cls, fields: Fields) -> DateColumn:
        """Return the column of a record."""
        return cls(**_measured(fields), form=fields.text("form", among=tuple(DATE_FORMATS)))


@dataclass(frozen=True)
class CategoryColumn(Column):
    """A category: every level that has enough rows is a column of zeros and ones.

    Rarer levels share one, and so do missing values where there are enough of them. A level that
    was never seen is none of these: its row holds the share of the training rows that each column
    had, so that a linear model predicts the mean of the levels, weighted by their rows. Of two
    columns one says all: the less frequent stays.

    Attributes
    ----------
    levels : levels with a column of their own, sorted.
    shares : share of the training rows in each of ``levels``, and in those of `OTHER` and `ABSENT`.
    other : whether rare levels share a column.
    absent : whether missing values have a column.
    rare : digests of the rare levels, so that they are known again though no name is kept; None
        where there were too many of them: any level that has no column is then a rare one.
    """

    levels: tuple[str, ...]
    shares: tuple[float, ...]
    other: bool = False
    absent: bool = False
    rare: frozenset[str] | None = frozenset()
    kind: ClassVar[str] = "category"

    @property
    def missing_words(self) -> frozenset[str]:
        """The usual words, but for those that are levels."""
        return MISSING - {level.lower() for level in self.levels}

    @property
    def _all_names(self) -> list[str]:
        extra = [OTHER] * self.other + [ABSENT] * self.absent
        return [f"{self.name}={level}" for level in (*self.levels, *extra)]

    @property
    def _used(self) -> list[int]:
        if len(self.shares) != 2:
            return list(range(len(self.shares)))
        return [0] if self.shares[0] < self.shares[1] else [1]

    @property
    def feature_names(self) -> list[str]:
        """Names of the encoded features: ``column=level``."""
        names = self._all_names
        return [names[j] for j in self._used]

    def encode(self, cells: Cells) -> tuple[FloatArray, list[Note]]:
        """One-hot; shares where a level was never seen."""
        codes, values = cells.levels()
        place = self._places(values)
        features = np.append(self._rows(place), self._rows([self._absent]), axis=0)[codes]
        return features, self._notes(cells, codes, values, place)

    def knows(self, level: str) -> bool:
        """Whether a level occurred in the rows that were learnt from."""
        return self._places([level])[0] >= 0

    def observed(self, cells: Cells) -> FloatArray:
        """One-hot, as missing values are a level of their own or the mean of all."""
        return self.encode(cells)[0]

    @property
    def _absent(self) -> int:
        return len(self.shares) - 1 if self.absent else -1

    def _places(self, values: Sequence[str]) -> list[int]:
        """Position of each level among all columns; -1 for one that was never seen."""
        position = {level: i for i, level in enumerate(self.levels)}
        places = [position.get(value, -1) for value in values]
        if not self.other:
            return places
        return [
            len(self.levels) if place < 0 and self._is_rare(value) else place
            for place, value in zip(places, values, strict=True)
        ]

    def _is_rare(self, value: str) -> bool:
        return self.rare is None or digest(value) in self.rare

    def _rows(self, places: Sequence[int]) -> FloatArray:
        """(m, features) one row a place, shares where it is -1."""
        whole = np.vstack([np.eye(len(self.shares)), self.shares])
        return whole[np.asarray(places, dtype=np.int64)][:, self._used]

    def _notes(
        self, cells: Cells, codes: np.ndarray, values: list[str], places: list[int]
    ) -> list[Note]:
        notes = []
        unseen = np.flatnonzero(np.asarray(places, dtype=np.int64) < 0)
        rows = int(np.isin(codes, unseen).sum())
        if rows:
            names = listed((values[code] for code in unseen), most=3)
            text = (
                f"{counted(rows, 'row')} with a category the model never saw ({names}) taken as "
                "the mean of all"
            )
            notes.append(Note(self.name, text))
        absent = int(cells.missing.sum())
        if absent and not self.absent:
            text = f"{counted(absent, 'missing value')} taken as the mean of all categories"
            notes.append(Note(self.name, text))
        return notes

    def to_record(self) -> dict[str, Any]:
        """Return the column as plain values."""
        return {
            "kind": self.kind,
            "name": self.name,
            "levels": list(self.levels),
            "shares": list(self.shares),
            "other": self.other,
            "absent": self.absent,
            "rare": None if self.rare is None else sorted(self.rare),
        }

    @classmethod
    def of(cls, fields: Fields) -> CategoryColumn:
        """Return the column of a record."""
        levels, shares = fields.texts("levels"), fields.numbers("shares")
        other, absent = fields.truth("other"), fields.truth("absent")
        right = len(shares) == len(levels) + other + absent and len(shares) > 1
        fields.need(right, "shares", "one number a level, two at least")
        sound = min(shares) >= 0 and abs(sum(shares) - 1) < 1e-6
        fields.need(sound, "shares", "shares that sum to one")
        fields.need(len(set(levels)) == len(levels), "levels", "distinct levels")
        rare = fields.maybe_texts("rare")
        known = None if rare is None else frozenset(rare)
        return cls(fields.text("name"), levels, shares, other, absent, known)


def digest(level: str) -> str:
    """Return what a rare level is known again by; its name is not kept."""
    return hashlib.blake2b(level.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


Recorded = type[NumberColumn | ClockColumn | BooleanColumn | DateColumn | CategoryColumn]
KINDS: dict[str, Recorded] = {
    "number": NumberColumn,
    "clock": ClockColumn,
    "boolean": BooleanColumn,
    "date": DateColumn,
    "category": CategoryColumn,
}


def column_of(record: object) -> Column:
    """Return the column of a record, every field checked."""
    fields = Fields(record, "column")
    made = KINDS[fields.text("kind", among=tuple(KINDS))].of(fields)
    fields.done()
    return made
