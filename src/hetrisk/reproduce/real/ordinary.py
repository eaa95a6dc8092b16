"""What people would do instead: ordinary models, and the usual ways to choose between them.

A method is a function of the table's `Ordinary` and of rows to learn from; it returns a function
from rows to predictions: numbers, or probabilities of the classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
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
from hetrisk.reproduce.real.split import Half, Split

Predictor: TypeAlias = Callable[[Half], FloatArray]
Fit: TypeAlias = Callable[[Half], Predictor]
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


@dataclass(eq=False)
class Ordinary:
    """The methods on one split; what they share (folds, tuned trees) is computed once."""

    split: Split
    backtested: Any = None  # the product, once it is fitted

    def constant(self, half: Half) -> Predictor:
        """Return the mean, or the shares of the classes."""
        return self._always(self._shares(half.y))

    def last_period(self, half: Half) -> Predictor:
        """Return the mean (the shares) of the last period."""
        assert half.time is not None
        return self._always(self._shares(half.y[half.time == half.time.max()]))

    def plain(self, half: Half) -> Predictor:
        """Least squares or logistic regression on all columns."""
        model = LogisticRegression(max_iter=1000) if self.split.labels else LinearRegression()
        return self._model(make_pipeline(StandardScaler(), model), half)

    def ridge(self, half: Half) -> Predictor:
        """The same with a penalty chosen by random cross-validation."""
        if self.split.labels:
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
        return self._model(make_pipeline(StandardScaler(), model), half)

    def recent(self, half: Half) -> Predictor:
        """Refit plain on the last quarter of the periods."""
        assert half.time is not None
        periods = np.unique(half.time)
        late = half.time >= periods[int((1 - RECENT) * len(periods))]
        if late.sum() < 3 * half.X.shape[1] or (self.split.labels and np.ptp(half.y[late]) == 0):
            raise NotApplicableError("too few recent rows")
        return self.plain(half.take(np.flatnonzero(late)))

    def trees(self, half: Half) -> Predictor:
        """Boosted trees, tuned by random cross-validation on the training rows."""
        return self._model(self._boosted(self._tuned), half)

    def timed_trees(self, half: Half) -> Predictor:
        """The same with the time as one more column."""
        return self._model(self._boosted(self._tuned), half, timed=True)

    def random_choice(self, half: Half) -> Predictor:
        """Return the candidate with the least error in random cross-validation."""
        return self._choice(self._random_folds())(half)

    def group_choice(self, half: Half) -> Predictor:
        """Return the same by folds of whole sites, or forward in time."""
        return self._choice(list(self._group_folds()))(half)

    # Shared.

    def scores(self, fit: Fit, folds: Folds) -> FloatArray:
        """(F,) mean loss in every fold that is left out."""
        train = self.split.train
        parts = ((train.take(a), train.take(b)) for a, b in folds)
        return np.asarray([self.split.losses(fit(a)(b), b).mean() for a, b in parts])

    def _choice(self, folds: Folds) -> Fit:
        fits: list[Fit] = [self.constant, self.plain, self.ridge, self.trees]
        if self.split.train.time is not None:
            fits += [self.last_period, self.timed_trees]
        return min(fits, key=lambda fit: self.scores(fit, folds).mean())

    def _random_folds(self) -> Folds:
        return list(KFold(FOLDS, shuffle=True, random_state=0).split(self.split.train.X))

    def _group_folds(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        train = self.split.train
        if train.time is None:
            known = len(np.unique(train.environment))
            yield from GroupKFold(min(FOLDS, known)).split(train.X, groups=train.environment)
            return
        periods = np.unique(train.time)
        for cut in sorted({max(1, int(at * len(periods))) for at in CUTS}):
            early = train.time < periods[cut]
            yield np.flatnonzero(early), np.flatnonzero(~early)

    @cached_property
    def _tuned(self) -> dict[str, Any]:
        folds = self._random_folds()
        # A default argument holds on to its own parameters.
        fits = [lambda half, t=t: self._model(self._boosted(t), half) for t in TREES]
        return TREES[int(np.argmin([self.scores(fit, folds).mean() for fit in fits]))]

    def _boosted(self, parameters: dict[str, Any]) -> Any:
        kind = (
            HistGradientBoostingClassifier if self.split.labels else HistGradientBoostingRegressor
        )
        return kind(random_state=0, **parameters)

    def _model(self, model: Any, half: Half, timed: bool = False) -> Predictor:
        if self.split.labels and len(np.unique(half.y)) < 2:
            return self.constant(half)  # a fold may hold one class alone
        model.fit(half.timed if timed else half.X, half.y)
        return lambda test: self.predicted(model, test.timed if timed else test.X)

    def predicted(self, model: Any, X: Any) -> FloatArray:
        """Numbers, or probabilities of all classes of the split."""
        if not self.split.labels:
            return np.asarray(model.predict(X), dtype=float)
        found = np.zeros((len(X), len(self.split.classes)))
        found[:, np.searchsorted(self.split.classes, model.classes_)] = model.predict_proba(X)
        return found

    def _always(self, value: Any) -> Predictor:
        return lambda test: np.broadcast_to(value, (len(test.y), *np.shape(value))).astype(float)

    def _shares(self, y: np.ndarray) -> Any:
        return np.mean(y[:, None] == self.split.classes, axis=0) if self.split.labels else y.mean()
