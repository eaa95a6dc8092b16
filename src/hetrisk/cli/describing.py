"""What is said of a fit, and kept with the model: a summary, and the reference of checks."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hetrisk import __version__
from hetrisk.core.backtest.cuts import Periods
from hetrisk.core.backtest.prepare import period_names
from hetrisk.core.predictor import Inputs
from hetrisk.modelfile import Deployed
from hetrisk.monitoring.checking import observed, outcomes
from hetrisk.monitoring.reference import reference_of
from hetrisk.report.horizons import in_words
from hetrisk.report.learned import Sample, cautions, column_lines, differences, quality
from hetrisk.report.stored import decision_of
from hetrisk.report.stored import to_record as summary_record
from hetrisk.report.summary import Origin, Summary
from hetrisk.tables import find_leaks
from hetrisk.tables.time import ABSENT, TimeColumn, read_environment

if TYPE_CHECKING:
    from hetrisk.cli.wishes import Wishes
    from hetrisk.core.backtest.adaptation import Drift
    from hetrisk.core.numerics.rows import FloatArray, IntArray
    from hetrisk.tables import Table, TableEncoder, Target

LOOKED_AT = 20_000  # rows that the page describes


@dataclass(frozen=True)
class Learned:
    """The rows that were learned from, or those of them that are at hand.

    Attributes
    ----------
    table : as it was read; wishes : what was asked for; command : to fit again.
    target : of the rows that have one.
    frame : these rows, without the target.
    time : how the column of time is read.
    n_rows : all rows with a target, at hand or not.
    """

    table: Table
    wishes: Wishes
    target: Target
    frame: pd.DataFrame
    time: TimeColumn | None
    n_rows: int
    command: str


@dataclass(frozen=True)
class Found:
    """What an estimator found.

    Attributes
    ----------
    deployed : its model.
    encoder : what made its columns of the table; None where time and environment are all.
    record : fields of a summary that a backtest, or a search without one, fills in.
    periods, drift : of a backtest.
    """

    deployed: Deployed
    encoder: TableEncoder | None
    record: dict[str, Any]
    periods: Periods | None = None
    drift: Drift | None = None


@dataclass(frozen=True)
class Fitted:
    """A model and what is to be said of it."""

    deployed: Deployed
    summary: Summary


def described(learned: Learned, found: Found) -> Fitted:
    """Say what is known of the columns and the environments, and keep it with the model."""
    w, record = learned.wishes, {"verdict": "", **found.record}
    n = len(learned.frame)
    rows = np.unique(np.linspace(0, n - 1, min(n, LOOKED_AT)).astype(np.int64))
    sample = _sample(learned, found, rows)
    if learned.time is not None and found.periods is not None:
        record["forecast"] = in_words(record["forecast"], learned.time, found.periods.step)
    if not record["verdict"]:
        record["evidence"] = _between(sample, learned.target.values[rows])
    lines = column_lines(sample, record["evidence"])
    summary = Summary(
        origin=_origin(learned, found, sample, learned.target.values[rows]),
        decision=decision_of(record),
        reach=w.reach,
        columns=lines,
        differences=differences(sample, w.target, lines),
        cautions=cautions(sample, lines),
        quality=quality(sample),
        **record,
    )
    reference = vars(reference_of(sample, lines, found.drift))
    stored = summary_record(summary)
    return Fitted(replace(found.deployed, summary=stored, reference=reference), summary)


def _sample(learned: Learned, found: Found, rows: np.ndarray) -> Sample:
    """Some of the rows, as the model sees them."""
    deployed, frame = found.deployed, learned.frame.iloc[rows]
    inputs = deployed.inputs(frame)

    def predict(X: FloatArray, at: IntArray) -> FloatArray:
        when = None if inputs.time is None else inputs.time[at]
        where = None if inputs.environment is None else inputs.environment[at]
        return deployed.predictor.predict(Inputs(X, when, where))

    names = None
    if learned.wishes.environment is not None:
        codes, levels = read_environment(frame[learned.wishes.environment])
        names = np.array([*levels, ABSENT], dtype=object)[codes]
    elif learned.time is not None and found.periods is not None and inputs.time is not None:
        called = period_names(found.periods, learned.time.label)
        names = np.array([*called, ABSENT], dtype=object)[found.periods.of(inputs.time)]
    return Sample(
        X=inputs.X,
        observed=observed(deployed, frame),
        names=deployed.columns,
        groups=() if deployed.encoder is None else deployed.encoder.groups,
        y=outcomes(deployed, learned.target.values[rows]),
        predicted=deployed.predictor.predict(inputs),
        predict=predict,
        classes=() if deployed.classes is None else tuple(str(c) for c in deployed.classes),
        environment=names,
        time=inputs.time,
    )


def _origin(learned: Learned, found: Found, sample: Sample, y: np.ndarray) -> Origin:
    w, t, table, encoder = learned.wishes, learned.target, learned.table, found.encoder
    of_columns = ([], []) if encoder is None else (encoder.notes_, encoder.left_out_)
    # A date is known before any target, however smoothly the target follows it.
    used = () if encoder is None else encoder.columns_
    dates = {c.name for c in used if c.kind == "date"}
    members = {g: sample.observed[:, m] for g, m in sample.members().items() if g not in dates}
    leaks = find_leaks(list(members), list(members.values()), y, t.name)
    notes = [("", text) for text in table.notes]
    notes += [(n.column, replace(n, column="").in_flags) for n in (*t.notes, *of_columns[0])]
    left = [(out.name, out.in_flags) for out in (*table.left_out, *of_columns[1])]
    return Origin(
        source=table.source,
        target=w.target,
        task=t.task,
        reason=t.reason,
        n_rows=learned.n_rows,
        n_columns=table.frame.shape[1],
        time=w.time or "",
        environment=w.environment or "",
        weight=w.weight or "",
        notes=tuple(notes),
        left_out=tuple(left),
        leaks=tuple(leak.sentence for leak in leaks),
        command=learned.command,
        version=__version__,
    )


def _between(s: Sample, y: np.ndarray) -> tuple[Any, ...]:
    """How columns go with the target in each environment that was named."""
    from hetrisk import StableClassifier, StableRegressor

    if s.environment is None or len(set(s.environment.tolist())) < 2:
        return ()
    kind = StableClassifier if s.classes else StableRegressor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            frame = pd.DataFrame(s.X, columns=list(s.names))
            model = kind(feature_groups=list(s.groups)).fit(frame, y, environments=s.environment)
        except ValueError:  # too few rows of an environment, or of a class: nothing is said
            return ()
    # What it would leave out is not what was deployed: the tests are, the decision is not.
    return tuple(replace(line, kept=True, reason="") for line in model.evidence_)
