"""A table as a matrix of numbers: the first step of every model fitted from a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hetrisk.columns import FloatArray
from hetrisk.tables.cells import Cells, cells_of
from hetrisk.tables.columns import Column, Note
from hetrisk.tables.encoding import Encoding, places_of
from hetrisk.tables.errors import TableError, counted, listed, quoted
from hetrisk.tables.frames import as_frame, is_frame, reading_of
from hetrisk.tables.inference import Decision, LeftOut, understand

MOST_FEATURES = 2000


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table of anything into numbers, and remember how.

    Numbers and truths stay, with missing values replaced by the median, and one more column that
    says where they were missing if at least 20 were. Dates become days since 1970-01-01 and times
    of day hours. Categories become one column of zeros and ones for every level with at least 5
    rows; rarer levels share one, missing values are a level of their own. A level that was never
    seen is the mean of all: its row holds the share of the training rows in each column. What the
    type of a column says it holds (category, string, boolean, number, date) is never overruled by
    how it looks; only text of unknown type (dtype object, or a table read from a text file) is
    read as what it spells, in whatever notation. Identifiers, constant columns, free text and
    columns that repeat another one are left out. `notes_` says what was done to which column.

    The order of rows and of columns decides nothing.

    Parameters
    ----------
    category : names of columns to take as categories whatever they look like.
    number : names of columns to take as numbers whatever they look like.
    use : names of columns to use even where they look like identifiers.
    decimal : the decimal mark, "." or ",", of columns whose values do not show it; None takes the
        one that other columns of the table show, if they agree.
    dayfirst : whether ``01/02/2020`` is the first of February; None leaves a column out whose
        values do not show it.

    Attributes
    ----------
    encoding_ : `hetrisk.tables.encoding.Encoding`, what was learnt.
    left_out_ : list of `LeftOut`, the columns not used, and why.
    notes_ : list of `Note`.
    feature_groups_ : (d,) the source column of each encoded feature: one decision for all the
        levels of a category.
    feature_names_in_ : names of the columns seen by `fit`, where they have any.
    n_features_in_ : their number.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [41, 52, 37, 44] * 5, "sex": ["f", "m", "m", "m"] * 5})
    >>> encoder = TableEncoder().fit(table)
    >>> list(encoder.get_feature_names_out()), encoder.transform(table)[0].tolist()
    (['age', 'sex=f'], [41.0, 1.0])
    """

    encoding_: Encoding

    def __init__(
        self,
        category: Sequence[str] = (),
        number: Sequence[str] = (),
        use: Sequence[str] = (),
        decimal: str | None = None,
        dayfirst: bool | None = None,
    ) -> None:
        self.category = category
        self.number = number
        self.use = use
        self.decimal = decimal
        self.dayfirst = dayfirst

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide what each column of a pandas or polars frame or an array means, without ``y``."""
        frame = as_frame(X)
        self.n_features_in_ = frame.shape[1]
        if is_frame(X):
            self.feature_names_in_ = np.asarray([str(n) for n in frame.columns], dtype=object)
        elif "feature_names_in_" in self.__dict__:  # of a fit before this one
            del self.feature_names_in_
        places = places_of(frame)
        asked = {"category": self.category, "number": self.number, "use": self.use}
        for what, names in asked.items():
            absent = [name for name in names if name not in places]
            if absent:
                raise TableError(f"{what} names columns that the table has not: {listed(absent)}")
        if not len(frame):
            raise TableError("the table has no rows")
        self._learn(_Fit(self, frame, places, everything=not is_frame(X)))
        return self

    def _learn(self, fit: _Fit) -> None:
        fit.decide()
        columns = [made for made, _ in fit.decisions.values() if isinstance(made, Column)]
        decided = fit.decisions.values()
        self.left_out_ = [made for made, _ in decided if isinstance(made, LeftOut)]
        self.notes_: list[Note] = [n for c in columns for n in fit.decisions[c.name][1]]
        if not columns:
            reasons = "; ".join(f"{quoted(out.name)}: {out}" for out in self.left_out_[:3])
            rows = counted(len(fit.frame), "sample")
            why = reasons or "the table is empty"
            raise TableError(f"no column is left to learn from in {rows} ({why})")
        self.encoding_ = Encoding(tuple(columns), tuple(fit.places))

    def transform(self, X: Any) -> FloatArray:
        """(n, d) numbers, without NaN."""
        return self.encode(X)[0]

    def encode(self, X: Any, *, spare: Collection[str] = ()) -> tuple[FloatArray, list[Note]]:
        """`transform`, together with what had to be done to this table.

        Parameters
        ----------
        X : the table.
        spare : columns that may be absent: their features are then those of missing values.
        """
        check_is_fitted(self, "encoding_")
        frame = as_frame(X, self.encoding_.table_names)
        if not is_frame(X) and frame.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {frame.shape[1]} features, but TableEncoder is expecting "
                f"{self.n_features_in_} features as input."
            )
        return self.encoding_.encode(frame, spare)

    @property
    def columns_(self) -> tuple[Column, ...]:
        """What each column that is used means."""
        return self.encoding_.columns

    @property
    def feature_groups_(self) -> np.ndarray:
        """Source column of each encoded feature."""
        return np.asarray(self.encoding_.groups, dtype=object)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the encoded features; ``input_features`` must be those of `fit`, or None."""
        check_is_fitted(self, "encoding_")
        if input_features is not None and list(input_features) != list(self.encoding_.table_names):
            raise ValueError("input_features is not equal to feature_names_in_")
        return np.asarray(self.encoding_.feature_names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


class _Fit:
    """The columns of a table while it is decided what they mean."""

    def __init__(
        self, encoder: TableEncoder, frame: pd.DataFrame, places: dict[str, int], everything: bool
    ) -> None:
        asked = reading_of(frame)
        self.frame, self.places = frame, places
        self.category = {*encoder.category, *asked.category}
        self.number = {*encoder.number, *asked.number}
        self.use = set(places) if everything else {*encoder.use, *asked.use}
        self.decimal = asked.decimal if encoder.decimal is None else encoder.decimal
        self.dayfirst = asked.dayfirst if encoder.dayfirst is None else encoder.dayfirst
        self.read_text = asked.text
        self.decisions: dict[str, Decision] = {}
        self.width = 0

    def decide(self) -> None:
        """Decide column by column; those whose decimal mark is open wait for what others show."""
        marks: set[str] = set()
        waiting: list[Cells] = []
        for name, place in self.places.items():
            series = self.frame.iloc[:, place]
            cells = cells_of(name, series, decimal=self.decimal, spelled=self.read_text)
            if cells is None:
                reason = "it holds lists, bytes or other things that are not single values"
                self.decisions[name] = (LeftOut(name, reason), [])
                continue
            if cells.declared == "" and self.decimal is None and cells.reading.open:
                self.decisions[name] = (LeftOut(name, ""), [])  # keeps its place
                waiting.append(cells)
                continue
            if cells.declared == "" and cells.reading.proven:
                marks.add(cells.reading.notation.decimal)
            self._keep(cells)
        mark = marks.pop() if len(marks) == 1 else None
        for cells in waiting:
            self._keep(cells if mark is None else cells.with_decimal(mark))

    def _keep(self, cells: Cells) -> None:
        name = cells.name
        decision = understand(
            cells,
            category=name in self.category,
            number=name in self.number,
            use=name in self.use,
            dayfirst=self.dayfirst,
        )
        self.decisions[name] = decision
        if isinstance(decision[0], Column):
            self.width += len(decision[0].feature_names)
        if self.width > MOST_FEATURES:  # as soon as it is seen: there may be many more
            raise TableError(
                f"the table gives more than {MOST_FEATURES:,} features, the most that can be "
                f"searched ({self.frame.shape[1]:,} columns): choose the columns that matter."
            )
