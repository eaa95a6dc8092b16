"""What is said of a fit, and kept with the model: a summary, and the reference of checks."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hetrisk import __version__
from hetrisk.cli.columns import advice, ordered
from hetrisk.cli.wishes import Wishes
from hetrisk.core.backtest.cuts import Periods, merge_periods
from hetrisk.core.predictor import Inputs
from hetrisk.modelfile import Deployed
from hetrisk.monitoring.reference import reference_of
from hetrisk.monitoring.reference import to_record as reference_record
from hetrisk.report.horizons import in_words
from hetrisk.report.learned import Sample, cautions, column_lines, differences, quality
from hetrisk.report.stored import decision_of
from hetrisk.report.stored import to_record as summary_record
from hetrisk.report.summary import Origin, Summary
from hetrisk.tables.time import TimeColumn, read_environment

if TYPE_CHECKING:
    from hetrisk.core.numerics.rows import FloatArray, IntArray
    from hetrisk.tables import Table, Target

LOOKED_AT = 20_000  # rows that the page describes


@dataclass(frozen=True)
class Fitted:
    """A model and what is to be said of it."""

    deployed: Deployed
    summary: Summary


@dataclass(frozen=True)
class Answer:
    """What an estimator found.

    Attributes
    ----------
    deployed : its model.
    encoder : what made its columns of the table.
    record : fields of a summary that a backtest, or a search without one, fills in.
    time : how the column of time is read.
    evidence : of columns, where stable ones were sought.
    drift : how far environments differed in a backtest.
    said : what the estimator warned of.
    """

    deployed: Deployed
    encoder: Any
    record: dict[str, Any]
    time: TimeColumn | None = None
    evidence: tuple[Any, ...] = ()
    drift: Any = None
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class Learned:
    """The rows that were learned from, or those of them that are at hand.

    Attributes
    ----------
    table : as it was read.
    wishes : what was asked for.
    target : of the rows that have one.
    frame : these rows, without the target.
    n_rows : all rows with a target, at hand or not.
    command : to fit again.
    """

    table: Table
    wishes: Wishes
    target: Target
    frame: pd.DataFrame
    n_rows: int
    command: str

    def described(self, found: Answer) -> Fitted:
        """Say what is known of the columns and the environments, and keep it with the model."""
        deployed, record, evidence, said = found.deployed, found.record, found.evidence, found.said
        rows = self._rows()
        frame = self.frame.iloc[rows]
        sample, periods = self._sample(deployed, found.encoder, frame, rows, found.time)
        if found.time is not None and periods is not None:
            words = in_words(record["forecast"], found.time, periods.step)
            record = {**record, "forecast": words}
            end = float(periods.time[-1])
            deployed = replace(deployed, last_time=end, period=periods.step)
        if not record["verdict"]:
            evidence = _between(sample, self.target.values[rows])
        lines = column_lines(sample, evidence)
        if record["verdict"]:
            said = tuple(advice(self.table.frame, self.wishes.target))
        elif self.wishes.time is None and self.wishes.environment is not None:
            said = (*said, *ordered(self.table.frame, self.wishes.environment))
        summary = Summary(
            origin=self._origin(found.encoder, sample),
            decision=decision_of({**record, "evidence": evidence}),
            reach=self.wishes.reach,
            columns=lines,
            evidence=evidence,
            differences=differences(sample, self.wishes.target, lines),
            cautions=cautions(sample, lines, record["ranking"], record["forecast"].unit),
            advice=said,
            quality=quality(sample),
            **record,
        )
        reference = reference_of(sample, lines, found.drift)
        kept = replace(
            deployed,
            summary=summary_record(summary),
            reference=reference_record(reference),
        )
        return Fitted(kept, summary)

    def _rows(self) -> np.ndarray:
        """Rows the page describes, spread over the table."""
        n = len(self.frame)
        return np.unique(np.linspace(0, n - 1, min(n, LOOKED_AT)).astype(np.int64))

    def _sample(
        self,
        deployed: Deployed,
        encoder: Any,
        frame: pd.DataFrame,
        rows: np.ndarray,
        time: TimeColumn | None,
    ) -> tuple[Sample, Periods | None]:
        from hetrisk.monitoring.checking import observed, outcomes

        inputs = deployed.inputs(frame)
        name = self.wishes.time
        values = None if time is None or name is None else time.read(frame[name])
        environment, periods = self._environment(frame, time, values)

        def predict(X: FloatArray, at: IntArray) -> FloatArray:
            when = None if inputs.time is None else inputs.time[at]
            where = None if inputs.environment is None else inputs.environment[at]
            return deployed.predictor.predict(Inputs(X, when, where))

        return Sample(
            X=inputs.X,
            observed=observed(deployed, frame),
            names=deployed.columns,
            groups=tuple(str(g) for g in encoder.feature_groups_),
            y=outcomes(deployed, self.target.values[rows]),
            predicted=deployed.predictor.predict(inputs),
            predict=predict,
            classes=() if deployed.classes is None else tuple(str(c) for c in deployed.classes),
            environment=environment,
            time=values,
        ), periods

    def _environment(
        self, frame: pd.DataFrame, time: TimeColumn | None, values: FloatArray | None
    ) -> tuple[np.ndarray | None, Periods | None]:
        """Name of each row's site, or of its period; and the periods."""
        names, periods = None, None
        if time is not None and values is not None:
            distinct, counts = np.unique(values[np.isfinite(values)], return_counts=True)
            periods = merge_periods(distinct, counts.astype(float))
            names = np.array(_period_names(time, periods, distinct), dtype=object)[
                periods.of(values)
            ]
        if self.wishes.environment is not None:
            codes, levels = read_environment(
                frame[self.wishes.environment], self.wishes.environment
            )
            names = np.array([*levels, "(missing)"], dtype=object)[codes]
        return names, periods

    def _origin(self, encoder: Any, sample: Sample) -> Origin:
        from hetrisk.tables import find_leaks

        w, t = self.wishes, self.target
        # A date is known before any target, however smoothly the target follows it.
        dates = {c.name for c in encoder.columns_ if c.kind == "date"}
        members = {g: m for g, m in sample.members().items() if g not in dates}
        leaks = find_leaks(
            list(members),
            [sample.observed[:, m] for m in members.values()],
            t.values[self._rows()],
            t.name,
        )
        notes = [("", text) for text in self.table.notes]
        notes += [(n.column, replace(n, column="").in_flags) for n in (*t.notes, *encoder.notes_)]
        left = [(out.name, out.in_flags) for out in (*self.table.left_out, *encoder.left_out_)]
        return Origin(
            source=self.table.source,
            target=w.target,
            task=t.task,
            reason=t.reason,
            n_rows=self.n_rows,
            n_columns=self.table.frame.shape[1],
            time=w.time or "",
            environment=w.environment or "",
            weight=w.weight or "",
            notes=tuple(notes),
            left_out=tuple(left),
            leaks=tuple(leak.sentence for leak in leaks),
            command=self.command,
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


def _period_names(time: TimeColumn, periods: Periods, distinct: FloatArray) -> list[str]:
    """``2001``, or ``2001 to 2003`` where periods were merged."""
    after = np.append(-np.inf, periods.upper[:-1])
    starts = distinct[np.searchsorted(distinct, after, side="right")]
    ends = [(time.label(a), time.label(b)) for a, b in zip(starts, periods.upper, strict=True)]
    return [*(a if a == b else f"{a} to {b}" for a, b in ends), "(missing)"]
