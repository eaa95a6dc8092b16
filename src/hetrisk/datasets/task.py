"""A task under shift: rows to learn from, and environments to be tested in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.datasets.checks import one_of
from hetrisk.datasets.encoding import Encoding
from hetrisk.datasets.frame import LabelledFrame

REGRESSION = "regression"
CLASSIFICATION = "classification"
TASK_TYPES = (REGRESSION, CLASSIFICATION)


class Labelled(NamedTuple):
    """Rows with the environment each came from (a code into ``ShiftTask.environment_names``)."""

    X: FloatArray
    y: np.ndarray
    environments: IntArray


class Sample(NamedTuple):
    """Rows of one environment."""

    X: FloatArray
    y: np.ndarray


@dataclass(frozen=True, eq=False)
class ShiftTask:
    """Training rows, test environments, and what is known of the truth.

    Attributes
    ----------
    name : of the task, as `load_task` knows it.
    task_type : ``"regression"`` or ``"classification"``.
    train : X, y and environments (integer codes). Only methods that are given labels may look
        at the last.
    test : environment name -> (X, y), in the order of the table or figure.
    feature_names : (d,) names of the columns.
    feature_groups : (d,) integers; columns with the same one stand or fall together (the
        one-hot columns of one category).
    environment_names : names of the codes in ``train.environments``.
    validation : rows set aside for choosing hyperparameters, where the task has some.
    invariant : (d,) the truly invariant features that y depends on, or None where unknown
        (real data).
    identifiable : (d,) features whose status the training rows can settle, or None where
        unknown. A column is *not* identifiable when the population's partial correlation with y
        given the others is within four standard errors of zero at this sample size: pure noise
        columns, and features whose coefficient happened to be drawn near zero. Whether a method
        keeps such a column makes no difference, so `recovered` does not look at it.
    setting : every parameter the task was made with, the seed included.
    """

    name: str
    task_type: str
    train: Labelled
    test: Mapping[str, Sample]
    feature_names: tuple[str, ...]
    feature_groups: IntArray
    environment_names: tuple[str, ...]
    validation: Labelled | None = None
    invariant: BoolArray | None = None
    identifiable: BoolArray | None = None
    setting: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one_of("task_type", self.task_type, TASK_TYPES)
        d = self.train.X.shape[1]
        named = {"train": self.train, "validation": self.validation, **self.test}
        for name, rows in named.items():
            if rows is not None and (rows.X.shape != (len(rows.y), d)):
                raise ValueError(
                    f"{name} must have {d} features and as many rows as targets; got X of shape "
                    f"{rows.X.shape} and {len(rows.y)} targets."
                )
        per_row, per_feature = len(self.train.y), ("feature_names", "feature_groups")
        if len(self.train.environments) != per_row:
            raise ValueError(
                f"train.environments must have length {per_row}; "
                f"got {len(self.train.environments)}."
            )
        for attribute in (*per_feature, "invariant", "identifiable"):
            value = getattr(self, attribute)
            if value is not None and len(value) != d:
                raise ValueError(f"{attribute} must have length {d}; got {len(value)}.")

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        return int(self.train.X.shape[1])

    def recovered(self, support: np.ndarray) -> bool | None:
        """Say whether ``support`` is the invariant set on every identifiable feature.

        None where the truth is unknown.
        """
        if self.invariant is None:
            return None
        support = np.asarray(support, dtype=bool)
        if support.shape != self.invariant.shape:
            raise ValueError(
                f"support must have shape {self.invariant.shape}; got {support.shape}."
            )
        scored = np.ones(len(support), bool) if self.identifiable is None else self.identifiable
        return bool(np.array_equal(support[scored], self.invariant[scored]))

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        target: str,
        environment: str,
        *,
        test: Sequence[str],
        task_type: str = "auto",
        features: Sequence[str] | None = None,
        category: Sequence[str] = (),
        name: str = "table",
    ) -> ShiftTask:
        """Wrap a table with an environment column: train on some environments, test on others.

        Parameters
        ----------
        frame : one row an observation.
        target, environment : the columns that hold y and the environment's name. Neither is a
            feature.
        test : environments held out for testing; the others are trained on.
        task_type : ``"regression"``, ``"classification"``, or ``"auto"``: text, truth values and
            two distinct values mean classification.
        features : columns to use; all others where None.
        category : columns to take as categories though they look like numbers.
        name : of the task.

        Columns are encoded as `hetrisk.tables.TableEncoder` decides on the training rows, and
        those that are not 0/1 are standardised by the training rows. Labels of classes stay what
        they are; the target of a regression stays in its own units.

        Examples
        --------
        >>> x = np.random.default_rng(0).standard_normal(60)
        >>> frame = pd.DataFrame({"x": x, "y": 2 * x, "year": [2024, 2025] * 30})
        >>> task = ShiftTask.from_frame(frame, "y", "year", test=["2025"])
        >>> task.train.X.shape, list(task.test)
        ((30, 1), ['2025'])
        """
        table = LabelledFrame.read(frame, target, environment, task_type, features)
        fit = partial(Encoding.fit, category=category)
        return cls._hold_out(table, [str(label) for label in test], fit, name)

    @classmethod
    def leave_one_out(
        cls,
        frame: pd.DataFrame,
        target: str,
        environment: str,
        *,
        task_type: str = "auto",
        features: Sequence[str] | None = None,
        category: Sequence[str] = (),
        named: Sequence[str] = (),
        decimal: str | None = None,
        name: str = "table",
    ) -> Iterator[ShiftTask]:
        """Yield one task for each environment of a table: trained on the others, tested on it.

        Parameters as for `from_frame`; ``named`` and ``decimal`` as for `TableEncoder`.
        """
        fit = partial(Encoding.fit, category=category, named=named, decimal=decimal)
        table = LabelledFrame.read(frame, target, environment, task_type, features)
        for label in table.names:
            yield cls._hold_out(table, [label], fit, name)

    @classmethod
    def _hold_out(
        cls,
        table: LabelledFrame,
        test: Sequence[str],
        fit: Callable[[pd.DataFrame], Encoding],
        name: str,
    ) -> ShiftTask:
        table.check_held_out(test)
        kept = [label for label in table.names if label not in test]
        training = table.rows(kept)
        encoding = fit(table.features.iloc[training])
        codes = {label: code for code, label in enumerate(kept)}

        def sample(rows: IntArray) -> Sample:
            return Sample(encoding(table.features.iloc[rows]), table.y[rows])

        return cls(
            name=name,
            task_type=table.task_type,
            train=Labelled(
                *sample(training),
                np.asarray([codes[label] for label in table.labels[training]], dtype=np.int64),
            ),
            test={label: sample(table.rows([label])) for label in test},
            feature_names=encoding.feature_names,
            feature_groups=encoding.feature_groups,
            environment_names=tuple(kept),
            setting={"held_out": tuple(test)},
        )


def pool(samples: Mapping[str, Sample], rng: np.random.Generator) -> Labelled:
    """Pool environments into one table, in random order; codes follow the mapping's order."""
    X = np.concatenate([sample.X for sample in samples.values()])
    y = np.concatenate([sample.y for sample in samples.values()])
    environments = np.repeat(np.arange(len(samples)), [len(s.y) for s in samples.values()])
    order = rng.permutation(len(y))
    return Labelled(X[order], y[order], environments[order])
