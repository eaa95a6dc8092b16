"""The methods of the field, tuned as their users would.

A strength is chosen by leaving environments out in four groups: the weakest whose loss is within
one standard error (over the groups) of the least. Environments are periods or sites.
Others' libraries come with the extra ``real``; what is not installed fails, and is tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations

import numpy as np
from scipy.linalg import qr
from scipy.stats import f as f_distribution
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, lars_path
from sklearn.preprocessing import StandardScaler

from hetrisk import baselines
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.reproduce.real.ordinary import (
    Method,
    NotApplicableError,
    Predictor,
    constant,
    plain,
    scores,
    site_folds,
)
from hetrisk.reproduce.real.split import Half, Table

GROUPS = 4
ANCHOR = (1.0, 2.0, 5.0, 10.0, 30.0)
ANCHOR_TREES = (1.0, 5.0, 20.0)
PENALTIES = (0.0, 1.0, 100.0)  # of IRM and V-REx; their columns and targets are standardised
DRIG = (1.0, 2.0, 5.0, 10.0)
MOST_TESTS = 2_500  # of invariant prediction: sets of columns times environments
SCREENED = 8  # columns of stabilised regression: the first that enter the lasso's path
LEVEL = 0.05  # of its two tests
AUTOML_SECONDS = 10.0  # by the clock

FitAt = Callable[[float, Half], Predictor]


def anchor(table: Table, half: Half) -> Predictor:
    """Anchor regression of ``ivmodels``, the environment as a categorical anchor."""
    from ivmodels.models import AnchorRegression

    def fit(gamma: float, part: Half) -> Predictor:
        scale = StandardScaler().fit(part.X)
        # Its solver takes full rank for granted: columns that repeat others are left out.
        _, r, order = qr(scale.transform(part.X), mode="economic", pivoting=True)
        sizes = np.abs(np.diag(r))
        free = order[: len(sizes)][sizes > 1e-6 * sizes[0]]
        model = AnchorRegression(gamma=gamma)
        model.fit(scale.transform(part.X)[:, free], part.y, Z=_anchors(part))
        return lambda test: np.asarray(model.predict(scale.transform(test.X)[:, free]), dtype=float)

    return _tuned(table, half, fit, ANCHOR)


def anchor_boosting(table: Table, half: Half) -> Predictor:
    """Anchor boosting of ``anchorboosting``."""
    from anchorboosting import AnchorBooster

    def fit(gamma: float, part: Half) -> Predictor:
        model = AnchorBooster(
            gamma=gamma, num_boost_round=100, max_depth=3, min_gain_to_split=0.1, verbose=-1
        )
        model.fit(part.X, part.y, Z=_anchors(part))
        return lambda test: np.asarray(model.predict(test.X), dtype=float)

    return _tuned(table, half, fit, ANCHOR_TREES)


def drig(table: Table, half: Half) -> Predictor:
    """DRIG (Shen, Buehlmann and Taeb 2023) in closed form.

    With G_e the moments of environment e and 0 the one in which least squares errs least:
    G_0 + gamma sum_e w_e (G_e - G_0), as long as it is positive definite.
    """
    return _tuned(table, half, _drig_at, DRIG)


def _drig_at(gamma: float, part: Half) -> Predictor:
    scale = StandardScaler().fit(part.X)
    z = np.column_stack([np.ones(len(part.y)), scale.transform(part.X), part.y])
    groups = [part.environment == e for e in np.unique(part.environment)]
    pooled = np.linalg.lstsq(z[:, :-1], z[:, -1], rcond=None)[0]
    loss = [np.mean((z[g, -1] - z[g, :-1] @ pooled) ** 2) for g in groups]
    grams = [z[g].T @ z[g] / g.sum() for g in groups]
    reference = grams[int(np.argmin(loss))]
    mean = sum(g.mean() * gram for g, gram in zip(groups, grams, strict=True))
    gram = reference + gamma * (mean - reference)
    spectrum = np.linalg.eigvalsh(gram[:-1, :-1])
    if spectrum[0] < -1e-9 * spectrum[-1]:
        raise NotApplicableError("not positive definite at this strength")
    # Columns may repeat others.
    coef = np.linalg.lstsq(gram[:-1, :-1], gram[:-1, -1], rcond=1e-9)[0]
    return lambda test: coef[0] + scale.transform(test.X) @ coef[1:]


def invariant_prediction(table: Table, half: Half) -> Predictor:
    """Least squares on the parents that ``causalicp`` finds; the mean where it finds none."""
    import causalicp

    known, d = np.unique(half.environment), half.X.shape[1]
    if 2.0**d * len(known) > MOST_TESTS:
        raise NotApplicableError(f"2^{d} sets of columns in {len(known)} environments")
    rows = np.column_stack([StandardScaler().fit_transform(half.X), half.y])
    found = causalicp.fit([rows[half.environment == e] for e in known], d, alpha=0.05)
    parents = sorted(found.estimate or ())
    if not parents:
        return constant(table, half)
    model = LinearRegression().fit(half.X[:, parents], half.y)
    return lambda test: np.asarray(model.predict(test.X[:, parents]), dtype=float)


def stabilised(table: Table, half: Half) -> Predictor:
    """Stabilised regression (Pfister, Williams, Peters, Aebersold and Buehlmann 2021).

    Of all sets of the screened columns those count whose least squares passes Chow's test of one
    regression in all environments, and whose error is not significantly above the least of these;
    their mean is predicted. Where no set passes: all columns.
    """
    scale = StandardScaler().fit(half.X)
    x = scale.transform(half.X)
    path = lars_path(x, half.y - half.y.mean(), method="lasso", max_iter=4 * SCREENED)[2]
    entered = np.argsort(np.argmax(path != 0, axis=1) + 1e9 * (path == 0).all(axis=1))
    z = np.column_stack([np.ones(len(x)), x[:, entered[:SCREENED]]])
    codes = np.unique(half.environment, return_inverse=True)[1]
    groups = [np.flatnonzero(codes == e) for e in range(codes.max() + 1)]
    stable: list[tuple[float, FloatArray, FloatArray]] = []
    for size in range(z.shape[1]):
        for chosen in combinations(range(1, z.shape[1]), size):
            columns = [0, *chosen]
            coef, squares = _least_squares(z, half.y, columns)
            within = [_least_squares(z[rows], half.y[rows], columns)[1].sum() for rows in groups]
            spare = sum(max(len(rows) - len(columns), 0) for rows in groups)
            more = len(x) - len(columns) - spare
            if not spare or not more:
                continue
            ratio = (squares.sum() - sum(within)) / more / max(sum(within) / spare, 1e-300)
            if f_distribution.sf(ratio, more, spare) >= LEVEL:
                stable.append((squares.mean(), squares, coef))
    if not stable:
        return plain(table, half)
    least, squares, _ = min(stable, key=lambda found: found[0])
    most = least + norm.isf(LEVEL) * squares.std() / np.sqrt(len(squares))
    mean = np.mean([coef for error, _, coef in stable if error <= most], axis=0)
    return lambda test: mean[0] + scale.transform(test.X)[:, entered[:SCREENED]] @ mean[1:]


def _least_squares(
    z: FloatArray, y: np.ndarray, columns: list[int]
) -> tuple[FloatArray, FloatArray]:
    """Coefficients with zeros for the columns left out, and squared residuals."""
    coef = np.zeros(z.shape[1])
    coef[columns] = np.linalg.lstsq(z[:, columns], y, rcond=None)[0]
    return coef, (y - z @ coef) ** 2


def baseline(name: str, values: Sequence[float], table: Table, half: Half) -> Predictor:
    """Return a method of `hetrisk.baselines` that is told the environments."""
    kind = getattr(baselines, name + ("Classifier" if table.labels else "Regressor"))

    def fit(value: float, part: Half) -> Predictor:
        if table.labels and len(np.unique(part.y)) < 2:
            return constant(table, part)
        scale = StandardScaler().fit(part.X)
        model = kind(penalty=value) if values else kind()
        model.fit(scale.transform(part.X), part.y, environments=part.environment)
        return lambda test: table.predicted(model, scale.transform(test.X))

    return _tuned(table, half, fit, values) if values else fit(0.0, half)


def automl(table: Table, half: Half) -> Predictor:
    """FLAML within its seconds; it sees the time, too."""
    from flaml.automl import AutoML

    model, labels = AutoML(), table.labels
    task, metric = ("classification", "log_loss") if labels else ("regression", "mse")
    codes = np.searchsorted(table.classes, half.y) if labels else half.y
    settings = {"task": task, "metric": metric, "time_budget": AUTOML_SECONDS}
    model.fit(half.timed, codes, **settings, n_jobs=1, verbose=0, seed=0)
    predict = model.predict_proba if labels else model.predict
    return lambda test: np.asarray(predict(test.timed), dtype=float)


AUTOML = "AutoML (FLAML)"
PEERS: dict[str, Method] = {
    "anchor regression": anchor,
    "anchor boosting": anchor_boosting,
    "DRIG": drig,
    "invariant prediction": invariant_prediction,
    "stabilised regression": stabilised,
    "IRM": partial(baseline, "IRM", PENALTIES),
    "V-REx": partial(baseline, "VREx", PENALTIES),
    "GroupDRO": partial(baseline, "GroupDRO", ()),
    AUTOML: automl,
}


def _tuned(table: Table, half: Half, fit: FitAt, values: Sequence[float]) -> Predictor:
    """Fit at the weakest strength within one standard error of the least."""
    folds = site_folds(table, GROUPS)
    found: list[FloatArray] = []
    for value in values:
        try:
            found.append(scores(partial(_at, fit, value), table, folds))
        except NotApplicableError:
            break  # stronger ones are out of reach, too
    if not found:
        raise NotApplicableError("no strength can be fitted")
    means = np.asarray([losses.mean() for losses in found])
    best = int(means.argmin())
    error = found[best].std(ddof=1) / np.sqrt(len(found[best]))
    return fit(values[int(np.flatnonzero(means <= means[best] + error)[0])], half)


def _at(fit: FitAt, value: float, _: Table, part: Half) -> Predictor:
    return fit(value, part)


def _anchors(part: Half) -> FloatArray:
    codes = np.unique(part.environment, return_inverse=True)[1]
    return np.eye(codes.max() + 1)[codes][:, 1:]
