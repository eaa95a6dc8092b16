"""What a decision costs and saves: evidence, reach curve, stability, environments left out.

Whoever decided (regret, the search for hidden environments, the paper's loop), the answer is
priced here, in one currency: the error to expect as the shift grows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.floors import EQUAL, TINY
from hetrisk.core.numerics.linear import least_squares_many
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.anchor import anchor_moments
from hetrisk.core.reach.curve import Line, draw, grid
from hetrisk.core.reach.directions import fit_directions
from hetrisk.core.reach.regret import (
    Environments,
    fit_set,
    gradient_shift,
    regret_of,
    risk_in,
    risk_of,
)
from hetrisk.core.reach.resampling import BATCH, resamples
from hetrisk.core.reach.sets import SetErrors, evaluate_path, evaluate_sets, joined
from hetrisk.core.reach.settings import SETTINGS
from hetrisk.core.reach.swept import Costs, SweptFit
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
    errors: SetErrors

    @cached_property
    def expected(self) -> FloatArray:
        """(B, m) error of each set at the reach, in each resample."""
        return self.errors.expected(self.reach)

    def stability(self, full: int, removed: float) -> FloatArray:
        """(d,) share of resamples in whose best set each column is missing.

        ``full`` is the set of all columns; another counts where it removes at least the share
        ``removed`` of the mean regret.
        """
        best = self.sets[self.errors.best(self.reach, full, removed)]
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

    def lines(self, chosen: int, other: int) -> tuple[Line, Line]:
        """Risk and regrets of two sets in the resamples."""
        first, second = (
            Line(self.errors.risk[:, i], self.errors.regrets[:, i], self.errors.own[:, i])
            for i in (chosen, other)
        )
        return first, second


def resampled(
    cells: list[CellMoments],
    environments: Environments,
    path: BoolArray,
    rivals: BoolArray,
    reach: float,
) -> Resampled:
    """Let sets of columns compete again in each resample: nested ones, then any others."""
    others = [s for s in rivals if not (path == s).all(axis=1).any()]
    batches = []
    for drawn in resamples(cells, environments):
        found = evaluate_path(drawn, path)
        batches.append(found.beside(evaluate_sets(drawn, others)) if others else found)
    return Resampled(np.vstack([path, *others]), reach, joined(batches))


def model_line(environments: Environments, coef: FloatArray, columns: BoolArray) -> Line:
    """Risk and regrets of a linear model (p, t) that uses some columns."""
    own = fit_set(environments, columns)
    regrets = np.maximum(regret_of(environments, coef, own) - own.chance, 0.0)
    return Line(float(risk_of(environments, coef)[0]), regrets, own.own)


def direction_line(environments: Environments, coef: FloatArray) -> Line:
    """Risk and shifts of gradient of a linear model (p, t) that uses directions of all columns.

    For each resample, if there are any.
    """
    risk = risk_of(environments, coef)
    shifts = np.maximum(gradient_shift(environments, coef), 0.0)
    return Line(risk[..., 0], shifts, risk[..., 1:])


def direction_lines(cells: list[CellMoments], environments: Environments, strength: float) -> Line:
    """The same of directions shrunk so far, in each resample."""
    batches = [
        direction_line(drawn, fit_directions(drawn, strength))
        for drawn in resamples(cells, environments)
    ]
    risk, shifts, own = (
        np.concatenate([getattr(batch, name) for batch in batches])
        for name in ("risk", "regrets", "own")
    )
    return Line(risk, shifts, own)


def curve(
    environments: Environments,
    model: Line,
    reach: float,
    sets: BoolArray,
    costs: Costs,
    lines: tuple[Line, Line] | None,
    unit: str,
    levels: tuple[float, float] | None = None,
) -> ReachCurve:
    """The reach curve of a model and of plain ERM.

    ``sets`` (n, d) and their ``costs`` are those among which the columns to leave out at other
    reaches are found; ``lines`` are those of the model and of plain ERM on resampled rows;
    ``levels`` the squared errors of the two where nothing shifts, if these were measured
    (`hetrisk.core.reach.levels`).
    """
    full = np.ones(environments.n_columns, dtype=bool)
    plain = model_line(environments, fit_set(environments, full).coef[0], full)
    at = grid(reach)
    best = [int(np.argmin(costs.expected(float(k)))) for k in at]
    pair = (model, plain)
    if levels is not None:
        ratio = [e / max(float(line.risk), TINY) for e, line in zip(levels, pair, strict=True)]
        pair = (model.at_level(ratio[0]), plain.at_level(ratio[1]))
        if lines is not None:
            lines = (lines[0].at_level(ratio[0]), lines[1].at_level(ratio[1]))
    return draw(at, pair, lines, sets[best], unit)


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
    everything = fit_set(environments, np.ones(d, dtype=bool)).worst
    flips = _flips(environments, support, members)
    alone = flips if support.all() else _flips(environments, np.ones(d, dtype=bool), members)
    rise = _rise(flips.expected(reach), now.expected(reach))
    # Taken back, an absent column lowers the risk: its price is what that would save.
    lost, saved = _rise(flips.risk, now.risk), _rise(now.risk, flips.risk)
    for i, group in enumerate(members):
        margin[group] = rise[i]
        price[group] = lost[i] if support[group].all() else saved[i]
        if everything > 0:
            share[group] = 1.0 - alone.worst[i] / everything
    return ColumnPrices(margin, price, share)


def _flips(environments: Environments, support: BoolArray, members: list[IntArray]) -> Costs:
    """Costs of the m sets in which one of the groups has changed sides."""
    if environments.null:  # what chance shows depends on the set: each is fitted from scratch
        fits = [fit_set(environments, _flipped(support, group)) for group in members]
        return Costs(
            np.array([float(fit.risk) for fit in fits]), np.array([fit.worst for fit in fits])
        )
    inside = np.array([support[group].all() for group in members])
    state, found = SweptFit.of(environments, support), np.zeros((2, len(members)))
    for side, costs in ((inside, state.without), (~inside, state.with_more)):
        changed = costs([members[i] for i in np.flatnonzero(side)])
        found[:, side] = changed.risk, changed.worst
    return Costs(found[0], found[1])


def _flipped(support: BoolArray, group: IntArray) -> BoolArray:
    changed = support.copy()
    changed[group] = not support[group].all()
    return changed


def _rise(value: FloatArray | float, base: FloatArray | float) -> FloatArray:
    rise: FloatArray = np.sqrt(np.maximum(value, 0.0) / np.maximum(base, TINY)) - 1.0
    return rise


Refit = Callable[[Environments], FloatArray]  # (m, p, t) the model on each of m resamples


def leave_one_out(
    environments: Environments, refit: Refit, names: tuple[str, ...]
) -> tuple[EnvironmentScore, ...]:
    """Fit to all environments but one, for each; errors on the one left out.

    ``refit`` follows the whole rule, so that the one left out has no say.
    """
    if len(environments.rows) < 3 or np.any(environments.partition > 0):
        return ()
    K, step = len(environments.rows), max(1, BATCH // environments.gram.size)
    full = np.ones(environments.n_columns, dtype=bool)
    risks = []
    for start in range(0, K, step):
        out = np.arange(start, min(start + step, K))
        rest = environments.without(out)
        models = (refit(rest), fit_set(rest, full).coef[:, 0], _anchor(rest))
        risks.append(np.stack([risk_in(environments, out, coef) for coef in models], axis=1))
    errors = np.sqrt(np.concatenate(risks)).tolist()
    rows = environments.rows.tolist()
    return tuple(EnvironmentScore(*s[:2], *s[2]) for s in zip(names, rows, errors, strict=True))


def refit_columns(
    rest: Environments, rivals: BoolArray, reach: float, strength: float
) -> FloatArray:
    """Choose anew among the best sets met, and the weights anew, as strong as they were."""
    full = int(rivals.all(axis=1).argmax())
    best = evaluate_sets(rest, rivals).best(reach, full)
    coef = np.empty((len(best), 1 + rest.n_columns, rest.n_targets))
    for i in np.unique(best):
        coef[best == i] = fit_weighted(rest.some(best == i), rivals[i], strength).coef
    return coef


def _anchor(environments: Environments) -> FloatArray:
    """(m, p, t) anchor regression on each of m resamples, each target on its own."""
    d, t = environments.n_columns, environments.n_targets
    coef = np.zeros((len(environments.rows), 1 + d, t))
    weight = environments.share
    for target in range(t):
        chosen = np.array([*range(1, 1 + d), 1 + d + target])
        mean = environments.gram[..., 0, chosen]
        second = environments.gram[..., chosen[:, None], chosen]
        scatter = weight[..., None, None] * (second - mean[..., :, None] * mean[..., None, :])
        pooled = anchor_moments(Moments(weight, mean, scatter), SETTINGS.anchor_gamma)
        coef[:, 1:, target], coef[:, 0, target], _ = least_squares_many(pooled)
    return coef
