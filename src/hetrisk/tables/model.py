"""From a table and the name of its target to one fitted pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from hetrisk.estimators.hrm import HRMClassifier, HRMRegressor
from hetrisk.estimators.quality import Quality, assess
from hetrisk.tables.columns import Note
from hetrisk.tables.copies import sampled_rows
from hetrisk.tables.encoder import TableEncoder
from hetrisk.tables.errors import TableError, listed, quoted
from hetrisk.tables.inference import LeftOut
from hetrisk.tables.leaks import Leak, find_leaks
from hetrisk.tables.reading import Table
from hetrisk.tables.roles import Roles, read_roles, wrong_weights
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
    environment, hints, weight : columns that were no features but said where rows came from,
        what may go along with it, and how much they count.
    options : other settings the command line needs to repeat the fit.
    quality : figures of merit out of fold; None where there were too few rows.
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
    environment: str | None = None
    hints: tuple[str, ...] = ()
    weight: str | None = None
    options: tuple[str, ...] = ()
    quality: Quality | None = None


@dataclass(frozen=True)
class Prepared:
    """Everything but the rows of a fit: what the columns mean and which model to fit.

    Attributes
    ----------
    target : the column to predict.
    X : the columns to learn from, rows with a target only.
    roles : environments, hints and weights of these rows, where given.
    encoder : fitted to ``X``; its ``description_`` is a `TableDescription`.
    model : not fitted yet.
    """

    target: Target
    X: pd.DataFrame
    roles: Roles
    encoder: TableEncoder
    model: HRMRegressor | HRMClassifier

    @property
    def pipeline(self) -> Pipeline:
        """Encoder and model as one estimator."""
        return Pipeline([("table", self.encoder), ("model", self.model)])

    def keep_quality(self, quality: Quality | None) -> None:
        """Remember the figures of merit with the table's description."""
        self.encoder.description_ = replace(self.encoder.description_, quality=quality)


