"""How far apart environments are, by a linear or logistic probe fitted in each.

Probes are compared through the features each finds important (Task2Vec).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from hetrisk.blocks import ArrayBlocks
from hetrisk.blocks.labels import quoted
from hetrisk.core.numerics.families import Bernoulli, Family, Gaussian, Multinomial
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.glm import GLMFit, fit_glms
from hetrisk.core.numerics.partition import membership
from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.datasets.task import CLASSIFICATION, REGRESSION, TASK_TYPES
from hetrisk.estimators.memberships import memberships

# A signal of one percent of the noise: features below it are equally (un)important to every
# environment, so that the ratio of two estimates of nothing does not look like a difference.
PRIOR_INFORMATION = 0.01
PROBE_RIDGE = 1e-3  # keeps a logistic probe finite where an environment is separable


def task2vec(environments: Any, X: Any, y: Any, *, task_type: str = "auto") -> FloatArray:
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
    probes = _fit_probes(environments, X, y, task_type)
    embedding = np.full((len(probes.occupied), probes.z.shape[1]), np.nan)
    embedding[probes.occupied] = _embedding(probes)
    return embedding


def environment_distance(
    environments: Any, X: Any, y: Any, *, task_type: str = "auto"
) -> FloatArray:
    """Return the pairwise distances between environments of the same rows.

    The cosine distance of the embeddings (`task2vec`), each feature first divided by the sum over
    the pair, so that every feature counts alike (0: equal, 1: no feature matters to both). On the
    variant features it is the heterogeneity that helps to tell environments apart; on the invariant
    ones it should be near zero. Environments that split the rows by how y follows *all* of X are
    far apart on both, and tell nothing.

    Parameters
    ----------
    environments : a label per row, or an (n, K) matrix of responsibilities.
    X, y : (n, d) features and (n,) targets.
    task_type : ``"regression"``, ``"classification"``, or ``"auto"``: by the values of y.

    Returns
    -------
    (K, K) symmetric, zero on the diagonal; NaN to and from an environment without rows.
    """
    probes = _fit_probes(environments, X, y, task_type)
    information = _embedding(probes)
    ratio = information[:, None] / (information[:, None] + information[None, :])
    other = np.swapaxes(ratio, 0, 1)
    lengths = np.linalg.norm(ratio, axis=2) * np.linalg.norm(other, axis=2)
    between = np.maximum(1.0 - (ratio * other).sum(axis=2) / lengths, 0.0)
    np.fill_diagonal(between, 0.0)
    distance = np.full((len(probes.occupied),) * 2, np.nan)
    distance[np.ix_(probes.occupied, probes.occupied)] = between
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


def _line(probes: _Probes, fit: GLMFit) -> FloatArray:
    """Linear predictors of the rows: (n,), or (n, C) for C > 2 classes."""
    eta: FloatArray = probes.z @ fit.coef.T + fit.intercept
    return eta[:, 0] if eta.shape[1] == 1 else eta


def _fit_probes(environments: Any, X: Any, y: Any, task_type: str) -> _Probes:
    """Fit y on the standardised features in every environment that has rows."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    if X.ndim != 2 or y.shape != (len(X),):
        raise ValueError(f"X must be (n, d) and y (n,); got {X.shape} and {y.shape}.")
    if not np.isfinite(X).all():
        raise ValueError("X must be finite: it holds NaN or infinite values.")
    shares, _ = memberships(environments, len(X))
    target, family = _coded(y, task_type)
    deviation = X.std(axis=0)
    z = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    occupied = shares.sum(axis=0) > 0
    shares = shares[:, occupied]
    ridge = 0.0 if family.closed_form else PROBE_RIDGE
    rows = ArrayBlocks(z, target, environments=shares)
    fits = fit_glms(rows, family, _carried, ridge=ridge)
    return _Probes(target, z, occupied, shares, fits, family)


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
