"""How a model fares in each environment, and how far apart environments are.

Errors are taken environment by environment and then summarised by their mean, their standard
deviation (ddof 1, as in the paper's tables) and their maximum. Distances between environments
compare one linear or logistic probe fitted in each: through the features each finds important
(Task2Vec) or through the conditional distributions P(Y given X) they describe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.metrics import log_loss
from sklearn.utils.multiclass import type_of_target

from hetrisk.blocks import ArrayBlocks
from hetrisk.core.numerics.comparison import membership
from hetrisk.core.numerics.families import Bernoulli, Family, Gaussian, Multinomial
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.glm import GLMFit, fit_glms
from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.core.reach.curve import GRID, draw
from hetrisk.core.reach.residuals import residual_lines
from hetrisk.core.result import ReachCurve
from hetrisk.datasets.task import CLASSIFICATION, REGRESSION, TASK_TYPES, ShiftTask
from hetrisk.estimators.memberships import memberships
from hetrisk.estimators.mixture import EnvironmentMixture
from hetrisk.estimators.side import read_side

__all__ = [
    "LOSSES",
    "environment_distance",
    "environment_errors",
    "max_error",
    "mean_error",
    "reach_curve",
    "std_error",
    "task2vec",
]

Errors = Mapping[str, float] | Sequence[float] | np.ndarray
Loss = Callable[[Any, FloatArray, np.ndarray], float]

# A signal of one percent of the noise: features below it are equally (un)important to every
# environment, so that the ratio of two estimates of nothing does not look like a difference.
PRIOR_INFORMATION = 0.01
LOOKED_AT = 500  # rows on which it is seen whether a model uses a column
PROBE_RIDGE = 1e-3  # keeps a logistic probe finite where an environment is separable


def rmse(model: Any, X: FloatArray, y: np.ndarray) -> float:
    """Root mean squared error."""
    return float(np.sqrt(mse(model, X, y)))


def mse(model: Any, X: FloatArray, y: np.ndarray) -> float:
    """Mean squared error."""
    return float(np.mean((np.asarray(model.predict(X)) - y) ** 2))


def mae(model: Any, X: FloatArray, y: np.ndarray) -> float:
    """Mean absolute error."""
    return float(np.mean(np.abs(np.asarray(model.predict(X)) - y)))


def error_rate(model: Any, X: FloatArray, y: np.ndarray) -> float:
    """Share of rows whose label is wrong."""
    return float(np.mean(np.asarray(model.predict(X)) != y))


def cross_entropy(model: Any, X: FloatArray, y: np.ndarray) -> float:
    """Mean negative log probability of the true label."""
    return float(log_loss(y, model.predict_proba(X), labels=model.classes_))


LOSSES: dict[str, Loss] = {
    "rmse": rmse,
    "mse": mse,
    "mae": mae,
    "error_rate": error_rate,
    "log_loss": cross_entropy,
}
DEFAULT_LOSS = {REGRESSION: "rmse", CLASSIFICATION: "error_rate"}


def environment_errors(model: Any, task: ShiftTask, loss: str | Loss = "auto") -> dict[str, float]:
    """Error of a fitted model in every test environment of a task.

    Parameters
    ----------
    model : anything with ``predict`` (and ``predict_proba`` for ``"log_loss"``).
    task : a `hetrisk.datasets.ShiftTask`.
    loss : ``"rmse"``, ``"mse"``, ``"mae"``, ``"error_rate"``, ``"log_loss"``, a function of
        ``(model, X, y)``, or ``"auto"``: RMSE for a regression, error rate for a classification.

    Returns
    -------
    dict of environment name to error, in the order of ``task.test``.
    """
    if isinstance(loss, str):
        name = DEFAULT_LOSS[task.task_type] if loss == "auto" else loss
        if name not in LOSSES:
            raise ValueError(
                f"loss must be 'auto', a function, or one of {', '.join(map(repr, LOSSES))}; "
                f"got {loss!r}."
            )
        loss = LOSSES[name]
    return {name: float(loss(model, X, y)) for name, (X, y) in task.test.items()}


def mean_error(errors: Errors) -> float:
    """Mean over environments."""
    return float(_values(errors).mean())


def std_error(errors: Errors) -> float:
    """Standard deviation over environments (ddof 1); NaN for a single one."""
    values = _values(errors)
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def max_error(errors: Errors) -> float:
    """Error in the worst environment."""
    return float(_values(errors).max())


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
        raise ValueError(f"y must hold at least two classes; got only {classes[0]!r}.")
    family = Bernoulli() if len(classes) == 2 else Multinomial(len(classes))
    return codes.astype(np.float64), family


def _values(errors: Errors) -> FloatArray:
    listed = list(errors.values()) if isinstance(errors, Mapping) else errors
    values = np.asarray(listed, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(
            f"errors must be one number for each environment; got shape {values.shape}."
        )
    return values


def reach_curve(
    model: Any, X: Any, y: Any, environments: Any, reach: Sequence[float] | None = None
) -> ReachCurve:
    """How far the world can move before a fitted model breaks: the reach curve of any model.

    The model is asked what it predicts; nothing else is known of it. In each environment its
    residuals are regressed on its prediction and the columns it uses: what that would correct
    there, beyond what it would correct over all rows, is the model's regret. For least squares
    this is the curve that `HRMRegressor` draws of it. Beside it stands plain ERM: a linear model
    on all columns. Classifiers are judged by the Brier score of their probabilities.

    Parameters
    ----------
    model : fitted classifier or regressor, or a pipeline of one.
    X : (n, d) array or DataFrame, as the model takes it; columns that are not numbers are left to
        the model.
    y : (n,) target.
    environments : (n,) labels.
    reach : reaches to draw; None for a grid from 0 to 5.

    Returns
    -------
    ReachCurve

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from hetrisk.datasets import load_task
    >>> train = load_task("selection_bias", seed=0).train
    >>> model = LinearRegression().fit(train.X, train.y)
    >>> curve = reach_curve(model, train.X, train.y, train.environments)
    >>> bool(curve.error[-1] > curve.error[0])
    True
    """
    features, used = _numbers_of(X), _numbers_of(X, model)
    observed, predicted = _outputs(model, X, y)
    side = read_side(environments, None, len(features))
    if side.labels is None or side.values is None:
        raise ValueError("environments must be labels (n,); got responsibilities.")
    at = np.asarray(GRID if reach is None else reach, dtype=np.float64)
    codes = side.values[:, 0].astype(np.int64)
    lines = residual_lines(used, features, predicted, observed, codes)
    unit = "root Brier score" if hasattr(model, "classes_") else "RMSE"
    none = [np.ones(features.shape[1], dtype=bool)] * len(at)
    return draw(at, lines, [], none, unit)


def _numbers_of(X: Any, model: Any = None) -> FloatArray:
    """(n, d) the columns that are numbers, standardised: all, or those a model looks at."""
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
    names = list(frame.select_dtypes(["number", "bool"]))
    used = names if model is None else [name for name in names if _uses(model, X, name)]
    numbers = frame[used].to_numpy(np.float64)
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    centre = np.nanmean(numbers, axis=0) if numbers.size else np.empty(0)
    filled = np.where(np.isnan(numbers), centre, numbers) - centre
    spread = filled.std(axis=0)
    return np.asarray(filled[:, spread > 0] / spread[spread > 0])


def _uses(model: Any, X: Any, column: Any) -> bool:
    """Whether predictions change when the values of a column change places."""
    rows = np.linspace(0, len(X) - 1, min(len(X), LOOKED_AT)).astype(int)
    some = X.iloc[rows].copy() if isinstance(X, pd.DataFrame) else np.array(np.asarray(X)[rows])
    predict = getattr(model, "predict_proba", model.predict)
    before = np.asarray(predict(some))
    turned = np.roll(rows, len(rows) // 2)
    if isinstance(some, pd.DataFrame):
        some[column] = X[column].iloc[turned].to_numpy()
    else:
        some[:, column] = np.asarray(X)[turned, column]
    return not np.array_equal(np.asarray(predict(some)), before)


def _outputs(model: Any, X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
    """(n, t) what came, as numbers, and what the model expected."""
    if hasattr(model, "classes_"):
        shares = np.asarray(model.predict_proba(X), dtype=np.float64)
        observed = (np.asarray(y)[:, None] == np.asarray(model.classes_)).astype(np.float64)
        if shares.shape[1] == 2:
            return observed[:, 1:], shares[:, 1:]
        return observed, shares
    values = np.asarray(y, dtype=np.float64)
    return values[:, None], np.asarray(model.predict(X), dtype=np.float64).reshape(-1, 1)
