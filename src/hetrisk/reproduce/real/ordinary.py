"""What people would do instead: ordinary models, and the usual ways to choose between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

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

Predictor = Callable[[Half], FloatArray]
Fit = Callable[[Half], Predictor]
FOLDS = 3
CUTS = (0.4, 0.6, 0.8)  # of the periods, where the folds go forward in time
RECENT = 0.25  # of the periods, to refit on
TREES: tuple[dict[str, Any], ...] = (
    {"max_iter": 100, "learning_rate": 0.08},
    {"max_iter": 100, "learning_rate": 0.05, "max_leaf_nodes": 8, "min_samples_leaf": 40},
)


class NotApplicableError(Exception):
    """A method that cannot be asked here; the message says why."""


@dataclass(eq=False)
class Ordinary:
    """The candidates on one split; what they share (folds, tuned trees) is computed once."""

    split: Split
    chosen: dict[str, str] = field(default_factory=dict)

    def constant(self, half: Half) -> Predictor:
        """Return the mean, or the shares of the classes."""
        return self._always(self._shares(half.y))

    def last_period(self, half: Half) -> Predictor:
        """Return the mean (the shares) of the last period."""
        time = self._time(half)
        return self._always(self._shares(half.y[time == time.max()]))

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
        time = self._time(half)
        periods = np.unique(time)
        late = time >= periods[int((1 - RECENT) * len(periods))]
        if late.sum() < 3 * half.X.shape[1] or (self.split.labels and np.ptp(half.y[late]) == 0):
            raise NotApplicableError("too few recent rows")
        return self.plain(half.take(np.flatnonzero(late)))

    def trees(self, half: Half) -> Predictor:
        """Boosted trees, tuned by random cross-validation on the training rows."""
        return self._model(self._boosted(self._tuned), half)

    def timed_trees(self, half: Half) -> Predictor:
        """The same with the time as one more column."""
        self._time(half)
        return self._model(self._boosted(self._tuned), half, timed=True)

    def random_choice(self, half: Half) -> Predictor:
        """Return the candidate with the least error in random cross-validation."""
        return self._choice("random", self._random_folds())(half)

    def group_choice(self, half: Half) -> Predictor:
        """Return the same by folds of whole sites, or forward in time."""
        return self._choice("groups", self._group_folds())(half)

    # Shared.

    @property
    def candidates(self) -> dict[str, Fit]:
        """What the two choices choose between."""
        fits: dict[str, Fit] = {"constant": self.constant, "plain": self.plain}
        fits |= {"ridge": self.ridge, "trees": self.trees}
        if self.split.train.time is not None:
            fits |= {"last period": self.last_period, "trees with time": self.timed_trees}
        return fits

    def cross_validated(
        self, fit: Fit, folds: list[tuple[np.ndarray, np.ndarray]]
    ) -> list[FloatArray]:
        """Losses of every fold that is left out."""
        train = self.split.train
        parts = ((train.take(a), train.take(b)) for a, b in folds)
        return [self.split.losses(fit(a)(b), b) for a, b in parts]

    def _choice(self, name: str, folds: Iterator[tuple[np.ndarray, np.ndarray]]) -> Fit:
        listed = list(folds)
        fits = self.candidates
        scores = {
            k: np.mean([v.mean() for v in self.cross_validated(f, listed)]) for k, f in fits.items()
        }
        self.chosen[name] = min(scores, key=scores.__getitem__)
        return fits[self.chosen[name]]

    def _random_folds(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        yield from KFold(FOLDS, shuffle=True, random_state=0).split(self.split.train.X)

    def _group_folds(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        train = self.split.train
        if train.time is None:
            yield from GroupKFold(min(FOLDS, len(np.unique(train.environment)))).split(
                train.X, groups=train.environment
            )
            return
        periods = np.unique(train.time)
        for cut in sorted({max(1, int(at * len(periods))) for at in CUTS}):
            early = train.time < periods[cut]
            yield np.flatnonzero(early), np.flatnonzero(~early)

    @cached_property
    def _tuned(self) -> dict[str, Any]:
        folds = list(self._random_folds())

        def score(parameters: dict[str, Any]) -> float:
            fit = lambda half: self._model(self._boosted(parameters), half)  # noqa: E731
            return float(np.mean([v.mean() for v in self.cross_validated(fit, folds)]))

        return min(TREES, key=score)

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

    def predicted(self, model: Any, X: FloatArray) -> FloatArray:
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

    def _time(self, half: Half) -> FloatArray:
        if half.time is None:
            raise NotApplicableError("no time")
        return half.time
