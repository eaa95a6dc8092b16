"""Which columns to leave out by regret alone, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.sparse.csgraph import connected_components

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.floors import NEARLY_SINGULAR
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.blame import left_by_all
from hetrisk.core.reach.columns import choose_columns, take_back_path
from hetrisk.core.reach.forms import DecisionProblem
from hetrisk.core.reach.heterogeneity import heterogeneity
from hetrisk.core.reach.population import Certificate
from hetrisk.core.reach.regret import Environments
from hetrisk.core.reach.resampling import ResampledSets, resample_sets, surely_cured
from hetrisk.core.reach.set_errors import evaluate_path, evaluate_sets
from hetrisk.core.reach.sweep import Costs
from hetrisk.core.result import SearchSettings


@dataclass(frozen=True)
class Choice:
    """The set of columns to use, and what it was chosen among.

    Attributes
    ----------
    wanted : (d,) the set with the least E_k, whether or not it can be trusted.
    met, costs : (n, d) all sets met, and what they cost.
    trusted : (n,) which of them can be.
    problem : what a form of the answer is made from; ``at`` is the number of the chosen set.
    stability : (d,) share of resamples in which each column leaves.
    sure : whether the chosen set removes most of the regret on other rows, too.
    certificate : whether y given a set is one population in all environments.
    varies, keep : (d,) columns that are not constant, and columns that never leave.
    groups : (d,) columns of one group leave together, those that repeat each other among them.
    """

    wanted: BoolArray
    met: BoolArray
    costs: Costs
    trusted: BoolArray
    problem: DecisionProblem
    stability: FloatArray
    sure: bool
    certificate: Certificate
    varies: BoolArray
    keep: BoolArray
    groups: IntArray

    @property
    def refused(self) -> bool:
        """Whether a set would pay at the reach, and none does that can be trusted so far."""
        return self.problem.at == self.problem.full and not self.wanted.all()

    @property
    def columns(self) -> BoolArray:
        """(d,) the set that was chosen."""
        chosen: BoolArray = self.problem.resampled.sets[self.problem.at]
        return chosen

    @cached_property
    def one_population(self) -> float | None:
        """p-value of y given the chosen set being one population; None where it does not pass."""
        return self.certificate.passing(self.columns)


def choose(
    cells: list[CellMoments],
    levels: list[CellMoments],
    environments: Environments,
    groups: IntArray,
    settings: SearchSettings,
) -> Choice:
    """Decide which columns leave.

    1. Look for sets with a small expected error at the reach.
    2. Of those that can be trusted so far (they pay where nothing is extrapolated, or what they
       leave out is to blame) take the one with the least.
    3. From it, take columns back one by one, those that cost least first, and stay with the largest
       trusted set whose error is within two standard errors of the least (over resamples), and
       which surely removes most of the regret: a column leaves only for a reason. If y given the
       first set is one population in all environments, so it is given this one.

    Merged environments are few, and a few columns may be to blame for what two or three of them
    differ by where every relation moves. So a set is trusted only where the ``levels`` that were
    merged say the same, and y is one population only where it is one in these.
    """
    d, reach = environments.n_columns, settings.reach
    varies = np.diag(environments.pooled)[1 : d + 1] > 0
    keep = settings.kept(d) | ~varies
    groups = repeats_together(environments, groups)
    found = choose_columns(environments, reach, groups, keep)
    t = environments.n_targets
    finer = [heterogeneity(part, t).environments for part in levels]
    trust = partial(_trusted, environments, finer, groups)
    everything = int(found.met.all(axis=1).argmax())
    trusted = trust(found.met, found.costs, everything)
    best = found.met[found.costs.best(reach, trusted)]
    path = take_back_path(environments, reach, groups, best)
    full = len(path) - 1
    resampled = resample_sets(cells, environments, path, found.rivals, reach)
    nested = evaluate_path(environments, path).costs
    sure = surely_cured(cells, environments, path, nested)
    # All columns are not one of the sets in between: whether leaving any out pays is asked below.
    between = np.arange(len(path)) < full
    allowed = trust(path, nested, full) & sure & between
    certificate = Certificate([*cells, *levels], t)
    at = _taken_back(resampled, allowed, certificate.passes)
    problem = DecisionProblem(cells, environments, reach, found.rivals, resampled, at, full)
    # Whether anything is to blame is asked of all rows; resamples, which carry the noise of the
    # rows twice, only of which columns.
    stability = resampled.stability(resampled.errors.costs.cured(full))
    return Choice(
        wanted=found.support,
        met=found.met,
        costs=found.costs,
        trusted=trusted,
        problem=problem,
        stability=stability,
        sure=bool(sure[at]),
        certificate=certificate,
        varies=varies,
        keep=keep,
        groups=groups,
    )


def repeats_together(environments: Environments, groups: IntArray) -> IntArray:
    """(d,) groups, of which those with columns that repeat each other are one.

    Which of two copies stays is a matter of rounding, and of no use: what moves stays with it.
    """
    among = slice(1, 1 + environments.n_columns)
    # Standardised columns, but for a centre: their correlation.
    mean = environments.pooled[0, among]
    gram = environments.pooled[among, among] - np.outer(mean, mean)
    size = np.diag(gram)
    # What is left of a column that never varies in any environment is rounding, and like anything.
    varies = size > NEARLY_SINGULAR * np.diag(environments.pooled)[among]
    alike = gram**2 >= (1.0 - NEARLY_SINGULAR) * np.outer(size, size)
    alike &= np.outer(varies, varies)
    joined = connected_components(alike | (groups[:, None] == groups), directed=False)[1]
    return np.asarray(joined, dtype=np.int64)


def _trusted(
    environments: Environments,
    finer: list[Environments],
    groups: IntArray,
    sets: BoolArray,
    costs: Costs,
    full: int,
) -> BoolArray:
    """(m,) sets of columns (m, d) that can be trusted, in merged environments and in ``finer``."""
    trusted = costs.trusted(full, left_by_all(environments, sets, groups))
    for levels in finer:
        able = np.flatnonzero(trusted)  # all columns, number ``full``, always are
        own = evaluate_sets(levels, sets[able]).costs
        here = int(np.searchsorted(able, full))
        trusted[able] = own.trusted(here, left_by_all(levels, sets[able], groups))
    return trusted


def _taken_back(
    resampled: ResampledSets, allowed: BoolArray, passes: Callable[[BoolArray], bool]
) -> int:
    """Number of the largest of the nested sets that are ``allowed`` (m,) and do as well.

    And make one population of all environments, if the first one does.
    """
    at, one = resampled.within_errors(allowed), None
    while at > 0:
        one = passes(resampled.sets[0]) if one is None else one
        if not one or passes(resampled.sets[at]):
            break
        # Regret may hardly tell what tests do: with this column y is several populations again.
        allowed = allowed & (np.arange(len(allowed)) != at)
        at = resampled.within_errors(allowed)
    return at
