"""Which columns leave: the whole decision, on moments and p-values alone.

The currency is the loss in environments, X_t = mean_e L_e + t (worst L_e - mean_e L_e), t the
reach: the average environment at 0, the worst one seen at 1, and as far again for each further 1.
L_e is the mean squared error in environment e of the model that all rows give. What a set of
columns still moves between environments is its *regret*: what that model loses, in the environment
where it loses most, against the environment's own.

A column whose slope moves is not for that reason one to leave out. Of a cause with slopes that
differ the mean slope is the best answer at every reach, and without the column everything it
explained is lost; of an effect of the target, of a copy, or of a column by which rows were
selected, it is the column that moved. So a set leaves only where that lowers X_t, or where each of
its columns is itself another, given those that stay, in some environments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.numerics.floors import EQUAL
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.stable.evidence import Evidence, MomentEvidence, of_several
from hetrisk.core.stable.regressions import Regressions, risk_at, standard_sums

# The numbers that decide. A level of 1 % for every test: conventional. A fifth of the regret:
# what is left when a curve meets another distribution of the columns, measured on designs with
# selection; half of it loses these, twice as much leaves columns in that move.
LEVEL = 0.01
SHARE_LEFT = 0.2

# Factor by which the loss may rise where environments were merged from thin ones and it is the
# columns that moved: with drifting effects it rises by less, in tables that are harmed by more.
MERGED_RISE = 1.1

# Weights of the regret, beside the error, by which columns are left out one after the other.
WEIGHTS: Budget[tuple[float, ...]] = (1.0, 16.0, 256.0)

NO_DIFFERENCE = "no difference"
PAYS = "pays"
MOVED = "moved"
STAYS = "stays"


@dataclass(frozen=True)
class Decision:
    """What leaves, and the numbers it rests on.

    Attributes
    ----------
    support : (d,) columns that stay.
    why : "no difference" (H0 of one regression is not rejected), "pays" (leaving lowers X_t),
        "moved" (the columns that leave moved, not y), or "stays".
    p_slopes : of H0: y given all columns has one regression everywhere.
    p_columns : (d,) of H0: a column, given those that stay, is the same everywhere; NaN where this
        was not asked.
    risk, risk_plain : X_t of the set proposed, and of all columns, relative to the variance of y.
    regret_left : of the set proposed, relative to that of all columns; NaN where none was.
    proposed : (d,) the set that was weighed, whether it leaves or not.
    """

    support: BoolArray
    why: str
    p_slopes: float
    p_columns: FloatArray
    risk: float
    risk_plain: float
    regret_left: float
    proposed: BoolArray


def stable_columns(
    moments: Moments, reach: float, keep: BoolArray | None = None, n_targets: int = 1
) -> BoolArray:
    """(d,) columns that stay, from the moments (K, ...) of (X, y) in known environments.

    Tests are those of `MomentEvidence`: noise is taken to be normal. With rows at hand call
    `decide` with `RowEvidence`.
    """
    d = moments.mean.shape[-1] - n_targets
    kept = np.zeros(d, dtype=bool) if keep is None else keep
    moments = moments[moments.weight > 0]  # environments that hold rows
    if len(moments.weight) < 2 or kept.all():
        return np.ones(d, dtype=bool)
    sums = standard_sums(moments, n_targets)
    evidence = MomentEvidence(sums, n_targets)
    return decide(sums, evidence, reach, np.arange(d), kept).support


def decide(
    sums: FloatArray,
    evidence: Evidence,
    reach: float,
    groups: IntArray,
    keep: BoolArray,
    level: float = LEVEL,
    candidates: list[BoolArray] | None = None,
    merged: bool = False,
) -> Decision:
    """Propose, test, dispose.

    Parameters
    ----------
    sums : (K, q, q) of z z' in each environment, z = (1, x, y) standardised.
    evidence : the tests.
    reach : t in X_t.
    groups : (d,) columns of one group stay or leave together.
    keep : (d,) columns that never leave.
    level : of each test.
    candidates : sets to be weighed in place of those that step 2 proposes.
    merged : whether environments were made by merging thin ones. Columns of such differ more
        easily, so that they moved is a reason to leave only where that does no harm.
    """
    groups = with_copies(groups, sums.sum(axis=0))
    everything, unasked = np.ones(len(groups), dtype=bool), np.full(len(groups), np.nan)
    full = Regressions.on(sums, everything)
    plain = full.losses()
    risk_plain = float(risk_at(plain.pooled, reach))
    free = [np.flatnonzero(groups == g) for g in np.unique(groups) if not keep[groups == g].any()]
    nothing = Decision(everything, STAYS, 1.0, unasked, risk_plain, risk_plain, np.nan, everything)

    # 1. Is there anything to explain? H0: y given all columns has one regression everywhere.
    nothing = replace(nothing, p_slopes=evidence.slopes(everything))
    if nothing.p_slopes > level:
        return replace(nothing, why=NO_DIFFERENCE)

    # 2. Propose: the set of least loss that stays with next to no regret.
    regret = float(plain.regret)
    if regret <= 0.0:
        return nothing

    def settled(fit: Regressions) -> bool:
        return bool(fit.losses().regret <= SHARE_LEFT * regret)

    given = [Regressions.on(sums, c) for c in candidates or []]
    met = given or _paths(full, free, reach)
    likely = [fit for fit in _by_risk(met, reach) if settled(fit)]
    proposed = _best(likely, [] if candidates else free, reach, settled)
    if proposed is None:
        return nothing
    losses = proposed.losses()
    weighed = replace(
        nothing,
        proposed=proposed.support,
        risk=float(risk_at(losses.pooled, reach)),
        regret_left=float(losses.regret) / regret,
    )

    # 3. Dispose: it leaves what it leaves out if that lowers the loss, in the mean environment and
    #    at the reach asked for, and also if the slopes of y go that far: X_t carries losses on in a
    #    line, but those of a cause whose slope moves grow with its square.
    #    By more than is known: a squared error of n rows has a relative error of sqrt(2 / n).
    least = np.sqrt(2.0 / sums[:, 0, 0].min())
    if (
        weighed.risk < (1.0 - least) * risk_plain
        and losses.cost < plain.cost
        and proposed.loss_if_slopes(full, reach) < full.loss_if_slopes(full, reach)
    ):
        return replace(weighed, support=proposed.support, why=PAYS)

    # 4. Where it lowers that at the reach alone, or not at all, ask whose mechanism moved. The
    #    noise of y given all columns is that of y's own mechanism, unless some of them are effects:
    #    where it is of one size everywhere, it is a cause's slope that moves. The square of the
    #    level: to take a cause for an effect costs more than to keep an effect.
    if evidence.noise() <= level**2:
        if weighed.risk < risk_plain:
            return replace(weighed, support=proposed.support, why=PAYS)

        # 5. Or if y is left one regression everywhere, and it is the columns that moved.
        def same(fit: Regressions) -> bool:
            return settled(fit) and evidence.slopes(fit.support) > level

        fit = _best(likely, free, reach, same)
        if fit is not None:
            found = _moved(fit, full, free, evidence, settled, level, weighed)
            if found.why != MOVED:
                return found
            losses = Regressions.on(sums, found.support).losses()
            risk = float(risk_at(losses.pooled, reach))
            if not merged or risk <= MERGED_RISE * risk_plain:
                return replace(found, risk=risk, regret_left=float(losses.regret) / regret)
    return weighed


def with_copies(groups: IntArray, gram: FloatArray) -> IntArray:
    """(d,) groups; one for columns that are one in two units: no table tells them apart.

    ``gram`` (q, q) is the sum of z z' over all rows, z = (1, x, y).
    """
    slopes = slice(1, 1 + len(groups))
    mean = gram[0, slopes] / gram[0, 0]
    covariance = gram[slopes, slopes] / gram[0, 0] - np.outer(mean, mean)
    # Of a column that stands still nothing is left but rounding.
    spread = np.sqrt(np.maximum(np.diag(covariance), EQUAL))
    joined = groups.copy()
    same = np.abs(covariance) > (1.0 - EQUAL) * np.outer(spread, spread)
    for j, k in np.argwhere(np.triu(same, 1)):
        joined[joined == joined[k]] = joined[j]
    return joined


def _paths(full: Regressions, free: list[IntArray], reach: float) -> list[Regressions]:
    """Sets met when groups are left out one by one, for least X_t and weighted regret."""
    met: dict[bytes, Regressions] = {}
    for weight in WEIGHTS:
        fit, left = full, list(free)
        while left:
            losses = fit.losses_without(left)
            best = int(np.argmin(risk_at(losses.pooled, reach) + weight * losses.regret))
            fit = fit.without(left.pop(best))
            met.setdefault(fit.support.tobytes(), fit)
    return list(met.values())


def _by_risk(fits: list[Regressions], reach: float) -> list[Regressions]:
    return sorted(fits, key=lambda fit: float(risk_at(fit.losses().pooled, reach)))


def _best(
    candidates: list[Regressions],
    free: list[IntArray],
    reach: float,
    passes: Callable[[Regressions], bool],
) -> Regressions | None:
    """The first that passes, then whatever may return to it, what helps most first."""
    fit = next((fit for fit in candidates if passes(fit)), None)
    while fit is not None:
        out = [columns for columns in free if not fit.support[columns].any()]
        back = [_with(fit, columns) for columns in out] if len(out) > 1 else []
        larger = next((wider for wider in _by_risk(back, reach) if passes(wider)), None)
        if larger is None:
            return fit
        fit = larger
    return None


def _with(fit: Regressions, columns: IntArray) -> Regressions:
    support = fit.support.copy()
    support[columns] = True
    return Regressions.on(fit.gram, support)


def _moved(
    fit: Regressions,
    full: Regressions,
    free: list[IntArray],
    evidence: Evidence,
    settled: Callable[[Regressions], bool],
    level: float,
    weighed: Decision,
) -> Decision:
    """Columns that are themselves another leave; the others return, if that does no harm."""
    p_columns = weighed.p_columns.copy()
    while True:
        out = [columns for columns in free if not fit.support[columns].any()]
        p = [of_several([evidence.column(int(j), fit.support) for j in group]) for group in out]
        for group, value in zip(out, p, strict=True):
            p_columns[group] = value
        still = [group for group, value in zip(out, p, strict=True) if value > level]
        wider = _with(fit, np.concatenate(still)) if still else fit
        if still and len(still) < len(out) and settled(wider):
            fit = wider
            continue
        # Of several weak effects some are too weak to be seen to move; a cause would be missed.
        missed = float(fit.losses().cost - wider.losses().cost)
        if missed > SHARE_LEFT * float(fit.losses().cost - full.losses().cost):
            return replace(weighed, p_columns=p_columns)
        return replace(
            weighed, support=fit.support, proposed=fit.support, why=MOVED, p_columns=p_columns
        )
