"""Why the error of a model rose: its level, its slopes, the noise, or where the columns lie.

On rows of one population let r = y - f(x) be what a model f misses (K outputs), z = (1, x - m)
with m the training mean, M = E[z z'], u = M^-1 E[z r'] the straight line through the residuals,
and s2 = E|r|^2 - tr(u'Mu) what no line explains. Then exactly

    E|r|^2 = s2 + tr(u' M u),

so the rise between two populations is that of s2 (noise, or a bend) and that of tr(u'Mu), which
changes because lines moved (u0 to u1: the level, and one slope a column) and because rows lie
elsewhere (M0 to M1). Which comes first is nobody's to say: the parts are the Shapley values of
these d + 2 changes. tr(u'Mu) is multilinear in them, so they are closed forms. With
d = u1 - u0 and D = M1 - M0, summed over outputs,

    part_i = d_i [2 M0 u0 + (M0 d) + (D u0) + (2/3) D d]_i - (1/6) d_i^2 D_ii,
    place  = u0'D u0 + d'D u0 + (1/3) d'D d + (1/6) sum_i d_i^2 D_ii,

and they add up to tr(u1'M1u1) - tr(u0'M0u0). For a linear f the line through the residuals is the
change of its own coefficients; for any other model it is what a line can tell of the change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from hetrisk.core.numerics.rows import FloatArray


@dataclass(frozen=True)
class Misses:
    """Residuals of a model over the columns, in one population.

    Attributes
    ----------
    n : rows.
    products : (d + 1, d + 1) mean of z z'.
    line : (d + 1, K) the straight line through the residuals: level at the training mean, slopes.
    loss : mean of |r|^2.
    noise : the part of it that the line leaves.
    error : (d + 1, K) standard errors of the line, for noise of any shape; inf where rows are few.
    """

    n: int
    products: FloatArray
    line: FloatArray
    loss: float
    noise: float
    error: FloatArray


@dataclass(frozen=True)
class Rise:
    """The parts of a rise in mean squared error; they sum to ``total``.

    Attributes
    ----------
    total : error now less error then.
    level : the model's level is off.
    slopes : (d,) the target follows this column in another way.
    place : rows lie elsewhere, where the same lines err more.
    noise : what no straight line tells: noise, or a bend.
    p_level, p_slopes : of the hypotheses that level and slopes are as they were, not corrected.
    """

    total: float
    level: float
    slopes: FloatArray
    place: float
    noise: float
    p_level: float
    p_slopes: FloatArray


def misses(X: FloatArray, residual: FloatArray, centre: FloatArray) -> Misses:
    """Summarise residuals (n, K) over columns (n, d), about ``centre`` (d,)."""
    n, d = X.shape
    Z = np.column_stack([np.ones(n), X - centre])
    products = Z.T @ Z / n
    # Columns in units of their own size: what is singular is then no matter of units.
    size = np.sqrt(np.diag(products))
    unit = np.outer(*[np.where(size > 0, size, 1.0)] * 2)
    inverse = np.linalg.pinv(products / unit, rcond=1e-10, hermitian=True) / unit
    line = inverse @ (Z.T @ residual / n)
    loss = float(np.mean(np.sum(residual**2, axis=1)))
    explained = float(np.sum(line * (products @ line)))
    left = residual - Z @ line
    spread = Z @ inverse
    # Leverage is divided out (HC2 without its diagonal): a fit of many columns looks too good.
    free = max(n - d - 1, 0)
    error = np.sqrt((spread**2).T @ (left**2) / (n * free)) if free else np.full_like(line, np.inf)
    return Misses(n, products, line, loss, loss - explained, error)


def rise(before: Misses, now: Misses) -> Rise:
    """Take the rise of the error from one population to another apart; see the module."""
    M, u = before.products, before.line
    D, moved = now.products - M, now.line - u
    own = np.sum(moved**2, axis=1) * np.diag(D)
    inner = 2 * M @ u + M @ moved + D @ u + 2 / 3 * D @ moved
    parts = np.sum(moved * inner, axis=1) - own / 6
    place = np.sum(u * (D @ u) + moved * (D @ u) + moved * (D @ moved) / 3) + own.sum() / 6
    p = _p_values(moved, np.hypot(before.error, now.error))
    return Rise(
        total=now.loss - before.loss,
        level=float(parts[0]),
        slopes=parts[1:],
        place=float(place),
        noise=now.noise - before.noise,
        p_level=float(p[0]),
        p_slopes=p[1:],
    )


def _p_values(moved: FloatArray, error: FloatArray) -> FloatArray:
    """(d + 1,) two-sided p-values, the least over outputs times their number."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(error > 0, np.abs(moved) / error, 0.0)
    outputs = max(moved.shape[1] - 1, 1)  # residuals of K classes sum to zero
    p: FloatArray = np.minimum(2 * stats.norm.sf(z.max(axis=1)) * outputs, 1.0)
    return p
