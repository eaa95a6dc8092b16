"""How far apart environments are, by a linear or logistic probe fitted in each.

Probes are compared through the features each finds important (Task2Vec) or through the conditional
distributions P(Y given X) they describe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import type_of_target

from hetrisk.blocks import ArrayBlocks
from hetrisk.blocks.labels import quoted
from hetrisk.core.numerics.environment_fits import membership
from hetrisk.core.numerics.families import Bernoulli, Family, Gaussian, Multinomial
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.glm import GLMFit, fit_glms
from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.datasets.task import CLASSIFICATION, REGRESSION, TASK_TYPES
from hetrisk.estimators.memberships import memberships
from hetrisk.estimators.mixture import EnvironmentMixture

# A signal of one percent of the noise: features below it are equally (un)important to every
# environment, so that the ratio of two estimates of nothing does not look like a difference.
PRIOR_INFORMATION = 0.01
PROBE_RIDGE = 1e-3  # keeps a logistic probe finite where an environment is separable


def task2vec(
    environments: Any, X: Any, y: Any, *, features: Any = None, task_type: str = "auto"
) -> FloatArray:
    """Embed each environment by the information its probe holds in each feature.

    After Achille et al. (2019): a common network with a head trained on each task, embedded by
    the diagonal Fisher information of the network's weights. Here the network is one weight a
    feature, at 1, and the head a linear or logistic regression fitted in the environment, so
    the information in feature j is

        F_j = w_j^2 E[x_j^2] / sigma^2             (linear)
        F_j = E[x_j^2 Var_(c ~ p(x)) w_cj]         (logistic; E[p (1-p) w_j^2 x_j^2] for two)

    with x standardised over all rows, the sampling variance of w taken off w^2, and a prior of
    0.01. It sees how much a feature matters, not which way: slopes of +1 and -1 are the same.

    Parameters are those of `environment_distance`.

    Returns
    -------
    (K, d) information; NaN for an environment without rows.
    """
    probes = _fit_probes(environments, X, y, features, task_type)
    embedding = np.full((len(probes.occupied), probes.z.shape[1]), np.nan)
    embedding[probes.occupied] = _embedding(probes)
    return embedding


def environment_distance(
    environments: Any,
    X: Any,
    y: Any,
    *,
    kind: str = "task2vec",
    features: Any = None,
    task_type: str = "auto",
) -> FloatArray:
    """Return the pairwise distances between environments of the same rows.

    Parameters
    ----------
    environments : one of

        - a label per row (known environments, or ``model.predict_environments(X, y)``),
        - an (n, K) matrix of responsibilities,
        - a fitted `EnvironmentMixture`, which is asked about the rows,
        - a fitted HRM estimator, whose ``environment_proba_`` must belong to the rows given.
    X, y : (n, d) features and (n,) targets.
    kind : ``"task2vec"``: cosine distance of the embeddings (`task2vec`), each feature first
        divided by the sum over the pair, so that every feature counts alike (0: equal, 1: no
        feature matters to both). ``"conditional"``: symmetrised Kullback-Leibler divergence of
        P(Y given X) between the environments' regressions, averaged over all rows (nats); small
        environments look further apart than they are, by about d / (2 n_k) each.
    features : columns the probes use (a boolean mask or indices), all where None. On the variant
        features the distance is the heterogeneity that helps to tell them apart; on the invariant
        ones it should be near zero. Environments that split the rows by how y follows *all* of X
        are far apart on both, and tell nothing.
    task_type : ``"regression"``, ``"classification"``, or ``"auto"``: by the values of y.

    Returns
    -------
    (K, K) symmetric, zero on the diagonal; NaN to and from an environment without rows.
    """
    if kind not in DISTANCES:
        raise ValueError(f"kind must be one of {', '.join(map(repr, DISTANCES))}; got {kind!r}.")
    probes = _fit_probes(environments, X, y, features, task_type)
    distance = np.full((len(probes.occupied),) * 2, np.nan)
    distance[np.ix_(probes.occupied, probes.occupied)] = DISTANCES[kind](probes)
    return distance


@dataclass(frozen=True)
class _Probes:
    """One regression of y on the standardised features in each environment that has rows.

    Attributes
    ----------
    target : (n,) numbers or class codes.
    z : (n, d) standardised features.
    occupied : (K,) environments with rows; the others have no probe.
    shares : (n, number occupied) responsibilities.
    fits : one a probe.
    family : of the target.
    """

    target: FloatArray
    z: FloatArray
    occupied: BoolArray
    shares: FloatArray
    fits: tuple[GLMFit, ...]
    family: Family


def _embedding(probes: _Probes) -> FloatArray:
    parts = [_information(fit, k, probes) for k, fit in enumerate(probes.fits)]
    return np.stack(parts) + PRIOR_INFORMATION


def _task2vec_distance(probes: _Probes) -> FloatArray:
    information = _embedding(probes)
    ratio = information[:, None] / (information[:, None] + information[None, :])
    other = np.swapaxes(ratio, 0, 1)
    lengths = np.linalg.norm(ratio, axis=2) * np.linalg.norm(other, axis=2)
    distance: FloatArray = np.maximum(1.0 - (ratio * other).sum(axis=2) / lengths, 0.0)
    np.fill_diagonal(distance, 0.0)
    return distance


def _conditional_distance(probes: _Probes) -> FloatArray:
    eta = np.stack([_line(probes, fit) for fit in probes.fits])
    # A perfect fit has no variance: hold it at what single precision could tell apart.
    least = 1e-7 * np.var(probes.target)
    return probes.family.divergence(eta, np.maximum([fit.variance for fit in probes.fits], least))


def _line(probes: _Probes, fit: GLMFit) -> FloatArray:
    """Linear predictors of the rows: (n,), or (n, C) for C > 2 classes."""
    eta: FloatArray = probes.z @ fit.coef.T + fit.intercept
    return eta[:, 0] if eta.shape[1] == 1 else eta


DISTANCES: dict[str, Callable[[_Probes], FloatArray]] = {
    "task2vec": _task2vec_distance,
    "conditional": _conditional_distance,
}


def _fit_probes(environments: Any, X: Any, y: Any, features: Any, task_type: str) -> _Probes:
    """Fit y on the standardised features chosen in every environment that has rows."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    if X.ndim != 2 or y.shape != (len(X),):
        raise ValueError(f"X must be (n, d) and y (n,); got {X.shape} and {y.shape}.")
    if not np.isfinite(X).all():
        raise ValueError("X must be finite: it holds NaN or infinite values.")
    shares = _responsibilities(environments, X, y)
    X = X[:, _columns(features, X.shape[1])]
    target, family = _coded(y, task_type)
    deviation = X.std(axis=0)
    z = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    occupied = shares.sum(axis=0) > 0
    shares = shares[:, occupied]
    ridge = family.separable_ridge(PROBE_RIDGE)
    rows = ArrayBlocks(z, target, environments=shares)
    fits = fit_glms(rows, family, _carried, ridge=ridge)
    return _Probes(target, z, occupied, shares, fits, family)


