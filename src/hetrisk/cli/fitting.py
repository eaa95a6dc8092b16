"""From a table and what is wished of it to a model that can be deployed, and its summary."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hetrisk import __version__
from hetrisk.cli.columns import advice, one, resolve
from hetrisk.core.backtest.cuts import Periods, merge_periods
from hetrisk.core.result import Expected, Forecast, Ranked
from hetrisk.modelfile import Deployed
from hetrisk.monitoring.reference import reference_of
from hetrisk.monitoring.reference import to_record as reference_record
from hetrisk.report.horizons import in_words
from hetrisk.report.learned import Sample, cautions, column_lines, differences, quality
from hetrisk.report.names import LOG_LOSS, PLAIN
from hetrisk.report.stored import decision_of
from hetrisk.report.stored import to_record as summary_record
from hetrisk.report.summary import Origin, Summary
from hetrisk.tables import TableError
from hetrisk.tables.errors import listed, quoted
from hetrisk.tables.frames import marked
from hetrisk.tables.time import TimeColumn, read_environment, read_time

if TYPE_CHECKING:
    from hetrisk.core.numerics.rows import FloatArray
    from hetrisk.tables import Table, Target

PARALLEL_ROWS = 50_000  # below, processes cost more than they save
LOOKED_AT = 20_000  # rows that the page describes


@dataclass(frozen=True)
class Wishes:
    """What the command line was asked for; columns as they were typed."""

    target: str
    task: str = "auto"
    time: str | None = None
    environment: str | None = None
    candidate: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    weight: str | None = None
    decimal: str | None = None
    dayfirst: bool | None = None
    reach: float = 1.0

    def of(self, names: Sequence[str]) -> Wishes:
        """Return the same with columns called as in the table; refuse what it does not have."""
        several = ("features", "drop", "category", "number", "keep")
        flags = {"features": "--feature"}
        found: dict[str, Any] = {
            f: resolve(getattr(self, f), names, flags.get(f, f"--{f}")) for f in several
        }
        found |= {
            f: one(getattr(self, f), names, f"--{f}")
            for f in ("target", "time", "environment", "weight")
        }
        made = replace(self, **found)
        made._refuse_twice()
        return made

    def _refuse_twice(self) -> None:
        roles = {"target": self.target, "weight": self.weight}
        roles |= {"time": self.time, "environment": self.environment}
        taken: dict[str, str] = {}
        for role, name in roles.items():
            if name in taken:
                raise TableError(f"{quoted(name)} cannot be both {taken[name]} and {role}")
            if name is not None:
                taken[name] = role
        asked = [name for name in self.features if name in taken]
        if asked:
            raise TableError(f"--feature names {listed(asked)}, which is the {taken[asked[0]]}")


@dataclass(frozen=True)
class Fitted:
    """A model and what is to be said of it."""

    deployed: Deployed
    summary: Summary


def fit_table(table: Table, wishes: Wishes, command: str, verbose: int = 0) -> Fitted:
    """Fit a table: backtest where there is time or environment, else look for stable columns."""
    from hetrisk.tables import read_target

    wishes = wishes.of([str(name) for name in table.frame.columns])
    target = read_target(table.frame, wishes.target, wishes.task, wishes.decimal)
    frame = _features(table, wishes).loc[target.known]
    weight = _weights(table, wishes, target)
    fitting = _Fitting(table, wishes, target, frame, weight, command)
    if wishes.time is None and wishes.environment is None:
        return fitting.stable()
    return fitting.backtested(verbose)


def _features(table: Table, w: Wishes) -> pd.DataFrame:
    """The columns to learn from, and those of time and environment, with how to read them."""
    gone = {w.target, w.weight, *w.drop}
    roles = {w.time, w.environment}
    names = [str(name) for name in table.frame.columns]
    kept = [n for n in names if n not in gone and (n in roles or not w.features or n in w.features)]
    if not set(kept) - roles:
        raise TableError("no column is left to learn from: the target is the only one")
    absent = [name for name in (w.time, w.environment) if name is not None and name not in kept]
    if absent:
        raise TableError(f"{quoted(absent[0])} cannot be both dropped and used")
    return marked(
        table.frame.set_axis(names, axis=1)[kept],
        category=w.category,
        number=w.number,
        use=tuple(name for name in w.features if name not in roles),
        decimal=w.decimal,
        dayfirst=w.dayfirst,
    )


def _weights(table: Table, w: Wishes, target: Target) -> FloatArray | None:
    if w.weight is None:
        return None
    from hetrisk.tables.weights import read_weights

    return read_weights(table.frame.loc[target.known], w.weight)


@dataclass(frozen=True)
class _Fitting:
    table: Table
    wishes: Wishes
    target: Target
    frame: pd.DataFrame
    weight: FloatArray | None
    command: str

    @property
    def labels(self) -> bool:
        return self.target.task == "classification"

    def backtested(self, verbose: int) -> Fitted:
        """Choose by backtest."""
        from hetrisk import BacktestClassifier, BacktestRegressor

        w = self.wishes
        kind = BacktestClassifier if self.labels else BacktestRegressor
        candidates: Any = list(w.candidate) or "auto"
        jobs = -1 if len(self.frame) > PARALLEL_ROWS else None
        model = kind(candidates, w.time, w.environment, w.reach, n_jobs=jobs, verbose=verbose)
        frame, time = self.frame, None
        if w.time is not None:
            time = read_time(frame[w.time], w.time, w.dayfirst)
            if w.dayfirst is not None:  # days, so that they are not to be read again
                frame = frame.assign(**{w.time: time.value})
        with _said() as said:
            model.fit(frame, self.target.values, sample_weight=self.weight)
        deployed = Deployed.from_model(model, target=w.target, time=time)
        record = {
            "ranking": tuple(model.ranking_),
            "backtest": tuple(model.backtest_),
            "forecast": model.forecast_,
            "reach_curve": tuple(model.reach_curve_),
            "break_even": float(model.break_even_),
            "verdict": "",
            "verdict_reason": "",
        }
        return self.described(model.encoder_, deployed, record, time, (), model._drift, tuple(said))

    def stable(self) -> Fitted:
        """Look for stable columns: neither time nor environments were named."""
        from hetrisk import StableClassifier, StableRegressor
        from hetrisk.tables import TableEncoder

        w = self.wishes
        encoder = TableEncoder().fit(self.frame)
        Z = pd.DataFrame(encoder.transform(self.frame), columns=encoder.get_feature_names_out())
        kept = [
            str(n) for n, g in zip(Z.columns, encoder.feature_groups_, strict=True) if g in w.keep
        ]
        kind = StableClassifier if self.labels else StableRegressor
        model = kind(
            reach=w.reach,
            keep=kept or None,
            feature_groups=[str(g) for g in encoder.feature_groups_],
        )
        with _said():
            model.fit(Z, self.target.values, sample_weight=self.weight)
        deployed = Deployed.from_model(model, target=w.target, encoder=encoder)
        forecast = _out_of_fold(Z.to_numpy(), self.target.values, model.support_, self.labels)
        name = PLAIN if bool(np.all(model.support_)) else "stable"
        record = {
            "ranking": (_only(name, forecast),),
            "backtest": (),
            "forecast": forecast,
            "reach_curve": (),
            "break_even": float("nan"),
            "verdict": model.verdict_,
            "verdict_reason": model.verdict_reason_,
        }
        return self.described(encoder, deployed, record, None, tuple(model.evidence_))

    def described(
        self,
        encoder: Any,
        deployed: Deployed,
        record: dict[str, Any],
        time: TimeColumn | None,
        evidence: tuple[Any, ...],
        drift: Any = None,
        said: tuple[str, ...] = (),
    ) -> Fitted:
        """Say what is known of the columns and the environments, and keep it with the model."""
        rows = self._rows()
        frame = self.frame.iloc[rows]
        sample, periods = self._sample(deployed, encoder, frame, rows, time)
        if time is not None and periods is not None:
            words = in_words(record["forecast"], time, periods.step)
            record = {**record, "forecast": words}
            end = float(periods.time[-1])
            deployed = replace(deployed, last_time=end, period=periods.step)
        if not record["verdict"]:
            evidence = _between(sample, self.target.values[rows])
        lines = column_lines(sample, evidence)
        if record["verdict"]:
            said = tuple(advice(self.table.frame, self.wishes.target))
        summary = Summary(
            origin=self._origin(encoder, sample),
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
        reference = reference_of(sample, lines, drift)
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
        values = None if time is None else time.value[rows]
        environment, periods = self._environment(frame, time, values)

        def predict(X: FloatArray) -> FloatArray:
            return deployed.predictor.predict(replace(inputs, X=X))

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
            n_rows=int(t.known.sum()),
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


@contextmanager
def _said() -> Iterator[list[str]]:
    """Collect what a model warns of; what it finds wrong with its rows is said of the table."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            yield said
        except (TableError, np.linalg.LinAlgError):
            raise
        except ValueError as error:
            raise TableError(str(error)) from error
        said += [str(w.message) for w in heard if w.category.__module__.startswith("hetrisk")]


