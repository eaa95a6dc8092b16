"""Would the answer be the same on other rows? Resamples from the moments of folds.

A resample draws the folds of each environment with replacement (a bootstrap of blocks of rows):
its moments are sums of moments already at hand, so fifty of them cost no pass over the rows, and
are made and fitted side by side. In each, the sets of columns that were best on all rows compete
again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.floors import EQUAL
from hetrisk.core.numerics.named_numbers import Budget, Constant
from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.core.reach.curve import Line
from hetrisk.core.reach.heterogeneity import completed
from hetrisk.core.reach.regret import Environments, combined
from hetrisk.core.reach.set_errors import SetErrors, evaluate_path, evaluate_sets, joined
from hetrisk.core.reach.sweep import Costs
from hetrisk.core.thresholds import THRESHOLDS

RESAMPLES: Budget[int] = 50  # from the moments of folds: they take less time than the fit
# Standard errors within which sets do equally well: what is known no better decides nothing.
ERRORS: Constant[float] = 2.0
SPLITS: Budget[int] = 4  # of the folds into halves
# Of the draws: the same table gives the same answer, whatever random_state.
SEED: Constant[int] = 20210718
BATCH: Budget[int] = 50_000  # numbers in the moments of the resamples made at a time


def resamples(
    cells: list[CellMoments], environments: Environments, count: int = RESAMPLES
) -> Iterator[Environments]:
    """Environments of resampled rows, some at a time.

    Their coefficients have the noise of the rows, and that of the draw beside it: the variance of a
    mean over F folds drawn with replacement is (F - 1) / F of that over the rows. So the regret
    that chance alone shows there is 2 - 1 / F times as large as on all rows.
    """
    random = np.random.default_rng(SEED)
    shapes = [part.weight.shape for part in cells]
    chances = [(J, F, np.full(F, 1.0 / F)) for J, F in shapes]
    # How often each fold of each environment is drawn.
    drawn = [[random.multinomial(F, p, size=J) for J, F, p in chances] for _ in range(count)]
    times = [np.array(each, dtype=np.float64) for each in zip(*drawn, strict=True)]
    twice = np.concatenate([np.full(J, 2.0 - 1.0 / F) for J, F in shapes])
    step = max(1, BATCH // environments.gram.size)
    for start in range(0, count, step):
        some = [each[start : start + step] for each in times]
        made = _of_folds(cells, environments, some)
        yield replace(made, phi=twice * made.phi)


def without_a_fold(cells: list[CellMoments], environments: Environments) -> Environments:
    """All rows but those of one fold, and of the next, and so on: F sets of rows (a jackknife)."""
    most = max(part.weight.shape[1] for part in cells)
    others = 1.0 - np.eye(most)
    # A partition of fewer folds has nothing to lose in the last ones.
    return _of_folds(cells, environments, [others[:, None, : p.weight.shape[1]] for p in cells])


def halves(cells: list[CellMoments], environments: Environments) -> Environments:
    """Halves of the rows: the first and the second make up all rows, and so on; several splits."""
    first = [np.random.default_rng(s).permutation(cells[0].weight.shape[1]) for s in range(SPLITS)]
    chosen = np.array([order % 2 == side for order in first for side in (0, 1)], dtype=np.float64)
    # Partitions may have fewer folds than the first.
    times = [np.array([np.resize(c, part.weight.shape[1]) for c in chosen]) for part in cells]
    return _of_folds(cells, environments, [each[:, None, :] for each in times])


def other_half(values: FloatArray) -> FloatArray:
    """Values (2 m, ...) of `halves`, each in the place of the half it was not made from."""
    swapped: FloatArray = values[np.arange(len(values)) ^ 1]
    return swapped


def _of_folds(
    cells: list[CellMoments], environments: Environments, times: list[FloatArray]
) -> Environments:
    """Environments of rows that count ``times`` (B, J, F), for each partition."""
    parts = []
    for i, (part, often) in enumerate(zip(cells, times, strict=True)):
        J, F = part.weight.shape
        often = np.broadcast_to(often, (len(often), J, F))
        weight, square = ((often * sums).sum(axis=2) for sums in (part.weight, part.square))
        gram = often.swapaxes(0, 1) @ part.gram.reshape(J, F, -1)
        shape = (len(often), J, *part.gram.shape[2:])
        phi = environments.phi[environments.partition == i].mean()
        parts.append(
            completed(
                weight, square, gram.swapaxes(0, 1).reshape(shape), environments.n_targets, phi
            )
        )
    return replace(combined(parts), sorted_by_noise=environments.sorted_by_noise)


@dataclass(frozen=True)
class ResampledSets:
    """Sets of columns on resampled rows.

    Attributes
    ----------
    sets : (m, d).
    reach : that they compete at.
    errors : of the sets, in each of B resamples.
    """

    sets: BoolArray
    reach: float
    errors: SetErrors

    @cached_property
    def expected(self) -> FloatArray:
        """(B, m) error of each set at the reach, in each resample."""
        return self.errors.expected(self.reach)

    def stability(self, eligible: BoolArray) -> FloatArray:
        """(d,) share of resamples in whose best ``eligible`` (B, m) set each column is missing."""
        best = self.sets[self.errors.costs.best(self.reach, eligible)]
        share: FloatArray = (~best).mean(axis=0)
        return share

    def agreement(self, chosen: int, other: int) -> float:
        """Share of resamples in which one set does at least as well as another."""
        ahead = self.expected[:, chosen] <= self.expected[:, other] * (1.0 + EQUAL)
        return float(ahead.mean())

    def within_errors(self, eligible: BoolArray) -> int:
        """Of the first sets: the last ``eligible`` (m,) one that does as well as the first of all.

        As well is within two standard errors of the difference, over the resamples.
        """
        best = 0
        for i in np.flatnonzero(eligible):
            gap = self.expected[:, i] - self.expected[:, 0]
            if gap.mean() <= ERRORS * gap.std(ddof=1):
                best = int(i)
        return best

    def lines(self, chosen: int, other: int) -> tuple[Line, Line]:
        """E_k of two sets in the resamples."""
        found = self.errors
        first, second = (
            Line(found.risk[:, i], found.noise_gap[:, i], found.regrets[:, i], found.own[:, i])
            for i in (chosen, other)
        )
        return first, second


def surely_cured(
    cells: list[CellMoments], environments: Environments, path: BoolArray, costs: Costs
) -> BoolArray:
    """(m,) sets along a path up to all columns that remove most of the regret on other rows, too.

    By the standard error of what they leave beyond the part that may be (a jackknife over the
    folds; ``costs`` are those on all rows), as surely as a choice must pay (`agreement`).
    """
    full = len(path) - 1
    replicates = evaluate_path(without_a_fold(cells, environments), path).costs
    other = replicates.left_beyond(full)
    error = np.sqrt((len(other) - 1) * other.var(axis=0))
    sure: BoolArray = costs.left_beyond(full) + ndtri(THRESHOLDS.agreement) * error <= 0.0
    return sure


def resample_sets(
    cells: list[CellMoments],
    environments: Environments,
    path: BoolArray,
    rivals: BoolArray,
    reach: float,
) -> ResampledSets:
    """Let sets of columns compete again in each resample: nested ones, then any others."""
    others = rivals[~(rivals[:, None] == path).all(axis=2).any(axis=1)]
    sets = np.vstack([path, others])
    batches = [evaluate_sets(drawn, sets) for drawn in resamples(cells, environments)]
    return ResampledSets(sets, reach, joined(batches))
