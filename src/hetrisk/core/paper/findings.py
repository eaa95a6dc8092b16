"""What the rounds of the joint loop add up to: the best selection, and the evidence for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import chi2

from hetrisk.core.numerics.comparison import cochran_q, environment_fits, instability
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.glm import fit_glm
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, RowSource
from hetrisk.core.paper.invariance import InvarianceProblem
from hetrisk.core.paper.solve import left_out_risk, mask_values
from hetrisk.core.paper.stability import informative
from hetrisk.core.result import (
    HOMOGENEOUS,
    INVARIANT,
    UNSTABLE,
    Discovery,
    Evidence,
    SearchSettings,
)

if TYPE_CHECKING:
    from hetrisk.core.paper.loop import Round


def report(
    rows: RowSource,
    family: Family,
    groups: IntArray,
    turns: Sequence[Round],
    settings: SearchSettings,
) -> Discovery:
    """Judge the selection of every round in the environments of all rounds; keep the best."""
    pool = [turn.problem for turn in turns]
    scores = [transfer(pool, turn.choice.fit.support) for turn in turns]
    best = int(np.argmin(scores))
    turn = turns[best]
    useful = informative(turn.quadratics, groups, np.ones(turn.problem.n_gates, dtype=bool))
    support, verdict, reason = _verdict(turn.choice.fit.support, useful, len(turns), best)
    settings.verbose(f"{verdict}: {reason}")
    refit = fit_glm(rows, family, columns=support[groups])  # gates choose; they do not shrink
    single = family.n_outputs == 1
    return Discovery(
        support=support[groups],
        gates=np.where(verdict == INVARIANT, turn.choice.fit.gates, support)[groups],
        partition=turn.partition,
        evidence=_evidence(rows, family, groups, turn, support, pool),
        verdict=verdict,
        reason=reason,
        coef=refit.coef[0] if single else refit.coef,
        intercept=float(refit.intercept[0]) if single else refit.intercept,
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
    left_out = int((useful & ~support).sum())
    if not useful.any() and not support.any():
        return ~support, HOMOGENEOUS, "No feature predicts the target measurably: all are kept."
    said = f"Round {best + 1} of {n_rounds}"
    if useful.any() and not support.any():
        return useful, UNSTABLE, f"{said} closed every gate: no feature is safe to use."
    if left_out:
        return (
            support,
            INVARIANT,
            (
                f"{said} left out {left_out} of {int(useful.sum())} informative features, whose "
                f"relation to the target differs between the environments found."
            ),
        )
    return (
        support,
        HOMOGENEOUS,
        (
            f"{said} found no informative feature whose relation to the target differs between "
            f"environments."
        ),
    )


def _evidence(
    rows: RowSource,
    family: Family,
    groups: IntArray,
    turn: Round,
    support: BoolArray,
    pool: Sequence[InvarianceProblem],
) -> Evidence:
    fits = environment_fits(rows, family, turn.partition)
    index, error = instability(fits)
    cost, saving = _price_and_gain(turn, support, pool, family)
    p = _heterogeneity(fits.coef, fits.error)
    decided = np.where(support, "kept", "left out")[groups]
    reason = tuple(
        f"{word}: instability {i:.2f}, cost {c:+.1%}, saving {s:+.1%}"
        for word, i, c, s in zip(decided, index, cost[groups], saving[groups], strict=True)
    )
    return Evidence(index, error, cost[groups], saving[groups], p, reason)


def _price_and_gain(
    turn: Round,
    support: BoolArray,
    pool: Sequence[InvarianceProblem],
    family: Family,
) -> tuple[FloatArray, FloatArray]:
    """(G,) what leaving each gate shut costs on the mixture and saves across environments."""
    problem = turn.problem
    mixture = replace(problem, risks=problem.risks.mixture())
    cost, saving = np.zeros(problem.n_gates), np.zeros(problem.n_gates)
    for gate in range(problem.n_gates):
        with_, without = support.copy(), support.copy()
        with_[gate], without[gate] = True, False
        on = np.maximum(mask_values(mixture, np.stack([with_, without])), 1e-12)
        cost[gate] = family.risk(on[1] / on[0]) - 1.0
        across = np.maximum([transfer(pool, with_), transfer(pool, without)], 1e-12)
        saving[gate] = 1.0 - family.risk(across[1] / across[0])
    return cost, saving


def _heterogeneity(coef: FloatArray, error: FloatArray) -> FloatArray:
    """(d,) p-value of equal coefficients (Cochran's Q); nominal, for the clustering saw y."""
    K = len(coef)
    b = coef.reshape(K, -1, coef.shape[-1])
    q = cochran_q(b, np.maximum(error.reshape(b.shape), 1e-12) ** 2).sum(axis=0)
    free = max(K - 1, 1) * max(b.shape[1] - 1, 1)
    return np.asarray(chi2.sf(q, free))


def _record(i: int, turn: Round, score: float, chosen: bool, groups: IntArray) -> dict[str, Any]:
    return {
        "round": i + 1,
        "n_environments": turn.partition.n_environments,
        "log_likelihood": turn.log_likelihood,
        "objective": turn.choice.fit.objective,
        "transfer": score,
        "invariance_penalty": turn.choice.invariance,
        "gate_penalty": turn.choice.price,
        "gates": turn.choice.fit.gates[groups].tolist(),
        "support": turn.choice.fit.support[groups].tolist(),
        "chosen": chosen,
    }
