"""Hold new rows against a deployed model: the one function of this package."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from hetrisk.columns.dates import MISSING_IN_TARGET
from hetrisk.core.backtest.losses import LEAST_PROBABILITY
from hetrisk.core.drift.rise import misses, rise
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.result import Expected, Forecast
from hetrisk.modelfile import Deployed
from hetrisk.monitoring.columns import Unseen, check_columns
from hetrisk.monitoring.findings import Check, Outcome, Part, status_of
from hetrisk.monitoring.reference import Reference
from hetrisk.monitoring.words import sentence_of
from hetrisk.report.names import LOG_LOSS
from hetrisk.tables import TableError
from hetrisk.tables.cells import Cells, cells_of
from hetrisk.tables.columns import Column
from hetrisk.tables.encoding import cells_in, places_of
from hetrisk.tables.errors import counted, listed, quoted
from hetrisk.tables.frames import as_pandas
from hetrisk.tables.time import read_environment

LEAST_ROWS_A_LINE = 5  # rows a slope, below which only level and the rest are told apart
ALIKE = 0.01  # of the loss of the mean: a model that errs so little more is no worse
MOST_NEW = 5  # new levels that are named


def check(deployed: Deployed, frame: Any, y: Any = None) -> Check:
    """Compare new rows with what a model was told to expect.

    Parameters
    ----------
    deployed : a model opened with `hetrisk.modelfile.load`.
    frame : new rows, as ``deployed.predict`` takes them.
    y : (n,) their targets, where known; NaN or None marks those that are not.

    Returns
    -------
    Check
        Its ``status`` is 0 (as expected), 3 (look: columns in use moved, or the error is above its
        band by no more than chance explains) or 4 (the error is beyond its band, or predicting
        the mean errs less).

    Examples
    --------
    ``hetrisk.monitoring.check(hetrisk.modelfile.load("houses.hetrisk"), new_rows)``
    """
    if deployed.reference is None:
        raise TableError("the model holds nothing to check new rows against: fit it again")
    table = as_pandas(frame)
    if not len(table):
        raise TableError("the table has no rows")
    reference = Reference(**deployed.reference)
    rows = deployed.inputs(table)
    columns = check_columns(reference, observed(deployed, table), unseen(deployed, table))
    outcome, notes = None, tuple[str, ...]()
    labelled = np.zeros(len(table), dtype=bool) if y is None else ~np.asarray(pd.isna(y))
    if labelled.any():
        known = np.asarray(y)[labelled]
        targets = outcomes(deployed, known)
        scores = deployed.predictor.predict(rows)[labelled]
        horizon = _horizon(deployed, None if rows.time is None else rows.time[labelled])
        strange = known[:0] if deployed.classes is None else known[~targets.any(axis=1)]
        if len(strange):
            names = listed(sorted({str(label) for label in strange}), 3)
            rows_of = f"{counted(len(strange), 'row')} of a class the model does not know"
            notes = (f"{rows_of} ({names}): wrong by nature",)
        outcome = _outcome(deployed, reference, rows.X[labelled], targets, scores, horizon)
    status = status_of(columns, outcome)
    return Check(
        status=status,
        sentence=sentence_of(status, columns, outcome),
        n_rows=len(table),
        n_reference=reference.columns.n_rows,
        columns=columns,
        environments=_new_environments(deployed, reference, table),
        outcome=outcome,
        notes=notes,
    )


def observed(deployed: Deployed, table: pd.DataFrame) -> FloatArray:
    """(n, p) the model's numbers, NaN where the table holds no value."""
    encoder = deployed.encoder
    if encoder is None:
        return table[list(deployed.columns)].to_numpy(dtype=float, na_value=np.nan)
    frame = encoder.matched(table)
    places = places_of(frame)
    parts = [_observed(column, cells_in(frame, places, column)) for column in encoder.columns]
    return np.hstack(parts)


def _observed(column: Column, cells: Cells) -> FloatArray:
    """(n, features) one column; where it has a feature for gaps, that is never missing itself."""
    seen = column.observed(cells)
    more = len(column.feature_names) - seen.shape[1]
    return np.hstack([seen, *[np.isnan(seen[:, :1]).astype(float)] * more])


def unseen(deployed: Deployed, table: pd.DataFrame) -> Unseen:
    """Return levels of categories that did not occur before, and the share of their rows."""
    encoder: Any = deployed.encoder
    if encoder is None:
        return {}
    frame = encoder.matched(table)
    places, found = places_of(frame), {}
    for column in (column for column in encoder.columns if column.kind == "category"):
        codes, levels = cells_in(frame, places, column).levels()
        strange = [code for code, level in enumerate(levels) if not column.knows(level)]
        share = float(np.isin(codes, strange).mean())
        found[column.name] = (tuple(levels[code] for code in strange[:MOST_NEW]), share)
    return found


def outcomes(deployed: Deployed, y: np.ndarray) -> FloatArray:
    """(n, K) numbers, or one column a class of zeros and ones; zeros where a class is unknown."""
    if deployed.classes is None:
        return np.asarray(y, dtype=float)[:, None]
    position = {str(label): k for k, label in enumerate(deployed.classes)}
    codes = np.array([position.get(str(label), -1) for label in y])
    if (codes < 0).all():
        raise TableError(f"the target holds classes the model does not know: {str(y[0])!r}")
    return np.vstack([np.eye(len(position)), np.zeros(len(position))])[codes]


def losses(y: FloatArray, scores: FloatArray, unit: str) -> FloatArray:
    """(n,) squared errors, or log losses."""
    if unit == LOG_LOSS:
        return -np.log(np.maximum(np.sum(y * scores, axis=1), LEAST_PROBABILITY))
    squares: FloatArray = np.sum((y - scores) ** 2, axis=1)
    return squares


