"""A table as a matrix of numbers: the first step of every model fitted from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hetrisk.columns import FloatArray
from hetrisk.tables.cells import cells_of, shown_decimal
from hetrisk.tables.columns import Column, Note
from hetrisk.tables.encoding import Encoding, places_of
from hetrisk.tables.errors import TableError, counted, listed, quoted
from hetrisk.tables.frames import Reading, as_frame, is_frame, reading_of
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
        told = reading_of(frame)
        wishes = Reading(
            told.text,
            (*self.category, *told.category),
            (*self.number, *told.number),
            (*self.use, *told.use) if is_frame(X) else tuple(places),
            told.decimal if self.decimal is None else self.decimal,
            told.dayfirst if self.dayfirst is None else self.dayfirst,
        )
        decisions = _decide(frame, places, wishes)
        columns = [made for made, _ in decisions.values() if isinstance(made, Column)]
        self.left_out_ = [made for made, _ in decisions.values() if isinstance(made, LeftOut)]
        self.notes_: list[Note] = [note for c in columns for note in decisions[c.name][1]]
        if not columns:
            reasons = "; ".join(f"{quoted(out.name)}: {out}" for out in self.left_out_[:3])
            rows, why = counted(len(frame), "sample"), reasons or "the table is empty"
            raise TableError(f"no column is left to learn from in {rows} ({why})")
        self.encoding_ = Encoding(tuple(columns), tuple(places))
        return self

    def transform(self, X: Any) -> FloatArray:
        """(n, d) numbers, without NaN."""
        return self.encode(X)[0]

    def encode(self, X: Any) -> tuple[FloatArray, list[Note]]:
        """`transform`, together with what had to be done to this table."""
        check_is_fitted(self, "encoding_")
        frame = as_frame(X, self.encoding_.table_names)
        if not is_frame(X) and frame.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {frame.shape[1]} features, but TableEncoder is expecting "
                f"{self.n_features_in_} features as input."
            )
        return self.encoding_.encode(frame)

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


def _decide(frame: pd.DataFrame, places: Mapping[str, int], wishes: Reading) -> dict[str, Decision]:
    """What each column means; those whose decimal mark is open take what others show."""
    decisions: dict[str, Decision] = {}
    mark = cache(partial(shown_decimal, frame))
    width = 0
    for name, place in places.items():
        cells = cells_of(name, frame.iloc[:, place], decimal=wishes.decimal, spelled=wishes.text)
        if cells is None:
            reason = "it holds lists, bytes or other things that are not single values"
            decisions[name] = (LeftOut(name, reason), [])
            continue
        if cells.declared == "" and wishes.decimal is None and cells.reading.open:
            cells = cells.with_decimal(mark())
        decisions[name] = understand(
            cells,
            category=name in wishes.category,
            number=name in wishes.number,
            use=name in wishes.use,
            dayfirst=wishes.dayfirst,
        )
        made = decisions[name][0]
        width += len(made.feature_names) if isinstance(made, Column) else 0
        if width > MOST_FEATURES:  # as soon as it is seen: there may be many more
            raise TableError(
                f"the table gives more than {MOST_FEATURES:,} features, the most that can be "
                f"searched ({frame.shape[1]:,} columns): choose the columns that matter."
            )
    return decisions
