"""The methods of the field, tuned as their users would.

A strength is chosen by leaving environments out in four groups: the weakest whose loss is within
one standard error (over the groups) of the least. Environments are periods or sites.
Others' libraries come with the extra ``real``; what is not installed says so.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.reproduce.real.ordinary import NotApplicableError, Ordinary, Predictor
from hetrisk.reproduce.real.split import Half

GROUPS = 4
ANCHOR = (1.0, 2.0, 5.0, 10.0, 30.0)
ANCHOR_TREES = (1.0, 5.0, 20.0)
PENALTIES = (0.0, 1.0, 100.0)  # of IRM and V-REx; their columns and targets are standardised
DRIG = (1.0, 2.0, 5.0, 10.0)
MOST_TESTS = 2_500  # of invariant prediction: sets of columns times environments
AUTOML_SECONDS, AUTOML_SHARE = 10.0, 4  # for every fourth table: elsewhere the cell is empty

FitAt = Callable[[Half, float], Predictor]


def anchor(ordinary: Ordinary, half: Half) -> Predictor:
    """Anchor regression of ``ivmodels``, the environment as a categorical anchor."""
    _numbers_only(ordinary)
    library = _library("ivmodels.models")

    def fit(part: Half, gamma: float) -> Predictor:
        scale = StandardScaler().fit(part.X)
        model = library.AnchorRegression(gamma=gamma)
        model.fit(scale.transform(part.X), part.y, Z=_anchors(part))
        return lambda test: np.asarray(model.predict(scale.transform(test.X)), dtype=float)

    return _tuned(ordinary, half, fit, ANCHOR)


def anchor_boosting(ordinary: Ordinary, half: Half) -> Predictor:
    """Anchor boosting of ``anchorboosting``."""
    _numbers_only(ordinary)
    library = _library("anchorboosting")

    def fit(part: Half, gamma: float) -> Predictor:
        model = library.AnchorBooster(
            gamma=gamma, num_boost_round=100, max_depth=3, min_gain_to_split=0.1, verbose=-1
        )
        model.fit(part.X, part.y, Z=_anchors(part))
        return lambda test: np.asarray(model.predict(test.X), dtype=float)

    return _tuned(ordinary, half, fit, ANCHOR_TREES)


def drig(ordinary: Ordinary, half: Half) -> Predictor:
    """DRIG (Shen, Buehlmann and Taeb 2023) in closed form.

    With G_e the moments of environment e and 0 the one in which least squares errs least:
    G_0 + gamma sum_e w_e (G_e - G_0), as long as it is positive definite.
    """
    _numbers_only(ordinary)
    return _tuned(ordinary, half, _drig_at, DRIG)


def _drig_at(part: Half, gamma: float) -> Predictor:
    scale = StandardScaler().fit(part.X)
    z = np.column_stack([np.ones(len(part.y)), scale.transform(part.X), part.y])
    groups = [part.environment == e for e in np.unique(part.environment)]
    plain = np.linalg.lstsq(z[:, :-1], z[:, -1], rcond=None)[0]
    loss = [np.mean((z[g, -1] - z[g, :-1] @ plain) ** 2) for g in groups]
    grams = [z[g].T @ z[g] / g.sum() for g in groups]
    reference = grams[int(np.argmin(loss))]
    mean = sum(g.mean() * gram for g, gram in zip(groups, grams, strict=True))
    gram = reference + gamma * (mean - reference)
    spectrum = np.linalg.eigvalsh(gram[:-1, :-1])
    if spectrum[0] < -1e-9 * spectrum[-1]:
        raise NotApplicableError("not positive definite at this strength")
    coef = np.linalg.lstsq(gram[:-1, :-1], gram[:-1, -1], rcond=1e-9)[
        0
    ]  # columns may repeat others
    return lambda test: coef[0] + scale.transform(test.X) @ coef[1:]


def invariant_prediction(ordinary: Ordinary, half: Half) -> Predictor:
    """Least squares on the parents that ``causalicp`` finds; the mean where it finds none."""
    _numbers_only(ordinary)
    library = _library("causalicp")
    known, d = np.unique(half.environment), half.X.shape[1]
    if 2.0**d * len(known) > MOST_TESTS:
        raise NotApplicableError(f"2^{d} sets of columns in {len(known)} environments")
    rows = np.column_stack([StandardScaler().fit_transform(half.X), half.y])
    found = library.fit([rows[half.environment == e] for e in known], d, alpha=0.05)
    parents = sorted(found.estimate or ())
    if not parents:
        return ordinary.constant(half)
    model = LinearRegression().fit(half.X[:, parents], half.y)
    return lambda test: np.asarray(model.predict(test.X[:, parents]), dtype=float)


def baseline(name: str, values: Sequence[float], ordinary: Ordinary, half: Half) -> Predictor:
    """Return a method of `hetrisk.baselines` that is told the environments."""
    module = importlib.import_module("hetrisk.baselines")
    kind = getattr(module, name + ("Classifier" if ordinary.split.labels else "Regressor"))

    def fit(part: Half, value: float) -> Predictor:
        if ordinary.split.labels and len(np.unique(part.y)) < 2:
            return ordinary.constant(part)
        scale = StandardScaler().fit(part.X)
        model = kind(penalty=value) if values else kind()
        model.fit(scale.transform(part.X), part.y, environments=part.environment)
        return lambda test: ordinary.predicted(model, scale.transform(test.X))

    return _tuned(ordinary, half, fit, values) if values else fit(half, 0.0)


def automl(ordinary: Ordinary, half: Half) -> Predictor:
    """FLAML with ten seconds, on every fourth table; it sees the time, too."""
    if zlib.crc32(ordinary.split.name.encode()) % AUTOML_SHARE:
        raise NotApplicableError("asked on every fourth table")
    library = _library("flaml.automl")
    model = library.AutoML()
    labels, timed = ordinary.split.labels, half.time is not None
    codes = np.searchsorted(ordinary.split.classes, half.y) if labels else half.y
    model.fit(
        half.timed if timed else half.X,
        codes,
        task="classification" if labels else "regression",
        metric="log_loss" if labels else "mse",
        time_budget=AUTOML_SECONDS,
        n_jobs=1,
        verbose=0,
        seed=0,
    )
    predict = model.predict_proba if labels else model.predict
    return lambda test: np.asarray(predict(test.timed if timed else test.X), dtype=float)


PEERS: dict[str, Callable[[Ordinary, Half], Predictor]] = {
    "anchor regression": anchor,
    "anchor boosting": anchor_boosting,
    "DRIG": drig,
    "invariant prediction": invariant_prediction,
    "IRM": partial(baseline, "IRM", PENALTIES),
    "V-REx": partial(baseline, "VREx", PENALTIES),
    "GroupDRO": partial(baseline, "GroupDRO", ()),
    "AutoML (FLAML)": automl,
}


def _tuned(ordinary: Ordinary, half: Half, fit: FitAt, values: Sequence[float]) -> Predictor:
    """Fit at the weakest strength within one standard error of the least."""
    known = len(np.unique(half.environment))
    folds = GroupKFold(min(GROUPS, known)).split(half.X, groups=half.environment)
    listed = list(folds)
    scores: list[FloatArray] = []
    for value in values:
        try:
            losses = ordinary.cross_validated(partial(_at, fit, value), listed)
        except NotApplicableError:
            break  # stronger ones are out of reach, too
        scores.append(np.asarray([v.mean() for v in losses]))
    if not scores:
        raise NotApplicableError("no strength can be fitted")
    means = np.asarray([score.mean() for score in scores])
    best = int(means.argmin())
    error = scores[best].std(ddof=1) / np.sqrt(len(scores[best]))
    weakest = values[int(np.flatnonzero(means <= means[best] + error)[0])]
    return fit(half, weakest)


def _at(fit: FitAt, value: float, part: Half) -> Predictor:
    return fit(part, value)


def _anchors(part: Half) -> FloatArray:
    codes = np.unique(part.environment, return_inverse=True)[1]
    return np.eye(codes.max() + 1)[codes][:, 1:]


def _numbers_only(ordinary: Ordinary) -> None:
    if ordinary.split.labels:
        raise NotApplicableError("for numbers only")


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.split(".")[0]
        raise NotApplicableError(
            f"{package} is not installed: pip install 'hetrisk[real]'"
        ) from error
