"""Is a regression the same in all environments? Tests, as functions of arrays.

Each says its null hypothesis, its statistic and where it is from. Rows are independent given the
columns; noise may depend on them (all standard errors are robust). A weight counts rows: weight 2
is the row twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2
from scipy.stats import f as fisher

from hetrisk.core.numerics.floors import EXACT, MOST_LEVERAGE, SINGULAR, TINY
from hetrisk.core.numerics.rows import FloatArray, IntArray


def slopes_differ(
    X: FloatArray, y: FloatArray, environments: IntArray, weight: FloatArray | None = None
) -> float:
    """p-value of H0: the regression of y on (1, x) is the same in all environments.

    With b_e the least squares coefficients (p of them) of environment e and V_e their covariance,
    robust to noise of any size (HC3, MacKinnon and White 1985),

        Q_e = (b_e - b)' V_e^-1 (b_e - b),   b = (sum_e V_e^-1)^-1 sum_e V_e^-1 b_e

    is Hotelling's T^2 with n_e - p degrees of freedom; each is brought to the chi-squared variable
    of the same tail probability, and their sum has (K - 1) p degrees of freedom. It is Chow's test
    (1960) without his assumption of one variance, and holds its level from four rows a coefficient
    on. Environments with fewer than p + 3 rows take no part.

    Parameters
    ----------
    X : (n, d) columns, d >= 0.
    y : (n,) target.
    environments : (n,) codes 0, 1, ...; negative for none.
    weight : (n,) counts of rows; None for one each.
    """
    fits = _fits(X, y, environments, weight)
    if len(fits) < 2:
        return 1.0
    p = X.shape[1] + 1
    coef, covariance, rows = (np.stack(part) for part in zip(*fits, strict=True))
    precision = np.linalg.pinv(covariance, rcond=SINGULAR, hermitian=True)
    total, each = precision.sum(axis=0), (precision @ coef[..., None])[..., 0].sum(axis=0)
    gap = coef - np.linalg.pinv(total, rcond=SINGULAR, hermitian=True) @ each
    q = np.maximum(np.einsum("ki,kij,kj->k", gap, precision, gap), 0.0)
    tail = fisher.sf(q * (rows - p) / (p * (rows - 1)), p, rows - p)
    return float(chi2.sf(chi2.isf(np.maximum(tail, TINY), p).sum(), (len(fits) - 1) * p))


def each_slope_differs(
    X: FloatArray, y: FloatArray, environments: IntArray, weight: FloatArray | None = None
) -> FloatArray:
    """(d,) p-values of H0: given the others, the slope of a column is the same in all environments.

    Cochran's Q (1954) of the slopes with the errors of `slopes_differ`, chi-squared with K - 1
    degrees of freedom.
    """
    fits = _fits(X, y, environments, weight)
    if len(fits) < 2:
        return np.ones(X.shape[1])
    coef = np.stack([b for b, _, _ in fits])[:, 1:]
    variance = np.stack([np.diag(v) for _, v, _ in fits])[:, 1:]
    # A slope without an error belongs to a column that never varies there: it says nothing.
    precision = np.where(variance > TINY, 1.0 / np.maximum(variance, TINY), 0.0)
    total = precision.sum(axis=0)
    centre = (precision * coef).sum(axis=0) / np.where(total > 0, total, 1.0)
    freedom = np.maximum((precision > 0).sum(axis=0) - 1, 1)
    p_values: FloatArray = chi2.sf((precision * (coef - centre) ** 2).sum(axis=0), freedom)
    return p_values


def spreads_differ(
    residual: FloatArray, environments: IntArray, weight: FloatArray | None = None
) -> float:
    """p-value of H0: residuals are as large in all environments.

    Levene's test (1960): an analysis of variance of the absolute residuals, with m_e their mean in
    environment e, m that of all, and W the squares about the m_e,

        F = (n - K) / (K - 1) * sum_e n_e (m_e - m)^2 / W,

    which asks for no normal noise. It has Fisher's distribution with K - 1 and n - K degrees of
    freedom; environments of two rows or fewer take no part.
    """
    w = np.ones(len(residual)) if weight is None else weight
    size, held = np.abs(residual), environments >= 0
    codes, K = environments[held], int(environments.max(initial=-1)) + 1
    n, total, square = (np.bincount(codes, v[held], K) for v in (w, w * size, w * size**2))
    some = n > 2.0
    if some.sum() < 2:
        return 1.0
    n, mean, square = n[some], total[some] / n[some], square[some]
    rows, k = float(n.sum()), len(n)
    # Residuals that are all alike, as of an exact fit, are as large as each other up to rounding.
    within = max(float((square - n * mean**2).sum()), SINGULAR * rows * mean.max() ** 2 + TINY)
    between = float(n @ (mean - n @ mean / rows) ** 2)
    return float(fisher.sf(between / within * (rows - k) / (k - 1), k - 1, rows - k))


def noise_differs(
    X: FloatArray, y: FloatArray, environments: IntArray, weight: FloatArray | None = None
) -> float:
    """p-value of H0: the noise of y about each environment's own regression is as large in all.

    `spreads_differ` of residuals over the root of one less leverage.
    """
    w = np.ones(len(y)) if weight is None else weight
    residual, codes = np.zeros(len(y)), np.full(len(y), -1)
    for k in range(int(environments.max(initial=-1)) + 1):
        own = np.flatnonzero(environments == k)
        if w[own].sum() < X.shape[1] + 4:
            continue
        fit = _least_squares(X[own], y[own], w[own])
        residual[own], codes[own] = fit.residual / np.sqrt(1.0 - fit.leverage), k
    return spreads_differ(_beyond_rounding(residual, y, w), codes, weight)


def column_differs(
    X: FloatArray, column: FloatArray, environments: IntArray, weight: FloatArray | None = None
) -> float:
    """p-value of H0: the column, given others X, has one regression and one noise everywhere.

    The smaller p-value of `slopes_differ` and of `spreads_differ` of the residuals of the pooled
    regression, doubled (Bonferroni). Of an effect of y, or of a column that rows were selected by,
    it is this that moves between environments; of a cause whose slope moves it is not.
    """
    w = np.ones(len(column)) if weight is None else weight
    residual = _beyond_rounding(_least_squares(X, column, w).residual, column, w)
    slopes = slopes_differ(X, column, environments, weight)
    return min(1.0, 2.0 * min(slopes, spreads_differ(residual, environments, weight)))


def _fits(
    X: FloatArray, y: FloatArray, environments: IntArray, weight: FloatArray | None
) -> list[tuple[FloatArray, FloatArray, float]]:
    """Coefficients, robust covariance and rows of each environment that holds enough."""
    w = np.ones(len(y)) if weight is None else weight
    fits, exact = [], EXACT * _variance(y, w)
    for k in range(int(environments.max(initial=-1)) + 1):
        own = np.flatnonzero(environments == k)
        rows = float(w[own].sum())
        if rows < X.shape[1] + 4:
            continue
        fit = _least_squares(X[own], y[own], w[own])
        scores = fit.influence * (fit.residual / (1.0 - fit.leverage) * np.sqrt(w[own]))[:, None]
        # Where the fit is exact, residuals are rounding, and would decide by the order of rows.
        noisy = w[own] @ fit.residual**2 > exact * rows
        covariance = scores.T @ scores if noisy else exact * fit.inverse
        fits.append((fit.coef, covariance, rows))
    return fits


@dataclass(frozen=True)
class _Fit:
    """Coefficients (p,), residuals (n,), leverage (n,) and influence (n, p) of a row, inverse."""

    coef: FloatArray
    residual: FloatArray
    leverage: FloatArray
    influence: FloatArray
    inverse: FloatArray


def _least_squares(X: FloatArray, y: FloatArray, w: FloatArray) -> _Fit:
    Z = np.column_stack([np.ones(len(X)), X])
    gram = Z.T @ (w[:, None] * Z)
    inverse = np.asarray(np.linalg.pinv(gram, rcond=SINGULAR, hermitian=True), dtype=np.float64)
    influence = Z @ inverse
    coef = inverse @ (Z.T @ (w * y))
    leverage = np.clip((influence * Z).sum(axis=1), 0.0, MOST_LEVERAGE)
    return _Fit(coef, y - Z @ coef, leverage, influence, inverse)


def _beyond_rounding(residual: FloatArray, y: FloatArray, w: FloatArray) -> FloatArray:
    """Residuals, those of an exact fit zero."""
    return np.where(residual**2 > EXACT * _variance(y, w), residual, 0.0)


def _variance(y: FloatArray, w: FloatArray) -> float:
    return float(w @ (y - w @ y / w.sum()) ** 2 / w.sum())
