"""How far directions are shrunk: as far as the reach asks, and no farther than noise allows.

A strength is judged on rows it was not fitted to: beta_s from one half of the folds, its expected
error E_k from the other, both ways round. Past some strength the differences that are shrunk are
those of the sample, and the error on the other half rises: that is where it stops.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.reach.curve import Line
from hetrisk.core.reach.directions import fit_directions
from hetrisk.core.reach.heterogeneity import environments_of
from hetrisk.core.reach.regret import Environments, combined, fit_set, regret_of, risk_of

STRENGTHS = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)  # times the reach


def choose_strength(cells: list[CellMoments], environments: Environments, reach: float) -> float:
    """The strength whose expected error at the reach is least on rows it was not fitted to."""
    halves = [_half(cells, environments, side) for side in (0, 1)]
    losses = []
    for times in STRENGTHS:
        loss = 0.0
        for fitted, judged in (halves, halves[::-1]):
            coef = fit_directions(fitted, times * reach)
            own = fit_set(judged, np.ones(judged.n_columns, dtype=bool))
            # Independent halves: the noise of beta_e is all of it, none shared.
            beyond = regret_of(judged, coef, own) - own.chance / np.maximum(1 - judged.share, 1e-9)
            line = Line(float(risk_of(judged, coef)[0]), np.maximum(beyond, 0.0), own.own)
            loss += float(line.expected(np.array([reach]))[0])
        losses.append(loss)
    return STRENGTHS[int(np.argmin(losses))] * reach


def _half(cells: list[CellMoments], environments: Environments, side: int) -> Environments:
    parts = []
    for i, part in enumerate(cells):
        chosen = np.arange(part.weight.shape[1]) % 2 == side
        half = environments_of(part.merged_folds(chosen), environments.n_targets)
        phi = environments.phi[environments.partition == i].mean()
        parts.append(replace(half, phi=np.full(len(half.rows), phi)))
    return combined(parts)
