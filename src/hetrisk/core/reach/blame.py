"""Are a few columns to blame, or does every relation move?

E_k(S) takes a set of columns at its word: beyond what was seen, y given S stays as it is. Where a
few columns are to blame that is so, and it shows: without them next to nothing moves any more.
Where every relation moves, leaving columns out takes a part of the movement along as well, the
larger the more of them leave, and nothing says that the rest will stay.

How much would stay then? Let the regret be spread evenly over the directions of x, in the metric of
its covariance. Leaving a column out removes one direction, and with K environments the share of a
direction is a chi-squared variable of K - 1 degrees of freedom, relative to the sum of all. Of u
columns the best q take the q largest shares with them; what stays is the sum of the u - q smallest.
Their sizes are taken at the quantiles (i - 1/2) / u.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtri

from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.regret import Environments


def evenly_left(n_columns: int, n_contrasts: int) -> FloatArray:
    """(u + 1,) share of the regret that stays without the best 0, 1, ..., u of u columns.

    If all relations move alike, between ``n_contrasts`` + 1 environments.
    """
    place = (np.arange(n_columns) + 0.5) / max(n_columns, 1)
    share = chdtri(max(n_contrasts, 1), place)  # the largest first
    stays = np.append(np.cumsum(share[::-1])[::-1], 0.0)
    left: FloatArray = stays / stays[0] if n_columns else np.ones(1)
    return left


def missing(environments: Environments, sets: BoolArray, groups: IntArray) -> tuple[IntArray, int]:
    """(m,) how many columns are missing in sets of them (m, d), and how many there are.

    Columns of one group count as one; those that never vary do not count.
    """
    varies = np.diag(environments.pooled)[1 : 1 + environments.n_columns] > 0
    first = np.unique(np.where(varies, groups, -1), return_index=True)[1]
    first = first[varies[first]]
    return (~sets[:, first]).sum(axis=1), len(first)


def left_by_all(environments: Environments, sets: BoolArray, groups: IntArray) -> FloatArray:
    """(m,) share of the regret that sets of columns (m, d) would leave if all relations moved."""
    n_contrasts = len(environments.rows) - len(np.unique(environments.partition))
    count, together = missing(environments, sets, groups)
    left: FloatArray = evenly_left(together, n_contrasts)[count]
    return left
