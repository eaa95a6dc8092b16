"""Categories as columns of zeros and ones."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hetrisk.columns import FloatArray
from hetrisk.columns.dates import MISSING
from hetrisk.tables.cells import Cells
from hetrisk.tables.columns import ABSENT, Column, Note
from hetrisk.tables.errors import counted, listed

OTHER = "(other)"


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


def digest(level: str) -> str:
    """Return what a rare level is known again by; its name is not kept."""
    return hashlib.blake2b(level.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
