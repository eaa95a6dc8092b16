"""From what the rounds of a search measured to its answer: who left, why, at what price."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from hetrisk.core.comparison import environment_fits, environment_moments, instability
from hetrisk.core.discovery import (
    HOMOGENEOUS,
    INVARIANT,
    UNSTABLE,
    Discovery,
    Evidence,
    Partition,
    SearchSettings,
)
from hetrisk.core.evidence import (
    SPREAD,
    leaving_out_cost,
    one_against_rest,
    spread_basis,
    target_basis,
    wald_p_value,
)
from hetrisk.core.families import Family
from hetrisk.core.iteration import Solution
from hetrisk.core.latent import LatentSlopes, latent_slopes
from hetrisk.core.linear import least_squares
from hetrisk.core.mixture import MixtureParameters, fit_mixture
from hetrisk.core.moments import Moments, moments
from hetrisk.core.probes import Probe
from hetrisk.core.rows import BoolArray, FloatArray, Held, IntArray, Rows, RowSource
from hetrisk.core.trail import OF_A_LABEL, SHIFTING, STAND_IN, Trail
from hetrisk.core.transfer import saving, soft_gate
from hetrisk.core.working import working_fit

POOL = 8  # partitions that risk across environments is averaged over
DOUBT = 0.2  # a suspect that stays, but whose p-value is below this, gets a soft gate
POLISH = 10  # EM iterations over all rows, from what a sample found
CONFIRMED_INDEX = 0.4  # instability a stand-in must show on all rows
CONFIRMED_LEVEL = 0.05  # level of the test of a mechanism on all rows

WHY = {
    STAND_IN: "it stands in for a curve that a linear model cannot draw, and its slope differs "
    "between environments",
    SHIFTING: "it is a consequence of the target whose mechanism is not the same in all rows",
    OF_A_LABEL: "it is a consequence of the label, and causes of the label can replace it",
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
        support = _confirmed(trail, rows, sample, family, groups)
    gates = _gates(trail, sample, support)
    left = trail.varies & ~support
    latent = _latent(trail, sample, family, left, settings)
    verdict = INVARIANT if left.any() else UNSTABLE if latent is not None else HOMOGENEOUS
    environments = _environments(rows, family, left, verdict, settings)
    partition = environments.value
    evidence = Evidence(
        instability=trail.index,
        instability_error=trail.index_error,
        cost=_costs(sample, family, support, trail.varies, groups),
        saving=_saving(trail, sample, support, left, partition),
        p_value=trail.p_value,
        reason=tuple(_reason(trail, j, gates) for j in range(len(gates))),
    )
    return Discovery(
        support=support,
        gates=gates,
        partition=partition,
        evidence=evidence,
        verdict=verdict,
        reason=_verdict(trail, sample, family, support, groups, latent),
        history=_history(trail, support, environments),
    )


def _confirmed(
    trail: Trail, rows: RowSource, sample: Rows, family: Family, groups: IntArray
) -> BoolArray:
    """Support once what left on the sample has been asked of all rows: who does not shift stays."""
    support = trail.support.copy()
    for group in np.unique(groups[trail.varies & ~trail.support]):
        members = np.flatnonzero(groups == group)
        if not any(_still_leaves(trail, rows, sample, family, int(j)) for j in members):
            support[members] = trail.varies[members]
    return support


def _still_leaves(trail: Trail, rows: RowSource, sample: Rows, family: Family, j: int) -> bool:
    if trail.route[j] == STAND_IN:
        columns = trail.support.copy()
        columns[j] = True
        for probe in trail.probes[j]:
            index, error = instability(environment_fits(rows, family, probe, columns))
            if index[j] > max(CONFIRMED_INDEX, 3 * error[j]):
                return True
        return False
    if trail.route[j] == SHIFTING and family.closed_form:
        return _mechanism_on_all_rows(rows, sample, family, j) < CONFIRMED_LEVEL
    return bool(trail.route[j])


def _mechanism_on_all_rows(rows: RowSource, sample: Rows, family: Family, j: int) -> float:
    """p-value that the spread of feature j about the target does not depend on the others.

    Means given the target come from the sample; the test is a pass over all rows.
    """
    known = np.column_stack([np.ones(len(sample)), target_basis(sample.y, family)])
    mean = np.asarray(np.linalg.lstsq(known, sample.X[:, j], rcond=None)[0], dtype=np.float64)
    spread = np.abs(sample.X[:, j] - known @ mean) ** SPREAD
    basis = spread_basis(sample.y, family)
    level = np.asarray(np.linalg.lstsq(basis, spread, rcond=None)[0], dtype=np.float64)
    m = rows.sum(partial(_spread_moments, j=j, mean=mean, level=level, family=family))
    fit = least_squares(m)
    return wald_p_value(fit.coef, fit.coef_covariance)


def _spread_moments(
    rows: Rows, j: int, mean: FloatArray, level: FloatArray, family: Family
) -> Moments:
    """Moments of the other features and the spread of feature j, less its mean given y."""
    known = np.column_stack([np.ones(len(rows)), target_basis(rows.y, family)])
    spread = np.abs(rows.X[:, j] - known @ mean) ** SPREAD
    left = spread - spread_basis(rows.y, family) @ level
    return moments(Rows(np.delete(rows.X, j, axis=1), left, rows.weight))


def _gates(trail: Trail, sample: Rows, support: BoolArray) -> FloatArray:
    """One for features that stay, zero for those that left, between for those in doubt."""
    gates = support.astype(np.float64)
    doubtful = trail.suspect & support & (trail.p_value < DOUBT)
    pooled = moments(sample)
    for j in np.flatnonzero(doubtful):
        own = [environment_moments(Held(sample), p) for p in trail.probes.get(int(j), [])]
        gates[j] = soft_gate(own, pooled, support, int(j))
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


def _reason(trail: Trail, j: int, gates: FloatArray) -> str:
    numbers = f"instability {trail.index[j]:.2f}, p = {_p(trail.p_value[j])}"
    if not trail.varies[j]:
        return "Left out: it never varies."
    if gates[j] == 0:
        return f"Left out: {WHY[trail.route[j]]} ({numbers})."
    if trail.route[j]:
        return f"Kept: what spoke against it in a sample is not borne out by all rows ({numbers})."
    if gates[j] < 1:
        return f"Kept in part, gate {gates[j]:.2f}: it is under suspicion ({numbers})."
    if trail.suspect[j]:
        return f"Kept: it was under suspicion, but its role does not change ({numbers})."
    return (
        f"Kept: it is neither a stand-in for a curve nor a consequence of the target ({numbers})."
    )


def _verdict(
    trail: Trail,
    sample: Rows,
    family: Family,
    support: BoolArray,
    groups: IntArray,
    latent: LatentSlopes | None,
) -> str:
    n_features = len(np.unique(groups[trail.varies]))
    left = trail.varies & ~support
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
    price = 100 * _price(sample, family, support, trail.varies)
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
