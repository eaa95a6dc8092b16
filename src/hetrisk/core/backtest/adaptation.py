"""Move a model to a new environment with a few labelled rows of it: empirical Bayes.

The model's scores are off by delta_0 + z'delta in a new environment, z the standardised columns.
How large such deltas are is learned from the environments left out in the backtest: the prior is
normal with mean zero and variances Omega, those of greatest evidence. For numbers with residuals r
and noise s^2 the posterior is delta = (A'A / s^2 + Omega^-1)^-1 A'r / s^2 with A = (1, z): few rows
move the level a little, many rows move everything, and where environments never differed nothing
moves. For labels the same prior is joined to the log likelihood, and the mode is found by Newton
steps (Efron and Morris 1975 for the idea; MacKay 1992 for the evidence).

Few environments tell Omega badly, so the rows have a say in it: to move nothing, the level alone,
or slopes too, each weighs exp(-m loss / (2 least loss)) by its loss on the rows left out in turn
(pseudo Bayesian model averaging; Yao, Vehtari, Simpson and Gelman 2018).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.backtest.run import Problem, Tests
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.predictor import Inputs, LinearPart, Predictor, softmax

# What of Omega is taken for the level, and for slopes: nothing moves, the level does, slopes do.
SHARES = ((0.0, 0.0), (1.0, 0.0), (1.0, 0.25), (1.0, 1.0))
LEAST_ROWS = 5  # labelled rows from which on a level can be told from noise at all
STEPS: Budget[int] = 40  # of the fixed point, and of Newton
MOST_COLUMNS: Budget[int] = 60  # beyond, the level alone moves: a solve costs their cube
MOST_ENVIRONMENTS: Budget[int] = 80
ALIKE = 1e-3  # of the error: a level that moved less did not move
LEAST_NOISE = 1e-9  # of the variance of the target
COMMON = 4.0  # environments' worth of weight of the mean variance of slopes, in that of each


@dataclass(frozen=True)
class Drift:
    """How far a model's scores were off in environments left out.

    Attributes
    ----------
    centre, scale : (d,) that standardise the columns; scale inf for those that stay out.
    variance : (1 + d,) prior variances Omega of the level and of each slope.
    noise : s^2, the variance of numbers about level and slopes; one for labels.
    n_environments : what it rests on.
    """

    centre: FloatArray
    scale: FloatArray
    variance: FloatArray
    noise: float
    n_environments: int

    def design(self, X: FloatArray) -> FloatArray:
        """(n, 1 + d) the columns (1, z)."""
        z = (X - self.centre) / self.scale
        return np.column_stack([np.ones(len(X)), np.nan_to_num(z)])


@dataclass(frozen=True)
class Adaptation:
    """What adapting changed.

    Attributes
    ----------
    n_rows : labelled rows.
    shift, shift_error : of the level, and its posterior standard deviation.
    share : of the prior variance of the level that the rows removed: how sure the shift is.
    before, after : error on the labelled rows, the latter leaving each of them out in turn.
    """

    n_rows: int
    shift: float
    shift_error: float
    share: float
    before: float
    after: float

    def __str__(self) -> str:
        change = 100 * (self.after / self.before - 1) if self.before > 0 else 0.0
        level = "the slopes moved, and the level did not"
        if abs(self.shift) > ALIKE * self.before:
            moved, error = _written(self.shift, "+"), _written(self.shift_error)
            level = f"the level moved by {moved} (standard error {error}) and the slopes with it"
        return (
            f"On {self.n_rows} labelled rows {level}; leaving out each row in turn, the error went "
            f"from {_written(self.before)} to {_written(self.after)} ({change:+.0f} %)."
        ).replace("-", "−")


def _written(value: float, sign: str = "") -> str:
    """Three digits, and thousands apart."""
    return f"{float(f'{value:.3g}'):{sign},.10g}"


def drift_of(problem: Problem, tests: Tests, weight: FloatArray) -> Drift:
    """Measure on the environments left out how far the scores of a mixture are off."""
    rows = problem.rows
    d = rows.X.shape[1]
    total = rows.weight.sum()
    centre = rows.weight @ rows.X / total
    spread = np.sqrt(np.maximum(rows.weight @ (rows.X - centre) ** 2 / total, 0.0))
    some = spread > 1e-9 * np.maximum(np.abs(centre), 1e-300)
    scale = np.where(some if d <= MOST_COLUMNS else False, spread, np.inf)
    drift = Drift(centre, scale, np.zeros(1 + d), 1.0, 0)
    # The largest trainings are most like the model deployed.
    judged = sorted(tests.judged, key=lambda j: (-j.split, j.left.environment))
    judged = judged[:MOST_ENVIRONMENTS]
    grams, cross, residual, mass = [], [], 0.0, 0.0
    moving = np.append(True, np.isfinite(scale))  # of the others not even a zero is kept
    for j in judged:
        A, w = drift.design(rows.X[j.index])[:, moving], rows.weight[j.index]
        predicted, y = tests.mixed(j, weight), rows.y[j.index]
        if problem.n_outputs == 1:
            r = y - predicted[:, 0]
            grams.append((A.T * w) @ A)
            cross.append((A.T * w) @ r)
            # Of the noise the level is no part.
            residual += float(w @ (r - np.average(r, weights=w)) ** 2)
            mass += float(w.sum())
            continue
        for k in range(1, 2) if problem.n_outputs == 2 else range(problem.n_outputs):
            p = predicted[:, k]
            grams.append((A.T * (w * np.maximum(p * (1 - p), 1e-4))) @ A)
            cross.append((A.T * w) @ ((y == k) - p))
    noise = 1.0
    if mass > 0:
        mean = np.average(rows.y, weights=rows.weight)
        spread_of_y = float(np.average((rows.y - mean) ** 2, weights=rows.weight))
        # A model without errors, or environments of one row, leave nothing to be sure about.
        noise = max(residual / mass, LEAST_NOISE * spread_of_y) or 1.0
    variance = np.zeros(1 + d)
    variance[moving] = _variances(np.array(grams) / noise, np.array(cross) / noise)
    return replace(drift, variance=variance, noise=noise, n_environments=len(judged))


def _variances(gram: FloatArray, cross: FloatArray) -> FloatArray:
    """(q,) variances Omega of greatest evidence, by MacKay's fixed point.

    ``gram`` (E, q, q) are the precisions of the environments' rows, ``cross`` (E, q) the right-hand
    sides. With posterior means m and covariances V, omega_j becomes
    sum_e m_ej^2 / sum_e (1 - V_ejj / omega_j): at a fixed point the derivative of the evidence is
    zero, and variances that nothing speaks for fall to zero in steps where EM takes hundreds.
    """
    q, E = gram.shape[1], len(gram)
    information = np.einsum("eii->i", gram)
    used = information > 0
    # To begin with, a direction may be off by what the rows of one environment could show.
    variance = np.where(used, E / np.maximum(information, 1e-300), 0.0)
    slopes = used.copy()
    slopes[0] = False
    for _ in range(STEPS):
        root = np.sqrt(variance)
        # (R G R + I)^-1 with R = Omega^(1/2): variances may be zero.
        inverse = np.linalg.inv(root[:, None] * gram * root + np.eye(q))
        mean = root * (inverse @ (root * cross)[:, :, None])[:, :, 0]
        told = np.maximum(1.0 - np.diagonal(inverse, axis1=1, axis2=2), 0.0).sum(axis=0)
        square = (mean**2).sum(axis=0)
        # A slope borrows from the others what its own environments do not tell.
        if slopes.any():
            share = COMMON / E
            told[slopes] += share * told[slopes].mean()
            square[slopes] += share * square[slopes].mean()
        variance = np.where(used & (told > 0), square / np.maximum(told, 1e-300), 0.0)
    return variance


def adapt(
    predictor: Predictor, drift: Drift, rows: Inputs, y: FloatArray, weight: FloatArray
) -> tuple[Predictor, Adaptation]:
    """Return the predictor moved to the environment of the rows, and what that changed.

    ``y`` are numbers, or class codes; ``weight`` (m,) of the rows.
    """
    A, predicted = drift.design(rows.X), predictor.predict(rows)
    K = predicted.shape[1]
    if K == 1:
        delta, adaptation = _numbers(A, y - predicted[:, 0], weight, drift)
        delta = delta[:, None]
    else:
        delta, adaptation = _labels(A, predicted, y.astype(np.int64), weight, drift)
    finite = np.isfinite(drift.scale)
    coef = np.where(finite[:, None], delta[1:] / np.where(finite, drift.scale, 1.0)[:, None], 0.0)
    intercept = delta[0] - drift.centre @ coef
    part = LinearPart(coef, intercept, np.zeros(K))
    moved = replace(predictor, members=tuple((*member, part) for member in predictor.members))
    return moved, adaptation


def _priors(drift: Drift) -> list[Drift]:
    """The priors that are weighed."""
    slopes = np.arange(len(drift.variance)) > 0
    return [replace(drift, variance=drift.variance * np.where(slopes, b, a)) for a, b in SHARES]


def _posterior(gram: FloatArray, drift: Drift) -> FloatArray:
    """(q, q) posterior covariance."""
    root = np.sqrt(drift.variance)
    inner = root[:, None] * gram * root + np.eye(len(root))
    covariance: FloatArray = root[:, None] * np.linalg.inv(inner) * root
    return covariance


def _numbers(
    A: FloatArray, r: FloatArray, weight: FloatArray, drift: Drift
) -> tuple[FloatArray, Adaptation]:
    gram, cross = (A.T * weight) @ A / drift.noise, (A.T * weight) @ r / drift.noise
    deltas, left_out, variances = [], [], []
    for prior in _priors(drift):
        covariance = _posterior(gram, prior)
        delta = covariance @ cross
        leverage = np.einsum("ij,jk,ik->i", A, covariance, A) * weight / drift.noise
        deltas.append(delta)
        left_out.append((r - A @ delta) / np.maximum(1.0 - leverage, 1e-9))
        variances.append(covariance[0, 0])
    losses = np.array([np.average(e**2, weights=weight) for e in left_out])
    least = max(float(losses.min()), 1e-300)
    share = np.exp(-0.5 * weight.sum() * (losses - losses.min()) / least)
    share /= share.sum()
    before = float(np.sqrt(np.average(r**2, weights=weight)))
    after = float(np.sqrt(np.average((share @ np.array(left_out)) ** 2, weights=weight)))
    delta = share @ np.array(deltas)
    return delta, _told(A, delta[0], float(share @ variances), drift, before, after)


def _told(
    A: FloatArray, shift: float, variance: float, drift: Drift, before: float, after: float
) -> Adaptation:
    error, prior = float(np.sqrt(max(variance, 0.0))), float(drift.variance[0])
    share = 1.0 - variance / prior if prior > 0 else 0.0
    return Adaptation(len(A), float(shift), error, float(share), before, after)


def _labels(
    A: FloatArray, predicted: FloatArray, y: FloatArray, weight: FloatArray, drift: Drift
) -> tuple[FloatArray, Adaptation]:
    K = predicted.shape[1]
    base = np.log(np.maximum(predicted, 1e-12))
    # Rows are left out in ten parts, each of all kinds, in whatever order they came: a mode each.
    part = np.empty(len(y), dtype=np.int64)
    part[np.lexsort((y, *base.T))] = np.arange(len(y)) % min(10, len(y))
    deltas, losses = [], []
    for prior in _priors(drift):
        deltas.append(_mode(A, base, y, weight, prior))
        loss = 0.0
        for k in np.unique(part):
            inside = part != k
            moved = base + A @ _mode(A[inside], base[inside], y[inside], weight[inside], prior)
            p = softmax(moved[~inside])[np.arange((~inside).sum()), y[~inside]]
            loss -= float(weight[~inside] @ np.log(np.maximum(p, 1e-3)))
        losses.append(loss)
    share = np.exp(min(losses) - np.array(losses))
    share /= share.sum()
    delta = np.tensordot(share, np.array(deltas), axes=1)
    before, after = losses[0] / weight.sum(), float(share @ losses) / weight.sum()
    p = predicted[:, 1] if K == 2 else predicted.max(axis=1)
    covariance = _posterior((A.T * (weight * np.maximum(p * (1 - p), 1e-4))) @ A, drift)
    shift = delta[0, 1] - delta[0, 0] if K == 2 else delta[0].max() - delta[0].min()
    return delta, _told(A, shift, covariance[0, 0], drift, before, after)


def _mode(
    A: FloatArray, base: FloatArray, y: FloatArray, weight: FloatArray, drift: Drift
) -> FloatArray:
    """(q, K) posterior mode, by Newton steps class by class, halved where they overshoot."""
    K, q = base.shape[1], A.shape[1]
    free = drift.variance > 0
    precision = 1.0 / np.where(free, drift.variance, 1.0)
    hot = np.equal.outer(y, np.arange(K)).astype(np.float64)
    delta = np.zeros((q, K))
    classes = range(1, 2) if K == 2 else range(K)

    def value(delta: FloatArray) -> float:
        p = softmax(base + A @ delta)
        likelihood = weight @ np.log(np.maximum((p * hot).sum(axis=1), 1e-300))
        return float(likelihood - 0.5 * (precision[:, None] * delta**2)[free].sum())

    best = value(delta)
    for _ in range(STEPS):
        p = softmax(base + A @ delta)
        step = np.zeros_like(delta)
        for k in classes:
            gradient = A.T @ (weight * (hot[:, k] - p[:, k])) - precision * delta[:, k]
            curvature = (A.T * (weight * p[:, k] * (1 - p[:, k]))) @ A + np.diag(precision)
            step[free, k] = np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
        size, found = 1.0, value(delta + step)
        while found < best and size > 1e-4:
            size /= 2
            found = value(delta + size * step)
        if found <= best + 1e-12 * abs(best):
            break
        delta, best = delta + size * step, found
    return delta
