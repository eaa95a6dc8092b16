"""How much of a relation is left: one number, 1 as it was learned, 0 gone, negative reversed.

A model that leaves columns out predicts f, plain ERM g. Their difference g - f is what the
columns left out would say. On the rows both were fitted to, the residual y - f follows g - f with
slope one exactly, since y - g is orthogonal to both. On new rows that slope, with an intercept,
is the strength of the relation the model did not want to rely on. For labels f and g are log-odds
and the slope is that of a logistic model with offset f.

What g says beyond f is itself an estimate from n training rows, of q coefficients. Let t be the
information about the slope those rows held: n E[(g - f)^2] over the noise variance. With nothing
behind it, t would be about q, and on new rows the slope would be zero: in general it is smaller by
the factor 1 - q / t, which is divided out, and t adds 1 / t to its variance. Below `least_signal`
q there was too little to begin with, and no strength is given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from hetrisk.core.drift.thresholds import DRIFT_THRESHOLDS
from hetrisk.core.numerics.floors import EQUAL, NEARLY_SINGULAR, ROUNDING, TINY
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray, IntArray

MOST_STEPS: Budget[int] = 50


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class Origin:
    """What a difference of two models was learned from: training rows and coefficients."""

    n_rows: int
    n_coefficients: int


def _corrected(slope: float, error: float, information: float, origin: Origin) -> Estimate | None:
    """Return the strength, given the slope's information in the training rows; None if little."""
    if information < DRIFT_THRESHOLDS.least_signal * origin.n_coefficients:
        return None
    kept = 1.0 - origin.n_coefficients / information
    return Estimate(slope / kept, float(np.hypot(error, 1.0 / np.sqrt(information))) / kept)


def strength_of_numbers(
    y: FloatArray, this: FloatArray, plain: FloatArray, origin: Origin
) -> Estimate | None:
    """Slope of y - this on plain - this, with a standard error that holds for any noise.

    Parameters
    ----------
    y : (n,) outcomes.
    this, plain : (n,) predictions of the model and of plain ERM.
    origin : of the difference between the two.

    Returns
    -------
    None where the two predict nearly the same, so that nothing was left out to speak of.
    """
    beyond = plain - this
    beyond = beyond - beyond.mean()
    residual = y - this
    residual = residual - residual.mean()
    total = float(beyond @ beyond)
    if len(y) < 3 or total <= ROUNDING * len(y) * max(float(np.var(y)), TINY):
        return None
    slope = float(beyond @ residual) / total
    rest = residual - slope * beyond
    error = float(np.sqrt((beyond**2) @ (rest**2))) / total
    noise = max(float(np.mean(rest**2)), TINY)
    return _corrected(slope, error, origin.n_rows * total / len(y) / noise, origin)


def strength_of_labels(
    y: IntArray, this: FloatArray, plain: FloatArray, origin: Origin
) -> Estimate | None:
    """Slope s of softmax(this + s (plain - this) + intercepts), by Newton's method.

    Parameters
    ----------
    y : (n,) class codes.
    this, plain : (n, C) log-odds of the model and of plain ERM.
    origin : of the difference between the two.

    Returns
    -------
    None where the two say nearly the same.
    """
    beyond = plain - this
    # Log-odds are defined up to a constant a row: the first class is taken as zero.
    beyond = beyond - beyond[:, :1]
    if len(y) < 3 or float(np.var(beyond, axis=0).max()) <= ROUNDING:
        return None
    n, C = this.shape
    # (n, C, P): what one unit of each parameter adds to each log-odds.
    design = np.concatenate(
        [beyond[:, :, None], np.broadcast_to(np.eye(C)[:, 1:], (n, C, C - 1))], axis=2
    )
    hot = np.eye(C)[y]
    theta = np.zeros(C)
    theta[0] = 1.0
    # As the training rows saw it: at strength one.
    held = float(_derivatives(design, hot, this, theta)[1][0, 0]) * origin.n_rows / n
    # A loop of its own: labels that can be separated raise the likelihood less and less while the
    # slope still grows, so it is the length of a step that says when to stop.
    for _ in range(MOST_STEPS):
        scores, information = _derivatives(design, hot, this, theta)
        step = np.linalg.lstsq(information, scores.sum(axis=0), rcond=None)[0]
        # Labels that can be separated send the slope to infinity: no step is longer than one.
        theta = theta + step * min(1.0, 1.0 / max(float(np.abs(step).max()), TINY))
        if float(np.abs(step).max()) < EQUAL:
            break
    scores, information = _derivatives(design, hot, this, theta)
    bread = np.linalg.pinv(information)
    # The sandwich: right for rows that the model does not describe, which is what is asked.
    variance = float((bread @ (scores.T @ scores) @ bread)[0, 0])
    return _corrected(float(theta[0]), float(np.sqrt(max(variance, 0.0))), held, origin)


def _derivatives(
    design: FloatArray, hot: FloatArray, offset: FloatArray, theta: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Each row's score (n, P) and the information matrix (P, P), with a trace of a ridge."""
    share = softmax(offset + design @ theta, axis=1)
    mean = np.einsum("nc,ncp->np", share, design)
    scores: FloatArray = np.einsum("nc,ncp->np", hot, design) - mean
    information = np.einsum("nc,ncp,ncq->pq", share, design, design) - mean.T @ mean
    information[np.diag_indices(len(theta))] += NEARLY_SINGULAR * len(offset)
    return scores, information


def reach_of(error: Estimate, reach: FloatArray, expected: FloatArray) -> Estimate:
    """Where on a reach curve an error lies (E_k of `hetrisk.core.reach.regret`).

    Parameters
    ----------
    error : what was measured.
    reach, expected : (G,) the curve, ``expected`` not falling.

    Returns
    -------
    The reach at which the curve has this error, extended beyond its end; 0 below its start,
    infinity where it is flat. Its ``error`` is half the distance between the
    places of ``error`` plus and minus one standard error.
    """
    places = [_place(e, reach, expected) for e in (error.value, _less(error), _more(error))]
    spread = (places[2] - places[1]) / 2 if np.isfinite(places[2]) else np.inf
    return Estimate(places[0], float(spread))


def _less(error: Estimate) -> float:
    return max(error.value - error.error, 0.0)


def _more(error: Estimate) -> float:
    return error.value + error.error


def _place(error: float, reach: FloatArray, expected: FloatArray) -> float:
    """The reach at which a curve has this error; see `reach_of`."""
    k, known = np.asarray(reach), np.maximum.accumulate(np.asarray(expected) ** 2)
    above = error**2 - known[0]
    if above <= 0.0:
        return 0.0
    # Where an error can be no larger (a probability is wrong by one at most) a curve ends flat.
    flat = known == known[-1]
    rises = ~flat | (np.arange(len(k)) == 0) | (flat.sum() == 1)
    parts = np.column_stack([np.minimum(k, 1.0), k**2])[rises]
    noise, regret = np.maximum(np.linalg.lstsq(parts, known[rises] - known[0], rcond=None)[0], 0.0)
    regret = regret if regret > EQUAL * known[0] else 0.0
    if above <= noise + regret:  # up to reach 1: noise k + regret k^2 = above
        return float(2.0 * above / (noise + np.sqrt(noise**2 + 4.0 * regret * above)))
    return float(np.sqrt((above - noise) / regret)) if regret > 0.0 else float("inf")
