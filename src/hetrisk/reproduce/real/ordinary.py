"""What people would do instead: ordinary models, and the usual ways to choose between them.

A method is a function of a table and of rows to learn from; it returns a function from rows to
predictions: numbers, or probabilities of the classes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    RidgeCV,
)
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.reproduce.real.split import Half, Table

Predictor: TypeAlias = Callable[[Half], FloatArray]
Method: TypeAlias = Callable[[Table, Half], Predictor]
Folds: TypeAlias = list[tuple[np.ndarray, np.ndarray]]
FOLDS = 3
CUTS = (0.4, 0.6, 0.8)  # of the periods, where the folds go forward in time
RECENT = 0.25  # of the periods, to refit on
TREES: tuple[dict[str, Any], ...] = (
    {"max_iter": 100, "learning_rate": 0.08},
    {"max_iter": 100, "learning_rate": 0.05, "max_leaf_nodes": 8, "min_samples_leaf": 40},
    {"max_iter": 100, "learning_rate": 0.1, "max_leaf_nodes": 4},
)


class NotApplicableError(Exception):
    """A method that cannot be asked here; the message says why."""


def constant(table: Table, half: Half) -> Predictor:
    """Return the mean, or the shares of the classes."""
    y = half.y[:, None] == table.classes if table.labels else half.y
    value = y.mean(axis=0)
    return lambda test: np.broadcast_to(value, (len(test.y), *np.shape(value))).astype(float)


def last_period(table: Table, half: Half) -> Predictor:
    """Return the mean (the shares) of the last period."""
    assert half.time is not None
    return constant(table, half.take(np.flatnonzero(half.time == half.time.max())))


def plain(table: Table, half: Half) -> Predictor:
    """Least squares or logistic regression on all columns."""
    model = LogisticRegression(max_iter=1000) if table.labels else LinearRegression()
    return _model(make_pipeline(StandardScaler(), model), table, half)


def ridge(table: Table, half: Half) -> Predictor:
    """The same with a penalty chosen by random cross-validation."""
    if table.labels:
        model: Any = LogisticRegressionCV(
            Cs=(0.003, 0.03, 0.3, 3),
            cv=3,
            max_iter=500,
            scoring="neg_log_loss",
            l1_ratios=(0,),
            use_legacy_attributes=False,
        )
    else:
        model = RidgeCV(np.logspace(-2, 4, 13))
    return _model(make_pipeline(StandardScaler(), model), table, half)


def recent(table: Table, half: Half) -> Predictor:
    """Refit plain on the last quarter of the periods."""
    assert half.time is not None
    periods = np.unique(half.time)
    late = half.time >= periods[int((1 - RECENT) * len(periods))]
    if late.sum() < 3 * half.X.shape[1] or (table.labels and np.ptp(half.y[late]) == 0):
        raise NotApplicableError("too few recent rows")
    return plain(table, half.take(np.flatnonzero(late)))


def trees(table: Table, half: Half) -> Predictor:
    """Boosted trees, tuned by random cross-validation on the training rows."""
    return _boosted(_tuned_trees(table), table, half)


def timed_trees(table: Table, half: Half) -> Predictor:
    """The same with the time as one more column."""
    return _boosted(_tuned_trees(table), table, half, timed=True)


def random_choice(table: Table, half: Half) -> Predictor:
    """Return the candidate with the least error in random cross-validation."""
    return _choice(table, _random_folds(table))(table, half)


def group_choice(table: Table, half: Half) -> Predictor:
    """Return the same by folds of whole sites, or forward in time."""
    train = table.train
    if train.time is None:
        return _choice(table, site_folds(table, FOLDS))(table, half)
    periods = np.unique(train.time)
    cuts = sorted({max(1, int(at * len(periods))) for at in CUTS})
    early = [train.time < periods[cut] for cut in cuts]
    return _choice(table, [(np.flatnonzero(e), np.flatnonzero(~e)) for e in early])(table, half)


def scores(method: Method, table: Table, folds: Folds) -> FloatArray:
    """(F,) mean loss in every fold that is left out."""
    parts = ((table.train.take(a), table.train.take(b)) for a, b in folds)
    return np.asarray([table.losses(method(table, a)(b), b).mean() for a, b in parts])


def site_folds(table: Table, most: int) -> Folds:
    """Whole environments left out, in at most so many groups."""
    known = table.train.environment
    folds = GroupKFold(min(most, len(np.unique(known))))
    return list(folds.split(table.train.X, groups=known))


def _choice(table: Table, folds: Folds) -> Method:
    methods: list[Method] = [constant, plain, ridge, trees]
    if table.train.time is not None:
        methods += [last_period, timed_trees]
    return min(methods, key=lambda method: scores(method, table, folds).mean())


def _random_folds(table: Table) -> Folds:
    return list(KFold(FOLDS, shuffle=True, random_state=0).split(table.train.X))


@lru_cache(maxsize=2)
def _tuned_trees(table: Table) -> int:
    folds, settings = _random_folds(table), range(len(TREES))
    return min(settings, key=lambda k: scores(partial(_boosted, k), table, folds).mean())


def _boosted(setting: int, table: Table, half: Half, timed: bool = False) -> Predictor:
    kind = HistGradientBoostingClassifier if table.labels else HistGradientBoostingRegressor
    return _model(kind(random_state=0, **TREES[setting]), table, half, timed)


def _model(model: Any, table: Table, half: Half, timed: bool = False) -> Predictor:
    if table.labels and len(np.unique(half.y)) < 2:
        return constant(table, half)  # a fold may hold one class alone
    model.fit(half.timed if timed else half.X, half.y)
    return lambda test: table.predicted(model, test.timed if timed else test.X)
