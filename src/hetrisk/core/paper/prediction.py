"""Invariant prediction (M_p) for given environments, for numbers and for labels alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from hetrisk.core.numerics.environment_fits import environment_moments, membership
from hetrisk.core.numerics.families import Family, NewtonFamily
from hetrisk.core.numerics.glm import fit_glms
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import FloatArray, IntArray, RowSource
from hetrisk.core.paper.auto import ChosenGates, choose
from hetrisk.core.paper.expansion import label_risks, pooled_weights, weight_groups
from hetrisk.core.paper.gates import gate_moments
from hetrisk.core.paper.invariance import InvarianceProblem, environment_risks
from hetrisk.core.paper.labels import label_problem, settle
from hetrisk.core.paper.solve import fit_gates
from hetrisk.core.paper.stability import Quadratics, quadratics_from_fits, quadratics_from_moments
from hetrisk.core.paper.thresholds import GATE_THRESHOLDS
from hetrisk.core.result import SearchSettings

LABEL_ROWS: Budget[int] = 2000  # of labels on which the soft gates are settled


@dataclass(frozen=True)
class InvariantFit:
    """Gates fitted to environments, and what they were fitted from."""

    problem: InvarianceProblem
    quadratics: Quadratics
    choice: ChosenGates


def fit_invariant(
    rows: RowSource,
    family: Family,
    groups: IntArray,
    partition: Partition | None,
    settings: SearchSettings,
    penalty: str = "trace",
    literal: bool = False,
) -> InvariantFit:
    """Fit the gates to the environments of a partition, or those the rows carry.

    For numbers everything follows from the moments of the environments. For labels the search
    over gates uses the log loss to second order, and the gates it finds are then settled on the
    log loss itself, on a sample of rows.

    ``literal`` takes the gradient of the penalty in the weights, as the paper writes it, and
    lets every gate open; penalties of "auto" are those chosen without it.
    """
    owners = weight_groups(groups, family)
    if family.closed_form:
        m = environment_moments(rows, partition)
        risks, quadratics = environment_risks(m), quadratics_from_moments(m)
    else:
        weigh = partial(membership, partition=partition)
        # Labels that a feature separates have no finite fit, and near one Wald statistics
        # vanish; a mild ridge keeps the expansion where the likelihood still bends.
        fits = fit_glms(rows, family, weigh, ridge=GATE_THRESHOLDS.label_ridge)
        quadratics = quadratics_from_fits(fits, family)
        risks = label_risks(rows, family, partition, pooled_weights(rows, family))
    problem = InvarianceProblem(risks, owners, settings.gate_noise, 0.0, 0.0, penalty)
    choice = choose(problem, quadratics, groups, settings.invariance_penalty, settings.gate_penalty)
    if literal:
        problem = replace(problem, gradient="weights")
        strengths = replace(problem, invariance=choice.invariance, price=choice.price)
        choice = replace(choice, fit=fit_gates(strengths))
    if not family.closed_form:
        chosen = settings.invariance_penalty is None or settings.gate_penalty is None
        held = chosen and not literal
        newton = cast(NewtonFamily, family)
        choice = _settled(rows, newton, partition, problem, choice, held, settings.seed)
    return InvariantFit(problem, quadratics, choice)


def gated_weights(found: InvariantFit, family: Family) -> tuple[FloatArray, FloatArray]:
    """Coefficients and intercept of the gated model itself: weights times expected gates.

    Returns
    -------
    coef : (d,), or (C, d) for C > 2 classes; zero behind gates that are shut.
    intercept : a number, or (C,).
    """
    fit, problem = found.choice.fit, found.problem
    passed = np.where(problem.gated, (fit.gates * fit.support)[problem.groups], 1.0)
    public = family.coding.T @ (passed * fit.theta).reshape(len(family.coding), -1)
    coef, intercept = public[:, 1:], public[:, 0]
    return (coef[0], intercept[0]) if family.n_outputs == 1 else (coef, intercept)


def _settled(
    rows: RowSource,
    family: NewtonFamily,
    partition: Partition | None,
    problem: InvarianceProblem,
    choice: ChosenGates,
    held: bool,
    seed: int,
) -> ChosenGates:
    """Settle the gates on the log loss of a sample; if ``held``, closed gates stay closed."""
    sample = rows.sample(LABEL_ROWS, seed)
    weight = membership(sample, partition) * sample.weight[:, None]
    strengths = replace(problem, invariance=choice.invariance, price=choice.price)
    labels = label_problem(strengths, sample.X, sample.y, weight, family)
    fit = choice.fit
    # Three deviations beyond either end a gate is shut, or open, for all but one draw in 700: there
    # the slopes vanish, and L-BFGS would have nothing to go by.
    low = np.full(problem.n_gates, -3.0 * problem.noise)
    top = 1.0 + 3.0 * problem.noise
    high = np.where(fit.support, top, low) if held else np.full(problem.n_gates, top)
    theta, mu, value = settle(labels, fit.theta, np.clip(fit.mu, low, high), low, high)
    gates = gate_moments(mu, problem.noise).mean
    if fit.support.any() and not (gates > 0.5).any():
        return choice  # the penalty alone never shuts the last gate
    settled = replace(fit, mu=mu, gates=gates, theta=theta, support=gates > 0.5, objective=value)
    return replace(choice, fit=settled)
