"""A search by instability over one two-environment partition."""

from __future__ import annotations

import numpy as np

from hetrisk.core.comparison import environment_fits, instability
from hetrisk.core.discovery import HOMOGENEOUS, INVARIANT, Discovery, Evidence, SearchSettings
from hetrisk.core.families import Family
from hetrisk.core.mixture import fit_mixture
from hetrisk.core.rows import IntArray, RowSource

THRESHOLD = 0.4


def discover(
    rows: RowSource, family: Family, groups: IntArray, settings: SearchSettings
) -> Discovery:
    """Drop the features whose coefficients differ between two environments of a mixture."""
    mixture = fit_mixture(rows, settings.n_environments or 2, family, seed=settings.seed)
    partition = mixture.value
    index, error = instability(environment_fits(rows, family, partition))
    worst = np.array([index[groups == g].max() for g in groups])
    support = worst <= THRESHOLD
    verdict = HOMOGENEOUS if support.all() else INVARIANT
    zero = np.zeros(len(index))
    reasons = tuple(f"instability {value:.2f} against {THRESHOLD}" for value in worst)
    record = {
        "round": 1,
        "n_environments": partition.n_environments,
        "log_likelihood": float(mixture.path[-1]),
        "objective": float(worst.max()),
        "support": support.tolist(),
        "chosen": True,
    }
    settings.verbose(f"round 1: {int(support.sum())} of {len(support)} features kept")
    return Discovery(
        support=support,
        gates=support.astype(float),
        partition=partition,
        evidence=Evidence(index, error, zero, zero, zero + 1.0, reasons),
        verdict=verdict,
        reason=f"{int((~support).sum())} of {len(support)} features are unstable.",
        history=(record,),
    )
