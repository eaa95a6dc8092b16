"""A flexible mean for one homogeneous population: the features, plus a few terms the data ask for.

A search for environments must not take a curve for a shift. So before anything is called
unstable, the mean is given the chance to bend: hinges, steps and powers of one feature,
products and kinks of two, products of three. A term enters only when its robust score is far
above what the best of that many candidates would reach by chance, so linear data stay linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.rows import FloatArray, IntArray, Rows
from hetrisk.core.numerics.working import MOST_LEVERAGE, WorkingFit, working_fit

MOST_TERMS = 12
TERM_ROWS = 4000  # rows the terms are chosen on
MARGIN = 1.0  # how far above the expected maximum of the scores a term must be
CLIP = 4.0  # products are taken of features clipped here: one far row must not make a term
FINALISTS = 40
TRIPLE_FEATURES = 60  # products of three are sought among this many features
KNOTS = np.linspace(0.1, 0.9, 9)

Chunk = tuple[list["Term"], FloatArray]


@dataclass(frozen=True)
class Term:
    """A function of one, two or three standardised features."""

    kind: str
    features: tuple[int, ...]
    knot: float = 0.0

    def __call__(self, X: FloatArray) -> FloatArray:
        """(n,) values."""
        return SHAPES[self.kind](X[:, list(self.features)], self.knot)


def _product(x: FloatArray, knot: float) -> FloatArray:
    product: FloatArray = np.clip(x, -CLIP, CLIP).prod(axis=1)
    return product


SHAPES: dict[str, Callable[[FloatArray, float], FloatArray]] = {
    "hinge": lambda x, knot: np.abs(x[:, 0] - knot),
    "step": lambda x, knot: (x[:, 0] > knot).astype(np.float64),
    "square": lambda x, knot: np.clip(x[:, 0], -CLIP, CLIP) ** 2,
    "cube": lambda x, knot: np.clip(x[:, 0], -CLIP, CLIP) ** 3,
    "product": _product,
    "difference": lambda x, knot: np.abs(x[:, 0] - x[:, 1]),
    "sum": lambda x, knot: np.abs(x[:, 0] + x[:, 1]),
    "triple": _product,
}


def term_values(terms: tuple[Term, ...], X: FloatArray) -> FloatArray:
    """(n, q) values of the terms, zero columns where there are none."""
    if not terms:
        return np.empty((len(X), 0))
    return np.column_stack([term(X) for term in terms])


def choose_terms(rows: Rows, family: Family, groups: IntArray) -> tuple[Term, ...]:
    """Add terms to the linear fit one by one while one is significant.

    Each time the candidate that explains most enters, among those whose robust score z exceeds
    ``sqrt(2 log P) + 1`` for P candidates. ``groups`` keeps columns of one category apart:
    products within a group say nothing.
    """
    X, y = rows.X[:TERM_ROWS], rows.y[:TERM_ROWS]
    rows = Rows(X, y, rows.weight[:TERM_ROWS])
    chosen: tuple[Term, ...] = ()
    if len(X) < 5 * (X.shape[1] + 2):
        return chosen
    for _ in range(MOST_TERMS):
        fit = working_fit(rows, family, term_values(chosen, X))
        found = _best_term(X, fit, groups)
        if found is None:
            break
        chosen = (*chosen, found)
    return chosen


def two_valued(x: FloatArray) -> bool:
    """Whether a column seems to hold two values only, by its first rows."""
    return len(np.unique(x[:200])) <= 2


def restricted(terms: tuple[Term, ...], columns: IntArray) -> tuple[Term, ...]:
    """Rewrite the terms for a table of these columns only; terms of other columns fall away."""
    place = {int(column): i for i, column in enumerate(columns)}
    return tuple(
        Term(term.kind, tuple(place[f] for f in term.features), term.knot)
        for term in terms
        if all(f in place for f in term.features)
    )


def _best_term(X: FloatArray, fit: WorkingFit, groups: IntArray) -> Term | None:
    terms, z, count = _scored(X, fit.residual, groups)
    threshold = np.sqrt(2 * np.log(max(count, 1))) + MARGIN
    # Scores so far ignore what the design explains of a candidate; the front is scored exactly.
    front = [terms[i] for i in np.argsort(-z, kind="stable")[:FINALISTS] if z[i] > threshold / 2]
    if not front:
        return None
    values = term_values(tuple(front), X)
    exact = fit.residualised(values)
    size = (fit.curvature[:, None] * exact**2).sum(axis=0)
    before = (fit.curvature[:, None] * (values - values.mean(axis=0)) ** 2).sum(axis=0)
    told = size > 1e-4 * before
    size = np.where(told, size, 1.0)
    total = exact.T @ fit.residual
    entitled = told & (_robust_score(fit, exact, size, total) > threshold)
    gain = np.where(entitled, total**2 / size, 0.0)
    best = int(np.argmax(gain))
    return front[best] if gain[best] > 0 else None


def _robust_score(
    fit: WorkingFit, added: FloatArray, size: FloatArray, total: FloatArray
) -> FloatArray:
    """Score of each column as if it had entered, by the errors (HC3) of the residuals it leaves.

    The residuals before it enters still hold what it explains: in a product of three that is a
    few large rows, and against those it would seem no more than their chance.
    """
    curved = fit.curvature[:, None] * added
    leverage = fit.leverage[:, None] + curved * added / size
    left = fit.residual[:, None] - curved * (total / size)
    left /= 1.0 - np.minimum(leverage, MOST_LEVERAGE)
    return _score(total, (added**2 * left**2).sum(axis=0))


def _scored(
    X: FloatArray, residual: FloatArray, groups: IntArray
) -> tuple[list[Term], FloatArray, int]:
    """Best candidates with their scores, and how many candidates there were."""
    terms: list[Term] = []
    scores: list[FloatArray] = []
    square = residual**2
    for names, values in _candidates(X, groups):
        values -= values.mean(axis=0)
        terms += names
        scores.append(_score(values.T @ residual, (values**2).T @ square))
    z = np.concatenate(scores) if scores else np.empty(0)
    triples, triple_z, n_triples = _triples(X, residual, groups, _active(X, residual, terms, z))
    return terms + triples, np.append(z, triple_z), len(terms) + n_triples


def _score(total: FloatArray, square: FloatArray) -> FloatArray:
    score: FloatArray = np.abs(total) / np.sqrt(np.maximum(square, 1e-300))
    return score


def _candidates(X: FloatArray, groups: IntArray) -> Iterator[Chunk]:
    """Terms of one feature, then of two, a chunk a feature."""
    d = X.shape[1]
    for j in range(d):
        if two_valued(X[:, j]):
            continue
        knots = np.unique(np.quantile(X[:, j], KNOTS))
        names = [Term(kind, (j,), float(k)) for k in knots for kind in ("hinge", "step")]
        names += [Term("square", (j,)), Term("cube", (j,))]
        yield names, term_values(tuple(names), X)
    clipped = np.clip(X, -CLIP, CLIP)
    for i in range(d - 1):
        others = [j for j in range(i + 1, d) if groups[j] != groups[i]]
        if others:
            names = [Term(k, (i, j)) for k in ("product", "difference", "sum") for j in others]
            left, right = X[:, [i]], X[:, others]
            product = clipped[:, [i]] * clipped[:, others]
            yield names, np.hstack([product, np.abs(left - right), np.abs(left + right)])


def _triples(
    X: FloatArray, residual: FloatArray, groups: IntArray, active: IntArray
) -> tuple[list[Term], FloatArray, int]:
    """Best products of three features, scored as matrix products of pairs with singles."""
    clipped = np.clip(X[:, active], -CLIP, CLIP)
    square, residual2 = clipped**2, residual**2
    apart = groups[active][:, None] != groups[active][None, :]
    places: list[IntArray] = []
    scores: list[FloatArray] = []
    for a in range(len(active) - 2):
        pair = clipped[:, [a]] * clipped[:, a + 1 :]
        total = (pair * residual[:, None]).T @ clipped[:, a + 1 :]
        spread = (pair**2 * residual2[:, None]).T @ square[:, a + 1 :]
        b, c = np.triu_indices(total.shape[0], 1)
        told = apart[a, a + 1 + b] & apart[a, a + 1 + c] & apart[a + 1 + b, a + 1 + c]
        b, c = b[told], c[told]
        places.append(np.column_stack([np.full(len(b), a), a + 1 + b, a + 1 + c]))
        scores.append(_score(total[b, c], spread[b, c]))
    if not places:
        return [], np.empty(0), 0
    place, z = np.concatenate(places), np.concatenate(scores)
    best = np.argsort(-z, kind="stable")[:FINALISTS]
    terms = [Term("triple", tuple(int(f) for f in active[place[i]])) for i in best]
    return terms, z[best], len(z)


def _active(X: FloatArray, residual: FloatArray, terms: list[Term], z: FloatArray) -> IntArray:
    """Features worth trying three at a time: those in the best smaller terms, where d is large."""
    d = X.shape[1]
    best = np.zeros(d)
    if d > TRIPLE_FEATURES:
        for term, score in zip(terms, z, strict=True):
            for feature in term.features:
                best[feature] = max(best[feature], score)
    order: IntArray = np.sort(np.argsort(-best, kind="stable")[:TRIPLE_FEATURES])
    return order