def _columns(features: Any, d: int) -> np.ndarray:
    """Return the indices of the columns chosen."""
    given = np.arange(d) if features is None else np.asarray(features)
    chosen = np.flatnonzero(given) if given.dtype == bool and given.shape == (d,) else given
    valid = chosen.ndim == 1 and len(chosen) > 0 and chosen.dtype.kind in "iu"
    if not valid or chosen.min() < 0 or chosen.max() >= d:
        raise ValueError(
            f"features must be a boolean mask of length {d} or indices below {d}, at least one; "
            f"got {features!r}."
        )
    return chosen


def _carried(rows: Any) -> FloatArray:
    return membership(rows, None)


def _information(fit: GLMFit, k: int, probes: _Probes) -> FloatArray:
    """Diagonal Fisher information of the k-th probe: E[x_j^2 w_j' H w_j], H the curvature."""
    z, weight = probes.z, probes.shares[:, k] / probes.shares[:, k].sum()
    square = np.maximum(fit.coef**2 - fit.standard_error**2, 0.0)
    coef = np.sign(fit.coef) * np.sqrt(square)
    variance = max(fit.variance, TINY)
    bent = probes.family.curvature(probes.target, _line(probes, fit), variance)
    bent = bent.reshape(len(z), len(coef), len(coef))
    return np.asarray(np.einsum("n,nj,ncd,cj,dj->j", weight, z**2, bent, coef, coef, optimize=True))


def _responsibilities(environments: Any, X: FloatArray, y: np.ndarray) -> FloatArray:
    """(n, K) responsibilities, whatever they were given as."""
    if isinstance(environments, EnvironmentMixture):
        return environments.predict_proba(X, y)
    if isinstance(environments, BaseEstimator):
        found = getattr(environments, "environment_proba_", None)
        if found is None:
            raise TypeError(
                f"{type(environments).__name__} holds no environments: pass a fitted HRM "
                "estimator or EnvironmentMixture, labels or responsibilities."
            )
        environments = found
    return memberships(environments, len(X))[0]


def _coded(y: np.ndarray, task_type: str) -> tuple[FloatArray, Family]:
    """Return targets as the family wants them: numbers, or class codes."""
    if task_type not in ("auto", *TASK_TYPES):
        raise ValueError(
            f"task_type must be 'auto', 'regression' or 'classification'; got {task_type!r}."
        )
    if task_type == "auto":
        task_type = REGRESSION if type_of_target(y) == "continuous" else CLASSIFICATION
    if task_type == REGRESSION:
        return y.astype(np.float64), Gaussian()
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two classes; got only {quoted(classes[0])}.")
    family = Bernoulli() if len(classes) == 2 else Multinomial(len(classes))
    return codes.astype(np.float64), family
