"""How many environments: the information criterion of a mixture, and the search from one up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hetrisk.core.mixture.mixture import MixtureParameters
from hetrisk.core.numerics.floors import HALF_A_ROW
from hetrisk.core.numerics.iteration import Solution
from hetrisk.core.numerics.rows import FloatArray, Rows, RowSource, Summed


@dataclass(frozen=True)
class Fit(Summed):
    """Weight and log likelihood, summed over rows."""

    weight: float
    log_likelihood: float


def fit_of(rows: Rows, parameters: MixtureParameters) -> Fit:
    """How a mixture fits a block of rows."""
    density = parameters.log_density(rows.X, rows.y)
    return Fit(float(rows.weight.sum()), float(rows.weight @ density))


def n_parameters(parameters: MixtureParameters, n_features: int, tied_variance: bool) -> int:
    """Free parameters: shares, coefficients of the features used, variances."""
    K = parameters.n_environments
    coefficients = K * len(parameters.family.coding) * (1 + n_features)
    variances = int(parameters.family.has_variance) * (1 if tied_variance else K)
    return K - 1 + coefficients + variances


def bic(fit: Fit, size: int) -> float:
    """-2 L + size log n (Schwarz, 1978): smaller is better for a mixture of ``size`` parameters.

    The number of rows n is the total weight.
    """
    return -2.0 * fit.log_likelihood + size * float(np.log(fit.weight))


@dataclass(frozen=True)
class SelectedMixture:
    """The chosen mixture, the criterion of every K tried from one up, and the rows' weight."""

    solution: Solution[MixtureParameters]
    values: FloatArray
    weight: float


def select_mixture(
    source: RowSource,
    fit: Callable[[int], Solution[MixtureParameters]],
    *,
    n_features: int,
    tied_variance: bool,
    max_environments: int,
) -> SelectedMixture:
    """Try K = 1, 2, ... and keep the best; stop as soon as one environment more is no better.

    Components that hold no rows are dropped before a mixture is judged.
    """
    best, values = fit(1), []
    for K in range(1, max_environments + 1):
        # An empty component costs parameters and explains nothing: judged without it.
        solution = best if K == 1 else _without_empty(fit(K), source.n_rows)
        measured = source.sum(partial(fit_of, parameters=solution.value))
        size = n_parameters(solution.value, n_features, tied_variance)
        values.append(bic(measured, size))
        # Stop at the first that is no better: every further mixture takes longer than the last.
        if K > 1 and values[-1] >= values[-2]:
            break
        best = solution
    return SelectedMixture(best, np.asarray(values), measured.weight)


def _without_empty(
    solution: Solution[MixtureParameters], n_rows: int
) -> Solution[MixtureParameters]:
    held = np.flatnonzero(solution.value.weights * n_rows >= HALF_A_ROW)
    kept = solution.value.relabelled(held)
    return replace(solution, value=replace(kept, weights=kept.weights / kept.weights.sum()))
