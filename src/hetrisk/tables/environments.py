"""A column that says where each row came from."""

from __future__ import annotations

from hetrisk.columns import IntArray
from hetrisk.tables.cells import cells_of
from hetrisk.tables.errors import TableError, listed, quoted
from hetrisk.tables.reading import Table


def environment_labels(table: Table, column: str) -> tuple[IntArray, list[str]]:
    """Return a code per row (-1: missing) into the names of the environments in a column."""
    labels = [str(name) for name in table.frame.columns]
    if column not in labels:
        raise TableError(
            f"there is no environment column {quoted(column)}; the columns are {listed(labels, 12)}"
        )
    cells = cells_of(column, table.frame.iloc[:, labels.index(column)])
    if cells is None:
        raise TableError(f"column {quoted(column)} does not hold single values")
    return cells.levels()
