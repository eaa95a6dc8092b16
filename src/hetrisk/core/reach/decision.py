"""From environments that differ to a decision, a verdict and its sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.numerics.thresholds import Constant
from hetrisk.core.reach.account import (
    column_prices,
    curve,
    direction_line,
    leave_one_out,
    model_line,
    resampled,
)
from hetrisk.core.reach.columns import choose_columns, take_back_path
from hetrisk.core.reach.curve import Line
from hetrisk.core.reach.directions import fit_directions
from hetrisk.core.reach.regret import Environments, fit_set
from hetrisk.core.reach.resampling import halves
from hetrisk.core.reach.sets import evaluate_path
from hetrisk.core.reach.settings import SETTINGS
from hetrisk.core.reach.strength import choose_strength
from hetrisk.core.reach.weights import fit_weighted, weight_gains
from hetrisk.core.result import (
    HOMOGENEOUS,
    INVARIANT,
    UNSTABLE,
    EnvironmentScore,
    Evidence,
    ReachCurve,
    SearchSettings,
)
from hetrisk.core.settings import THRESHOLDS

LISTED: Constant[int] = 5  # columns named in a sentence
# Measures the squared error of a model: its columns, its linear scores in place of them (or None),
# and how much more each environment counts.
Measure = Callable[[BoolArray, FloatArray | None, FloatArray], float]


@dataclass(frozen=True)
class Decision:
    """What is to be done about environments that differ.

    Attributes
    ----------
    support : (d,) columns to use.
    coef : (p, t) linear model of the (indicators of the) target, constant first.
    multipliers : (K,) how much more each environment counts (`hetrisk.core.reach.weights`).
    verdict, reason : in a word, and in a sentence or two.
    evidence, curve, stability, leave_one_out : see `hetrisk.core.result.SearchResult`.
    """

    support: BoolArray
    coef: FloatArray
    multipliers: FloatArray
    verdict: str
    reason: str
    evidence: Evidence
    curve: ReachCurve
    stability: FloatArray
    leave_one_out: tuple[EnvironmentScore, ...]


def decide(
    cells: list[CellMoments],
    environments: Environments,
    p_value: FloatArray,
    names: tuple[str, ...],
    groups: IntArray,
    settings: SearchSettings,
    unit: str,
    chance: float | None = None,
    measure: Measure | None = None,
) -> Decision:
    """Choose columns or directions at the reach asked for; keep plain ERM where that pays more.

    Parameters
    ----------
    cells : moments of each partition's environments and folds.
    environments : the same environments side by side.
    p_value : (d,) that a column's coefficient is the same everywhere.
    names : of the environments.
    unit : of the error.
    chance : where the environments do not differ beyond chance, the p-value that says so.
    measure : measures the error where nothing shifts, for labels (`hetrisk.core.reach.levels`).
    """
    d, reach = environments.n_columns, settings.reach
    varies = np.diag(environments.pooled)[1 : d + 1] > 0
    keep = settings.kept(d) | ~varies
    chosen = choose_columns(environments, reach, groups, keep)
    path = take_back_path(environments, reach, groups, chosen.support)
    full = len(path) - 1  # the last set of the path is that of all columns
    again = resampled(cells, environments, path, chosen.rivals, reach)
    removed = evaluate_path(environments, path).removed(full)
    enough = (removed >= THRESHOLDS.removed) | (settings.form == "directions")
    wanted = again.within_one_error(enough)
    at = wanted if enough[wanted] else full
    found = _FORMS[settings.form](cells, environments, path[at], reach)
    plain = _plain(environments)
    met, lines = (chosen.met, chosen.costs), again.lines(at, full)
    levels = None if measure is None else (_level(measure, found), _level(measure, plain))
    drawn = curve(environments, found.line, reach, *met, lines, unit, levels)
    agreement = again.agreement(at, full)
    verdict, reason = _verdict(found, drawn, agreement, varies, groups, environments, settings)
    if at == full and wanted != full:
        reason = f"{reason} {_refused(~path[wanted], removed[wanted], groups, settings)}"
    if chance is not None:
        verdict = HOMOGENEOUS
        reason = (
            f"The {len(environments.rows)} environments do not differ beyond chance "
            f"(p = {chance:.2g}): plain ERM on all columns."
        )
    if verdict != INVARIANT:
        found, lines = plain, again.lines(full, full)
        levels = None if levels is None else (levels[1], levels[1])
        drawn = curve(environments, found.line, reach, *met, lines, unit, levels)
    prices = column_prices(environments, found.support, groups, reach)
    weighted = bool(found.multipliers.any())
    scores = leave_one_out(environments, chosen.rivals, reach, names, weighted)
    return Decision(
        found.support,
        found.coef,
        found.multipliers,
        verdict,
        f"{reason} {_contradiction(scores)}".strip() if verdict == INVARIANT else reason,
        Evidence(
            prices.margin,
            prices.price,
            prices.regret,
            np.minimum(p_value * len(np.unique(groups)), 1.0),
            np.zeros(d, dtype=bool),
            tuple(
                _column_reason(j, found.support, varies, keep, prices.margin, settings)
                for j in range(d)
            ),
        ),
        drawn,
        again.stability(full, THRESHOLDS.removed if settings.form == "columns" else 0.0),
        scores,
    )


@dataclass(frozen=True)
class _Model:
    """A model to choose; ``gains`` are those of its weights on halves they were not fitted to.

    ``dense`` says that it uses the linear scores ``coef`` in place of columns.
    """

    support: BoolArray
    coef: FloatArray
    multipliers: FloatArray
    line: Line
    gains: FloatArray
    dense: bool = False


def _level(measure: Measure, model: _Model) -> float:
    return measure(model.support, model.coef if model.dense else None, model.multipliers)


def _columns(
    cells: list[CellMoments], environments: Environments, support: BoolArray, reach: float
) -> _Model:
    """Leave columns out, and answer to the rows that suffer most on those that stay."""
    gains = weight_gains(halves(cells, environments), support, reach)
    # They are used where they pay on rows they were not fitted to.
    fit = fit_weighted(environments, support, reach if gains.mean() > 0.0 else 0.0)
    line = model_line(environments, fit.coef, support)
    return _Model(support, fit.coef, fit.multipliers, line, gains)


def _directions(
    cells: list[CellMoments], environments: Environments, support: BoolArray, reach: float
) -> _Model:
    """Shrink directions of all columns."""
    strength = choose_strength(cells, environments, reach)
    coef = fit_directions(environments, strength)
    line = direction_line(environments, coef)
    unweighted = np.zeros(len(environments.rows))
    return _Model(np.ones_like(support), coef, unweighted, line, np.empty(0), dense=True)


def _plain(environments: Environments) -> _Model:
    """Plain ERM on all columns."""
    full = np.ones(environments.n_columns, dtype=bool)
    coef = fit_set(environments, full).coef[0]
    line = model_line(environments, coef, full)
    return _Model(full, coef, np.zeros(len(environments.rows)), line, np.empty(0))


_FORMS = {"columns": _columns, "directions": _directions}


def _verdict(
    found: _Model,
    drawn: ReachCurve,
    agreement: float,
    varies: BoolArray,
    groups: IntArray,
    environments: Environments,
    settings: SearchSettings,
) -> tuple[str, str]:
    left = varies & ~found.support
    at = int(np.searchsorted(drawn.reach, settings.reach))
    gain = 1.0 - drawn.error[at] / max(drawn.error_erm[at], TINY)
    price = drawn.error[0] / max(drawn.error_erm[0], TINY) - 1.0
    differs = f"{len(environments.rows)} environments differ beyond chance"
    if not (found.support & varies).any():
        return UNSTABLE, f"{differs}, and no column predicts alike in all of them."
    if drawn.break_even > settings.reach or gain <= 0:
        return HOMOGENEOUS, (
            f"{differs}, but at reach {settings.reach:g} nothing does better than plain ERM on "
            "all columns."
        )
    steady = round(agreement * SETTINGS.resamples)
    where = f"in {steady} of {SETTINGS.resamples} resamples"
    if agreement < SETTINGS.agreement:
        doubt = listed(left, groups, settings) or "the weights of the environments"
        return UNSTABLE, (
            f"{differs}, but the answer does not hold on other rows: {where} it would pay. In "
            f"doubt: {doubt}."
        )
    if settings.form == "directions":
        what = "Directions along which environments differ are shrunk"
    elif left.any():
        which = listed(left, groups, settings)
        gone, all_of_them = (len(np.unique(groups[some])) for some in (left, varies))
        what = f"{gone} of {all_of_them} columns left out ({which})"
    else:
        what = "No column is left out; the environments that suffer most count more"
        paid = int((found.gains > 0.0).sum())
        where = f"on {paid} of {len(found.gains)} halves of the rows it was not fitted to"
    cost = f"costs {price:.1%} more error" if price > 0 else "costs nothing"
    return INVARIANT, (
        f"{what}: {differs}. At reach {settings.reach:g} the error to expect is {gain:.0%} lower "
        f"than plain ERM's; where nothing shifts, that {cost}. It pays from reach "
        f"{drawn.break_even:.2g} on, {where}."
    )


def _refused(left: BoolArray, removed: float, groups: IntArray, settings: SearchSettings) -> str:
    """Why columns that would pay for the worst environment stay."""
    return (
        f"Without {listed(left, groups, settings)} the worst environment would suffer less, but "
        f"only {max(removed, 0.0):.0%} of what moves over all environments would be gone: no "
        "column is left out."
    )


def listed(chosen: BoolArray, groups: IntArray, settings: SearchSettings) -> str:
    """Names of the columns chosen; those of one group, the levels of a category, are one."""
    _, first, size = np.unique(groups[chosen], return_index=True, return_counts=True)
    names = [settings.name(int(j)) for j in np.flatnonzero(chosen)[first]]
    # A level is named as its column and its value.
    names = [n.rpartition("=")[0] or n if s > 1 else n for n, s in zip(names, size, strict=True)]
    shown = ", ".join(names[:LISTED])
    more = len(names) - LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def _contradiction(scores: tuple[EnvironmentScore, ...]) -> str:
    """Say so where environments left out did worse with this model than with plain ERM."""
    if len(scores) < 3:
        return ""
    gap = np.array([score.error**2 - score.error_erm**2 for score in scores])
    error = float(gap.std(ddof=1) / np.sqrt(len(gap)))
    if gap.mean() <= error:
        return ""
    errors = np.array([(score.error, score.error_erm) for score in scores])
    model, plain = np.sqrt((errors**2).mean(axis=0))
    return (
        "Among the environments seen it did not pay: fitted to all but one and tried on that one, "
        f"it erred {model / plain - 1:.1%} more than plain ERM. It is for shifts beyond those."
    )


def _column_reason(
    j: int,
    support: BoolArray,
    varies: BoolArray,
    keep: BoolArray,
    margin: FloatArray,
    settings: SearchSettings,
) -> str:
    if not varies[j]:
        return "Left out: it never varies."
    change = f"the error at reach {settings.reach:g} by {abs(margin[j]):.1%}"
    if not support[j]:
        return f"Left out: taken back, it would raise {change}."
    if keep[j]:
        return "Kept: asked for."
    if margin[j] >= 0:
        return f"Kept: leaving it out would raise {change}."
    return (
        f"Kept: leaving it out alone would lower {change}, but leaving columns out does not pay or "
        "does not remove most of what moves."
    )