def _outcome(
    deployed: Deployed,
    reference: Reference,
    X: FloatArray,
    y: FloatArray,
    scores: FloatArray,
    horizon: float,
) -> Outcome:
    forecast: Forecast = deployed.summary["forecast"]
    expected, label = _expected(forecast, horizon)
    loss = losses(y, scores, forecast.unit)
    plain = losses(y, np.broadcast_to(reference.constant, y.shape), forecast.unit)
    error, standard_error = _in_unit(loss, forecast.unit)
    parts: tuple[Part, ...] = ()
    risen, total = error > expected.mean, math.nan
    if risen and reference.misses is not None:
        total, parts = _taken_apart(reference, X, y - scores, expected, forecast.unit)
    return Outcome(
        unit=forecast.unit,
        n_rows=len(y),
        error=error,
        standard_error=standard_error,
        expected=expected,
        horizon=label,
        constant=_in_unit(plain, forecast.unit)[0],
        worse_than_mean=_z(loss - (1 + ALIKE) * plain),
        rise=total,
        parts=parts,
    )


def _expected(forecast: Forecast, horizon: float) -> tuple[Expected, str]:
    """What was foretold for rows so many periods ahead, and the horizon in words."""
    whole = Expected(forecast.mean, forecast.lower, forecast.upper)
    if not forecast.by_horizon or math.isnan(horizon):
        return whole, ""
    later = [h for h in forecast.by_horizon if h.horizon >= horizon - 0.5]
    nearest = later[0] if later else forecast.by_horizon[-1]
    return nearest.chosen, nearest.label


def _in_unit(loss: FloatArray, unit: str) -> tuple[float, float]:
    """Mean loss in its unit, and its standard error (delta method)."""
    mean = float(loss.mean())
    error = float(loss.std(ddof=1) / math.sqrt(len(loss))) if len(loss) > 1 else math.inf
    if unit == LOG_LOSS:
        return mean, error
    root = math.sqrt(mean)
    return root, error / (2 * root) if root > 0 else 0.0


def _z(difference: FloatArray) -> float:
    """Mean over its standard error; 0 where a single row cannot tell."""
    n, mean = len(difference), float(difference.mean())
    error = float(difference.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    if error == 0.0:
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / error


def _taken_apart(
    r: Reference, X: FloatArray, residual: FloatArray, expected: Expected, unit: str
) -> tuple[float, tuple[Part, ...]]:
    """Parts of the rise of squared error above the one foretold, as shares of it."""
    assert r.misses is not None
    # What log loss was foretold says nothing of squares: there the rows learned from are the start.
    squares = r.misses.loss if unit == LOG_LOSS else expected.mean**2
    # What was foretold above the error on the rows learned from is counted as noise.
    more = squares - r.misses.loss
    before = replace(r.misses, loss=squares, noise=r.misses.noise + more)
    place = {name: j for j, name in enumerate(r.names)}
    columns = np.nan_to_num(X[:, [place[name] for name in r.missed]])
    now = misses(columns, residual, r.centre)
    found = rise(before, now)
    if not found.total > 0:
        return found.total, ()
    d, share = len(r.missed), 1 / found.total
    if len(X) < LEAST_ROWS_A_LINE * (d + 1):
        rest = found.total - found.level
        return found.total, (
            Part("level", "", found.level * share, found.p_level),
            Part("rest", "", rest * share, math.nan),
        )
    slopes = [
        Part("slope", name, float(part) * share, min(float(p) * d, 1.0))
        for name, part, p in zip(r.missed, found.slopes, found.p_slopes, strict=True)
    ]
    return found.total, (
        Part("level", "", found.level * share, found.p_level),
        *slopes,
        Part("place", "", found.place * share, math.nan),
        Part("rest", "", found.noise * share, math.nan),
    )


def _horizon(deployed: Deployed, time: FloatArray | None) -> float:
    """How far ahead new rows are, in periods; NaN where they do not say."""
    if time is None or not deployed.period > 0 or not np.isfinite(time).any():
        return math.nan
    return max((float(np.nanmedian(time)) - deployed.last_time) / deployed.period, 1.0)


def _new_environments(
    deployed: Deployed, reference: Reference, table: pd.DataFrame
) -> tuple[tuple[str, float], ...]:
    """Environments that were not seen before, and the share of rows of each."""
    name = deployed.environment_name
    if name is None or name not in table.columns:
        return ()
    known = {there["name"] for there in reference.environments}
    codes, levels = read_environment(table[name], name)
    shares = np.bincount(codes[codes >= 0], minlength=len(levels)) / len(table)
    new = [(k, float(v)) for k, v in zip(levels, shares, strict=True) if k not in known]
    return tuple(sorted(new, key=lambda entry: -entry[1]))


def targets_of(deployed: Deployed, table: pd.DataFrame) -> np.ndarray | None:
    """Return the target column of a table, NaN or None in rows without; None where it has none."""
    names = [str(name) for name in table.columns]
    if deployed.target not in names:
        return None
    column = table.iloc[:, names.index(deployed.target)]
    cells = cells_of(deployed.target, column, MISSING_IN_TARGET)
    if cells is None:
        raise TableError(f"the target {quoted(deployed.target)} does not hold single values")
    codes, levels = cells.levels()
    if deployed.classes is not None:
        return np.array([*levels, None], dtype=object)[np.where(cells.missing, len(levels), codes)]
    values: FloatArray = np.where(cells.missing, np.nan, cells.numbers())
    unread = np.flatnonzero(np.isnan(values) & ~cells.missing)
    if len(unread):
        text = quoted(levels[codes[unread[0]]])
        raise TableError(
            f"the target {quoted(deployed.target)}, row {unread[0] + 1}: {text} is not a number"
        )
    return values
