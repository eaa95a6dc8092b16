"""The paper's joint loop: cluster on the variant features, select the invariant ones, repeat.

Psi is X at first. Each round fits a mixture of regressions of y on Psi = (1 - m) X
(heterogeneity identification), takes its environments in place of the last round's, and fits
the gates m to them (invariant prediction). It stops when the selection comes back to one seen
before, or after ``max_rounds``.

A later round can be worse than an earlier one, and each round's own objective is measured in
environments of its own making. So every selection is judged in the environments of *all*
rounds (`transfer`: the risk of a row, fitted on environments it is not in), and the best one
is kept: a further round cannot hurt.

The first round may read its environments the wrong way round (y follows phi here and v there: it
keeps v). The sign of it is that what it left out predicts the rows better than what it kept. Then
the loop is run a second time, from a mixture on the features that were kept, and the selections
of both are judged together. With lambda given the loop is the paper's, run once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hetrisk.core.mixture.criteria import bic, n_parameters
from hetrisk.core.mixture.mixture import MixtureParameters, fit_mixture
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, RowSource
from hetrisk.core.paper.conclusion import Round, conclude
from hetrisk.core.paper.prediction import fit_invariant
from hetrisk.core.paper.solve import mask_values
from hetrisk.core.paper.stability import informative
from hetrisk.core.paper.thresholds import GATE_THRESHOLDS
from hetrisk.core.result import Findings, SearchSettings


def joint_loop(
    rows: RowSource,
    family: Family,
    groups: IntArray,
    settings: SearchSettings,
    *,
    literal: bool = False,
) -> Findings:
    """Search by the joint loop.

    ``literal`` is the paper to the letter: its own penalty, the last round's answer whatever
    the others were, and the gated model itself in place of a refit on the open features.
    """
    loop = _Loop(rows, family, groups, settings, literal)
    first = loop.turn(*_first_mixture(rows, family, settings))
    turns = loop.follow(first)
    chosen = settings.invariance_penalty is None and first.partition.n_environments > 1
    if (
        chosen
        and not literal
        and len(turns) < settings.max_rounds
        and _perhaps_reversed(first, groups)
    ):
        gates = np.where(first.choice.fit.support, 0.0, 1.0)[groups]
        again = loop.turn(*loop.cluster(gates, first.partition.n_environments))
        turns += loop.follow(again, taken=len(turns))
    return conclude(rows, family, groups, turns, settings, literal=literal)


def _perhaps_reversed(turn: Round, groups: IntArray) -> bool:
    """Whether the informative features left out predict the rows better than those kept."""
    kept = turn.choice.fit.support
    out = informative(turn.quadratics, groups, np.ones(len(kept), dtype=bool)) & ~kept
    if not (kept.any() and out.any()):
        return False
    plain = replace(turn.problem, risks=turn.problem.risks.mixture(), invariance=0.0, price=0.0)
    risk = mask_values(plain, np.stack([kept, out]))
    return bool(risk[1] < risk[0])


@dataclass(frozen=True)
class _Loop:
    """What does not change from round to round."""

    rows: RowSource
    family: Family
    groups: IntArray
    settings: SearchSettings
    literal: bool = False

    def cluster(self, gates: FloatArray, n_environments: int) -> tuple[MixtureParameters, float]:
        """Fit a mixture on Psi = (1 - m) X.

        Least squares does not see the scale of a column, so a gate between 0 and 1 would act
        like 0: instead, what the slopes of its feature differ by between environments is
        damped by 1 - m when rows are assigned to them.
        """
        psi = gates < GATE_THRESHOLDS.closed_to_psi
        solution = _mixture(self.rows, self.family, psi, n_environments, self.settings.seed)
        mixture = solution[0]
        # Towards the shares' mean: a gate fully open leaves no difference to assign rows by.
        centre = np.tensordot(mixture.weights, mixture.coef, axes=1)
        damped = centre + (1.0 - gates) * (mixture.coef - centre)
        return replace(mixture, coef=damped), solution[1]

    def follow(self, first: Round, taken: int = 0) -> list[Round]:
        """Take turns from a first one until a selection returns, or there is nothing to do."""
        turns = [first]
        while taken + len(turns) < self.settings.max_rounds:
            support = turns[-1].choice.fit.support
            gates = turns[-1].choice.fit.gates[self.groups]
            # The same selection gives the same Psi and environments: from here it repeats.
            if any(np.array_equal(support, t.choice.fit.support) for t in turns[:-1]):
                break
            if first.partition.n_environments == 1 or np.all(gates > GATE_THRESHOLDS.closed_to_psi):
                break  # nothing to compare, or nothing left to cluster on
            turns.append(self.turn(*self.cluster(gates, first.partition.n_environments)))
        return turns

    def turn(self, mixture: MixtureParameters, log_likelihood: float) -> Round:
        """Fit the gates to the environments of a mixture."""
        found = fit_invariant(
            self.rows, self.family, self.groups, mixture, self.settings, literal=self.literal
        )
        support = found.choice.fit.support
        self.settings.verbose(
            f"round: {mixture.n_environments} environments, log likelihood {log_likelihood:.4f}, "
            f"{int(support.sum())} of {len(support)} gates open"
        )
        return Round(mixture, log_likelihood, found)


def _first_mixture(
    rows: RowSource, family: Family, settings: SearchSettings
) -> tuple[MixtureParameters, float]:
    """The mixture on all features; its number of environments by BIC, unless given."""
    counts = range(1, GATE_THRESHOLDS.most_environments + 1)
    if settings.n_environments is not None:
        counts = range(settings.n_environments, settings.n_environments + 1)
    everything = np.ones(rows.n_features, dtype=bool)
    fit = partial(_mixture, rows, family, everything, seed=settings.seed)
    # Clusterings with one, two and three environments do not wait for each other.
    mixtures: list[tuple[MixtureParameters, float]] = settings.run(fit, counts)
    return min(mixtures, key=partial(_bic, rows))


def _mixture(
    rows: RowSource, family: Family, columns: BoolArray, n_environments: int, seed: int
) -> tuple[MixtureParameters, float]:
    solution = fit_mixture(rows, n_environments, family, columns=columns, seed=seed)
    return solution.value, float(solution.path[-1])


def _bic(rows: RowSource, found: tuple[MixtureParameters, float]) -> float:
    mixture, mean_log_likelihood = found
    size = n_parameters(mixture, rows.n_features, tied_variance=True)
    return bic(mean_log_likelihood * rows.n_rows, size, rows.n_rows)