def prepare(
    table: Table,
    target: str,
    *,
    task: str = "auto",
    features: Sequence[str] = (),
    drop: Sequence[str] = (),
    category: Sequence[str] = (),
    decimal: str | None = None,
    environment: str | None = None,
    hints: Sequence[str] = (),
    weight: str | None = None,
    keep: Sequence[str] = (),
    reach: float = 4.0,
    form: str = "columns",
    final_estimator: Any = None,
    options: Sequence[str] = (),
    seed: int = 0,
) -> Prepared:
    """Decide what the columns mean; the parameters are those of `fit_table`."""
    for name in (target, *features):
        reason = next((out.reason for out in table.left_out if out.name == name), None)
        if reason is not None:
            raise TableError(f"column {quoted(name)} cannot be used: {reason}")
    wanted = read_target(table.frame, target, task, decimal)
    others = _no_features(target, environment, hints, weight)
    _refuse_both(features, others, "features")
    _refuse_both(keep, others, "keep")
    roles = read_roles(table.frame, wanted.known, environment, hints, weight)
    X = chosen_columns(table.frame, target, features, (*drop, *others)).loc[wanted.known]
    encoder = TableEncoder(tuple(category), named=tuple(features), decimal=decimal).fit(X)
    encoder.set_output(transform="pandas")
    encoder.description_ = replace(
        describe(table, wanted, encoder, (*roles.notes, *_repeats(encoder, X, roles))),
        leaks=leaks_of(encoder, X, wanted),
        environment=environment,
        hints=tuple(hints),
        weight=weight,
        options=tuple(options),
    )
    model = MODELS[wanted.task](
        reach=reach,
        form=form,
        final_estimator=final_estimator,
        feature_groups=[str(name) for name in encoder.feature_groups_],
        keep=_positions(encoder, keep),
        random_state=seed,
    )
    return Prepared(wanted, X, roles, encoder, model)


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
    environment : the column that says where each row came from; learned from, no feature.
    hints : columns that may go along with where rows come from; no features either.
    weight : the column of row weights; no feature.
    keep : columns that are never left out.
    reach, form, final_estimator : as for `HRMRegressor`.
    options : what the command line has to be told beside columns to repeat this fit.
    seed : of every random choice.

    Returns
    -------
    Pipeline of a `TableEncoder` ("table") and an `HRMRegressor` or `HRMClassifier` ("model").
    The encoder's ``description_`` is a `TableDescription`.
    """
    ready = prepare(table, target, **options)
    Z, y = ready.encoder.transform(ready.X), ready.target.values
    with said_of(ready.encoder.description_):
        ready.model.fit(Z, y, **ready.roles.given)
        ready.keep_quality(assess(ready.model, Z, y, **ready.roles.given))
    return ready.pipeline


@contextmanager
def said_of(table: TableDescription) -> Iterator[None]:
    """Say what a model finds wrong with its values of the column they came from."""
    try:
        yield
    except np.linalg.LinAlgError:
        raise  # no fault of the table
    except ZeroDivisionError as error:
        if table.weight is None:
            raise
        raise wrong_weights(table.weight, "too few are") from error
    except ValueError as error:
        words = str(error)
        roles = {"environments": table.environment, "sample weights": table.weight}
        name = next((n for role, n in roles.items() if words.lower().startswith(role)), None)
        raise TableError(words if name is None else f"column {quoted(name)}: {words}") from error


def _no_features(
    target: str, environment: str | None, hints: Sequence[str], weight: str | None
) -> tuple[str, ...]:
    """Columns with a role of their own, each with one at most."""
    given = [("environment", environment), *(("hint", name) for name in hints), ("weight", weight)]
    roles: dict[str, str] = {target: "target"}
    for role, name in given:
        if name is None:
            continue
        if name in roles:
            raise TableError(f"{quoted(name)} cannot be both {roles[name]} and {role}")
        roles[name] = role
    return tuple(name for name in roles if name != target)


def _refuse_both(names: Sequence[str], others: Sequence[str], option: str) -> None:
    both = [name for name in names if name in others]
    if both:
        raise TableError(
            f"{option} names {listed(both)}, which says where rows come from or how much they "
            "count, and is no feature"
        )


def _positions(encoder: TableEncoder, keep: Sequence[str]) -> list[int] | None:
    """Features of the columns never to leave out."""
    groups = encoder.feature_groups_.astype(str)
    unknown = [name for name in keep if name not in groups]
    if unknown:
        raise TableError(
            f"keep names columns that are not used: {listed(unknown)}; "
            f"those used are {listed(list(dict.fromkeys(groups)), 12)}"
        )
    return [int(j) for j in np.flatnonzero(np.isin(groups, list(keep)))] or None


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


def _repeats(encoder: TableEncoder, X: pd.DataFrame, roles: Roles) -> tuple[Note, ...]:
    """Point out columns that only say which environment a row is from, such as dummies of years."""
    if roles.environments is None:
        return ()
    _, codes = np.unique(roles.environments.astype(str), return_inverse=True)
    if 2 * (codes.max() + 1) > len(codes):
        return ()  # with a row or two in each, anything is the same in all of them
    names = []
    for column in encoder.columns_:
        values = pd.DataFrame(encoder.observed(column, X)).groupby(codes)
        if bool((values.nunique(dropna=False) == 1).to_numpy().all()):
            names.append(column.name)
    if not names:
        return ()
    text = (
        f"the same in all rows of an environment: {listed(names)}; a model learns from them "
        "which one a row is from, and a new one is none of these"
    )
    return (Note("", text),)


def describe(
    table: Table, target: Target, encoder: TableEncoder, more: Sequence[Note] = ()
) -> TableDescription:
    """Return what the model should remember of its table, with ``more`` notes about it."""
    notes = [Note("", text) for text in table.notes]
    return TableDescription(
        source=table.source,
        n_rows=int(target.known.sum()),
        n_columns=table.frame.shape[1],
        target=target.name,
        task=target.task,
        reason=target.reason,
        notes=(*notes, *target.notes, *more, *encoder.notes_),
        left_out=(*table.left_out, *encoder.left_out_),
    )
