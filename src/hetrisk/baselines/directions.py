"""Shrinking directions between known environments, for columns that are mixtures of causes.

    beta_k = argmin R(beta) + k^2 sum_e share_e |(A_e - A) beta - (b_e - b)|^2 in the metric A^-1,

A_e and b_e the means of x x' and x y in environment e, A and b over all rows, R the risk over all
rows. The gradient of an environment's risk, A_e beta - b_e, is what that environment would change
about beta; the penalty asks it to be the same in all, and does not depend on the axes. It is a
linear system. k to infinity is the causal Dantzig (Rothenhaeusler, Buhlmann and Meinshausen 2019);
where only means shift it is related to anchor regression (Rothenhaeusler et al. 2021).

A strong penalty follows the noise of A_e - A and b_e - b, so of these only what stands out of the
noise is used (`significant`).
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.linear_model import LogisticRegression
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hetrisk.baselines.base import Labelled, LinearRegressorBase
from hetrisk.baselines.problem import Problem
from hetrisk.core.numerics.floors import SINGULAR
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.stable.regressions import risk_at

STRENGTHS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # times the reach
REACH: dict[str, list[Any]] = {"reach": [Interval(Real, 0, None, closed="left")]}


def significant(means: FloatArray, rows: FloatArray) -> FloatArray:
    """(K, q, q) means of z z' in environments, as far as they differ from all rows' beyond noise.

    With G = L L' the mean over all rows, an environment differs by L N L'. Were there no
    difference, N would be a symmetric matrix of noise of variance v = (1 - share_e) / n_e, whose
    eigenvalues lie within 2 sqrt(q v) of zero (the semicircle law). An eigenvalue beyond is part of
    the difference, drawn outward by the noise: sqrt(lambda^2 - 4 q v) is the shrinkage of least
    squared error (Gavish and Donoho 2017).

    Parameters
    ----------
    means : (K, q, q) for z = (x, 1, y), the target last.
    rows : (K,) of each environment.
    """
    share = rows / rows.sum()
    pooled = np.einsum("k,kij->ij", share, means)
    pooled = pooled + SINGULAR * np.diag(np.where(np.diag(pooled) > 0, np.diag(pooled), 1.0))
    factor = np.linalg.cholesky(pooled)
    half = np.linalg.solve(factor, means - pooled)
    noise = np.linalg.solve(factor, np.swapaxes(half, 1, 2))
    size, turn = np.linalg.eigh((noise + np.swapaxes(noise, 1, 2)) / 2.0)
    edge = 4.0 * means.shape[-1] * ((1.0 - share) / rows)[:, None]
    shrunk = np.sign(size) * np.sqrt(np.maximum(size**2 - edge, 0.0))
    whole = factor @ turn
    return np.asarray(pooled + (whole * shrunk[:, None, :]) @ np.swapaxes(whole, 1, 2))


def direction_coefficients(
    means: FloatArray, rows: FloatArray, strength: float, *, labels: bool = False
) -> FloatArray:
    """(p,) minimum of the penalised risk; arguments as for `significant`.

    Gradients are taken in units of each environment's noise, but for labels, whose noise follows
    from their mean.
    """
    p = means.shape[-1] - 1
    share = rows / rows.sum()
    pooled = np.einsum("k,kij->ij", share, means)
    scaled = means if labels else means / _noise(means, rows)[:, None, None]
    centre = np.einsum("k,kij->ij", share, scaled)
    gap = significant(scaled, rows)[:, :p] - centre[:p]
    metric = np.linalg.solve(centre[:p, :p] + SINGULAR * np.eye(p), gap)
    # Both sides at once: (A_e - A)' A^-1 (A_e - A, b_e - b), summed over the environments.
    both = np.einsum("k,kji,kjl->il", share, gap[:, :, :p], metric)
    left = pooled[:p, :p] + strength**2 * both[:, :p] + SINGULAR * np.eye(p)
    return np.asarray(np.linalg.solve(left, pooled[:p, p] + strength**2 * both[:, p]))


def _noise(means: FloatArray, rows: FloatArray) -> FloatArray:
    """(K,) squared error of each environment's own regression, relative to the mean of these.

    Environments in which the target is noisier have larger gradients for that alone.
    """
    p = means.shape[-1] - 1
    own = means[:, :p, :p] + SINGULAR * np.eye(p)
    coef = np.linalg.solve(own, means[:, :p, p:])
    left = means[:, p, p] - (coef * means[:, :p, p:]).sum(axis=(1, 2))
    log = np.log(np.maximum(left, SINGULAR))
    # As far as sizes differ beyond three standard errors (those of normal noise).
    log = np.sign(log - log.mean()) * np.maximum(
        np.abs(log - log.mean()) - 3.0 * np.sqrt(2.0 / rows), 0.0
    )
    return np.asarray(np.exp(log))


def chosen_coefficients(
    means: FloatArray, rows: FloatArray, reach: float, *, labels: bool = False
) -> FloatArray:
    """(p,) the coefficients, of several strengths, with the least X_t at the reach.

    X_t = mean_e L_e + t (worst L_e - mean_e L_e) of the squared errors in the environments. Where
    noise of another size, and no other relation, is what differs, strength does not lower it.
    """
    fits = [direction_coefficients(means, rows, k * reach, labels=labels) for k in STRENGTHS]
    residual = np.column_stack([np.append(-coef, 1.0) for coef in fits])
    losses = np.einsum("is,kij,js->sk", residual, means, residual)
    return fits[int(np.argmin(risk_at(losses, reach)))]


class DirectionsRegressor(Labelled, LinearRegressorBase):
    """Least squares whose gradient is asked to be the same in all known environments.

    Parameters
    ----------
    reach : float, default=1.0
        How far beyond the environments seen the world may go; 0 is least squares. The penalty is
        up to four times as strong, as far as that lowers the loss there.

    Attributes
    ----------
    coef_, intercept_ : (d,) array, float

    Examples
    --------
    >>> from hetrisk.datasets import load_task
    >>> X, y, environments = load_task("anti_causal").train
    >>> model = DirectionsRegressor(reach=4.0).fit(X, y, environments=environments)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = REACH
    _of_labels: ClassVar[bool] = False

    def __init__(self, reach: float = 1.0) -> None:
        self.reach = reach

    def _solve(self, problem: Problem) -> tuple[FloatArray, None]:
        shares, z = problem.environments, np.column_stack([problem.Z, problem.y])
        rows = shares.sum(axis=0)
        means = np.einsum("nk,ni,nj->kij", shares, z, z, optimize=True) / rows[:, None, None]
        reach = float(self.reach)
        return chosen_coefficients(means, rows, reach, labels=self._of_labels), None


