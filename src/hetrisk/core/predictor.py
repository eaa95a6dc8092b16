"""Fitted models as plain arrays: what is deployed, stored in a file, and predicted from.

A `Predictor` is a weighted mean of members; a member is a sum of parts; a part turns rows into
scores. The link turns a member's scores into a prediction: the identity for numbers, softmax for
labels (K classes have K scores). Everything the product fits by itself (closed forms, boosted
trees, averages of a few, a shift learned from a new environment) is such a value, so one bounded
piece of code predicts, and nothing in a file needs to be executed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, final

import numpy as np

from hetrisk.core.numerics.rows import FloatArray, IntArray

IDENTITY, SOFTMAX = "identity", "softmax"
ROWS_AT_ONCE = 65_536  # predicted in one go: what trees look at then stays in the cache


@dataclass(frozen=True)
class Inputs:
    """Rows to predict.

    Attributes
    ----------
    X : (n, d) numbers; NaN where missing (trees take it, linear parts give NaN).
    time : (n,) time as a number; NaN where unknown; None where there is no time column.
    environment : (n,) codes into the levels a model was fitted with, -1 for a new one; or None.
    """

    X: FloatArray
    time: FloatArray | None = None
    environment: IntArray | None = None

    def __len__(self) -> int:
        return len(self.X)

    @property
    def when(self) -> FloatArray:
        """(n,) time, for parts that need it."""
        if self.time is None:
            raise ValueError("the model needs the time column; X has none.")
        return self.time

    def __getitem__(self, rows: slice) -> Inputs:
        return Inputs(
            self.X[rows],
            None if self.time is None else self.time[rows],
            None if self.environment is None else self.environment[rows],
        )


class Part(ABC):
    """Rows to scores."""

    kind: ClassVar[str]
    needs_time: bool = False
    needs_environment: bool = False

    @abstractmethod
    def scores(self, rows: Inputs) -> FloatArray:
        """(n, K) scores; K is 1 for numbers."""


@final
@dataclass(frozen=True)
class LinearPart(Part):
    """intercept + x'coef + slope * (time - origin); coef (d, K), intercept and slope (K,)."""

    kind: ClassVar[str] = "linear"
    coef: FloatArray
    intercept: FloatArray
    slope: FloatArray
    origin: float = 0.0

    @property
    def needs_time(self) -> bool:  # type: ignore[override]
        """Whether time has a slope."""
        return bool(np.any(self.slope != 0))

    def scores(self, rows: Inputs) -> FloatArray:
        """See the class."""
        used = np.any(self.coef != 0, axis=1)
        # Columns without a coefficient are not asked: they may be missing.
        scores: FloatArray = rows.X[:, used] @ self.coef[used] + self.intercept
        if self.needs_time:
            scores = scores + (rows.when - self.origin)[:, None] * self.slope
        return scores


@final
@dataclass(frozen=True)
class LevelPart(Part):
    """A level for each known environment, (E, K); ``other`` (K,) for one not seen before."""

    kind: ClassVar[str] = "level"
    needs_environment = True
    level: FloatArray
    other: FloatArray

    def scores(self, rows: Inputs) -> FloatArray:
        """See the class."""
        scores = np.tile(self.other, (len(rows), 1))
        if rows.environment is not None:
            # Codes beyond the levels: environments that were known, but not learned from.
            known = (rows.environment >= 0) & (rows.environment < len(self.level))
            scores[known] = self.level[rows.environment[known]]
        return scores


@final
@dataclass(frozen=True)
class HingesPart(Part):
    """intercept + sum_h max(x[feature[h]] - knot[h], 0) coef[h], a piecewise linear sum of columns.

    ``coef`` is (H, K); ``n_features`` is d. Beyond the last knot a column goes on as a line.
    """

    kind: ClassVar[str] = "hinges"
    feature: IntArray
    knot: FloatArray
    coef: FloatArray
    intercept: FloatArray
    n_features: int

    def scores(self, rows: Inputs) -> FloatArray:
        """See the class."""
        scores: FloatArray = self.basis(rows.X) @ self.coef + self.intercept
        return scores

    def basis(self, X: FloatArray) -> FloatArray:
        """(n, H) the hinges."""
        return np.maximum(X[:, self.feature] - self.knot, 0.0)


