"""The paper's joint loop: cluster on the variant features, select the invariant ones, repeat.

Psi is X at first. Each round fits a mixture of regressions of y on Psi = (1 - m) X (M_c, paper
3.2), takes its environments in place of the last round's, and fits the gates m to them (M_p, paper
3.1). It stops when the selection comes back to one seen before, when nothing is left to cluster on,
or after ``max_rounds``.

With lambda given that is one run, and its last round the answer. Where lambda is left open, whole
runs are made for a few values, from Psi = X and from each of the most useful columns alone (a
clustering on X may read its environments the wrong way round, y follows phi here and v there; one
on v cannot). The selections of all rounds of all runs are then compared once, in the environments
of all (`hetrisk.core.paper.transfer`), and the best is the answer: a further iteration cannot
hurt. Last, each column that makes little difference in all these is compared, with and without it,
in the environments that it alone makes: a weak effect of y is next to stable in any other, and does
not carry over in these.
A single round, HRM-s, has the first clustering only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hetrisk.core.mixture.mixture import MixtureParameters, fit_mixture
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, RowSource
from hetrisk.core.paper.choice import INVARIANCE, gate_price
from hetrisk.core.paper.invariance import InvarianceProblem
from hetrisk.core.paper.prediction import environment_problem
from hetrisk.core.paper.solve import GateFit, fit_at, fit_gates
from hetrisk.core.paper.transfer import carry_over, target_moments, usefulness

ENVIRONMENTS = 2  # K, where it is left open
STARTS: Budget[int] = 10  # columns that are a start of their own
TIE = 1.2  # a column is asked alone if the score without it is at most so many times as large,
ALONE: Budget[tuple[int, ...]] = (2, 3, 4)  # in so many environments
FEW: Budget[slice] = slice(None, None, 2)  # of the lambdas, that these are run under
OPEN = 0.999  # expected gate that leaves nothing of its feature to cluster on
ASSIGNMENTS = ("soft", "hard")


def one_by_one(function: Callable[[Any], Any], tasks: Iterable[Any]) -> list[Any]:
    """Results of a function on each task, in turn."""
    return [function(task) for task in tasks]


@dataclass(frozen=True)
class LoopSettings:
    """What the loop is asked to do.

    Attributes
    ----------
    n_environments : K.
    invariance : lambda; None to compare runs under several values.
    price : alpha; None for `hetrisk.core.paper.choice.gate_price`.
    noise : standard deviation of the gates.
    penalty, assignment : "trace" or "masked"; "soft" or "hard".
    max_rounds : most rounds of a run.
    seed : of the clusterings.
    run : applies a function to independent tasks and returns the list of results.
    """

    n_environments: int = ENVIRONMENTS
    invariance: float | None = None
    price: float | None = None
    noise: float = 0.1
    penalty: str = "trace"
    assignment: str = "soft"
    max_rounds: int = 10
    seed: int = 0
    run: Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]] = one_by_one


@dataclass(frozen=True)
class HardPartition(Partition):
    """Each row wholly in the environment that the mixture finds most probable."""

    mixture: MixtureParameters

    @property
    def n_environments(self) -> int:
        """Number of environments K."""
        return self.mixture.n_environments

    def responsibilities(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """(n, K) ones and zeros."""
        nearest = self.mixture.responsibilities(X, y).argmax(axis=1)
        hard: FloatArray = np.eye(self.n_environments)[nearest]
        return hard


@dataclass(frozen=True)
class Round:
    """One turn of the loop: the environments found and the gates fitted to them.

    Attributes
    ----------
    partition : the environments.
    log_likelihood : of the clustering, a row.
    environments : their moments.
    problem : the objective, with its penalties.
    fit : its minimum.
    """

    partition: Partition
    log_likelihood: float
    environments: Moments
    problem: InvarianceProblem
    fit: GateFit


@dataclass(frozen=True)
class Run:
    """A run of the loop: the column its first clustering is on (None for all), and its rounds."""

    start: int | None
    rounds: tuple[Round, ...]


@dataclass(frozen=True)
class LoopResult:
    """The runs made, and which round of which is the answer.

    Attributes
    ----------
    runs : every run under a lambda and from a start of its own.
    scores : of every round of every run, what carries over (smaller is better).
    run, round : where the answer comes from.
    answer : that round, or one more without the gates that did not last.
    """

    runs: tuple[Run, ...]
    scores: tuple[FloatArray, ...]
    run: int
    round: int
    answer: Round


def joint_loop(
    rows: RowSource, family: Family, groups: IntArray, settings: LoopSettings
) -> LoopResult:
    """Run the loop from each start under each lambda, and compare the runs once.

    Parameters
    ----------
    rows : standardised.
    family : of the target.
    groups : (d,) gate of each column.
    settings : see there.
    """
    pooled = target_moments(rows, family, None)
    price = gate_price(settings.price, pooled, rows.n_features)
    loop = _Loop(rows, family, groups, settings, price)
    # 1. Whole runs, which do not wait for each other.
    runs = tuple(
        settings.run(partial(_run, loop), _plan(settings, usefulness(pooled, rows.n_features)))
    )
    # 2. All selections in the environments of all of them.
    turns = [turn for run in runs for turn in run.rounds]
    pool = _distinct([turn.environments for turn in turns])
    masks = {turn.fit.support.tobytes(): turn.fit.support[groups] for turn in turns}
    compared = carry_over(pool, np.array(list(masks.values())), price)
    score = dict(zip(masks, compared, strict=True))
    scores = tuple(np.array([score[t.fit.support.tobytes()] for t in run.rounds]) for run in runs)
    # 3. The best; a run alone ends where it ends, as in the paper.
    if settings.invariance is not None:
        last = len(runs[0].rounds) - 1
        return LoopResult(runs, scores, 0, last, runs[0].rounds[last])
    best = min(range(len(runs)), key=lambda r: float(scores[r].min()))
    at = int(scores[best].argmin())
    answer = runs[best].rounds[at]
    # 4. Each column that stays, in the environments that it alone makes.
    if settings.max_rounds > 1 and family.shows_mixtures:
        mask = loop.lasting(answer.fit.support, pool)
        if not np.array_equal(mask, answer.fit.support):
            answer = loop.turn(mask[groups].astype(float), answer.problem.invariance, mask)
    return LoopResult(runs, scores, best, at, answer)


def _plan(settings: LoopSettings, useful: FloatArray) -> list[tuple[int | None, float]]:
    """(start, lambda) of every run, from how useful (d,) the columns are."""
    if settings.invariance is not None:
        return [(None, settings.invariance)]
    tried = INVARIANCE[settings.penalty]
    plan: list[tuple[int | None, float]] = [(None, strength) for strength in tried]
    if settings.max_rounds > 1:
        columns = np.argsort(-useful, kind="stable")[:STARTS]
        plan += [(int(j), strength) for j in columns for strength in tried[FEW]]
    return plan


def _distinct(environments: list[Moments]) -> list[Moments]:
    """Partitions that came up twice count once."""
    return list({m.scatter.round(6).tobytes(): m for m in environments}.values())


class _Loop:
    """What does not change from run to run, and the clusterings made so far."""

    def __init__(
        self,
        rows: RowSource,
        family: Family,
        groups: IntArray,
        settings: LoopSettings,
        price: float,
    ) -> None:
        self.rows, self.family, self.groups, self.settings = rows, family, groups, settings
        self.price = price
        self._known: dict[tuple[int, bytes], tuple[MixtureParameters, float]] = {}

    def mixture(self, n_environments: int, gates: FloatArray) -> tuple[MixtureParameters, float]:
        """Mixture of y on the columns whose gates are not open."""
        psi = gates < OPEN
        key = (n_environments, psi.tobytes())
        # Many runs come by the same Psi; its mixture does not depend on their penalties.
        if key not in self._known:
            solution = fit_mixture(
                self.rows, n_environments, self.family, columns=psi, seed=self.settings.seed
            )
            self._known[key] = solution.value, float(solution.path[-1])
        return self._known[key]

    def environments(self, n_environments: int, gates: FloatArray) -> tuple[Partition, float]:
        """Cluster on Psi = (1 - m) X.

        Least squares does not see the scale of a column, so a gate between 0 and 1 would act
        like 0: instead, what the slopes of its feature differ by between environments is
        damped by 1 - m when rows are assigned to them.
        """
        mixture, log_likelihood = self.mixture(n_environments, gates)
        # Towards the shares' mean: a gate fully open leaves no difference to assign rows by.
        centre = np.tensordot(mixture.weights, mixture.coef, axes=1)
        damped = replace(mixture, coef=centre + (1.0 - gates) * (mixture.coef - centre))
        if self.settings.assignment == "hard":
            return HardPartition(damped), log_likelihood
        return damped, log_likelihood

    def turn(self, gates: FloatArray, invariance: float, mask: BoolArray | None = None) -> Round:
        """M_c on what the gates leave, then M_p in its environments, or at a mask that is given."""
        s = self.settings
        partition, log_likelihood = self.environments(s.n_environments, gates)
        problem, environments = environment_problem(
            self.rows, self.family, self.groups, partition, s.noise, s.penalty
        )
        problem = replace(problem, invariance=invariance, price=self.price)
        fit = fit_gates(problem) if mask is None else fit_at(problem, mask)
        return Round(partition, log_likelihood, environments, problem, fit)

    def lasting(self, support: BoolArray, pool: list[Moments]) -> BoolArray:
        """(G,) gates without those that do not carry over in environments of their own making."""
        own = {int(g): self._made_by(int(g)) for g in np.flatnonzero(support)}
        while support.sum() > 1:
            worse = {}
            for gate in map(int, np.flatnonzero(support)):
                both = np.vstack([support, support & (np.arange(len(support)) != gate)])
                both = both[:, self.groups]
                kept, left = carry_over(pool, both, self.price)
                if left <= TIE * kept:
                    kept, left = carry_over(own[gate], both, self.price)
                    worse[gate] = kept / left
            worst = max(worse, key=lambda gate: worse[gate], default=-1)
            if worst < 0 or worse[worst] <= 1.0:
                break
            support = support & (np.arange(len(support)) != worst)
        return support

    def _made_by(self, gate: int) -> list[Moments]:
        """Moments of the environments that y makes on the columns of one gate alone."""
        closed = (self.groups != gate).astype(float)
        found = [self.mixture(n_environments, closed)[0] for n_environments in ALONE]
        return [target_moments(self.rows, self.family, mixture) for mixture in found]


def _run(loop: _Loop, plan: tuple[int | None, float]) -> Run:
    """One run of the paper's loop under a fixed lambda."""
    start, invariance = plan
    rounds: list[Round] = []
    gates = np.full(loop.rows.n_features, 0.0 if start is None else 1.0)
    if start is not None:
        gates[start] = 0.0
    while len(rounds) < loop.settings.max_rounds:
        rounds.append(loop.turn(gates, invariance))
        fit = rounds[-1].fit
        gates = fit.gates[loop.groups]
        # The same selection gives the same Psi and environments: from here it repeats.
        if any(np.array_equal(fit.support, r.fit.support) for r in rounds[:-1]):
            break
        if np.all(gates > OPEN):
            break  # nothing left to cluster on
    return Run(start, tuple(rounds))
