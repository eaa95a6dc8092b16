"""What a decision costs and saves: evidence, reach curve, stability, environments left out.

Whoever decided (regret, the search for hidden environments, the paper's loop), the answer is
priced here, in one currency: the error to expect as the shift grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.floors import EQUAL, TINY
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.anchor import anchor_fit
from hetrisk.core.reach.columns import SweptFit
from hetrisk.core.reach.curve import Line, draw, grid
from hetrisk.core.reach.regret import Environments, fit_set, gradient_shift, regret_of, risk_of
from hetrisk.core.reach.resampling import SetErrors, evaluate_sets, resamples
from hetrisk.core.reach.settings import SETTINGS
from hetrisk.core.reach.weights import fit_weighted
from hetrisk.core.result import EnvironmentScore, ReachCurve


@dataclass(frozen=True)
class Resampled:
    """Sets of columns on resampled rows.

    Attributes
    ----------
    sets : (m, d).
    reach : that they compete at.
    errors : of the sets, in each of B resamples.
    """

    sets: BoolArray
    reach: float
    errors: list[SetErrors]

    @cached_property
    def expected(self) -> FloatArray:
        """(B, m) error of each set at the reach, in each resample."""
        return np.array([errors.expected(self.reach) for errors in self.errors])

    def stability(self, full: int, removed: float) -> FloatArray:
        """(d,) share of resamples in whose best set each column is missing.

        ``full`` is the set of all columns; another counts where it removes at least the share
        ``removed`` of the mean regret.
        """
        best = self.sets[[errors.best(self.reach, full, removed) for errors in self.errors]]
        share: FloatArray = (~best).mean(axis=0)
        return share

    def agreement(self, chosen: int, other: int) -> float:
        """Share of resamples in which one set does at least as well as another."""
        ahead = self.expected[:, chosen] <= self.expected[:, other] * (1.0 + EQUAL)
        return float(ahead.mean())

    def within_one_error(self, eligible: BoolArray) -> int:
        """Of the first sets: the last ``eligible`` (m,) one that does as well as the first of all.

        As well is within one standard error of the difference, over the resamples.
        """
        best = 0
        for i in np.flatnonzero(eligible):
            gap = self.expected[:, i] - self.expected[:, 0]
            if gap.mean() <= gap.std(ddof=1):
                best = int(i)
        return best

    def lines(self, chosen: int, other: int) -> list[tuple[Line, Line]]:
        """Risk and regrets of two sets in each resample."""
        return [(_line(errors, chosen), _line(errors, other)) for errors in self.errors]


def _line(errors: SetErrors, i: int) -> Line:
    return Line(float(errors.risk[i]), errors.regrets[i], errors.own[i])


def resampled(
    cells: list[CellMoments], environments: Environments, sets: BoolArray, reach: float
) -> Resampled:
    """Let sets of columns compete again in each resample."""
    phi = [float(environments.phi[environments.partition == i].mean()) for i in range(len(cells))]
    errors = [evaluate_sets(drawn, sets) for drawn in resamples(cells, environments.n_targets, phi)]
    return Resampled(sets, reach, errors)


def model_line(environments: Environments, coef: FloatArray, columns: BoolArray) -> Line:
    """Risk and regrets of a linear model (p, t) that uses some columns."""
    own = fit_set(environments, columns)
    regrets = np.maximum(regret_of(environments, coef, own) - own.chance, 0.0)
    return Line(float(risk_of(environments, coef)[0]), regrets, own.own)


def direction_line(environments: Environments, coef: FloatArray) -> Line:
    """Risk and shifts of gradient of a linear model (p, t) that uses directions of all columns."""
    risk = risk_of(environments, coef)
    shifts = np.maximum(gradient_shift(environments, coef), 0.0)
    return Line(float(risk[0]), shifts, risk[1:])


def curve(
    environments: Environments,
    model: Line,
    reach: float,
    sets: BoolArray,
    lines: list[tuple[Line, Line]],
    unit: str,
    levels: tuple[float, float] | None = None,
) -> ReachCurve:
    """The reach curve of a model and of plain ERM.

    ``sets`` (n, d) are those among which the columns to leave out at other reaches are found;
    ``lines`` are those of the model and of plain ERM on resampled rows; ``levels`` the squared
    errors of the two where nothing shifts, if these were measured (`hetrisk.core.reach.levels`).
    """
    full = np.ones(environments.n_columns, dtype=bool)
    plain = model_line(environments, fit_set(environments, full).coef[0], full)
    at = grid(reach)
    found = evaluate_sets(environments, sets)
    best = [sets[int(np.argmin(found.expected(float(k))))] for k in at]
    pair = (model, plain)
    if levels is not None:
        ratio = tuple(e / max(line.risk, TINY) for e, line in zip(levels, pair, strict=True))
        pair = (model.at_level(ratio[0]), plain.at_level(ratio[1]))
        lines = [(a.at_level(ratio[0]), b.at_level(ratio[1])) for a, b in lines]
    return draw(at, pair, lines, best, unit)


@dataclass(frozen=True)
class ColumnPrices:
    """For each of d columns: margin, price and share of regret (see `Evidence`)."""

    margin: FloatArray
    price: FloatArray
    regret: FloatArray


def column_prices(
    environments: Environments, support: BoolArray, groups: IntArray, reach: float
) -> ColumnPrices:
    """What reversing the decision about each group of columns would cost."""
    d = len(support)
    margin, price, share = np.zeros(d), np.zeros(d), np.full(d, np.nan)
    members = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    now = fit_set(environments, support)
    everything = fit_set(environments, np.ones(d, dtype=bool)).excess.max(initial=0.0)
    flips = _flips(environments, support, members, (reach, 0.0))
    alone = _flips(environments, np.ones(d, dtype=bool), members, (1.0, 0.0))
    for i, group in enumerate(members):
        at_reach, at_rest = flips[0][i], flips[1][i]
        margin[group] = _rise(at_reach, now.expected(reach))
        # Taken back, an absent column lowers the risk: its price is what that would save.
        taken = support[group].all()
        price[group] = _rise(at_rest, now.risk) if taken else _rise(now.risk, at_rest)
        if everything > 0:
            share[group] = 1.0 - (alone[0][i] - alone[1][i]) / everything
    return ColumnPrices(margin, price, share)


def _flips(
    environments: Environments,
    support: BoolArray,
    members: list[IntArray],
    reaches: tuple[float, float],
) -> list[FloatArray]:
    """(m,) expected error when each group changes sides, at each of the reaches."""
    if environments.null:  # what chance shows depends on the set: each is fitted from scratch
        fits = [fit_set(environments, _flipped(support, group)) for group in members]
        return [np.array([fit.expected(k) for fit in fits]) for k in reaches]
    inside = [i for i, group in enumerate(members) if support[group].all()]
    outside = [i for i, group in enumerate(members) if not support[group].all()]
    state, found = SweptFit.of(environments, support), []
    for k in reaches:
        values = np.zeros(len(members))
        values[inside] = state.without(k, [members[i] for i in inside])
        values[outside] = state.with_more(k, [members[i] for i in outside])
        found.append(values)
    return found


def _flipped(support: BoolArray, group: IntArray) -> BoolArray:
    changed = support.copy()
    changed[group] = not support[group].all()
    return changed


def _rise(value: float, base: float) -> float:
    return float(np.sqrt(max(value, 0.0) / max(base, TINY)) - 1.0)


def leave_one_out(
    environments: Environments,
    rivals: BoolArray,
    reach: float,
    names: tuple[str, ...],
    weighted: bool,
) -> tuple[EnvironmentScore, ...]:
    """Fit to all environments but one, for each; errors on the one left out.

    The columns are chosen anew among the best sets met, and the weights anew where ``weighted``, so
    that the one left out has no say.
    """
    if len(environments.rows) < 3 or np.any(environments.partition > 0):
        return ()
    full = np.ones(rivals.shape[1], dtype=bool)
    scores = []
    for e, name in enumerate(names):
        rest = environments.without(e)
        best = rivals[evaluate_sets(rest, rivals).best(reach, int(rivals.all(axis=1).argmax()))]
        models = (
            fit_weighted(rest, best, reach if weighted else 0.0).coef,
            fit_set(rest, full).coef[0],
            _anchor(rest),
        )
        errors = [float(np.sqrt(risk_of(environments, coef)[1 + e])) for coef in models]
        scores.append(EnvironmentScore(name, float(environments.rows[e]), *errors))
    return tuple(scores)


def _anchor(environments: Environments) -> FloatArray:
    """(p, t) anchor regression, each target on its own."""
    d, t = environments.n_columns, environments.n_targets
    coef = np.zeros((1 + d, t))
    for target in range(t):
        chosen = [*range(1, 1 + d), 1 + d + target]
        mean = environments.gram[:, 0, chosen]
        second = environments.gram[:, chosen][:, :, chosen]
        weight = environments.share
        scatter = weight[:, None, None] * (second - mean[:, :, None] * mean[:, None, :])
        fit = anchor_fit(Moments(weight, mean, scatter), SETTINGS.anchor_gamma)
        coef[:, target] = np.append(fit.intercept, fit.coef)
    return coef
