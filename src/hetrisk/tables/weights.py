"""The column that says how much each row counts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hetrisk.columns import FloatArray
from hetrisk.tables.cells import cells_of
from hetrisk.tables.encoding import places_of
from hetrisk.tables.errors import TableError, counted, listed, quoted


def read_weights(frame: pd.DataFrame, name: str) -> FloatArray:
    """(n,) weights, as they stand in a column of a table: finite, none negative, two positive."""
    places = places_of(frame)
    if name not in places:
        raise TableError(
            f"there is no weight column {quoted(name)}; the columns are {listed(places, 12)}"
        )
    cells = cells_of(name, frame.iloc[:, places[name]])
    values = np.full(len(frame), np.nan) if cells is None else cells.numbers()
    wrong = int((~(np.isfinite(values) & (values >= 0))).sum())
    held = int((values > 0).sum())
    if wrong or held < 2:
        what = f"{counted(wrong, 'row')} hold something else" if wrong else f"{held} of them are"
        raise TableError(
            f"weight column {quoted(name)} must hold numbers that are not negative, two of them "
            f"positive at least; {what}"
        )
    return values