class _OfIndicator(DirectionsRegressor):
    _of_labels = True


class DirectionsClassifier(ClassifierMixin, BaseEstimator):
    """Logistic regression on the scores of `DirectionsRegressor` of each class's indicator.

    Parameters
    ----------
    reach : as in `DirectionsRegressor`.

    Attributes
    ----------
    classes_ : (C,) array
    directions_ : (d, t) array
        One direction for two classes, one a class for more.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = REACH

    def __init__(self, reach: float = 1.0) -> None:
        self.reach = reach

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, *, environments: Any = None) -> Self:
        """Fit; ``environments`` as in `DirectionsRegressor.fit`."""
        rows = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(rows[1])
        self.classes_, codes = np.unique(rows[1], return_inverse=True)
        if len(self.classes_) < 2:
            got = self.classes_.tolist()
            raise ValueError(f"y must hold at least two classes; got one class, {got}.")
        asked = range(1, 2) if len(self.classes_) == 2 else range(len(self.classes_))
        targets = [(codes == c).astype(np.float64) for c in asked]
        of = _OfIndicator(self.reach)
        found = [of.fit(rows[0], t, environments=environments).coef_ for t in targets]
        self.directions_ = np.column_stack(found)
        spread = (rows[0] @ self.directions_).std(axis=0)
        self.directions_ /= np.where(spread > 0, spread, 1.0)
        self._model = LogisticRegression().fit(rows[0] @ self.directions_, rows[1])
        return self

    def predict(self, X: Any) -> np.ndarray:
        """(n,) labels."""
        scores = self._scores(X)
        return np.asarray(self._model.predict(scores))

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, C) probabilities of the classes."""
        scores = self._scores(X)
        return np.asarray(self._model.predict_proba(scores))

    def _scores(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(rows @ self.directions_)
