"""The risk of labels in every environment, to second order about one fit over all rows.

The log loss is not quadratic, but near the pooled fit v0 it nearly is: with g and H the gradient
and curvature of the mean log likelihood of an environment at v0,

    L^e(v) = L^e(v0) - g.(v - v0) + (v - v0)'H(v - v0) / 2,

which has the form of `hetrisk.core.paper.invariance.EnvironmentRisks`, so the search over gates is
the same for labels as for numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.glm import fit_glm
from hetrisk.core.numerics.partition import Partition, membership
from hetrisk.core.numerics.rows import FloatArray, IntArray, Rows, RowSource, Summed
from hetrisk.core.paper.invariance import EnvironmentRisks


@dataclass(frozen=True)
class _Sums(Summed):
    weight: FloatArray
    loss: FloatArray
    gradient: FloatArray
    curvature: FloatArray


def pooled_weights(rows: RowSource, family: Family) -> FloatArray:
    """(o, 1 + d) weights of the fit over all rows, in the contrasts of the family."""
    fit = fit_glm(rows, family)
    return np.asarray(family.coding @ np.column_stack([fit.intercept, fit.coef]))


def label_risks(
    rows: RowSource, family: Family, partition: Partition | None, theta: FloatArray
) -> EnvironmentRisks:
    """Expand the log loss of every environment about ``theta`` (o, 1 + d), in one pass."""
    sums = rows.sum(partial(_pass, family=family, partition=partition, theta=theta))
    weight = np.maximum(sums.weight, TINY)
    v = theta.ravel()
    curvature = sums.curvature / weight[:, None, None]
    # The expansion about theta, written about zero: the form all the gates' code works on.
    right = sums.gradient.reshape(len(weight), -1) / weight[:, None] + curvature @ v
    constant = sums.loss / weight + right @ v - 0.5 * np.einsum("i,kij,j->k", v, curvature, v)
    # Halves: a squared loss v'A v - 2 v'b has the curvature 2 A.
    return EnvironmentRisks(0.5 * curvature, 0.5 * right, constant, sums.weight)


def weight_groups(groups: IntArray, family: Family) -> IntArray:
    """Gate of every weight of a family's contrasts, -1 for their intercepts."""
    return np.tile(np.append(-1, groups), len(family.coding))


def _pass(rows: Rows, family: Family, partition: Partition | None, theta: FloatArray) -> _Sums:
    weight = (membership(rows, partition) * rows.weight[:, None]).T
    eta = family.predictor(rows, theta)
    newton = family.sums(family.design(rows), weight, eta)
    loss = -weight @ family.log_density(rows.y, eta)
    return _Sums(weight.sum(axis=1), loss, newton.gradient, newton.curvature)
