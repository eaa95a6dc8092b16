"""From a table and the name of its target to one fitted pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from hetrisk.estimators.hrm import HRMClassifier, HRMRegressor
from hetrisk.tables.columns import Note
from hetrisk.tables.copies import sampled_rows
from hetrisk.tables.encoder import TableEncoder
from hetrisk.tables.errors import TableError, listed, quoted
from hetrisk.tables.inference import LeftOut
from hetrisk.tables.leaks import Leak, find_leaks
from hetrisk.tables.reading import Table
from hetrisk.tables.target import CLASSIFICATION, REGRESSION, Target, read_target

MODELS = {REGRESSION: HRMRegressor, CLASSIFICATION: HRMClassifier}


@dataclass(frozen=True)
class TableDescription:
    """What a model remembers of the table it was fitted on: never a row of it.

    Attributes
    ----------
    source : name of the file.
    n_rows : rows with a target.
    n_columns : columns in the file.
    target : the column predicted.
    task : "regression" or "classification".
    reason : why this task, as a clause.
    notes : what was done to the table.
    left_out : columns not used, and why.
    leaks : columns that give the target away, to be shown before anything else.
    """

    source: str
    n_rows: int
    n_columns: int
    target: str
    task: str
    reason: str
    notes: tuple[Note, ...]
    left_out: tuple[LeftOut, ...]
    leaks: tuple[Leak, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """Everything but the rows of a fit: what the columns mean and which model to fit.

    Attributes
    ----------
    target : the column to predict.
    X : the columns to learn from, rows with a target only.
    encoder : fitted to ``X``; its ``description_`` is a `TableDescription`.
    model : not fitted yet.
    """

    target: Target
    X: pd.DataFrame
    encoder: TableEncoder
    model: HRMRegressor | HRMClassifier

    @property
    def pipeline(self) -> Pipeline:
        """Encoder and model as one estimator."""
        return Pipeline([("table", self.encoder), ("model", self.model)])


def prepare(
    table: Table,
    target: str,
    *,
    task: str = "auto",
    features: Sequence[str] = (),
    drop: Sequence[str] = (),
    category: Sequence[str] = (),
    decimal: str | None = None,
    seed: int = 0,
) -> Prepared:
    """Decide what the columns mean; the parameters are those of `fit_table`."""
    wanted = read_target(table.frame, target, task, decimal)
    X = chosen_columns(table.frame, target, features, drop).loc[wanted.known]
    encoder = TableEncoder(tuple(category), named=tuple(features), decimal=decimal).fit(X)
    encoder.set_output(transform="pandas")
    encoder.description_ = describe(table, wanted, encoder, leaks_of(encoder, X, wanted))
    model = MODELS[wanted.task](feature_groups=group_codes(encoder), random_state=seed)
    return Prepared(wanted, X, encoder, model)


def fit_table(table: Table, target: str, **options: Any) -> Pipeline:
    """Fit a pipeline that takes tables like this one and predicts the target.

    Parameters
    ----------
    table : as `read_table` returns it.
    target : the column to predict; rows where it is missing are left out.
    task : "auto", "regression" or "classification".
    features : the only columns to use, even those that look like identifiers; none means all.
    drop : columns not to use.
    category : columns to take as categories whatever they look like.
    decimal : the decimal mark, "." or ",", of numbers that do not show it themselves.
    seed : of every random choice.

    Returns
    -------
    Pipeline of a `TableEncoder` ("table") and an `HRMRegressor` or `HRMClassifier` ("model").
    The encoder's ``description_`` is a `TableDescription`.
    """
    ready = prepare(table, target, **options)
    ready.model.fit(ready.encoder.transform(ready.X), ready.target.values)
    return ready.pipeline


def chosen_columns(
    frame: pd.DataFrame, target: str, features: Sequence[str], drop: Sequence[str]
) -> pd.DataFrame:
    """Return the columns to learn from: those asked for, without the target and those dropped."""
    names = [str(name) for name in frame.columns]
    for option, wanted in (("features", features), ("drop", drop)):
        absent = [name for name in wanted if name not in names]
        if absent:
            raise TableError(
                f"{option} names columns that are not in the table: {listed(absent)}; "
                f"the columns are {listed(names, 12)}"
            )
    if target in features:
        raise TableError(f"features names the target {quoted(target)}")
    keep = [
        i
        for i, name in enumerate(names)
        if name != target and name not in drop and (not features or name in features)
    ]
    if not keep:
        raise TableError("no column is left to learn from: the target is the only one")
    return frame.iloc[:, keep]


def leaks_of(encoder: TableEncoder, X: pd.DataFrame, target: Target) -> tuple[Leak, ...]:
    """Name the columns that give the target away, judged on rows spread over the table."""
    rows = sampled_rows(len(X))
    # A date is known before any target, however smoothly the target follows it.
    columns = [column for column in encoder.columns_ if column.kind != "date"]
    features = [encoder.observed(column, X.iloc[rows]) for column in columns]
    names = [column.name for column in columns]
    return find_leaks(names, features, target.values[rows], target.name)


def describe(
    table: Table, target: Target, encoder: TableEncoder, leaks: tuple[Leak, ...] = ()
) -> TableDescription:
    """Return what the model should remember of its table."""
    notes = [Note("", text) for text in table.notes]
    return TableDescription(
        source=table.source,
        n_rows=int(target.known.sum()),
        n_columns=table.frame.shape[1],
        target=target.name,
        task=target.task,
        reason=target.reason,
        notes=(*notes, *target.notes, *encoder.notes_),
        left_out=tuple(encoder.left_out_),
        leaks=leaks,
    )


def group_codes(encoder: TableEncoder) -> list[int]:
    """One integer a feature, the same for all features of one column."""
    _, codes = np.unique(encoder.feature_groups_.astype(str), return_inverse=True)
    return [int(code) for code in codes]
