"""Find hidden environments: a mixture of regressions of the target on the features."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from hetrisk import blocks
from hetrisk.blocks import Blocks, is_out_of_core
from hetrisk.blocks.stream import single_blas_thread
from hetrisk.core.mixture.criteria import (
    Fit,
    SelectedMixture,
    bic,
    fit_of,
    n_parameters,
    select_mixture,
)
from hetrisk.core.mixture.mixture import MixtureParameters, fit_mixture
from hetrisk.core.numerics.families import Bernoulli, Family, Gaussian, Multinomial
from hetrisk.core.numerics.floors import HALF_A_ROW
from hetrisk.core.numerics.iteration import Solution
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows
from hetrisk.estimators.inputs import as_blocks, check_classes, encoded
from hetrisk.estimators.scales import Scale, measure_scale

MOST_ENVIRONMENTS = 8  # that "auto" tries
FAMILY_SAMPLE = 2000  # rows out of core that decide what family="auto" is
LABEL_FAMILIES = (Bernoulli.name, Multinomial.name)


class EnvironmentMixture(DensityMixin, BaseEstimator):
    """Mixture of K regressions of y on X, whose components are hidden environments.

    Maximises sum_i w_i log sum_k q_k h(y_i | x_i, coefficients_k) by EM from many starts, where
    h is a normal, Bernoulli or multinomial density with a linear predictor. Columns are
    standardised inside; everything reported is on the scale of the data.

    Parameters
    ----------
    n_environments : int or "auto"
        Number of components K; "auto" raises it from 1, at most to 8, while BIC improves.
    family : {"auto", "gaussian", "bernoulli", "multinomial"}
        Distribution of the target. "auto" takes labels for text or two distinct values, and
        the normal distribution otherwise.
    tied_variance : bool
        One residual variance for all components (Gaussian only). Tied variances find slopes
        that flip, free ones find relations that weaken.
    n_init : int
        Number of short runs, each from least squares on small random subsets of the rows.
    tol : float
        EM stops when the mean log likelihood rises by no more than this.
    max_iter : int
        Most iterations of the last run.
    random_state : int, RandomState or None
        Seed of the starts. They depend on the values of the rows, not on their order (of more
        than 4000 rows, a random sample of that size is where the starts come from).

    Attributes
    ----------
    weights_ : (K,) shares of the environments, in decreasing order.
    coef_ : (K, d) coefficients, or (K, C, d) for C > 2 classes (summing to zero over classes).
    intercept_ : (K,) or (K, C) intercepts.
    variance_ : (K,) residual variances; ones for labels.
    n_environments_ : the number of components K.
    family_ : name of the family used.
    classes_ : labels of the target (label families only).
    criterion_path_ : BIC of K = 1, 2, ... as far as "auto" tried; empty for a fixed K.
    log_likelihood_path_ : mean log likelihood at each iteration of the last run, never
        decreasing (for labels, less a ridge penalty of 1e-6 / 2 times the squared coefficients).
    converged_, n_iter_ : whether the last run settled, and its number of iterations.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Notes
    -----
    *Weights* count rows: a row of weight two is two rows, and the total weight is the number
    of rows in BIC.

    *Constant columns* have coefficient zero; *duplicated columns* share theirs (minimum norm).

    *An environment that loses all its rows* stays, with no weight and its last coefficients,
    and a `ConvergenceWarning`; "auto" drops it.

    *Few rows*: K regressions on d features need at least ``K * (d + 1)`` rows, or it is an
    error; "auto" tries no more than that, and with n <= d it answers one environment, its
    coefficients of minimum norm.

    Examples
    --------
    >>> import numpy as np
    >>> from hetrisk import EnvironmentMixture
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1))
    >>> slope = np.where(np.arange(500) < 400, 2.0, -1.0)
    >>> y = slope * X[:, 0] + 0.1 * rng.normal(size=500)
    >>> mixture = EnvironmentMixture(random_state=0).fit(X, y)
    >>> mixture.n_environments_, mixture.coef_.round(1).tolist()
    (2, [[2.0], [-1.0]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_environments": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "family": [StrOptions({"auto", Gaussian.name, *LABEL_FAMILIES})],
        "tied_variance": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_environments: Any = "auto",
        family: str = "auto",
        tied_variance: bool = True,
        n_init: int = 24,
        tol: float = 1e-7,
        max_iter: int = 500,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_environments = n_environments
        self.family = family
        self.tied_variance = tied_variance
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Find the environments of the rows.

        Parameters
        ----------
        X : (n, d) array or DataFrame, dask collection, or `hetrisk.blocks.Blocks` (with y=None).
        y : (n,) targets.
        sample_weight : (n,) weights, or None.
        """
        rows, family = self._check_fit_rows(X, y, sample_weight)
        scale = measure_scale(rows, family, getattr(self, "feature_names_in_", None))
        if scale.constant_target:
            raise ValueError("y must take at least two values; it is constant.")
        used = ~scale.constant
        largest = self._most_environments(rows.n_rows, int(used.sum()))
        source = rows.standardised(scale.centre, scale.spread)
        fit = self._fitting(source, family, used)
        with single_blas_thread():  # the products are small: threads would only wait
            if self.n_environments != "auto":
                return self._keep(
                    SelectedMixture(fit(self.n_environments), np.empty(0), 0.0), scale, rows
                )
            selection = select_mixture(
                source,
                fit,
                n_features=int(used.sum()),
                tied_variance=self.tied_variance,
                max_environments=largest,
            )
        return self._keep(selection, scale, rows)

    def predict(self, X: Any, y: Any = None) -> IntArray:
        """Most probable environment of each row, 0 being the largest environment."""
        labels: IntArray = self.predict_proba(X, y).argmax(axis=1)
        return labels

    def predict_proba(self, X: Any, y: Any = None) -> FloatArray:
        """(n, K) responsibilities: probability of each environment given the row and its target.

        Without targets nothing tells the environments apart (a row's environment does not
        depend on x alone in this model): every row then gets the shares ``weights_``.
        """
        check_is_fitted(self)
        if y is None and not is_out_of_core(X):
            X = encoded(X)
            X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
            return np.tile(self.weights_, (len(X), 1))
        rows = self._check_rows(X, y)
        if not rows.has_target:
            return np.tile(self.weights_, (rows.n_rows, 1))
        return rows.collect(partial(_responsibilities, parameters=self._parameters()))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log likelihood of the targets given the features."""
        fit = self._fit_of(X, y, sample_weight)
        return fit.log_likelihood / fit.weight

    def bic(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Bayesian information criterion on these rows; smaller is better."""
        return bic(self._fit_of(X, y, sample_weight), self._n_parameters)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _check_fit_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Blocks, Family]:
        name = _family_of(y, X) if self.family == "auto" else self.family
        labels = name in LABEL_FAMILIES
        rows = as_blocks(self, X, y, sample_weight, labels=labels)
        if not labels:
            self.__dict__.pop("classes_", None)  # of an earlier fit
            return rows, Gaussian()
        self.classes_ = check_classes(rows.labels())
        n_classes = len(self.classes_)
        if name == Bernoulli.name and n_classes > 2:
            if self.family == "auto":
                return rows.encoded(self.classes_), self._family(Multinomial.name)
            raise ValueError(
                f"y must hold two classes for family='bernoulli'; got {n_classes} classes."
            )
        return rows.encoded(self.classes_), self._family(name)

    def _family(self, name: str) -> Family:
        if name == Gaussian.name:
            return Gaussian()
        return Bernoulli() if name == Bernoulli.name else Multinomial(len(self.classes_))

    def _fitting(
        self, source: Blocks, family: Family, used: BoolArray
    ) -> Callable[[int], Solution[MixtureParameters]]:
        """Return the function that fits a mixture of a given number of environments."""
        return partial(
            fit_mixture,
            source,
            family=family,
            columns=used,
            tied_variance=self.tied_variance,
            n_init=self.n_init,
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            tol=self.tol,
            max_iter=self.max_iter,
        )

    def _most_environments(self, n_rows: int, n_features: int) -> int:
        """Largest number of environments the rows allow, or an error for a fixed one beyond it."""
        room = n_rows // (n_features + 1)
        if self.n_environments == "auto":
            return max(1, min(MOST_ENVIRONMENTS, room))
        if self.n_environments > room:
            raise ValueError(
                f"n_environments={self.n_environments} regressions on {n_features} features need "
                f"at least {self.n_environments * (n_features + 1)} rows; got n_samples={n_rows}."
            )
        return int(self.n_environments)

    def _keep(self, selection: SelectedMixture, scale: Scale, rows: Blocks) -> Self:
        solution = selection.solution
        parameters = solution.value.unstandardised(scale.centre, scale.spread)
        self.family_ = parameters.family.name
        self.weights_ = parameters.weights
        self.coef_ = parameters.coef
        self.intercept_ = parameters.intercept
        self.variance_ = parameters.variance
        self.n_environments_ = parameters.n_environments
        self.converged_ = solution.converged
        self.n_iter_ = solution.n_iter
        # Densities of y are those of the standardised target divided by its scale.
        shift = np.log(scale.spread[-1])
        self.log_likelihood_path_ = solution.path - shift
        self.criterion_path_ = selection.values + 2.0 * selection.weight * shift
        self._n_parameters = n_parameters(
            parameters, int((~scale.constant).sum()), self.tied_variance
        )
        self._warn(rows.n_rows)
        return self

    def _warn(self, n_rows: int) -> None:
        if not self.converged_:
            warnings.warn(
                f"EM did not settle in max_iter={self.max_iter} iterations: raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        empty = int((self.weights_ * n_rows < HALF_A_ROW).sum())
        if empty:
            warnings.warn(
                f"{empty} of {self.n_environments_} environments hold no rows: n_environments is "
                "larger than the data support.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _parameters(self) -> MixtureParameters:
        family = self._family(self.family_)
        return MixtureParameters(self.weights_, self.coef_, self.intercept_, self.variance_, family)

    def _check_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Blocks:
        labels = self.family_ in LABEL_FAMILIES
        rows = as_blocks(self, X, y, sample_weight, labels=labels, reset=False)
        return rows.encoded(self.classes_) if labels and rows.has_target else rows

    def _fit_of(self, X: Any, y: Any, sample_weight: Any) -> Fit:
        check_is_fitted(self)
        rows = self._check_rows(X, y, sample_weight)
        if not rows.has_target:
            raise ValueError("y must be given to score rows; the blocks in X have no target.")
        return rows.sum(partial(fit_of, parameters=self._parameters()))


def _responsibilities(rows: Rows, parameters: MixtureParameters) -> FloatArray:
    return parameters.responsibilities(rows.X, rows.y)


def _family_of(y: Any, X: Any) -> str:
    """Family that fits a target: labels for text or two distinct values, else Gaussian.

    Rows out of core are judged by a sample, and text there needs a family by name.
    """
    if is_out_of_core(X):
        try:
            values = blocks.as_blocks(X, y).sample(FAMILY_SAMPLE, 0).y
        except ValueError as error:
            raise ValueError(
                "family must be named ('bernoulli' or 'multinomial') for a target of text that is "
                f"not in memory; got 'auto', and the target does not read as numbers: {error}"
            ) from error
    elif y is None:
        return Gaussian.name
    else:
        values = np.asarray(y)
    if values.dtype.kind in "OUS":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            return Bernoulli.name
    few = len(np.unique(values)) <= 2
    return Bernoulli.name if few else Gaussian.name