def _only(name: str, forecast: Forecast) -> Ranked:
    """The model fitted, as the one line of a ranking."""
    nan = float("nan")
    return Ranked(name, forecast.mean, nan, nan, nan, nan, nan, True, "")


def _out_of_fold(Z: FloatArray, y: np.ndarray, support: Any, labels: bool) -> Forecast:
    """Error on rows like these, by cross-validation on the columns that stayed."""
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X = Z[:, np.asarray(support)]
    unit, nan = LOG_LOSS if labels else "RMSE", float("nan")
    if labels:
        _, codes = np.unique(y, return_inverse=True)
        folds: Any = StratifiedKFold(
            min(5, int(np.bincount(codes).min())), shuffle=True, random_state=0
        )
        model: Any = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        proba = cross_val_predict(model, X, codes, cv=folds, method="predict_proba")
        error = float(np.mean(-np.log(np.maximum(proba[np.arange(len(y)), codes], 1e-3))))
        share = np.bincount(codes) / len(codes)
        plain = float(-np.sum(share * np.log(share)))
    else:
        folds = KFold(min(5, len(y)), shuffle=True, random_state=0)
        predicted = cross_val_predict(LinearRegression(), X, y, cv=folds)
        error = float(np.sqrt(np.mean((y - predicted) ** 2)))
        plain = float(np.std(y))
    constant = Expected(plain, nan, nan)
    own = Expected(error, nan, nan)
    return Forecast(error, nan, nan, own, constant, (), float("inf"), unit, 0)
