"""Environments in words: how each differs from the rest, the largest difference first.

Three kinds of difference are put on one scale, so that they can be ranked together: a column's
mean (in standard deviations of the column), a column's slope (its change for one standard
deviation of the column, in units of the model's error; of log-odds for labels), and the error
itself (the logarithm of its ratio). What is smaller than its own uncertainty is not mentioned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.estimators.environments import EnvironmentSummary
from hetrisk.report.labels import number, percent, precise
from hetrisk.report.summary import Environment, Feature

MOST_DIFFERENCES = 4
LEAST_MEAN = 0.2  # standard deviations: what Cohen calls small
LEAST_SLOPE = 0.1
LEAST_ERRORS = 3.0  # standard errors, of a slope's difference
LEAST_SPREAD = 1e-6  # of a column within an environment, as a share of that over all rows
LEAST_NOISE = math.log(1.15)
TURNED = 0.05  # of the larger slope: a smaller one of the other sign is next to none


class _Difference(NamedTuple):
    size: float
    sentence: str


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # what overflows is not ranked
def describe(
    found: EnvironmentSummary, labels: Sequence[str], columns: tuple[Feature, ...]
) -> tuple[Environment, ...]:
    """Return the environments with what differs in each."""
    share = np.asarray(found.weight, dtype=float) / np.sum(found.weight)
    return tuple(
        Environment(
            label=labels[k],
            share=float(share[k]),
            risk=float(found.risk[k]),
            risk_erm=float(found.risk_erm[k]),
            differences=_differences(found, share, columns, k),
        )
        for k in range(len(share))
    )


def _differences(
    found: EnvironmentSummary, share: FloatArray, columns: tuple[Feature, ...], k: int
) -> tuple[str, ...]:
    if len(share) < 2:
        return ()
    rest = np.where(np.arange(len(share)) == k, 0.0, share)
    if not rest.sum() > 0:
        return ()
    rest = rest / rest.sum()
    candidates = [
        *_means(found, share, rest, columns, k),
        *_slopes(found, share, rest, columns, k),
        *_noise(found, rest, k),
    ]
    ranked = sorted(candidates, key=lambda difference: -difference.size)
    return tuple(difference.sentence for difference in ranked[:MOST_DIFFERENCES])


def _means(
    found: EnvironmentSummary,
    share: FloatArray,
    rest: FloatArray,
    columns: tuple[Feature, ...],
    k: int,
) -> list[_Difference]:
    mean = np.asarray(found.feature_mean, dtype=float)
    here, elsewhere, sd = mean[k], rest @ mean, pooled_sd(found)
    size = np.abs(here - elsewhere) / sd
    differences = []
    for j in _largest(size, LEAST_MEAN):
        if _is_indicator(found, j):
            more = "more frequent" if here[j] > elsewhere[j] else "rarer"
            values = f"{percent(float(here[j]))} against {percent(float(elsewhere[j]))}"
        else:
            more = "higher" if here[j] > elsewhere[j] else "lower"
            a, b = (precise(float(mean[j]), float(sd[j])) for mean in (here, elsewhere))
            values = f"mean {a} against {b}"
        differences.append(_Difference(float(size[j]), f"{columns[j].label} is {more}: {values}"))
    return differences


def _slopes(
    found: EnvironmentSummary,
    share: FloatArray,
    rest: FloatArray,
    columns: tuple[Feature, ...],
    k: int,
) -> list[_Difference]:
    """Of several classes, the one whose slope differs most."""
    K = len(share)
    coef = np.asarray(found.coef, dtype=float).reshape(K, -1, len(columns))
    error = np.asarray(found.coef_error, dtype=float).reshape(K, -1, len(columns))
    elsewhere = np.einsum("k,kcd->cd", rest, coef)
    uncertainty = np.sqrt(error[k] ** 2 + np.einsum("k,kcd->cd", rest**2, error**2))
    unit = float(share @ np.asarray(found.risk)) if found.risk_name == "RMSE" else 1.0
    gap = np.abs(coef[k] - elsewhere)
    size = np.where(gap > LEAST_ERRORS * uncertainty, gap * pooled_sd(found) / unit, 0.0)
    # A column that stands still here, or everywhere else, has no slope there to compare.
    varies = np.asarray(found.feature_sd) > LEAST_SPREAD * pooled_sd(found)
    size = np.where(varies[k] & (varies & (rest > 0)[:, None]).any(axis=0), size, 0.0)
    worst = np.argmax(np.nan_to_num(size), axis=0)
    columnwise = size[worst, np.arange(len(columns))]
    differences = []
    for j in _largest(columnwise, LEAST_SLOPE):
        a, b = float(coef[k, worst[j], j]), float(elsewhere[worst[j], j])
        differences.append(
            _Difference(
                float(columnwise[j]),
                f"{columns[j].label} counts {_more(a, b)}: {_signed(a)} a unit against "
                f"{_signed(b)}",
            )
        )
    return differences


def _more(here: float, elsewhere: float) -> str:
    if here * elsewhere < 0 and min(abs(here), abs(elsewhere)) > TURNED * max(
        abs(here), abs(elsewhere)
    ):
        return "the other way"
    return "more" if abs(here) > abs(elsewhere) else "less"


def _noise(found: EnvironmentSummary, rest: FloatArray, k: int) -> list[_Difference]:
    """The square root of mean squared errors elsewhere; for labels the mean error rate."""
    risk = np.asarray(found.risk, dtype=float)
    rmse = found.risk_name == "RMSE"
    here = float(risk[k])
    elsewhere = float(np.sqrt(rest @ risk**2) if rmse else rest @ risk)
    if not (0 < here < math.inf and 0 < elsewhere < math.inf):
        return []
    size = abs(math.log(here) - math.log(elsewhere))
    if not LEAST_NOISE < size < math.inf:
        return []
    shown = number if rmse else percent
    what = "errors are larger" if here > elsewhere else "errors are smaller"
    return [_Difference(size, f"{what}: {shown(here)} against {shown(elsewhere)}")]


def _largest(size: FloatArray, least: float) -> list[int]:
    known = np.where(np.isfinite(size), size, 0.0)
    order = np.argsort(-known, kind="stable")[:MOST_DIFFERENCES]
    return [int(j) for j in order if known[j] >= least]


def _signed(value: float) -> str:
    return f"+{number(value)}" if value > 0 else number(value)


def _is_indicator(found: EnvironmentSummary, j: int) -> bool:
    """Whether a column holds 0 and 1 alone: its variance is then that of a share."""
    mean, sd = np.asarray(found.feature_mean)[:, j], np.asarray(found.feature_sd)[:, j]
    inside = np.all((mean >= -1e-9) & (mean <= 1 + 1e-9))
    return bool(inside and np.allclose(sd**2, mean * (1 - mean), atol=1e-3))


def pooled_sd(found: EnvironmentSummary) -> FloatArray:
    """Standard deviation of each column over all rows: within plus between environments."""
    share = np.asarray(found.weight, dtype=float) / np.sum(found.weight)
    mean, sd = np.asarray(found.feature_mean), np.asarray(found.feature_sd)
    centre = share @ mean
    pooled: FloatArray = np.sqrt(share @ (sd**2 + (mean - centre) ** 2))
    return pooled
