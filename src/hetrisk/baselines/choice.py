"""How the strength of every method is chosen, from training rows alone, as its users would.

Each method has one strength (a penalty, a radius), 0 being plain ERM or close to it.

*With three labelled environments or more* each (in at most ten groups of them) is left out in turn:
fit on the others, and measure the risk in it. Chosen is the **weakest value whose mean risk is
within one standard error, over those left out, of the lowest** (`choose_by_environments`).

*With fewer, or without labels*, leaving one out would leave nothing that differs: the rows are
dealt into five folds, environment by environment; fit on four, and measure the risk on the fifth in
each environment. A value's score is its risk in the worst, averaged over the folds. Chosen is the
**strongest value whose score is within one standard error of the lowest** (`choose`): with so
little to go by robustness is bought until it costs more than the noise of measuring it.

No row of a test environment is ever seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from hetrisk.core.numerics.rows import FloatArray, IntArray

N_FOLDS = 5
MOST_LEFT_OUT = 10  # groups of environments, each left out once
STRENGTH = [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})]


@dataclass(frozen=True)
class Choice:
    """How a strength was chosen.

    Attributes
    ----------
    value : the strength used.
    values : strengths tried, weakest first.
    scores : held-out risk of each, in the worst labelled environment.
    error : standard error, over the folds, of the lowest score.
    """

    value: float
    values: FloatArray
    scores: FloatArray
    error: float


def folds(strata: IntArray, seed: int | None) -> IntArray:
    """(n,) fold of each row: every stratum is shuffled and dealt out like cards.

    scikit-learn's `StratifiedKFold` refuses strata of fewer rows than folds; environments may
    be that small.
    """
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    fold = np.empty(len(strata), dtype=np.int64)
    fold[order] = np.arange(len(strata)) % min(N_FOLDS, len(strata))
    return fold


def choose(
    values: Sequence[float],
    fold: IntArray,
    held_out: Callable[[IntArray, IntArray], FloatArray],
) -> Choice:
    """Apply the rule.

    Parameters
    ----------
    values : strengths, weakest first.
    fold : (n,) fold of each row.
    held_out : ``held_out(train, test)`` fits every strength on the rows ``train`` and returns
        the (n_values, K) risks on the rows ``test``, NaN for an environment without rows there.
    """
    risks = np.stack(
        [
            held_out(np.flatnonzero(fold != k), np.flatnonzero(fold == k))
            for k in range(fold.max() + 1)
        ]
    )
    counted = np.maximum((~np.isnan(risks)).sum(axis=0), 1)
    per_environment = np.nansum(risks, axis=0) / counted
    worst = per_environment.argmax(axis=1)
    scores = per_environment[np.arange(len(values)), worst]
    best = int(scores.argmin())
    of_best = risks[:, best, worst[best]]
    of_best = of_best[~np.isnan(of_best)]
    error = float(of_best.std(ddof=1) / np.sqrt(len(of_best))) if len(of_best) > 1 else 0.0
    within = np.flatnonzero(scores <= scores[best] + error)
    return Choice(float(values[within[-1]]), np.asarray(values, dtype=float), scores, error)


def choose_by_environments(
    values: Sequence[float],
    environment: IntArray,
    held_out: Callable[[IntArray, IntArray], FloatArray],
) -> Choice:
    """Apply the rule for three environments or more.

    Parameters
    ----------
    values : strengths, weakest first.
    environment : (n,) environment of each row, 0 to K - 1.
    held_out : as for `choose`.
    """
    group = environment % MOST_LEFT_OUT
    risks = np.stack(
        [
            np.nanmean(held_out(np.flatnonzero(group != k), np.flatnonzero(group == k)), axis=1)
            for k in range(group.max() + 1)
        ]
    )
    scores = risks.mean(axis=0)
    best = int(scores.argmin())
    error = float(risks[:, best].std(ddof=1) / np.sqrt(len(risks)))
    within = np.flatnonzero(scores <= scores[best] + error)
    return Choice(float(values[within[0]]), np.asarray(values, dtype=float), scores, error)
