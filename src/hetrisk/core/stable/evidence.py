"""What the tests of `homogeneity` are computed from: rows, or moments where there are no rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from scipy.stats import chi2
from scipy.stats import f as fisher

from hetrisk.core.numerics.floors import EXACT, TINY, TINY_ROOT
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.stable.homogeneity import column_differs, noise_differs, slopes_differ
from hetrisk.core.stable.regressions import Regressions


class Evidence(Protocol):
    """p-values of three hypotheses of sameness between environments."""

    def slopes(self, support: BoolArray) -> float:
        """H0: the regression of y on the set is the same everywhere."""
        ...

    def noise(self) -> float:
        """H0: the noise of y given all columns is of one size everywhere."""
        ...

    def column(self, column: int, support: BoolArray) -> float:
        """H0: the column, given the set, has one regression and one noise everywhere."""
        ...


def of_several(p_values: list[float]) -> float:
    """The smallest of several p-values, corrected for their number (Bonferroni)."""
    return min(1.0, len(p_values) * min(p_values, default=1.0))


@final
@dataclass(frozen=True)
class RowEvidence:
    """From rows: X (n, d), Y (n, t), environments (n,), weights (n,)."""

    X: FloatArray
    Y: FloatArray
    environments: IntArray
    weight: FloatArray

    def slopes(self, support: BoolArray) -> float:
        """See `Evidence`."""
        return self._of_targets(slopes_differ, support)

    def noise(self) -> float:
        """See `Evidence`."""
        return self._of_targets(noise_differs, np.ones(self.X.shape[1], dtype=bool))

    def column(self, column: int, support: BoolArray) -> float:
        """See `Evidence`."""
        given = self.X[:, support]
        return column_differs(given, self.X[:, column], self.environments, self.weight)

    def _of_targets(self, test: Callable[..., float], support: BoolArray) -> float:
        given = self.X[:, support]
        return of_several([test(given, y, self.environments, self.weight) for y in self.Y.T])


@final
@dataclass(frozen=True)
class MomentEvidence:
    """From the sums (K, q, q) of z z': as if noise were normal and of one size in an environment.

    Robust errors need the rows; where these are at hand, `RowEvidence` is the better witness.
    """

    sums: FloatArray
    n_targets: int

    def slopes(self, support: BoolArray) -> float:
        """See `Evidence`."""
        d = len(support)
        targets = range(1 + d, 1 + d + self.n_targets)
        return of_several([self._slopes(support, y) for y in targets])

    def noise(self) -> float:
        """See `Evidence`."""
        d = self.sums.shape[-1] - 1 - self.n_targets
        targets = range(1 + d, 1 + d + self.n_targets)
        return of_several([self._spread(np.ones(d, dtype=bool), y, own=True) for y in targets])

    def column(self, column: int, support: BoolArray) -> float:
        """See `Evidence`."""
        at = 1 + column
        return of_several([self._slopes(support, at), self._spread(support, at, own=False)])

    def _fitted(self, support: BoolArray, target: int) -> tuple[Regressions, FloatArray, int]:
        """Fits of one column of z on a set, in the environments that hold enough rows for it."""
        at = np.concatenate([[0], 1 + np.flatnonzero(support), [target]])
        rows = self.sums[:, 0, 0]
        some = rows >= len(at) + 2
        gram = self.sums[some][:, at][:, :, at]
        if not some.any():
            return Regressions.on(self.sums[:1], np.zeros(0, dtype=bool)), rows[:0], 1
        return Regressions.on(gram, np.ones(len(at) - 2, dtype=bool)), rows[some], len(at) - 1

    def _slopes(self, support: BoolArray, target: int) -> float:
        fit, rows, p = self._fitted(support, target)
        if len(rows) < 2:
            return 1.0
        gram, coef = fit.gram[:, :p, :p], fit.coef[:-1, :, 0]
        # Of an exact fit rounding is left; beside the column's own variance it counts as none.
        own = np.maximum(fit.gram[:, -1, -1] / rows, TINY_ROOT)
        variance = np.maximum(fit.rss[:-1] / (rows - p), EXACT * own)
        precision = gram / variance[:, None, None]
        each = (precision @ coef[..., None])[..., 0].sum(axis=0)
        gap = coef - np.linalg.pinv(precision.sum(axis=0), hermitian=True) @ each
        q = np.maximum(np.einsum("ki,kij,kj->k", gap, precision, gap), 0.0)
        tail = np.maximum(fisher.sf(q / p, p, rows - p), TINY)
        return float(chi2.sf(chi2.isf(tail, p).sum(), (len(rows) - 1) * p))

    def _spread(self, support: BoolArray, target: int, own: bool) -> float:
        """Bartlett's test (1937) on the logarithms of the mean squared residuals."""
        fit, rows, p = self._fitted(support, target)
        if len(rows) < 2:
            return 1.0
        losses = fit.losses()
        log = np.log(np.maximum(losses.own if own else losses.pooled, TINY))
        freedom = rows - p
        gap = log - freedom @ log / freedom.sum()
        return float(chi2.sf((freedom / 2.0) @ gap**2, len(rows) - 1))
