"""Invariant prediction (M_p) for given environments, for numbers and for labels alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hetrisk.core.numerics.families import Family, NewtonFamily
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.glm import fit_glm, on_slopes
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.partition import Partition, membership
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows, RowSource
from hetrisk.core.paper.expansion import label_risks, pooled_weights, weight_groups
from hetrisk.core.paper.gates import gate_moments
from hetrisk.core.paper.invariance import InvarianceProblem, environment_risks
from hetrisk.core.paper.labels import label_problem, settle
from hetrisk.core.paper.solve import GateFit
from hetrisk.core.paper.transfer import target_moments

LABEL_ROWS: Budget[int] = 2000  # of labels on which the soft gates are settled


def environment_problem(
    rows: RowSource,
    family: Family,
    groups: IntArray,
    partition: Partition | None,
    noise: float,
    penalty: str,
) -> tuple[InvarianceProblem, Moments]:
    """The objective for the environments of a partition, or those the rows carry; no penalties yet.

    For numbers everything follows from the moments of the environments, which are returned as
    well. For labels it is the log loss to second order about the fit over all rows.
    """
    moments = target_moments(rows, family, partition)
    if family.closed_form:
        risks = environment_risks(moments)
    else:
        risks = label_risks(rows, family, partition, pooled_weights(rows, family))
    owners = weight_groups(groups, family)
    return InvarianceProblem(risks, owners, noise, 0.0, 0.0, penalty), moments


def gated_weights(
    problem: InvarianceProblem, fit: GateFit, family: Family
) -> tuple[FloatArray, FloatArray]:
    """Coefficients and intercept of the gated model itself: weights times expected gates.

    Returns
    -------
    coef : (d,), or (C, d) for C > 2 classes; zero behind gates that are shut.
    intercept : a number, or (C,).
    """
    passed = np.where(problem.gated, (fit.gates * fit.support)[problem.groups], 1.0)
    public = family.coding.T @ (passed * fit.theta).reshape(len(family.coding), -1)
    coef, intercept = public[:, 1:], public[:, 0]
    return (coef[0], intercept[0]) if family.n_outputs == 1 else (coef, intercept)


def settled_on_labels(
    rows: RowSource,
    family: NewtonFamily,
    partition: Partition | None,
    problem: InvarianceProblem,
    fit: GateFit,
    seed: int,
) -> GateFit:
    """The soft gates and weights settled on the log loss itself, on a sample of rows.

    Gates that are shut stay so: the quadratic has decided, and L-BFGS sees no slope there.
    """
    sample = rows.sample(LABEL_ROWS, seed)
    weight = membership(sample, partition) * sample.weight[:, None]
    labels = label_problem(problem, sample.X, sample.y, weight, family)
    # Three deviations beyond either end a gate is shut, or open, for all but one draw in 700.
    low = np.full(problem.n_gates, -3.0 * problem.noise)
    high = np.where(fit.support, 1.0 + 3.0 * problem.noise, low)
    theta, mu, value = settle(labels, fit.theta, np.clip(fit.mu, low, high), low, high)
    gates = gate_moments(mu, problem.noise).mean
    if fit.support.any() and not (gates > 0.5).any():
        return fit  # the penalty alone never shuts the last gate
    return replace(fit, mu=mu, gates=gates, theta=theta, support=gates > 0.5, objective=value)


def refit(rows: RowSource, family: Family, columns: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Least squares or logistic regression on some columns over all rows, the others at zero.

    Labels get the penalty scikit-learn has by default (C = 1 on standardised columns), which keeps
    those that can be separated finite and vanishes as rows are added.
    """
    ridge: float | FloatArray = 0.0
    if not family.closed_form:
        ridge = on_slopes(1.0 / max(float(rows.sum(_weight)), TINY), int(columns.sum()))
    fit = fit_glm(rows, family, columns=columns, ridge=ridge)
    if family.n_outputs == 1:
        return fit.coef[0], fit.intercept[0]
    return fit.coef, fit.intercept


def _weight(rows: Rows) -> float:
    return float(rows.weight.sum())
