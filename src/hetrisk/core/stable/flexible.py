"""A mean that may bend: the columns, and the products and hinges that the rows plainly ask for.

A linear model cannot draw a curve; where selection made a column go along with the target, least
squares gives it a weight in place of the curve. This mean needs no such proxy. Products of up to
three columns (squares and cubes among them) are scored by matrix products without being laid out;
the best are scored exactly, and enter one by one while their robust score is plain.
"""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.stable.population import KNOTS, PLAIN, plain_scores
from hetrisk.core.stable.two_slopes import FAR

MOST_TERMS: Budget[int] = 8
FINALISTS: Budget[int] = 40  # products that are scored exactly
PRODUCT_COLUMNS: Budget[int] = 40  # that products are sought among: those that matter most


def flexible_mean(X: FloatArray, y: FloatArray, weight: FloatArray) -> FloatArray:
    """(n,) least squares of y on the columns and a few terms."""
    base = np.column_stack([np.ones(len(X)), X])
    clipped = np.clip(X, -FAR, FAR)
    hinges = np.column_stack([np.abs(x[:, None] - np.unique(np.quantile(x, KNOTS))) for x in X.T])
    factors = np.column_stack([np.ones(len(X)), clipped[:, _active(base, y, weight)]])
    design, fitted = base, _fit(base, y, weight)
    for _ in range(MOST_TERMS):
        candidates = np.column_stack([hinges, _products(factors, weight * (y - fitted))])
        score, gain = plain_scores(design, y, weight, candidates)
        best = int(np.argmax(np.where(score > PLAIN, gain, 0.0)))
        if score[best] <= PLAIN:
            break
        design = np.column_stack([design, candidates[:, best]])
        fitted = _fit(design, y, weight)
    return fitted


def _active(base: FloatArray, y: FloatArray, weight: FloatArray) -> np.ndarray:
    """Columns that matter most to the mean, or to how far the residuals spread."""
    residual = np.abs(y - _fit(base, y, weight))
    columns = base[:, 1:]
    empty = base[:, :1]
    spread = np.abs(columns)
    scores = [
        plain_scores(empty, v, weight, c)[0]
        for v, c in ((y, columns), (residual, columns), (residual, spread))
    ]
    order = np.argsort(-np.max(scores, axis=0), kind="stable")
    return np.sort(order[:PRODUCT_COLUMNS])


def _products(factors: FloatArray, residual: FloatArray) -> FloatArray:
    """(n, q) the products of three of the factors that go along with the residual most."""
    m = factors.shape[1]
    squared = factors**2
    scores, places = [], []
    for a in range(m):
        rest = slice(a, m)
        total = (factors[:, rest] * (residual * factors[:, a])[:, None]).T @ factors[:, rest]
        square = (squared[:, rest] * (residual**2 * squared[:, a])[:, None]).T @ squared[:, rest]
        b, c = np.triu_indices(m - a)
        scores.append((np.abs(total) / np.sqrt(np.maximum(square, TINY)))[b, c])
        places.append(np.column_stack([np.full(len(b), a), a + b, a + c]))
    best = np.argsort(-np.concatenate(scores), kind="stable")[:FINALISTS]
    chosen = np.concatenate(places)[best]
    return np.asarray(factors[:, chosen].prod(axis=2), dtype=np.float64)


def _fit(design: FloatArray, y: FloatArray, weight: FloatArray) -> FloatArray:
    root = np.sqrt(weight)
    coef = np.linalg.lstsq(root[:, None] * design, root * y, rcond=None)[0]
    return np.asarray(design @ coef, dtype=np.float64)
