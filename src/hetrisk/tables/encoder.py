"""A table as a matrix of numbers: the first step of every model fitted from a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hetrisk.columns import FloatArray
from hetrisk.tables.cells import Cells, cells_of
from hetrisk.tables.columns import Column, Note
from hetrisk.tables.copies import find_copies, sampled_rows
from hetrisk.tables.errors import TableError, listed, quoted
from hetrisk.tables.frames import as_pandas
from hetrisk.tables.inference import Decision, LeftOut, understand

MOST_FEATURES = 2000


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table of anything into numbers, and remember how.

    Numbers stay, in whatever notation (`hetrisk.tables.notation`), with missing values replaced
    by the median; words for true and false become 1 and 0; dates become days since 1970-01-01 and
    times hours since midnight; categories become one column per frequent level against the most
    frequent one. Identifiers, constant columns, free text and columns that repeat another one are
    left out. `notes_` says what was done to which column.

    Parameters
    ----------
    category : names of columns to take as categories whatever they look like.
    named : names of columns asked for by name: used even where they look like identifiers.
    decimal : the decimal mark, "." or ",", of columns whose values do not show it; None takes the
        one that other columns of the table show, if they agree.

    Attributes
    ----------
    columns_ : list of `Column`, those the model uses.
    left_out_ : list of `LeftOut`, those it does not use, and why.
    notes_ : list of `Note`.
    feature_groups_ : (d,) the source column of each encoded feature: one decision for all the
        levels of a category.
    feature_names_in_ : names of the columns seen by `fit`.
    n_features_in_ : their number.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [41, 52, 37, 44] * 5, "sex": ["f", "m", "m", "m"] * 5})
    >>> encoder = TableEncoder().fit(table)
    >>> list(encoder.get_feature_names_out()), encoder.transform(table)[0].tolist()
    (['age', 'sex=f'], [41.0, 1.0])
    """

    def __init__(
        self,
        category: tuple[str, ...] = (),
        named: tuple[str, ...] = (),
        decimal: str | None = None,
    ) -> None:
        self.category = category
        self.named = named
        self.decimal = decimal

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide what each column of a pandas or polars frame means; ``y`` is ignored."""
        X = as_pandas(X)
        names = _column_names(X)
        if not len(X):
            raise TableError("the table has no rows")
        _require(names, self.category, "taken as categories")
        self.columns_: list[Column] = []
        self.left_out_: list[LeftOut] = []
        self.notes_: list[Note] = []
        decisions = self._decisions(X, names)
        for name in names:
            decision, notes = decisions[name]
            if isinstance(decision, LeftOut):
                self.left_out_.append(decision)
            else:
                self.columns_.append(decision)
                self.notes_ += notes
        self._leave_out_copies(X)
        self.feature_names_in_ = np.asarray(names, dtype=object)
        self.n_features_in_ = len(names)
        self._check_width()
        return self

    def _decisions(self, X: pd.DataFrame, names: list[str]) -> dict[str, Decision]:
        """Decide column by column; those whose decimal mark is open wait for what others show."""
        decisions: dict[str, Decision] = {}
        marks: set[str] = set()
        waiting: list[Cells] = []
        for position, name in enumerate(names):
            cells = cells_of(name, X.iloc[:, position], decimal=self.decimal)
            if cells is None:
                reason = "it holds lists, bytes or other things that are not single values"
                decisions[name] = (LeftOut(name, reason), [])
            elif cells.reading.open and self.decimal is None:
                waiting.append(cells)
            else:
                marks |= {cells.reading.notation.decimal} if cells.reading.proven else set()
                decisions[name] = self._decide(cells)
        mark = marks.pop() if len(marks) == 1 else None
        for cells in waiting:
            marked = cells if mark is None else cells.with_decimal(mark)
            decisions[cells.name] = self._decide(marked)
        return decisions

    def _decide(self, cells: Cells) -> Decision:
        category, named = cells.name in self.category, cells.name in self.named
        return understand(cells, category=category, named=named)

    def _leave_out_copies(self, X: pd.DataFrame) -> None:
        columns = self.columns_
        sample = X.iloc[sampled_rows(len(X))]
        parts = [self._encode(column, sample)[0] for column in columns]
        names = [column.name for column in columns]
        copies = find_copies(names, parts, lambda j: self._encode(columns[j], X)[0])
        superfluous = {out.name for out in copies}
        self.columns_ = [column for column in columns if column.name not in superfluous]
        self.notes_ = [note for note in self.notes_ if note.column not in superfluous]
        self.left_out_ += copies

    def _check_width(self) -> None:
        width = sum(len(column.feature_names) for column in self.columns_)
        if width == 0:
            reasons = "; ".join(f"{quoted(out.name)}: {out.reason}" for out in self.left_out_[:3])
            raise TableError(f"no column is left to learn from ({reasons or 'the table is empty'})")
        if width > MOST_FEATURES:
            raise TableError(
                f"the table gives {width:,} features, more than the {MOST_FEATURES:,} that can be "
                "searched: choose the columns that matter."
            )

    def transform(self, X: Any) -> FloatArray:
        """(n, d) numbers, without NaN."""
        return self.encode(X)[0]

    def matched(self, X: Any) -> pd.DataFrame:
        """Return the table with its columns called as they were when the encoder was fitted.

        Blanks about a name do not count: files lose them where frames keep them.
        """
        frame = as_pandas(X)
        names = [str(name) for name in frame.columns]
        sought = {c.name.strip(): c.name for c in self.columns_ if c.name not in names}
        called = [name if name in self.names_ else sought.get(name.strip(), name) for name in names]
        return frame if called == names else frame.set_axis(called, axis=1)

    @property
    def names_(self) -> frozenset[str]:
        """Columns of the table that are used."""
        return frozenset(column.name for column in self.columns_)

    def encode(self, X: Any, *, spare: Collection[str] = ()) -> tuple[FloatArray, list[Note]]:
        """`transform`, together with what had to be done to this table.

        Parameters
        ----------
        X : the table.
        spare : columns that may be absent: their features are then those of missing values.
        """
        check_is_fitted(self)
        X = _with_blanks(self.matched(X), spare)
        names = set(_column_names(X))
        absent = [column.name for column in self.columns_ if column.name not in names]
        if absent:
            noun = "column" if len(absent) == 1 else "columns"
            raise TableError(f"the table lacks the {noun} {listed(absent)} the model was fitted on")
        encoded = [self._encode(column, X) for column in self.columns_]
        notes = [note for _, noted in encoded for note in noted]
        return np.hstack([part for part, _ in encoded]), notes

    @staticmethod
    def observed(column: Column, X: pd.DataFrame) -> FloatArray:
        """(n, features) one column as numbers, NaN where a value is missing."""
        return column.observed(_cells(column, X))

    @staticmethod
    def _encode(column: Column, X: pd.DataFrame) -> tuple[FloatArray, list[Note]]:
        return column.encode(_cells(column, X))

    @property
    def feature_groups_(self) -> np.ndarray:
        """Source column of each encoded feature."""
        return np.asarray([c.name for c in self.columns_ for _ in c.feature_names], dtype=object)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the encoded features; ``input_features`` is ignored."""
        check_is_fitted(self)
        seen: dict[str, int] = {}
        names = []
        for name in (name for column in self.columns_ for name in column.feature_names):
            seen[name] = seen.get(name, 0) + 1
            names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
        return np.asarray(names, dtype=object)


def _cells(column: Column, X: pd.DataFrame) -> Cells:
    position = [str(name) for name in X.columns].index(column.name)
    cells = cells_of(column.name, X.iloc[:, position])
    if cells is None:
        raise TableError(f"column {quoted(column.name)} does not hold single values")
    return cells


def _with_blanks(X: pd.DataFrame, spare: Collection[str]) -> pd.DataFrame:
    """Return the table with empty columns where spare ones are absent."""
    names = {str(name) for name in X.columns}
    absent = [name for name in spare if name not in names]
    if not absent:
        return X
    blank = pd.DataFrame(None, index=X.index, columns=pd.Index(absent), dtype=object)
    return pd.concat([X, blank], axis=1)


def _column_names(X: pd.DataFrame) -> list[str]:
    names = [str(name) for name in X.columns]
    if len(set(names)) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise TableError(f"column names must differ; {listed(twice)} appear more than once")
    return names


def _require(names: list[str], wanted: tuple[str, ...], purpose: str) -> None:
    absent = [name for name in wanted if name not in names]
    if absent:
        raise TableError(f"columns to be {purpose} are not in the table: {listed(absent)}")
