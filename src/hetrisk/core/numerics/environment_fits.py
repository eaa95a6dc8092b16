"""The environments of a partition side by side: a fit in each, and how far apart they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import ROUNDING
from hetrisk.core.numerics.glm import fit_glms
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import BoolArray, FloatArray, Rows, RowSource


@dataclass(frozen=True)
class EnvironmentFits:
    """One fit of y on x in each of K environments.

    Attributes
    ----------
    weight : (K,) total weight of the rows.
    coef, error : (K, d) coefficients and their standard errors; (K, C, d) for C classes.
    intercept : (K,) or (K, C).
    """

    weight: FloatArray
    coef: FloatArray
    error: FloatArray
    intercept: FloatArray


def membership(rows: Rows, partition: Partition | None) -> FloatArray:
    """(n, K) responsibilities of a block: by a partition, or as the rows carry them.

    Rows that carry none are one environment.
    """
    if partition is not None:
        return partition.of_rows(rows)
    return np.ones((len(rows), 1)) if rows.environments is None else rows.environments


def environment_fits(
    rows: RowSource,
    family: Family,
    partition: Partition | None,
    columns: BoolArray | None = None,
    ridge: float | None = None,
) -> EnvironmentFits:
    """Fit y on the chosen columns (the others held at zero) in every environment.

    ``ridge`` is that of `hetrisk.core.numerics.glm.fit_glm`; None for the family's own.
    """
    weigh = partial(membership, partition=partition)
    fits = fit_glms(rows, family, weigh, columns=columns, ridge=ridge)
    coef = np.stack([fit.coef for fit in fits])
    error = np.stack([fit.standard_error for fit in fits])
    intercept = np.stack([fit.intercept for fit in fits])
    if family.n_outputs == 1:
        coef, error, intercept = coef[:, 0], error[:, 0], intercept[:, 0]
    return EnvironmentFits(np.array([fit.weight for fit in fits]), coef, error, intercept)


def instability(fits: EnvironmentFits) -> FloatArray:
    """(d,) spread of each coefficient over environments beyond its error, relative to its mean.

    ``tau_j^2 = max(0, Var_k(beta_kj) - mean_k error_kj^2)``, the index is ``tau_j / |mean_k
    beta_kj|``. For several classes, squares are summed over classes first.
    """
    coef = fits.coef.reshape(len(fits.coef), -1, fits.coef.shape[-1])
    # What sampling alone would spread the coefficients by, taken off before the root.
    square_error = (fits.error**2).reshape(coef.shape).mean(axis=0).sum(axis=0)
    size = np.maximum(np.sqrt((coef.mean(axis=0) ** 2).sum(axis=0)), ROUNDING)
    spread = np.sqrt(np.maximum(coef.var(axis=0).sum(axis=0) - square_error, 0.0))
    index: FloatArray = spread / size
    return index
