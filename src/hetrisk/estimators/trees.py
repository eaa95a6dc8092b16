"""Boosted trees as candidates: grown by scikit-learn, kept as plain arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from hetrisk.core.backtest.candidates import Candidate, trend
from hetrisk.core.backtest.candidates.splines import splines
from hetrisk.core.backtest.training import Training
from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.core.predictor import Part, TreesPart, softmax

# One setting for all tables: a little slower and smaller than scikit-learn's own, as a model that
# is to be used elsewhere has less to gain from detail.
SETTINGS: dict[str, Any] = {
    "max_iter": 100,
    "learning_rate": 0.08,
    "max_leaf_nodes": 15,
    "early_stopping": False,  # it would look at rows drawn by position
    "random_state": 0,
}
MOST_BINS = 255  # of a column: what a byte holds
HALF_WAY = 0.5 + 1e-6  # of a gap, where it is cut: a row just half way falls left in every unit
MANY_CELLS = 200_000  # rows times columns from which on threads pay


def trees(training: Training) -> tuple[Part, ...]:
    """Boosted trees on the columns."""
    rows, K = training.rows, training.n_outputs
    if K == 1:
        return (grow(rows.X, rows.y, rows.weight, rows.columns),)
    return (grow_for_labels(rows.X, rows.y, rows.weight, rows.columns, K),)


def trees_on(training: Training, first: Callable[[Training], tuple[Part, ...]]) -> tuple[Part, ...]:
    """Boosted trees on what another candidate leaves."""
    rows, parts = training.rows, first(training)
    scores = np.sum([part.scores(rows.inputs) for part in parts], axis=0)
    if training.n_outputs == 1:
        return (*parts, grow(rows.X, rows.y - scores[:, 0], rows.weight, rows.columns))
    return (*parts, *_newton_trees(training, scores))


TREES = (
    Candidate("trees", "boosted trees", trees),
    Candidate(
        "trees on splines", "boosted trees on a sum of curves", partial(trees_on, first=splines)
    ),
    Candidate(  # trees alone continue no trend
        "trees on trend",
        "boosted trees on a linear model with a trend",
        partial(trees_on, first=trend),
        needs_time=True,
    ),
)


def grow(X: FloatArray, y: FloatArray, weight: FloatArray, columns: IntArray) -> TreesPart:
    """Boosted trees for numbers; ``columns`` is the order in which columns are offered to them."""
    return _grown(HistGradientBoostingRegressor(**SETTINGS), X, y, weight, columns)


def grow_for_labels(
    X: FloatArray, y: FloatArray, weight: FloatArray, columns: IntArray, n_classes: int
) -> TreesPart:
    """Boosted trees for class codes; classes that are not there keep the odds of one row."""
    seen = np.unique(y).astype(np.int64)
    base = _rare(n_classes, seen, weight)
    if len(seen) == 1:
        return _without_trees(base, X.shape[1])
    part = _grown(HistGradientBoostingClassifier(**SETTINGS), X, y, weight, columns)
    if len(seen) == 2:  # one score, the log odds of the second class
        base[seen] = [0.0, part.base[0]]
        return replace(part, output=np.full(len(part.output), seen[1]), base=base)
    base[seen] = part.base
    return replace(part, output=seen[part.output], base=base)


def _grown(
    model: Any, X: FloatArray, y: FloatArray, weight: FloatArray, columns: IntArray
) -> TreesPart:
    """Fit to bins of our own: scikit-learn's cost a hundred times as much with weights."""
    if not len(columns):
        raise ValueError("there is no column to split")
    edges = [_edges(X[:, j], weight) for j in columns]
    bins = [np.searchsorted(e, X[:, j]) for e, j in zip(edges, columns, strict=True)]
    codes = np.column_stack(bins).astype(np.float64)
    equal = bool((weight == weight[0]).all())
    # On few rows threads wait for each other longer than they work.
    with threadpool_limits(1 if codes.size < MANY_CELLS else None, "openmp"):
        model.fit(codes, y, sample_weight=None if equal else weight)
    return as_part(model, columns, edges)


