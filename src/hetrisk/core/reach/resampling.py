"""Would the answer be the same on other rows? Resamples from the moments of folds.

A resample draws the folds of each environment with replacement (a bootstrap of blocks of rows):
its moments are sums of moments already at hand, so fifty of them cost no pass over the rows.
In each, the sets of columns that were best on all rows compete again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.core.numerics.thresholds import Budget, Constant
from hetrisk.core.reach.heterogeneity import environments_of
from hetrisk.core.reach.regret import Environments, combined
from hetrisk.core.reach.settings import SETTINGS

SPLITS: Budget[int] = 4  # of the folds into halves
# Of the draws: the same table gives the same answer, whatever random_state.
SEED: Constant[int] = 20210718


def resamples(
    cells: list[CellMoments], n_targets: int, phi: list[float], count: int = SETTINGS.resamples
) -> Iterator[Environments]:
    """Environments of resampled rows, the noise of their coefficients as on all rows."""
    random = np.random.default_rng(SEED)
    for _ in range(count):
        drawn = [_drawn(part, random) for part in cells]
        each = [environments_of(part, n_targets) for part in drawn]
        yield combined(
            [replace(e, phi=np.full(len(e.rows), f)) for e, f in zip(each, phi, strict=True)]
        )


def _drawn(cells: CellMoments, random: np.random.Generator) -> CellMoments:
    J, F = cells.weight.shape
    times = random.multinomial(F, np.full(F, 1.0 / F), size=J).astype(np.float64)
    return CellMoments(
        times * cells.weight, times * cells.square, times[..., None, None] * cells.gram
    )


def halves(
    cells: list[CellMoments], environments: Environments
) -> list[tuple[Environments, Environments]]:
    """Halves of the rows to fit to, each with the other to judge by; several splits."""
    pairs = []
    for split in range(SPLITS):
        order = np.random.default_rng(split).permutation(cells[0].weight.shape[1])
        sides = [_of_folds(cells, environments, order % 2 == side) for side in (0, 1)]
        pairs += [(sides[0], sides[1]), (sides[1], sides[0])]
    return pairs


def _of_folds(
    cells: list[CellMoments], environments: Environments, chosen: BoolArray
) -> Environments:
    parts = []
    for i, part in enumerate(cells):
        # Partitions may have fewer folds than the first.
        some = environments_of(
            part.merged_folds(np.resize(chosen, part.weight.shape[1])), environments.n_targets
        )
        phi = environments.phi[environments.partition == i].mean()
        parts.append(replace(some, phi=np.full(len(some.rows), phi)))
    return combined(parts)


@dataclass(frozen=True)
class SetErrors:
    """Risk (m,) and regrets (m, K) of m sets of columns, on all rows or in one resample.

    ``own`` (m, K) are the risks of the environments' own fits, ``mean`` (m,) the regrets over all
    rows.
    """

    risk: FloatArray
    regrets: FloatArray
    own: FloatArray
    mean: FloatArray

    def expected(self, reach: float) -> FloatArray:
        """(m,) E_k of each set."""
        expected: FloatArray = self.risk + reach**2 * self.regrets.max(axis=1, initial=0.0)
        return expected

    def removed(self, full: int) -> FloatArray:
        """(m,) share of the mean regret of all columns, set number ``full``, that is gone.

        Where y given a set of columns is the same everywhere, all of it is. Where little is gone,
        the relation of the columns that stay moves as well, and a set that seems to pay for the
        worst environment pays for that one alone.
        """
        gone: FloatArray = (self.mean[full] - self.mean) / max(float(self.mean[full]), TINY)
        return gone

    def best(self, reach: float, full: int, removed: float = SETTINGS.removed) -> int:
        """Number of the set with the least E_k that removes enough of the regret, or ``full``."""
        passes = self.removed(full) >= removed
        passes[full] = True
        return int(np.where(passes, self.expected(reach), np.inf).argmin())


def evaluate_sets(environments: Environments, sets: BoolArray) -> SetErrors:
    """Fit m sets of columns in one batch.

    Columns off a set get an identity row in its system: their coefficients are zero.
    """
    A, b, c = environments.stacked
    mask = np.column_stack([np.ones(len(sets), dtype=bool), sets])
    inside = mask[:, :, None] & mask[:, None, :]
    off = ~mask[:, None, :, None] * np.eye(mask.shape[1])
    systems = np.where(inside[:, None], A[None], 0.0) + off
    right = np.where(mask[:, None, :, None], b[None], 0.0)
    coef = np.linalg.solve(systems, right)
    risk = np.maximum(c - np.einsum("mkit,mkit->mk", coef, right), 0.0)
    gap = coef[:, :1] - coef[:, 1:]
    regret = (gap * (A[1:] @ gap)).sum(axis=(2, 3))
    chance = environments.noise(risk[:, 1:].T, mask.sum(axis=1)).T
    regrets = np.maximum(regret - chance, 0.0)
    return SetErrors(risk[:, 0], regrets, risk[:, 1:], regrets @ environments.share)
