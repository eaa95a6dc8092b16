"""Logistic regression on rows, with a small ridge, and one that cross-validation chooses.

Minimises  -sum_i w_i log p_i(y_i) + (r / 2) sum_jk (s_j b_jk)^2  over intercepts and slopes, s_j
the standard deviation of column j; for two classes the b are slopes of the log odds. r = 1 is what
scikit-learn's ``LogisticRegression`` minimises on standardised columns. Newton steps, halved until
the objective falls (Boyd and Vandenberghe 2004, section 9.5), for two classes; L-BFGS, and a last
Newton step by conjugate gradients, for more.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit, logsumexp

from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.core.predictor import softmax

PLAIN = 1.0  # the ridge of plain: keeps labels that a column separates finite
RIDGES: Budget[tuple[float, ...]] = (10.0, 100.0)  # tried beside it, with ``shrink``
FOLDS: Budget[int] = 3
STEPS: Budget[int] = 50
LOOSE = 1e-4  # of the intercepts: a whole row of no weight, so that classes never seen stay finite


def logistic(
    X: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    n_classes: int,
    shrink: bool = False,
    level: IntArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return coefficients (d, K) and intercepts (K,).

    ``level`` (n,) gives rows groups with intercepts of their own, which are then averaged.
    """
    total = weight.sum()
    centre = weight @ X / total
    spread = np.sqrt(np.maximum(weight @ (X - centre) ** 2 / total, 0.0))
    used = spread > 1e-9 * np.maximum(np.abs(centre), 1e-300)
    Z = (X[:, used] - centre[used]) / spread[used]
    free = np.ones((len(Z), 1))
    if level is not None:
        free = np.equal.outer(level, np.unique(level)).astype(np.float64)
    hot = np.equal.outer(y, np.arange(n_classes)).astype(np.float64)
    ridge = _cross_validated(Z, hot, weight, free) if shrink else PLAIN
    theta = _minimised(np.column_stack([free, Z]), hot, weight, ridge, free.shape[1])
    share = weight @ free / total
    coef = np.zeros((X.shape[1], n_classes))
    coef[used] = theta[free.shape[1] :] / spread[used, None]
    return coef, share @ theta[: free.shape[1]] - centre @ coef


def _minimised(
    A: FloatArray, hot: FloatArray, weight: FloatArray, ridge: float, n_free: int
) -> FloatArray:
    """(q, K) minimiser; the first ``n_free`` columns of A have no ridge to speak of."""
    K = hot.shape[1]
    penalty = np.full(A.shape[1], ridge)
    penalty[:n_free] = LOOSE
    if K > 2:
        return _several(A, hot, weight, penalty)
    beta = _binary(A, hot[:, 1], weight, penalty)
    return np.column_stack([-beta / 2, beta / 2])


def _binary(A: FloatArray, y: FloatArray, weight: FloatArray, penalty: FloatArray) -> FloatArray:
    """(q,) slopes of the log odds of two classes, by Newton steps that are halved if need be."""

    def objective(beta: FloatArray) -> tuple[float, FloatArray]:
        score = A @ beta
        value = weight @ (np.logaddexp(0.0, score) - y * score) + 0.5 * penalty @ beta**2
        return float(value), expit(score)

    beta = np.zeros(A.shape[1])
    value, p = objective(beta)
    for _ in range(STEPS):
        gradient = A.T @ (weight * (p - y)) + penalty * beta
        curvature = (A.T * (weight * p * (1 - p))) @ A
        curvature[np.diag_indices_from(curvature)] += penalty
        step = np.linalg.solve(curvature, gradient)
        decrease, size = float(gradient @ step), 1.0
        trial, p_trial = objective(beta - step)
        while trial > value - 1e-4 * size * decrease and size > 1e-6:
            size /= 2.0
            trial, p_trial = objective(beta - size * step)
        if trial <= value:
            beta, value, p = beta - size * step, trial, p_trial
        if decrease < 1e-12 * max(abs(value), 1.0):
            break
    return beta


def _several(A: FloatArray, hot: FloatArray, weight: FloatArray, penalty: FloatArray) -> FloatArray:
    """(q, K) slopes of more than two classes, by a quasi-Newton method and a Newton step.

    The former compares values, and stops where these are rounding: half the digits of the slopes.
    """
    shape = (A.shape[1], hot.shape[1])
    # On columns of unit curvature the steps are few.
    scale = 1.0 / np.sqrt(weight @ A**2 / 4 + penalty)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        theta = flat.reshape(shape) * scale[:, None]
        scores = A @ theta
        log_p = scores - logsumexp(scores, axis=1, keepdims=True)
        value = -weight @ (hot * log_p).sum(axis=1) + 0.5 * (penalty[:, None] * theta**2).sum()
        gradient = A.T @ (weight[:, None] * (np.exp(log_p) - hot)) + penalty[:, None] * theta
        return float(value), (gradient * scale[:, None]).ravel()

    start = np.zeros(scale.size * shape[1])
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 1000, "maxfun": 2000, "ftol": 1e-15, "gtol": 1e-8, "maxcor": 30},
    )
    p = softmax(A @ (found.x.reshape(shape) * scale[:, None]))

    def curved(flat: FloatArray) -> FloatArray:
        theta = flat.reshape(shape) * scale[:, None]
        scores = A @ theta
        moved = p * (scores - (p * scores).sum(axis=1, keepdims=True))
        product = A.T @ (weight[:, None] * moved) + penalty[:, None] * theta
        return np.asarray((product * scale[:, None]).ravel())

    slope = objective(found.x)[1]
    step = cg(LinearOperator((len(slope),) * 2, curved, dtype=np.float64), slope, rtol=1e-6)[0]
    nearer = np.abs(objective(found.x - step)[1]).max() < np.abs(slope).max()
    theta = found.x - step if nearer else found.x
    return np.asarray(theta.reshape(shape) * scale[:, None], dtype=np.float64)


def _cross_validated(Z: FloatArray, hot: FloatArray, weight: FloatArray, free: FloatArray) -> float:
    """The ridge of least log loss on folds of the rows, which stand in an order of content."""
    fold = np.arange(len(Z)) % FOLDS
    A, n_free = np.column_stack([free, Z]), free.shape[1]
    losses = []
    for ridge in (PLAIN, *RIDGES):
        loss = 0.0
        for f in range(FOLDS):
            inside = fold != f
            if not inside.any() or inside.all():
                continue
            theta = _minimised(A[inside], hot[inside], weight[inside], ridge, n_free)
            scores = A[~inside] @ theta
            log_p = scores - logsumexp(scores, axis=1, keepdims=True)
            loss -= float(weight[~inside] @ (hot[~inside] * log_p).sum(axis=1))
        losses.append(loss)
    return (PLAIN, *RIDGES)[int(np.argmin(losses))]
