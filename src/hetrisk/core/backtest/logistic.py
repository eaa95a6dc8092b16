"""Logistic regression on rows, with a small ridge, and one that cross-validation chooses.

Minimises  -sum_i w_i log p_i(y_i) + (r / 2) sum_jk (s_j b_jk)^2  over intercepts and slopes, s_j the
standard deviation of column j; r = 1 is what scikit-learn's ``LogisticRegression`` minimises on
standardised columns. Newton steps, halved until the objective falls (Boyd and Vandenberghe 2004,
section 9.5). K classes have K columns of scores that sum to zero, as the ridge makes them.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray, IntArray

PLAIN = 1.0  # the ridge of plain: keeps labels that a column separates finite
RIDGES: Budget[tuple[float, ...]] = (3.0, 30.0, 300.0)  # tried beside it, with ``shrink``
FOLDS: Budget[int] = 4
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
    theta = _newton(np.column_stack([free, Z]), hot, weight, ridge, free.shape[1])
    share = weight @ free / total
    coef = np.zeros((X.shape[1], n_classes))
    coef[used] = theta[free.shape[1] :] / spread[used, None]
    return coef, share @ theta[: free.shape[1]] - centre @ coef


def _newton(
    A: FloatArray, hot: FloatArray, weight: FloatArray, ridge: float, n_free: int
) -> FloatArray:
    """(q, K) minimiser; the first ``n_free`` columns of A have no ridge to speak of."""
    q, K = A.shape[1], hot.shape[1]
    # Two classes share one slope, b / 2 and -b / 2: twice the ridge on each is the ridge on b.
    penalty = np.full(q, ridge * (2.0 if K == 2 else 1.0))
    penalty[:n_free] = LOOSE
    theta = np.zeros((q, K))
    value, p = _objective(A, hot, weight, penalty, theta)
    for _ in range(STEPS):
        gradient = A.T @ (weight[:, None] * (p - hot)) + penalty[:, None] * theta
        step = np.linalg.solve(_hessian(A, weight, p, penalty), gradient.T.ravel()).reshape(K, q).T
        decrease = float((gradient * step).sum())
        size = 1.0
        while True:
            trial, p_trial = _objective(A, hot, weight, penalty, theta - size * step)
            if trial <= value - 1e-4 * size * decrease or size < 1e-6:
                break
            size /= 2.0
        if trial <= value:
            theta, value, p = theta - size * step, trial, p_trial
        if decrease < 1e-12 * max(abs(value), 1.0):
            break
    return theta


def _objective(
    A: FloatArray, hot: FloatArray, weight: FloatArray, penalty: FloatArray, theta: FloatArray
) -> tuple[float, FloatArray]:
    scores = A @ theta
    log_p = scores - logsumexp(scores, axis=1, keepdims=True)
    value = -float(weight @ (hot * log_p).sum(axis=1)) + 0.5 * float(
        penalty @ theta**2 @ np.ones(theta.shape[1])
    )
    return value, np.exp(log_p)


def _hessian(A: FloatArray, weight: FloatArray, p: FloatArray, penalty: FloatArray) -> FloatArray:
    q, K = A.shape[1], p.shape[1]
    hessian = np.zeros((K, q, K, q))
    for a in range(K):
        for b in range(a, K):
            curvature = weight * p[:, a] * ((a == b) - p[:, b])
            block = (A.T * curvature) @ A
            hessian[a, :, b, :] = block
            hessian[b, :, a, :] = block
        hessian[a, :, a, :] += np.diag(penalty)
    return hessian.reshape(K * q, K * q)


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
            theta = _newton(A[inside], hot[inside], weight[inside], ridge, n_free)
            scores = A[~inside] @ theta
            log_p = scores - logsumexp(scores, axis=1, keepdims=True)
            loss -= float(weight[~inside] @ (hot[~inside] * log_p).sum(axis=1))
        losses.append(loss)
    return (PLAIN, *RIDGES)[int(np.argmin(losses))]