def _edges(x: FloatArray, weight: FloatArray) -> FloatArray:
    """Up to 254 cuts half way between neighbouring values, at quantiles where these are many."""
    value, place = np.unique(x, return_inverse=True)
    between = value[:-1] + HALF_WAY * np.diff(value)
    if len(value) <= MOST_BINS:
        return between
    share = np.cumsum(np.bincount(place, weight)) / weight.sum()
    at = np.searchsorted(share, np.arange(1, MOST_BINS) / MOST_BINS - 1e-9)
    return between[np.unique(np.minimum(at, len(between) - 1))]


def _rare(n_classes: int, seen: Any, weight: FloatArray) -> FloatArray:
    """(K,) scores: zero for classes seen, the log odds of one row for the others."""
    base = np.full(n_classes, -np.log(max(float(weight.sum()), 2.0)))
    base[seen] = 0.0
    return base


def _newton_trees(training: Training, scores: FloatArray) -> tuple[TreesPart, ...]:
    """Trees for labels on what scores leave: a Newton step on each class, by boosted regression.

    The working residual of class k is (1[y = k] - p_k) / (p_k (1 - p_k)) with weights
    p_k (1 - p_k), clipped as in LogitBoost (Friedman, Hastie and Tibshirani 2000).
    """
    rows, K, p = training.rows, training.n_outputs, softmax(scores)
    parts = []
    for k in range(1, K) if K == 2 else range(K):
        curvature = np.maximum(p[:, k] * (1 - p[:, k]), 1e-3)
        working = np.clip(((rows.y == k) - p[:, k]) / curvature, -4.0, 4.0)
        part = grow(rows.X, working, rows.weight * curvature, rows.columns)
        base = np.zeros(K)
        base[k] = part.base[0]
        parts.append(replace(part, output=np.full(len(part.root), k), base=base))
    return tuple(parts)


def _without_trees(base: FloatArray, n_features: int) -> TreesPart:
    none = np.zeros(0, dtype=np.int64)
    return TreesPart(
        none, np.zeros(0), none, none, none, np.zeros(0), none, none, base, 0, n_features
    )


def as_part(model: Any, columns: IntArray, edges: list[FloatArray]) -> TreesPart:
    """Plain arrays of a model fitted to bins: columns back in place, bins as values of the cuts."""
    start_of = np.cumsum([0, *(len(e) for e in edges)])
    cuts = np.concatenate([*edges, np.zeros(1)])
    nodes, root, output, depth = [], [], [], 0
    start = 0
    for trees in model._predictors:
        for k, tree in enumerate(trees):
            table = tree.nodes
            leaf = table["is_leaf"].astype(bool)
            feature = np.where(leaf, 0, table["feature_idx"])
            # A threshold between bins k and k + 1 is the cut after bin k.
            cut = start_of[feature] + np.floor(np.where(leaf, 0, table["num_threshold"])).astype(
                int
            )
            here = start + np.arange(len(table))
            nodes.append(
                (
                    np.where(leaf, 0, columns[feature]),
                    np.where(leaf, 0.0, cuts[np.where(leaf, len(cuts) - 1, cut)]),
                    np.where(leaf, here, start + table["left"].astype(np.int64)),
                    np.where(leaf, here, start + table["right"].astype(np.int64)),
                    np.where(leaf, 0, table["missing_go_to_left"]).astype(np.int64),
                    np.where(leaf, table["value"], 0.0),
                )
            )
            root.append(start)
            output.append(k)
            depth = max(depth, int(table["depth"].max()))
            start += len(table)
    of = [np.concatenate(column) for column in zip(*nodes, strict=True)]
    return TreesPart(
        feature=of[0],
        threshold=of[1],
        left=of[2],
        right=of[3],
        missing_left=of[4],
        value=of[5],
        root=np.array(root, dtype=np.int64),
        output=np.array(output, dtype=np.int64),
        base=np.ravel(model._baseline_prediction).astype(np.float64),
        depth=depth,
        n_features=len(columns),
    )
