"""Without which columns is y one population in all environments?

If P(y given x_S) is the same everywhere, so are its regression and the size of its noise (the null
hypothesis of invariant causal prediction, Peters, Buehlmann and Meinshausen 2016). A shortcut that
says less about y in some environments shows in their noise long before it shows in coefficients,
which it shares with others of its kind. So where regret alone is not sure which columns to blame,
sets are looked for that take along *both*: most of the regret and most of what the noise of
environments differs by. What stays must then pass for one population.

The same question certifies a set that regret chose: no column is taken back into it that would
make several populations of one, and columns that leave need not be the same in as many resamples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.named_numbers import Budget, Constant
from hetrisk.core.numerics.rows import BoolArray, IntArray
from hetrisk.core.reach.blame import missing
from hetrisk.core.reach.columns import take_back_path
from hetrisk.core.reach.heterogeneity import FTest, heterogeneity, one_noise
from hetrisk.core.reach.regret import Environments
from hetrisk.core.reach.resampling import resample_sets
from hetrisk.core.reach.set_errors import evaluate_path
from hetrisk.core.reach.sweep import Costs
from hetrisk.core.reach.thresholds import REACH_THRESHOLDS
from hetrisk.core.thresholds import THRESHOLDS

TRIED: Budget[int] = 30  # sets that are tested, the best first
LEAST_POWER: Constant[float] = 0.5  # of a test that means something: as often as not it would see


@dataclass(frozen=True)
class PopulationSet:
    """(d,) columns given which y is one population, and the p-value of that."""

    columns: BoolArray
    p_value: float


@dataclass(frozen=True)
class _Compared:
    """The environments of one partition, compared given some columns.

    ``p_value`` is that of one regression, by whichever test sees more; ``regression`` is the test
    of all coefficients together, ``noise`` that of one size of the noise.
    """

    p_value: float
    regression: FTest
    noise: FTest

    def power(self, level: float, every: _Compared) -> float:
        """Power of the better test, did as much differ given these columns as given all.

        With s^2 the noise, regret counts as regret / s^2, and a gap between variances as its square
        over s^4: of what is the same, less is seen where there is more noise.
        """
        quieter = every.regression.variance / self.regression.variance
        return max(
            self.regression.power(level, quieter * every.regression.excess),
            self.noise.power(level, quieter**2 * every.noise.excess),
        )


@dataclass(frozen=True, eq=False)
class Certificate:
    """Whether y given some columns is one population in all environments.

    Attributes
    ----------
    cells : moments of each partition's environments and folds, and of the levels they were merged
        from.
    n_targets : t.
    """

    cells: list[CellMoments]
    n_targets: int

    def p_value(self, columns: BoolArray) -> float:
        """p-value of one regression and one size of noise in all environments.

        The smallest of two tests for each partition, counted as often as there are (Bonferroni).
        """
        return self._smallest(self._compared(columns))

    def passing(self, columns: BoolArray) -> float | None:
        """The p-value where y passes for one population, else None.

        To pass means something only where it could fail: leaving columns out adds noise, behind
        which anything may hide. So nothing passes that would, more often than not, even if all that
        differs given all columns still did.
        """
        compared = self._compared(columns)
        p_value = self._smallest(compared)
        level = REACH_THRESHOLDS.passes / (2 * len(compared))
        pairs = zip(compared, self._given_all, strict=True)
        could_fail = max(some.power(level, every) for some, every in pairs) >= LEAST_POWER
        return p_value if p_value >= REACH_THRESHOLDS.passes and could_fail else None

    def passes(self, columns: BoolArray) -> bool:
        """Whether y passes for one population."""
        return self.passing(columns) is not None

    @cached_property
    def _given_all(self) -> list[_Compared]:
        d = self.cells[0].gram.shape[-1] - 1 - self.n_targets
        return self._compared(np.ones(d, dtype=bool))

    def _compared(self, columns: BoolArray) -> list[_Compared]:
        d, t = len(columns), self.n_targets
        place = np.concatenate([[0], 1 + np.flatnonzero(columns), np.arange(1 + d, 1 + d + t)])
        found = []
        for part in self.cells:
            some = CellMoments(part.weight, part.square, part.gram[:, :, place[:, None], place])
            differ = heterogeneity(some, t)
            found.append(_Compared(differ.p_value, differ.test, one_noise(some, t)))
        return found

    def _smallest(self, compared: list[_Compared]) -> float:
        least = min(min(each.p_value, each.noise.p_value) for each in compared)
        return min(1.0, 2 * len(compared) * least)


def one_population(
    cells: list[CellMoments],
    environments: Environments,
    sets: BoolArray,
    costs: Costs,
    reach: float,
    groups: IntArray,
    certificate: Certificate,
) -> PopulationSet | None:
    """Of sets of columns (n, d), the one with the least E_k given which y is one population.

    Without it most of the regret must be gone, and most of what noise differs by; it must err less
    at the reach than all columns, which are one of the sets. And at least as many columns stay as
    leave: where most of them have to, it is not columns that are to blame, and what moves may only
    be hidden behind the noise of those that are gone. None where there is no such set. From
    it columns are taken back, those that cost least first, as long as all of this holds and the
    error is within two standard errors of the least (over resamples).
    """
    minor = partial(_minor, environments, groups=groups)
    able = _able(costs, int(sets.all(axis=1).argmax()), reach, minor(sets))
    best = able[np.argsort(costs.expected(reach)[able], kind="stable")][:TRIED]
    start = next((i for i in best if certificate.passes(sets[i])), None)
    if start is None:
        return None
    path = take_back_path(environments, reach, groups, sets[start])
    nested = _able(evaluate_path(environments, path).costs, len(path) - 1, reach, minor(path))
    passes = np.zeros(len(path), dtype=bool)
    passes[0], passes[nested] = True, [certificate.passes(path[i]) for i in nested]
    tried = resample_sets(cells, environments, path, path[:0], reach)
    columns = path[tried.within_errors(passes)]
    return PopulationSet(columns, certificate.p_value(columns))


def _minor(environments: Environments, sets: BoolArray, groups: IntArray) -> BoolArray:
    """(m,) sets in which at most half of the columns are missing."""
    count, together = missing(environments, sets, groups)
    few: BoolArray = 2 * count <= together
    return few


def _able(costs: Costs, full: int, reach: float, allowed: BoolArray) -> IntArray:
    """Numbers of the sets that take most of what moves along, and err less than number ``full``."""
    quiet = costs.noise_gap <= (1.0 - THRESHOLDS.removed) * costs.noise_gap[full]
    expected = costs.expected(reach)
    cured = costs.left_beyond(full) <= 0.0
    return np.flatnonzero(allowed & cured & quiet & (expected < expected[full]))
