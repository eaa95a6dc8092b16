"""What a search for hidden environments brings back, whichever method searched.

The search works on standardised rows; the estimators translate to the user's scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import BoolArray, FloatArray

INVARIANT = "invariant"  # variant features were found and left out
HOMOGENEOUS = "homogeneous"  # no usable heterogeneity: plain ERM
UNSTABLE = "unstable"  # heterogeneity found, but no feature set is safe: plain ERM, with a warning
VERDICTS = (INVARIANT, HOMOGENEOUS, UNSTABLE)


def silent(message: str) -> None:
    """Say nothing."""


def one_by_one(function: Callable[[Any], Any], tasks: Iterable[Any]) -> list[Any]:
    """Run independent tasks one after the other."""
    return [function(task) for task in tasks]


@dataclass(frozen=True)
class SearchSettings:
    """What a search is asked to do; None stands for "auto".

    Attributes
    ----------
    n_environments : number of environments of a partition, or None to choose it.
    max_rounds : most rounds of clustering and selection.
    invariance_penalty : strength of the penalty on what differs between environments, or None.
    gate_penalty : price of an open gate, or None.
    gate_noise : standard deviation of the gates.
    seed : of every random choice.
    verbose : called with a line of progress.
    run : applies a function to independent tasks and returns the list of results, perhaps
        several at a time.
    """

    n_environments: int | None = None
    max_rounds: int = 10
    invariance_penalty: float | None = None
    gate_penalty: float | None = None
    gate_noise: float = 0.1
    seed: int = 0
    verbose: Callable[[str], None] = silent
    run: Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]] = one_by_one


@dataclass(frozen=True)
class Evidence:
    """What was measured about each of the d features; every array has length d.

    Attributes
    ----------
    instability : spread of the feature's coefficient over environments beyond its standard
        error, relative to its mean: the largest over the pool of partitions.
    instability_error : standard error of that index.
    cost : relative rise of the error on the training mixture when the feature is left out
        (0.05: five percent more error where nothing shifts). The price of robustness.
    saving : relative fall of the cross-environment error when the feature is left out
        (positive: leaving it out helps in environments that were not fitted).
    p_value : probability of evidence this strong for leaving the feature out, were the data
        homogeneous.
    reason : one sentence a feature, saying what was decided and why, with its numbers.
    """

    instability: FloatArray
    instability_error: FloatArray
    cost: FloatArray
    saving: FloatArray
    p_value: FloatArray
    reason: tuple[str, ...]


@dataclass(frozen=True)
class Discovery:
    """The result of a search.

    Attributes
    ----------
    support : (d,) features to use.
    gates : (d,) soft mask in [0, 1].
    partition : the environments, to be applied to any rows.
    evidence : per feature.
    verdict : one of `VERDICTS`.
    reason : the verdict in a sentence or two, with its numbers.
    history : one JSON-like record a round: at least ``round``, ``n_environments``,
        ``log_likelihood``, ``objective``, ``support`` (list of bool), ``chosen`` (bool).
    coef, intercept : the linear model on standardised rows, (d,) and a float, or (C, d) and
        (C,) for C > 2 classes; None to leave the refit on ``support`` to the estimator.
    """

    support: BoolArray
    gates: FloatArray
    partition: Partition
    evidence: Evidence
    verdict: str
    reason: str
    history: tuple[dict[str, Any], ...]
    coef: FloatArray | None = None
    intercept: FloatArray | float | None = None