@final
@dataclass(frozen=True)
class TreesPart(Part):
    """Binary trees whose leaves add up, all nodes in one table.

    Node i sends a row to ``left[i]`` where x[feature[i]] <= threshold[i] (or is missing and
    ``missing_left[i]``), else to ``right[i]``; a leaf is its own child. ``root`` (T,) are the first
    nodes of the trees and ``output`` (T,) the score each adds to. Column d, if any tree asks for
    it (``uses_time``), is time. ``depth`` bounds the steps from a root to a leaf.
    """

    kind: ClassVar[str] = "trees"
    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    missing_left: IntArray
    value: FloatArray
    root: IntArray
    output: IntArray
    base: FloatArray
    depth: int
    n_features: int
    uses_time: bool = False

    @property
    def needs_time(self) -> bool:  # type: ignore[override]
        """Whether a tree splits on time."""
        return self.uses_time

    def scores(self, rows: Inputs) -> FloatArray:
        """See the class."""
        X = rows.X
        if self.uses_time:
            X = np.column_stack([X, rows.when])
        scores = np.tile(self.base, (len(X), 1))
        index = np.arange(len(X))
        for root, output in zip(self.root, self.output, strict=True):
            at = np.full(len(X), root)
            for _ in range(self.depth):
                x = X[index, self.feature[at]]
                with np.errstate(invalid="ignore"):
                    left = np.where(np.isnan(x), self.missing_left[at] > 0, x <= self.threshold[at])
                at = np.where(left, self.left[at], self.right[at])
            scores[:, output] += self.value[at]
        return scores


PARTS: dict[str, type[Part]] = {
    part.kind: part for part in (LinearPart, LevelPart, HingesPart, TreesPart)
}


@dataclass(frozen=True)
class Predictor:
    """Weighted mean of members, each the link of a sum of parts.

    Attributes
    ----------
    members : tuple of tuples of parts.
    weight : (M,) of the members, summing to one.
    link : "identity" or "softmax".
    """

    members: tuple[tuple[Part, ...], ...]
    weight: FloatArray
    link: str = IDENTITY

    @property
    def needs_time(self) -> bool:
        """Whether rows must carry their time."""
        return any(part.needs_time for member in self.members for part in member)

    @property
    def needs_environment(self) -> bool:
        """Whether rows should carry their environment."""
        return any(part.needs_environment for member in self.members for part in member)

    def predict(self, rows: Inputs) -> FloatArray:
        """(n, 1) predicted numbers, or (n, K) probabilities."""
        if len(rows) > ROWS_AT_ONCE:
            starts = range(0, len(rows), ROWS_AT_ONCE)
            return np.concatenate([self.predict(rows[s : s + ROWS_AT_ONCE]) for s in starts])
        parts = (self._linked(_total(member, rows)) for member in self.members)
        weighted = (w * p for w, p in zip(self.weight, parts, strict=True))
        mean: FloatArray = reduce(np.add, weighted)
        return mean

    def _linked(self, scores: FloatArray) -> FloatArray:
        return scores if self.link == IDENTITY else softmax(scores)


def softmax(scores: FloatArray) -> FloatArray:
    """(n, K) probabilities from scores."""
    # The largest score is taken off first: exponentials of scores overflow.
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    softmax: FloatArray = share / share.sum(axis=1, keepdims=True)
    return softmax


def _total(member: tuple[Part, ...], rows: Inputs) -> FloatArray:
    """(n, K) sum of the parts' scores."""
    total: FloatArray = reduce(np.add, (part.scores(rows) for part in member))
    return total


def single(part: Part, *more: Part, link: str = IDENTITY) -> Predictor:
    """Return the predictor with one member."""
    return Predictor(((part, *more),), np.ones(1), link)
