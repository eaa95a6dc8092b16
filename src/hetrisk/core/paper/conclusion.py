"""What the rounds of the joint loop add up to: the best selection, and the evidence for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hetrisk.core.mixture.mixture import MixtureParameters
from hetrisk.core.numerics.environment_fits import environment_fits, instability
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.rows import BoolArray, IntArray, RowSource
from hetrisk.core.paper.auto import ChosenGates
from hetrisk.core.paper.invariance import InvarianceProblem
from hetrisk.core.paper.prediction import InvariantFit, gated_weights
from hetrisk.core.paper.solve import left_out_risk
from hetrisk.core.paper.stability import Quadratics, informative
from hetrisk.core.result import (
    HOMOGENEOUS,
    INVARIANT,
    UNSTABLE,
    Findings,
    HistoryRecord,
    SearchSettings,
)


@dataclass(frozen=True)
class Round:
    """One turn of the loop: the environments found and the gates fitted to them."""

    partition: MixtureParameters
    log_likelihood: float
    found: InvariantFit

    @property
    def problem(self) -> InvarianceProblem:
        """The objective, without penalties."""
        return self.found.problem

    @property
    def quadratics(self) -> Quadratics:
        """The fits in the environments."""
        return self.found.quadratics

    @property
    def choice(self) -> ChosenGates:
        """The gates, and the penalties they were found with."""
        return self.found.choice


def conclude(
    rows: RowSource,
    family: Family,
    groups: IntArray,
    turns: Sequence[Round],
    settings: SearchSettings,
    *,
    literal: bool = False,
) -> Findings:
    """Judge the selection of every round in the environments of all rounds; keep the best.

    ``literal`` keeps the last one instead, and its gated model as it is.
    """
    pool = [turn.problem for turn in turns]
    scores = [transfer(pool, turn.choice.fit.support) for turn in turns]
    # Environments differ from round to round, so objectives do not compare; scores in all of
    # them do.
    best = len(turns) - 1 if literal else int(np.argmin(scores))
    turn = turns[best]
    useful = informative(turn.quadratics, groups, np.ones(turn.problem.n_gates, dtype=bool))
    support, verdict, reason = _verdict(turn.choice.fit.support, useful, len(turns), best)
    settings.verbose(f"{verdict}: {reason}")
    gated = literal and verdict == INVARIANT
    coef, intercept = gated_weights(turn.found, family) if gated else (None, None)
    return Findings(
        support=support[groups],
        gates=np.where(verdict == INVARIANT, turn.choice.fit.gates, support)[groups],
        partition=turn.partition,
        verdict=verdict,
        reason=reason,
        reasons=_reasons(rows, family, groups, turn, support),
        coef=coef,
        intercept=intercept,
        history=tuple(
            _record(i, t, s, i == best, groups)
            for i, (t, s) in enumerate(zip(turns, scores, strict=True))
        ),
    )


def transfer(pool: Sequence[InvarianceProblem], mask: BoolArray) -> float:
    """Mean over partitions of the risk of a row, fitted on environments it is not in.

    Relative to predicting nothing, so that partitions weigh alike. With one environment it is
    that environment's own risk.
    """
    return float(np.mean([left_out_risk(problem, mask) for problem in pool]))


def _verdict(
    support: BoolArray, useful: BoolArray, n_rounds: int, best: int
) -> tuple[BoolArray, str, str]:
    """Gates (G,) to use, the verdict, and its sentence; ``useful`` (G,) predict at all."""
    left_out = int((useful & ~support).sum())
    if not useful.any() and not support.any():
        return ~support, HOMOGENEOUS, "No feature predicts the target measurably: all are kept."
    head = f"Round {best + 1} of {n_rounds}"
    if useful.any() and not support.any():
        return useful, UNSTABLE, f"{head} closed every gate: no feature is safe to use."
    if left_out:
        return (
            support,
            INVARIANT,
            (
                f"{head} left out {left_out} of {int(useful.sum())} informative features, whose "
                f"relation to the target differs between the environments found."
            ),
        )
    return (
        support,
        HOMOGENEOUS,
        (
            f"{head} found no informative feature whose relation to the target differs between "
            f"environments."
        ),
    )


def _reasons(
    rows: RowSource, family: Family, groups: IntArray, turn: Round, support: BoolArray
) -> tuple[str, ...]:
    """What became of each column, and how much its coefficient differs between environments."""
    index = instability(environment_fits(rows, family, turn.partition))
    decided = np.where(support, "Kept", "Left out")[groups]
    return tuple(
        f"{word}: gate {gate:.2f}, instability {i:.2f}."
        for word, gate, i in zip(decided, turn.choice.fit.gates[groups], index, strict=True)
    )


def _record(i: int, turn: Round, score: float, chosen: bool, groups: IntArray) -> HistoryRecord:
    """A round as a record of the history."""
    choice = turn.choice
    return HistoryRecord(
        round=i + 1,
        n_environments=turn.partition.n_environments,
        score=score,
        score_name="risk of a row, fitted on environments it is not in",
        support=tuple(bool(kept) for kept in choice.fit.support[groups]),
        chosen=chosen,
        log_likelihood=turn.log_likelihood,
        invariance_penalty=float(choice.invariance),
        gate_penalty=float(choice.price),
    )
