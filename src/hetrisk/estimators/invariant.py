"""Invariant prediction with known environments."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from hetrisk.blocks import Blocks, is_out_of_core
from hetrisk.core.numerics.families import Family, NewtonFamily
from hetrisk.core.numerics.rows import IntArray
from hetrisk.core.paper.choice import choose_gates
from hetrisk.core.paper.invariance import PENALTIES, InvarianceProblem
from hetrisk.core.paper.prediction import (
    environment_problem,
    gated_weights,
    refit,
    settled_on_labels,
)
from hetrisk.core.paper.solve import GateFit
from hetrisk.estimators.keep import feature_gates
from hetrisk.estimators.linear import LinearClassifier, LinearModel, LinearRegressor
from hetrisk.estimators.memberships import memberships
from hetrisk.estimators.scales import Scale, measure_scale

__all__ = ["InvariantClassifier", "InvariantRegressor"]


class WithGates(LinearModel):
    """Models whose columns are selected by gates: their parameters, and what comes of a fit."""

    refit: bool
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "invariance_penalty": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "gate_penalty": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "gate_noise": [Interval(Real, 0, None, closed="neither")],
        "penalty": [StrOptions(set(PENALTIES))],
        "refit": ["boolean"],
    }

    def _keep_gates(
        self,
        problem: InvarianceProblem,
        fit: GateFit,
        groups: IntArray,
        scale: Scale,
        standard: Blocks,
        family: Family,
    ) -> None:
        self.support_ = fit.support[groups] & ~scale.constant
        self.gates_ = np.where(scale.constant, 0.0, fit.gates[groups])
        self.invariance_penalty_ = float(problem.invariance)
        self.gate_penalty_ = float(problem.price)
        self.objective_ = fit.objective
        if self.refit:
            coef, intercept = refit(standard, family, self.support_)
        else:
            coef, intercept = gated_weights(problem, fit, family)
        self._keep(scale.coef(coef), scale.intercept(coef, intercept))


class _Invariant(WithGates):
    """What regression and classification share."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **WithGates._parameter_constraints,
        "feature_groups": ["array-like", None],
    }

    def __init__(
        self,
        invariance_penalty: float | str = "auto",
        gate_penalty: float | str = "auto",
        gate_noise: float = 0.1,
        penalty: str = "trace",
        refit: bool = True,
        feature_groups: Any = None,
    ) -> None:
        self.invariance_penalty = invariance_penalty
        self.gate_penalty = gate_penalty
        self.gate_noise = gate_noise
        self.penalty = penalty
        self.refit = refit
        self.feature_groups = feature_groups

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, *, environments: Any = None, sample_weight: Any = None
    ) -> Self:
        """Select the features that predict alike in all environments, and refit on them.

        Parameters
        ----------
        X : (n, d) array or DataFrame, or `hetrisk.blocks.Blocks` with target, weights and
            environments in them (the other arguments then stay None).
        y : (n,) target.
        environments : (n,) label of each row's environment, or (n, K) responsibilities whose
            rows sum to one; None for a single environment, where nothing can be told apart
            and only features of no use are left out.
        sample_weight : (n,) non-negative weights.

        Returns
        -------
        self
        """
        shares, names = environments, None
        if environments is not None and not is_out_of_core(environments):
            shares, names = memberships(environments)
        rows, family = self._check(X, y, sample_weight, shares)
        self.environment_names_ = rows.environment_labels if names is None else names
        scale = measure_scale(rows, family, getattr(self, "feature_names_in_", None))
        standard = rows.standardised(scale.centre, scale.divisor)
        groups = feature_gates(self.feature_groups, rows.n_features, scale.constant)
        problem, moments = environment_problem(
            standard, family, groups, None, self.gate_noise, self.penalty
        )
        penalties = given(self.invariance_penalty), given(self.gate_penalty)
        found = choose_gates(problem, moments, groups, *penalties)
        fit = found.fit
        if not family.closed_form:
            newton = cast(NewtonFamily, family)
            fit = settled_on_labels(standard, newton, None, found.problem, fit, seed=0)
        self.path_ = [(strength, mask[groups]) for strength, mask in found.path]
        self._keep_gates(found.problem, fit, groups, scale, standard, family)
        return self


class InvariantRegressor(LinearRegressor, _Invariant):
    """Least squares on the features that predict alike in every known environment.

    Parameters
    ----------
    invariance_penalty : strength lambda of the penalty on gradients that differ between
        environments, on standardised data; ``"auto"`` chooses it from the environments.
    gate_penalty : price alpha of an open gate, in shares of the variance of y; ``"auto"`` is 0.003,
        and at most a twentieth of what least squares on all columns leaves.
    gate_noise : standard deviation of the stochastic gates.
    penalty : ``"trace"``: trace of the variance of the gradient; ``"masked"``: its squared norm
        on the open gates, the paper's form for linear models.
    refit : least squares on the open features over all rows; False keeps the gated model, weights
        times expected gates.
    feature_groups : a name or integer per column; columns of one group share one gate.

    Attributes
    ----------
    support_ : (d,) selected features.
    gates_ : (d,) expected gates.
    coef_, intercept_ : the linear model.
    predictor_ : the same as plain arrays.
    invariance_penalty_, gate_penalty_ : lambda and alpha as given or chosen.
    path_ : (lambda, support) of all strengths tried.
    objective_ : the minimum reached.
    environment_names_ : labels in the order of the environments; None for responsibilities.

    Examples
    --------
    >>> from hetrisk.datasets import load_task
    >>> X, y, environments = load_task("selection_bias", seed=0).train
    >>> InvariantRegressor().fit(X, y, environments=environments).support_.astype(int)
    array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0])
    """


class InvariantClassifier(LinearClassifier, _Invariant):
    """Logistic regression on the features that predict alike in every known environment.

    Parameters and attributes are those of `InvariantRegressor`, and ``classes_``. Binary or
    multiclass, labels of any type; ``gate_penalty`` is in units of the mean log loss.
    """


def given(value: Any) -> Any:
    """None for "auto"."""
    return None if value == "auto" else value
