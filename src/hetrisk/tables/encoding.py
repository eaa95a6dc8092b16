"""How a table becomes a matrix of numbers: a value, that encodes without what decided it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from hetrisk.columns import FloatArray
from hetrisk.tables.cells import Cells, cells_of
from hetrisk.tables.columns import Column, Note
from hetrisk.tables.errors import TableError, listed, quoted
from hetrisk.tables.frames import as_frame


@dataclass(frozen=True)
class Encoding:
    """What each column of a table means, and the numbers that follow.

    Attributes
    ----------
    columns : those that are used.
    table_names : all columns of the table that was learnt from, in order.
    """

    columns: tuple[Column, ...]
    table_names: tuple[str, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        """Columns of the table that are used."""
        return frozenset(column.name for column in self.columns)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded features, all different."""
        seen: dict[str, int] = {}
        names = []
        for name in (name for column in self.columns for name in column.feature_names):
            seen[name] = seen.get(name, 0) + 1
            names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
        return tuple(names)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Source column of each encoded feature."""
        return tuple(c.name for c in self.columns for _ in c.feature_names)

    def matched(self, X: Any) -> pd.DataFrame:
        """Return the table with its columns called as they were when the encoding was learnt.

        Blanks about a name do not count: files lose them where frames keep them.
        """
        frame = as_frame(X, self.table_names)
        names = [str(name) for name in frame.columns]
        if self.names <= set(names):
            return frame
        here = set(names)
        sought = {c.name.strip(): c.name for c in self.columns if c.name not in here}
        called = [name if name in self.names else sought.get(name.strip(), name) for name in names]
        return frame if called == names else frame.set_axis(called, axis=1)

    def encode(self, X: Any) -> tuple[FloatArray, list[Note]]:
        """(n, d) numbers without NaN, and what had to be done to this table.

        Parameters
        ----------
        X : the table: a frame of pandas or polars, or an array.
        """
        frame = self.matched(X)
        places = places_of(frame)
        absent = [c.name for c in self.columns if c.name not in places]
        if absent:
            noun = "column" if len(absent) == 1 else "columns"
            raise TableError(f"the table lacks the {noun} {listed(absent)} the model was fitted on")
        features = np.empty((len(frame), len(self.feature_names)))
        notes: list[Note] = []
        start = 0
        for column in self.columns:
            cells = cells_in(frame, places, column)
            part, noted = column.encode(cells)
            features[:, start : start + part.shape[1]] = part
            start += part.shape[1]
            notes += noted
        return features, notes


def places_of(frame: pd.DataFrame) -> dict[str, int]:
    """Return where each column stands; refuse two of one name."""
    names = [str(name) for name in frame.columns]
    places = {name: place for place, name in enumerate(names)}
    if len(places) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise TableError(f"column names must differ; {listed(twice)} appear more than once")
    return places


def cells_in(frame: pd.DataFrame, places: Mapping[str, int], column: Column) -> Cells:
    """Return the cells of a column; all missing where the table lacks it."""
    name = column.name
    if name in places:
        cells = cells_of(name, frame.iloc[:, places[name]], column.missing_words)
    else:
        cells = cells_of(name, pd.Series(np.full(len(frame), np.nan)))
    if cells is None:
        raise TableError(f"column {quoted(name)} does not hold single values")
    return cells
