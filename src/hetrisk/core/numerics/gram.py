"""Weighted Gram products of one block of columns, for many weight vectors at once.

Every M-step here is built from sums of w_i c_i c_i'. For a handful of weight vectors they are
taken one by one; for many (restarts side by side) the products c_a c_b are laid out once as
columns, and all the sums together are a single matrix product.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray, IntArray

PRODUCT_VALUES: Budget[int] = 4_000_000  # numbers up to which pair products are kept
MANY: Budget[int] = 64  # weight vectors for which laying out the products pays, though for one use


def pair_products(columns: FloatArray) -> FloatArray | None:
    """(n, p (p + 1) / 2) products of the columns two by two; None where that is too large."""
    n, p = columns.shape
    if n * p * (p + 1) // 2 > PRODUCT_VALUES:
        return None
    first, second = _pairs(p)
    products: FloatArray = columns[:, first] * columns[:, second]
    return products


def weighted_grams(
    columns: FloatArray, weights: FloatArray, products: FloatArray | None = None
) -> FloatArray:
    """Sum of w_i c_i c_i' over rows, for each weight vector.

    Parameters
    ----------
    columns : (n, p).
    weights : (..., n); they may be negative.
    products : what `pair_products` gave for these columns, or None.

    Returns
    -------
    (..., p, p)
    """
    p = columns.shape[1]
    flat = weights.reshape(-1, weights.shape[-1])
    grams = np.empty((len(flat), p, p))
    if products is None and len(flat) > MANY:
        products = pair_products(columns)
    if products is None:
        weighted = np.empty_like(columns)
        for gram, weight in zip(grams, flat, strict=True):
            np.multiply(columns, weight[:, None], out=weighted)
            np.matmul(columns.T, weighted, out=gram)
    else:
        first, second = _pairs(p)
        # (B, n) times (n, p (p + 1) / 2): half of a symmetric matrix is enough.
        packed = flat @ products
        grams[:, first, second] = packed
        grams[:, second, first] = packed
    return grams.reshape(*weights.shape[:-1], p, p)


@cache
def _pairs(p: int) -> tuple[IntArray, IntArray]:
    first, second = np.triu_indices(p)
    return first, second
