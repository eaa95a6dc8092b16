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
from functools import partial

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, IntArray
from hetrisk.core.reach.blame import missing
from hetrisk.core.reach.columns import take_back_path
from hetrisk.core.reach.heterogeneity import heterogeneity, one_noise
from hetrisk.core.reach.regret import Environments
from hetrisk.core.reach.resampling import resample_sets
from hetrisk.core.reach.set_errors import evaluate_path
from hetrisk.core.reach.sweep import Costs
from hetrisk.core.thresholds import THRESHOLDS

TRIED: Budget[int] = 30  # sets that are tested, the best first


@dataclass(frozen=True)
class PopulationSet:
    """(d,) columns given which y is one population, and the p-value of that."""

    columns: BoolArray
    p_value: float


def population_p_value(cells: list[CellMoments], n_targets: int, columns: BoolArray) -> float:
    """That y given some columns has one regression and one size of noise in all environments.

    The smallest of two tests for each partition, counted as often as there are (Bonferroni).
    """
    d = cells[0].gram.shape[-1] - 1 - n_targets
    place = np.concatenate([[0], 1 + np.flatnonzero(columns), np.arange(1 + d, 1 + d + n_targets)])
    found = []
    for part in cells:
        some = CellMoments(part.weight, part.square, part.gram[:, :, place[:, None], place])
        found += [heterogeneity(some, n_targets).p_value, one_noise(some, n_targets)]
    return min(1.0, len(found) * min(found))


def passes(cells: list[CellMoments], environments: Environments, columns: BoolArray) -> float:
    """`population_p_value` where it is at the level at least, else zero: several populations.

    Zero as well where environments are too thin to say: anything passes for one population there.
    """
    if environments.rows.min() < THRESHOLDS.fewest_rows * (1 + environments.n_columns):
        return 0.0
    p_value = population_p_value(cells, environments.n_targets, columns)
    return p_value if p_value >= THRESHOLDS.alpha else 0.0


def one_population(
    cells: list[CellMoments],
    environments: Environments,
    sets: BoolArray,
    costs: Costs,
    reach: float,
    groups: IntArray,
) -> PopulationSet | None:
    """Of sets of columns (n, d), the one with the least E_k given which y is one population.

    Without it most of the regret must be gone, and most of what noise differs by; it must err less
    at the reach than all columns, which are one of the sets. And at least as many columns stay as
    leave: where most of them have to, it is not columns that are to blame, and what moves may only
    be hidden behind the noise of those that are gone. None where there is no such set. From
    it columns are taken back, those that cost least first, as long as all of this holds and the
    error is within two standard errors of the least (over resamples).
    """
    test = partial(passes, cells, environments)
    minor = partial(_minor, environments, groups=groups)
    able = _able(costs, int(sets.all(axis=1).argmax()), reach, minor(sets))
    best = able[np.argsort(costs.expected(reach)[able], kind="stable")][:TRIED]
    start = next((i for i in best if test(sets[i])), None)
    if start is None:
        return None
    path = take_back_path(environments, reach, groups, sets[start])
    nested = _able(evaluate_path(environments, path).costs, len(path) - 1, reach, minor(path))
    p_values = np.zeros(len(path))
    p_values[nested] = [test(path[i]) for i in nested]
    p_values[0] = test(path[0])
    tried = resample_sets(cells, environments, path, path[:0], reach)
    at = tried.within_errors(p_values > 0.0)
    return PopulationSet(path[at], float(p_values[at]))


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
