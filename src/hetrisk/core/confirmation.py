"""What a sample of the rows suggests, asked of all of them: who does not shift there stays.

A stand-in must be unstable between the environments of its probes; the mechanism of a
consequence must fail the test of one mechanism. Both are a few passes over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from hetrisk.core.comparison import environment_fits, instability
from hetrisk.core.evidence import SPREAD, any_direction, spread_basis, target_basis
from hetrisk.core.families import Family
from hetrisk.core.linear import LinearFit, least_squares
from hetrisk.core.moments import Moments, moments
from hetrisk.core.rows import BoolArray, FloatArray, IntArray, Rows, RowSource
from hetrisk.core.trail import SHIFTING, STAND_IN, Trail

CONFIRMED_INDEX = 0.4  # instability a stand-in must show on all rows
CONFIRMED_LEVEL = 0.05  # level of the test of a mechanism on all rows


def confirmed(trail: Trail, rows: RowSource, family: Family, groups: IntArray) -> BoolArray:
    """(d,) support once what left on the sample has been asked of all rows."""
    support = trail.support.copy()
    for group in np.unique(groups[trail.varies & ~trail.support]):
        members = np.flatnonzero(groups == group)
        if not any(_still_leaves(trail, rows, family, groups, int(j)) for j in members):
            support[members] = trail.varies[members]
    return support


def _still_leaves(trail: Trail, rows: RowSource, family: Family, groups: IntArray, j: int) -> bool:
    if trail.route[j] == STAND_IN:
        columns = trail.support.copy()
        columns[j] = True
        for probe in trail.probes[j]:
            index, error = instability(environment_fits(rows, family, probe, columns))
            if index[j] > max(CONFIRMED_INDEX, 3 * error[j]):
                return True
        return False
    if trail.route[j] == SHIFTING and family.closed_form:
        shifting = np.array([route == SHIFTING for route in trail.route])
        return mechanism_on_all_rows(rows, family, groups, shifting, j) < CONFIRMED_LEVEL
    return bool(trail.route[j])


@dataclass(frozen=True)
class Spreads:
    """How to lay a block out for the test of one mechanism.

    The spread of the first of ``effects`` is what other features, the spreads of the other
    effects and functions of the target may explain.

    Attributes
    ----------
    effects : (m,) columns.
    mean : (b, m) coefficients of their means given the target.
    outside : (d,) columns outside the group of the first.
    family : of the target.
    """

    effects: IntArray
    mean: FloatArray
    outside: BoolArray
    family: Family

    def __call__(self, rows: Rows) -> Rows:
        """Rows of (other features, spreads of other effects, functions of the target)."""
        known = _known(rows, self.family)
        spread = np.abs(rows.X[:, self.effects] - known @ self.mean) ** SPREAD
        given = spread_basis(rows.y, self.family)[:, 1:]
        columns = np.column_stack([rows.X[:, self.outside], spread[:, 1:], given])
        return Rows(columns, spread[:, 0], rows.weight)


def mechanism_on_all_rows(
    rows: RowSource, family: Family, groups: IntArray, shifting: BoolArray, j: int
) -> float:
    """`hetrisk.core.evidence.mechanism_p_value` over all rows, for an effect j of a number.

    Parameters
    ----------
    rows : all rows, standardised.
    family : of the target.
    groups : (d,) columns of one group are one feature.
    shifting : (d,) consequences of the target whose spread may rise and fall with that of j.
    j : column.
    """
    outside = groups != groups[j]
    effects = np.append(j, np.flatnonzero(shifting & outside))
    sums = rows.sum(partial(_target_products, effects=effects, family=family))
    mean = np.linalg.lstsq(sums[:, : len(sums)], sums[:, len(sums) :], rcond=None)[0]
    lay_out = Spreads(effects, np.asarray(mean, dtype=np.float64), outside, family)
    m = rows.sum(partial(_laid_out_moments, lay_out=lay_out))
    fit = least_squares(m)
    # Spreads vary more where they are larger, so their errors must be robust: one more pass.
    meat = rows.sum(partial(_scores, lay_out=lay_out, fit=fit, centre=m.mean[:-1]))
    bread = fit.coef_covariance / max(fit.variance, 1e-300)
    tested = slice(0, int(outside.sum()) + len(effects) - 1)
    return any_direction(fit.coef[tested], (bread @ meat @ bread)[tested, tested])


def _known(rows: Rows, family: Family) -> FloatArray:
    return np.column_stack([np.ones(len(rows)), target_basis(rows.y, family)])


def _target_products(rows: Rows, effects: IntArray, family: Family) -> FloatArray:
    """(b, b + m) products of the functions of the target with themselves and with the effects."""
    known = _known(rows, family)
    products: FloatArray = known.T @ (
        rows.weight[:, None] * np.column_stack([known, rows.X[:, effects]])
    )
    return products


def _laid_out_moments(rows: Rows, lay_out: Spreads) -> Moments:
    return moments(lay_out(rows))


def _scores(rows: Rows, lay_out: Spreads, fit: LinearFit, centre: FloatArray) -> FloatArray:
    """Sum of the outer products of the gradients of a fit, row by row."""
    laid = lay_out(rows)
    residual = laid.y - fit.intercept - laid.X @ fit.coef
    gradient = (laid.weight * residual)[:, None] * (laid.X - centre)
    outer: FloatArray = gradient.T @ gradient
    return outer
