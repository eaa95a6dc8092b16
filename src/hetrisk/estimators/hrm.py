"""The paper's algorithm as scikit-learn estimators: heterogeneous risk minimisation.

`HRMRegressor` and `HRMClassifier` cluster the rows on the variant features (M_c), select the
invariant ones in the environments found (M_p), and repeat: `hetrisk.core.paper.loop`. They are
told no environments, and have no part in the search of `StableRegressor`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from hetrisk.blocks import ArrayBlocks
from hetrisk.blocks.stream import single_blas_thread
from hetrisk.core.numerics.partition import membership
from hetrisk.core.paper.loop import ASSIGNMENTS, ENVIRONMENTS, LoopResult, LoopSettings, joint_loop
from hetrisk.estimators.invariant import WithGates, given
from hetrisk.estimators.linear import LinearClassifier, LinearRegressor, WithEnvironments
from hetrisk.estimators.running import runner
from hetrisk.estimators.scales import measure_scale

__all__ = ["HRMClassifier", "HRMRegressor", "RoundRecord"]


@dataclass(frozen=True)
class RoundRecord:
    """A round of the loop.

    Attributes
    ----------
    run, round : which run, and which of its rounds, from 1.
    start : the column that the first clustering of the run is on; None for all.
    n_environments, invariance_penalty, gate_penalty : of the run.
    support : the columns whose gates were open.
    log_likelihood : of the clustering, a row (standardised).
    objective : of the gates, in the environments of this round.
    carry_over : the loss by which rounds and runs are compared, in the environments of all.
    chosen : whether the answer comes from it.
    """

    run: int
    round: int
    start: int | None
    n_environments: int
    invariance_penalty: float
    gate_penalty: float
    support: tuple[bool, ...]
    log_likelihood: float
    objective: float
    carry_over: float
    chosen: bool


class _HRM(WithGates, WithEnvironments):
    """What regression and classification share."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **WithGates._parameter_constraints,
        "n_environments": [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"})],
        "assignment": [StrOptions(set(ASSIGNMENTS))],
        "max_rounds": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_environments: int | str = "auto",
        invariance_penalty: float | str = "auto",
        gate_penalty: float | str = "auto",
        gate_noise: float = 0.1,
        penalty: str = "trace",
        assignment: str = "soft",
        refit: bool = True,
        max_rounds: int = 10,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_environments = n_environments
        self.invariance_penalty = invariance_penalty
        self.gate_penalty = gate_penalty
        self.gate_noise = gate_noise
        self.penalty = penalty
        self.assignment = assignment
        self.refit = refit
        self.max_rounds = max_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Find environments and the columns that predict alike in them, and fit on these.

        Parameters
        ----------
        X : (n, d) array or DataFrame of numbers, or `hetrisk.blocks.Blocks` with their target.
        y : (n,) target.
        sample_weight : (n,) non-negative weights.
        """
        rows, family = self._check(X, y, sample_weight)
        scale = measure_scale(rows, family, getattr(self, "feature_names_in_", None))
        standard = rows.standardised(scale.centre, scale.divisor)
        groups = np.arange(rows.n_features)
        with single_blas_thread():  # many small products: threads would wait for each other
            found = joint_loop(standard, family, groups, self._settings())
        answer = found.answer
        self._scale = scale
        self._memberships = partial(membership, partition=answer.partition)
        self._keep_gates(answer.problem, answer.fit, groups, scale, standard, family)
        self.n_environments_ = answer.partition.n_environments
        self.history_ = _history(found)
        self.n_rounds_ = len(found.runs[found.run].rounds)
        self._environment_proba = None
        if isinstance(rows, ArrayBlocks):
            self._environment_proba = standard.collect(self._memberships)
        if self.verbose:
            for record in self.history_:
                print(record)
        return self

    def _settings(self) -> LoopSettings:
        return LoopSettings(
            n_environments=given(self.n_environments) or ENVIRONMENTS,
            invariance=given(self.invariance_penalty),
            price=given(self.gate_penalty),
            noise=self.gate_noise,
            penalty=self.penalty,
            assignment=self.assignment,
            max_rounds=self.max_rounds,
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            run=runner(self.n_jobs, prefer="threads"),
        )


class HRMRegressor(LinearRegressor, _HRM):
    """Heterogeneous risk minimisation (Liu et al., ICML 2021), for numbers.

    Environments are found in the rows by a mixture of regressions of y on the variant columns
    Psi = (1 - m) X; gates m then open for columns that predict y, and alike in these environments;
    and so on in turns.

    Parameters
    ----------
    n_environments : int or "auto", default="auto"
        Environments K of a clustering; "auto" is 2.
    invariance_penalty : float or "auto", default="auto"
        Strength lambda of the penalty on gradients that differ between environments, on
        standardised columns. A number is one run of the loop, whose last round is the answer, as
        in the paper; "auto" compares whole runs (see the notes).
    gate_penalty : float or "auto", default="auto"
        Price alpha of an open gate, in shares of the variance of y; "auto" is 0.003, and at most a
        twentieth of what least squares on all columns leaves.
    gate_noise : float, default=0.1
        Standard deviation sigma of the gates.
    penalty : {"trace", "masked"}, default="trace"
        Trace of the variance of the gradients, or their squared norm on open gates, which the
        paper uses for linear models.
    assignment : {"soft", "hard"}, default="soft"
        Rows belong to environments by their probabilities, or to the most probable one.
    refit : bool, default=True
        Least squares on the columns whose gates are open, over all rows; False keeps the gated
        model itself, weights times expected gates.
    max_rounds : int, default=10
        Most rounds of a run; 1 is the paper's HRM-s.
    random_state : int, RandomState or None, default=None
        Seed of the clusterings.
    n_jobs : int or None, default=None
        Threads for runs.
    verbose : int, default=0
        1 prints the history.

    Attributes
    ----------
    support_ : (d,) bool array
        Columns whose gates are open.
    gates_ : (d,) array
        Expected gates.
    coef_, intercept_ : array, float
        The linear model, on the scale of the data.
    n_environments_, invariance_penalty_, gate_penalty_ : int, float, float
        As given, or of the run chosen.
    objective_ : float
        Objective of the gates in the last environments.
    history_ : list of `RoundRecord`
        Every round of every run: what was selected, and how it carries over.
    n_rounds_ : int
        Rounds of the run chosen.
    environments_, environment_proba_ : arrays
        Environment of each training row, for rows in memory.
    predictor_ : `hetrisk.core.predictor.Predictor`
        The model as plain arrays.

    Notes
    -----
    With ``invariance_penalty="auto"`` whole runs are made under several strengths, from
    Psi = X and from each of the most useful columns alone. The selections of all their rounds are
    compared once, in the environments that all of them have found: by how well they predict in
    environments they were not fitted on (`hetrisk.core.paper.transfer`).

    Examples
    --------
    >>> from hetrisk.datasets import load_task
    >>> X, y, _ = load_task("selection_bias", seed=0).train
    >>> HRMRegressor(random_state=0).fit(X, y).support_.astype(int)
    array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0])
    """


class HRMClassifier(LinearClassifier, _HRM):
    """Heterogeneous risk minimisation for labels, with a logistic model.

    Binary or multiclass, labels of any type. Parameters and attributes are those of
    `HRMRegressor`, and ``classes_``; ``gate_penalty`` is in units of the mean log loss, and
    ``coef_`` is (1, d) for two classes and (C, d) for more, as in scikit-learn. Gates are searched
    on the log loss to second order about the fit over all rows.
    """


def _history(found: LoopResult) -> list[RoundRecord]:
    return [
        RoundRecord(
            run=i + 1,
            round=j + 1,
            start=run.start,
            n_environments=turn.partition.n_environments,
            invariance_penalty=float(turn.problem.invariance),
            gate_penalty=float(turn.problem.price),
            support=tuple(map(bool, turn.fit.support)),
            log_likelihood=turn.log_likelihood,
            objective=turn.fit.objective,
            carry_over=float(score),
            chosen=(i, j) == (found.run, found.round),
        )
        for i, (run, scores) in enumerate(zip(found.runs, found.scores, strict=True))
        for j, (turn, score) in enumerate(zip(run.rounds, scores, strict=True))
    ]
