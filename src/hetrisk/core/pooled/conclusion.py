"""From what the rounds of a search measured to its answer: who left, why, at what price."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from hetrisk.core.mixture.mixture import MixtureParameters, fit_mixture
from hetrisk.core.numerics.comparison import environment_moments
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.iteration import Solution
from hetrisk.core.numerics.moments import moments
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import BoolArray, FloatArray, Held, IntArray, Rows, RowSource
from hetrisk.core.numerics.working import working_fit
from hetrisk.core.pooled.confirmation import confirmed
from hetrisk.core.pooled.evidence import leaving_out_cost, one_against_rest
from hetrisk.core.pooled.latent import LatentSlopes, latent_slopes
from hetrisk.core.pooled.probes import Probe
from hetrisk.core.pooled.trail import OF_A_LABEL, SHIFTING, STAND_IN, Trail
from hetrisk.core.pooled.transfer import saving, soft_gate
from hetrisk.core.result import (
    HOMOGENEOUS,
    INVARIANT,
    UNSTABLE,
    Discovery,
    Evidence,
    SearchSettings,
)

POOL = 8  # partitions that risk across environments is averaged over
DOUBT = 0.2  # a suspect that stays, but whose p-value is below this, gets a soft gate
POLISH = 10  # EM iterations over all rows, from what a sample found

WHY = {
    STAND_IN: "it stands in for a curve that a linear model cannot draw, and its slope differs "
    "between environments",
    SHIFTING: "it is a consequence of the target whose mechanism is not the same in all rows",
    OF_A_LABEL: "it is a consequence of the label that repeats it better than any other feature "
    "tells it, and whether it keeps doing so elsewhere cannot be seen in a pooled table",
}


def conclude(
    trail: Trail,
    rows: RowSource,
    sample: Rows,
    family: Family,
    groups: IntArray,
    settings: SearchSettings,
) -> Discovery:
    """Confirm on all rows what left, price it, and put the verdict into words."""
    support = trail.support
    if rows.n_rows > len(sample):
        support = confirmed(trail, rows, family, groups)
    left = trail.varies & ~support
    latent = _latent(trail, sample, family, left, settings)
    verdict = _verdict(support, left, latent)
    support = trail.varies if verdict == UNSTABLE else support
    support = support | _unseen(trail, rows, sample, groups, support)
    # A soft gate is a ridge of least squares; for labels it would be a guess. Where nothing left,
    # the model is plain ERM.
    soft = verdict == INVARIANT and family.closed_form
    gates = _gates(trail, sample, support, groups) if soft else support.astype(np.float64)
    environments = _environments(rows, family, left, verdict, settings)
    partition = environments.value
    evidence = Evidence(
        instability=trail.index,
        instability_error=trail.index_error,
        cost=_costs(sample, family, support, trail.varies, groups),
        saving=_saving(trail, sample, support, left, partition),
        p_value=trail.p_value,
        reason=tuple(_reason(trail, j, gates, verdict) for j in range(len(gates))),
    )
    return Discovery(
        support=support,
        gates=gates,
        partition=partition,
        evidence=evidence,
        verdict=verdict,
        reason=_sentence(trail, sample, family, left, groups, latent),
        history=_history(trail, support, environments),
    )


def _verdict(support: BoolArray, left: BoolArray, latent: LatentSlopes | None) -> str:
    """What was found, as a word; where every feature would have to leave, none is safe."""
    if left.any():
        return INVARIANT if support.any() else UNSTABLE
    return HOMOGENEOUS if latent is None else UNSTABLE


def _unseen(
    trail: Trail, rows: RowSource, sample: Rows, groups: IntArray, support: BoolArray
) -> BoolArray:
    """(d,) features that vary, but not in the sample: they stay, unless their group left."""
    if trail.varies.all() or rows.n_rows <= len(sample):
        return np.zeros_like(trail.varies)
    varies = np.diag(rows.sum(moments).scatter)[:-1] > 0
    gone = np.isin(groups, groups[trail.varies & ~support])
    unseen: BoolArray = varies & ~trail.varies & ~gone
    return unseen


def _gates(trail: Trail, sample: Rows, support: BoolArray, groups: IntArray) -> FloatArray:
    """One for features that stay, zero for those that left, between for those in doubt."""
    gates = support.astype(np.float64)
    doubtful = trail.suspect & support & (trail.p_value < DOUBT)
    pooled = moments(sample)
    for group in np.unique(groups[doubtful]):
        members = np.flatnonzero((groups == group) & support)
        probes = [p for j in members if doubtful[j] for p in trail.probes.get(int(j), [])]
        own = [environment_moments(Held(sample), probe) for probe in probes]
        gates[members] = soft_gate(own, pooled, support, gates, members)
    return gates


def _latent(
    trail: Trail, sample: Rows, family: Family, left: BoolArray, settings: SearchSettings
) -> LatentSlopes | None:
    """Slopes that differ between environments no feature betrays, where nothing left."""
    if left.any() or family.n_outputs > 1 or not trail.terms:
        return None
    found = latent_slopes(sample, family, trail.terms[0], settings.seed)
    return found if found.believed else None


def _environments(
    rows: RowSource, family: Family, left: BoolArray, verdict: str, settings: SearchSettings
) -> Solution[MixtureParameters]:
    """Environments as the features that left tell them apart: a mixture of y on those.

    Variances are tied or free, whichever the Bayesian information criterion prefers. Under a
    verdict of homogeneous there is one environment, unless a number was asked for.
    """
    K = settings.n_environments or (1 if verdict == HOMOGENEOUS else 2)
    columns = left if left.any() else None
    fit = partial(
        fit_mixture, rows, K, family, columns=columns, seed=settings.seed, n_init=12, tol=1e-6
    )
    tied = fit(tied_variance=True, max_iter=POLISH)
    if K == 1 or not family.closed_form:
        return tied
    free = fit(tied_variance=False, max_iter=POLISH)
    price = 0.5 * (K - 1) * np.log(rows.n_rows) / rows.n_rows
    return free if free.path[-1] - tied.path[-1] > price else tied


def _costs(
    sample: Rows, family: Family, support: BoolArray, varies: BoolArray, groups: IntArray
) -> FloatArray:
    """(d,) relative rise of the training error when a feature (its group) is not in the model."""
    costs = np.zeros(len(support))
    if family.n_outputs > 1:
        parts = [_costs(*target, support, varies, groups) for target in one_against_rest(sample)]
        return np.asarray(np.mean(parts, axis=0))
    base = _fit_on(sample, family, support)
    place = np.cumsum(support) - 1
    for group in np.unique(groups[varies]):
        members = np.flatnonzero((groups == group) & varies)
        if support[members].all():
            costs[members] = leaving_out_cost(base, sample, family, place[members])
        else:
            wider = support.copy()
            wider[members] = True
            fit = _fit_on(sample, family, wider)
            own = (np.cumsum(wider) - 1)[members]
            costs[members] = leaving_out_cost(fit, sample, family, own)
    return costs


def _fit_on(sample: Rows, family: Family, columns: BoolArray) -> Any:
    rows = Rows(sample.X[:, columns], sample.y, sample.weight)
    return working_fit(rows, family, np.empty((len(rows), 0)))


def _saving(
    trail: Trail, sample: Rows, support: BoolArray, left: BoolArray, partition: Partition
) -> FloatArray:
    pool: list[Partition] = list(_pool(trail, left))
    if left.any():
        pool.append(partition)
    fall = saving([environment_moments(Held(sample), p) for p in pool], support)
    return np.asarray(fall * trail.varies)


def _pool(trail: Trail, left: BoolArray) -> list[Probe]:
    """Probes of the features that left, or, where none did, of the most unstable ones."""
    order = np.flatnonzero(left) if left.any() else np.argsort(-trail.index, kind="stable")
    probes = [probe for j in order for probe in trail.probes.get(int(j), [])]
    return probes[:POOL]


def _reason(trail: Trail, j: int, gates: FloatArray, verdict: str) -> str:
    numbers = f"instability {trail.index[j]:.2f}, p = {_p(trail.p_value[j])}"
    if not trail.varies[j]:
        return "Kept: it varies too rarely to judge." if gates[j] else "Left out: it never varies."
    if gates[j] == 0:
        return f"Left out: {WHY[trail.route[j]]} ({numbers})."
    if trail.route[j] and verdict == UNSTABLE:
        return f"Kept for want of a safe one: {WHY[trail.route[j]]} ({numbers})."
    if trail.route[j]:
        return f"Kept: what spoke against it in a sample is not borne out by all rows ({numbers})."
    if gates[j] < 1:
        return f"Kept in part, gate {gates[j]:.2f}: it is under suspicion ({numbers})."
    if trail.suspect[j]:
        return f"Kept: it was under suspicion, but its role does not change ({numbers})."
    return (
        f"Kept: it is neither a stand-in for a curve nor a consequence of the target ({numbers})."
    )


def _sentence(
    trail: Trail,
    sample: Rows,
    family: Family,
    left: BoolArray,
    groups: IntArray,
    latent: LatentSlopes | None,
) -> str:
    n_features = len(np.unique(groups[trail.varies]))
    if latent is not None:
        return (
            "Two groups of rows follow different slopes: a mixture gains "
            f"{latent.gain:.2f} in mean log likelihood beyond what one population would, "
            f"{latent.score:.0f} standard deviations. No feature tells the groups apart, so no "
            "set of features is safe."
        )
    if not left.any():
        suspects = len(np.unique(groups[trail.suspect & trail.varies]))
        return (
            f"No usable heterogeneity: of {n_features} features, {suspects or 'none'} came under "
            "suspicion of standing in for a curve or being a consequence of the target"
            f"{', and none was found to change its role' if suspects else ''}. The model is plain "
            "ERM on all features."
        )
    routes = [trail.route[np.flatnonzero(left & (groups == g))[0]] for g in np.unique(groups[left])]
    parts = [f"{routes.count(name)} {name}" for name in WHY if name in routes]
    if left.sum() == trail.varies.sum():
        return (
            f"All {n_features} features would have to leave ({', '.join(parts)}): no set of "
            "features is safe."
        )
    price = 100 * _price(sample, family, trail.varies & ~left, trail.varies)
    unit = "error" if family.closed_form else "deviance"
    return (
        f"{len(routes)} of {n_features} features left out ({', '.join(parts)}). Where nothing "
        f"shifts, that costs {price:.1f} % more {unit}."
    )


def _price(sample: Rows, family: Family, support: BoolArray, varies: BoolArray) -> float:
    """Relative rise of the training error when all that left is left out together."""
    if family.n_outputs > 1:
        return float(
            np.mean([_price(*target, support, varies) for target in one_against_rest(sample)])
        )
    every = np.flatnonzero(~support[varies])
    return leaving_out_cost(_fit_on(sample, family, varies), sample, family, every)


def _p(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-4 else "below 0.0001"


def _history(
    trail: Trail, support: BoolArray, environments: Solution[MixtureParameters]
) -> tuple[dict[str, Any], ...]:
    """One record a round; the last, which found nothing more to leave, is the one chosen."""
    last = {
        "n_environments": environments.value.n_environments,
        "support": support.tolist(),
        "chosen": True,
        "mixture_log_likelihood": float(environments.path[-1]),
        "mixture_path": environments.path.tolist(),
    }
    empty = {
        "round": 1,
        "log_likelihood": float(environments.path[-1]),
        "objective": 1.0,
        "left_out": [],
        "routes": [],
        "instability": trail.index.tolist(),
        "p_value": trail.p_value.tolist(),
        "terms": [],
    }
    records = list(trail.records) or [empty]
    return (*records[:-1], {**records[-1], **last})
