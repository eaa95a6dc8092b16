"""A mean that may bend: the columns, plus a few terms the rows ask for.

A search for environments must not take a curve for a shift. So the mean is given every chance to
bend first: steps, hinges and powers of a column, products of two (a slope that turns at a step of
another column among them) and of three columns, kinks |x_i +- x_j|, and products of what has been
chosen with anything else. Terms enter one by one (Friedman 1991, multivariate adaptive regression
splines, has the same plan), each only when its robust score is significant, corrected for the
number of candidates, so linear data stay linear. A step's place is then moved to where it explains
most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import MOST_LEVERAGE, OWN_SHARE, TINY
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows
from hetrisk.core.numerics.working import WorkingFit, working_fit
from hetrisk.core.sources.design import Single
from hetrisk.core.thresholds import THRESHOLDS

MOST_TERMS: Budget[int] = 16
# Quantiles at which one column may step or bend.
KNOTS: Budget[FloatArray] = np.linspace(0.1, 0.9, 9)
# Quantiles at which the slope of another column may turn.
TURNS: Budget[FloatArray] = np.linspace(0.1, 0.9, 5)
FINE: Budget[FloatArray] = np.linspace(0.03, 0.97, 60)  # quantiles a chosen knot may be moved to
FINALISTS: Budget[int] = 40  # candidates whose score is computed exactly
ACTIVE: Budget[int] = 40  # columns that products with steps, and of three, are sought among


@dataclass(frozen=True)
class Atom:
    """A function of one column, or the kink of two."""

    kind: str
    columns: tuple[int, ...]
    knot: float = 0.0

    def __call__(self, X: FloatArray) -> FloatArray:
        """(n,) values."""
        return SHAPES[self.kind](X, self.columns, self.knot)


@dataclass(frozen=True)
class Term:
    """A product of atoms."""

    atoms: tuple[Atom, ...]

    def __call__(self, X: FloatArray) -> FloatArray:
        """(n,) values."""
        value = self.atoms[0](X)
        for atom in self.atoms[1:]:
            value = value * atom(X)
        return value

    @property
    def columns(self) -> frozenset[int]:
        """Columns the term looks at."""
        return frozenset(column for atom in self.atoms for column in atom.columns)


def _clipped(X: FloatArray, j: int) -> FloatArray:
    # In powers and products: one far row must not make a term.
    return np.clip(X[:, j], -THRESHOLDS.far, THRESHOLDS.far)


Shape = Callable[[FloatArray, tuple[int, ...], float], FloatArray]
SHAPES: dict[str, Shape] = {
    "column": lambda X, c, knot: _clipped(X, c[0]),
    "step": lambda X, c, knot: (X[:, c[0]] > knot).astype(np.float64),
    "hinge": lambda X, c, knot: np.abs(X[:, c[0]] - knot),
    "square": lambda X, c, knot: _clipped(X, c[0]) ** 2,
    "cube": lambda X, c, knot: _clipped(X, c[0]) ** 3,
    "difference": lambda X, c, knot: np.abs(X[:, c[0]] - X[:, c[1]]),
    "sum": lambda X, c, knot: np.abs(X[:, c[0]] + X[:, c[1]]),
}
MOVABLE = ("step", "hinge")


def term_values(terms: tuple[Term, ...], X: FloatArray) -> FloatArray:
    """(n, q) values of the terms, zero columns where there are none."""
    if not terms:
        return np.empty((len(X), 0))
    return np.column_stack([term(X) for term in terms])


def two_valued(x: FloatArray) -> bool:
    """Whether a column holds two values only."""
    return bool(np.all((x == x.min(initial=np.inf)) | (x == x.max(initial=-np.inf))))


def choose_terms(rows: Rows, family: Family, groups: IntArray, level: float) -> tuple[Term, ...]:
    """Add terms to the linear fit one by one while one is significant.

    Each time the candidate that explains most enters, among those that are significant at
    ``level``, corrected for the number of candidates (Bonferroni), by their robust scores.
    ``groups`` keeps columns of one category apart: products within a group say nothing.
    """
    chosen: tuple[Term, ...] = ()
    if len(rows) < THRESHOLDS.rows_needed(rows.X.shape[1]):
        return chosen
    candidates = _Candidates(rows, family, groups)
    for _ in range(MOST_TERMS):
        fit = working_fit(rows, family, term_values(chosen, rows.X))
        found = _best_term(candidates, fit, chosen, level)
        if found is None:
            break
        chosen = (*chosen, _moved(found, rows.X, fit))
    return (*chosen, *_completed(chosen, rows.X))


def _completed(chosen: tuple[Term, ...], X: FloatArray) -> list[Term]:
    """Hinges at all knots for columns that bend more than once: a curve, not a kink or two."""
    alone = [term.atoms[0].columns[0] for term in chosen if len(term.columns) == 1]
    # Greedy knots sit where they helped first; with all of them the curve is a spline, fitted as a
    # whole.
    curved = [j for j in dict.fromkeys(alone) if alone.count(j) > 1]
    return [
        Term((Atom("hinge", (j,), float(knot)),))
        for j in curved
        for knot in np.unique(np.quantile(X[:, j], KNOTS))
    ]


Scored = tuple[list[Term], FloatArray, int]


class _Scored:
    """Columns (n, k) to be scored against many residuals, and their squares."""

    def __init__(self, values: FloatArray | Single) -> None:
        self.values: Single = np.ascontiguousarray(values, dtype=np.float32)
        self.squares: Single = self.values**2


class _Candidates:
    """The dictionary of terms over one table, scored against residuals by matrix products.

    In single precision: these scores only say which candidates are worth an exact one.
    """

    def __init__(self, rows: Rows, family: Family, groups: IntArray) -> None:
        self.X, self.groups = rows.X, groups
        d = self.X.shape[1]
        singles = [j for j in range(d) if not two_valued(self.X[:, j])]
        active = _active(rows, family)
        self.active = np.flatnonzero(active)
        pairs = [Atom("column", (j,)) for j in range(d)]
        for j in singles:
            if active[j]:
                knots = np.unique(np.quantile(self.X[:, j], TURNS))
                pairs += [Atom("step", (j,), float(k)) for k in knots]
        self.paired = pairs
        values = np.column_stack([atom(self.X) for atom in pairs])
        # Steps are centred, so that a product with one is not mostly the other factor again.
        values[:, d:] -= values[:, d:].mean(axis=0)
        self.pairs = _Scored(values)
        own = groups[[atom.columns[0] for atom in pairs]]
        self.left, self.right = np.nonzero(np.triu(own[:, None] != own[None, :], 1))
        self.alone, columns = self._alone(singles)
        self.alone_values = _Scored(
            _centred(np.column_stack([np.empty((len(self.X), 0)), *columns]))
        )
        clipped = np.clip(self.X[:, self.active], -THRESHOLDS.far, THRESHOLDS.far)
        self.clipped: Single = clipped.astype(np.float32)

    def _alone(self, singles: list[int]) -> tuple[list[Atom], list[FloatArray]]:
        """Curves of a column, and kinks: a maximum of two columns is a line and such a kink."""
        atoms = [atom for j in singles for atom in _curves(self.X[:, j], j)]
        values = [atom(self.X) for atom in atoms]
        for i in self.active[:-1]:
            others = [j for j in self.active if j > i and self.groups[j] != self.groups[i]]
            one, rest = self.X[:, [i]], self.X[:, others]
            atoms += [
                Atom(kind, (int(i), int(j))) for kind in ("difference", "sum") for j in others
            ]
            values.append(np.abs(np.hstack([one - rest, one + rest])))
        return atoms, values

    def scored(self, residual: FloatArray, chosen: tuple[Term, ...]) -> Iterator[Scored]:
        """Best terms of every kind, their scores, and how many candidates there were."""
        # Scores do not depend on the size of the residuals; squares of tiny ones would vanish.
        single = (residual / max(float(np.abs(residual).max()), TINY)).astype(np.float32)
        z = _pair_scores(single[:, None], self.alone_values)[0]
        yield _front(z, lambda i: Term((self.alone[i],)))
        # All products of two columns by two matrix products: none of them is ever laid out.
        z = _pair_scores(self.pairs.values * single[:, None], self.pairs)[self.left, self.right]
        yield _front(z, lambda i: Term((self.paired[self.left[i]], self.paired[self.right[i]])))
        yield self._triples(single)
        if chosen:
            # A term times anything else: products of four and more grow from
            # those of two and three.
            values = _centred(term_values(chosen, self.X)).astype(np.float32)
            z = _pair_scores(values * single[:, None], self.pairs).ravel()
            m = len(self.paired)
            yield _front(z, lambda i: Term((*chosen[i // m].atoms, self.paired[i % m])))

    def _triples(self, residual: Single) -> Scored:
        """Products of three columns, scored as matrix products of pairs with singles."""
        columns, clipped = self.active, self.clipped
        own = self.groups[columns]
        apart = own[:, None] != own[None, :]
        places: list[IntArray] = [np.empty((0, 3), dtype=np.int64)]
        scores: list[FloatArray] = [np.empty(0)]
        for a in range(len(columns) - 2):
            rest = clipped[:, a + 1 :]
            # x_a x_b against x_c: d^3 / 6 products cost d matrix products.
            z = _pair_scores((clipped[:, a] * residual)[:, None] * rest, _Scored(rest))
            b, c = np.triu_indices(len(z), 1)
            distinct = apart[a, a + 1 + b] & apart[a, a + 1 + c] & apart[a + 1 + b, a + 1 + c]
            b, c = b[distinct], c[distinct]
            places.append(np.column_stack([np.full(len(b), a), a + 1 + b, a + 1 + c]))
            scores.append(z[b, c])
        place = columns[np.concatenate(places)]
        return _front(
            np.concatenate(scores),
            lambda i: Term(tuple(Atom("column", (int(j),)) for j in place[i])),
        )


def _curves(x: FloatArray, j: int) -> list[Atom]:
    knots = np.unique(np.quantile(x, KNOTS))
    atoms = [Atom(kind, (j,), float(k)) for k in knots for kind in MOVABLE]
    return [*atoms, Atom("square", (j,)), Atom("cube", (j,))]


def _active(rows: Rows, family: Family) -> BoolArray:
    """(d,) columns that matter most to the mean or to the size of the residuals."""
    d = rows.X.shape[1]
    if d <= ACTIVE:
        return np.ones(d, dtype=bool)
    fit = working_fit(rows, family, np.empty((len(rows), 0)))
    # A product x_i x_j that is missing from the mean leaves x_i without a slope; it shows in how
    # far the residuals spread.
    size = np.abs(fit.residual) - np.abs(fit.residual).mean()
    relevance = [np.abs(fit.z[1:])]
    for column in (rows.X, np.abs(rows.X)):
        centred = _centred(column.copy())
        relevance.append(_score(size @ centred, size**2 @ centred**2))
    top = np.argsort(-np.max(relevance, axis=0), kind="stable")[:ACTIVE]
    active: BoolArray = np.isin(np.arange(d), top)
    return active


def _best_term(
    candidates: _Candidates, fit: WorkingFit, chosen: tuple[Term, ...], level: float
) -> Term | None:
    """The term that explains most, of those that are significant; None where none is."""
    parts = list(candidates.scored(fit.residual, chosen))
    # Two sided, and divided by all candidates, not by those scored exactly: choosing the front is
    # part of the search.
    threshold = -float(ndtri(level / (2 * max(sum(count for *_, count in parts), 1))))
    z = np.concatenate([scores for _, scores, _ in parts])
    terms = [term for names, _, _ in parts for term in names]
    # Scores so far ignore what the design explains of a candidate; the front is scored exactly.
    front = [terms[i] for i in np.argsort(-z, kind="stable")[:FINALISTS] if z[i] > threshold / 2]
    if not front:
        return None
    values = term_values(tuple(front), candidates.X)
    exact, size, identifiable = _residualised(fit, values)
    total = exact.T @ fit.residual
    entitled = identifiable & (_robust_score(fit, exact, size, total) > threshold)
    # Significance admits a term, what it explains decides.
    gain = np.where(entitled, total**2 / size, 0.0)
    best = int(np.argmax(gain))
    return front[best] if gain[best] > 0 else None


def _moved(term: Term, X: FloatArray, fit: WorkingFit) -> Term:
    """Move the knots of a term, one after the other, to where it explains most."""
    atoms = list(term.atoms)
    for place, atom in enumerate(atoms):
        if atom.kind not in MOVABLE:
            continue
        knots = np.unique(np.quantile(X[:, atom.columns[0]], FINE))
        moved = [Atom(atom.kind, atom.columns, float(k)) for k in knots]
        others = Term((*atoms[:place], *atoms[place + 1 :])) if len(atoms) > 1 else None
        # One knot at a time, the other factors of the product staying where they are.
        rest = 1.0 if others is None else others(X)[:, None]
        values = np.column_stack([m(X) for m in moved]) * rest
        exact, size, identifiable = _residualised(fit, values)
        gain = np.where(identifiable, (exact.T @ fit.residual) ** 2 / size, 0.0)
        atoms[place] = moved[int(np.argmax(gain))]
    return Term(tuple(atoms))


def _residualised(fit: WorkingFit, values: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Columns less what the design explains, their sizes, and whether much of them is left."""
    exact = fit.residualised(values)
    size = (fit.curvature[:, None] * exact**2).sum(axis=0)
    before = (fit.curvature[:, None] * _centred(values.copy()) ** 2).sum(axis=0)
    # A candidate that the design all but holds already has a score of noise over noise.
    identifiable = size > OWN_SHARE * before
    return exact, np.where(identifiable, size, 1.0), identifiable


def _robust_score(
    fit: WorkingFit, added: FloatArray, size: FloatArray, total: FloatArray
) -> FloatArray:
    """Score of each column as if it had entered, by the errors (HC3) of the residuals it leaves.

    The residuals before it enters still hold what it explains: in a product of three that is a
    few large rows, and against those it would seem no more than their chance.
    """
    curved = fit.curvature[:, None] * added
    # The new column is orthogonal to the design, so its leverage adds to that of the others.
    leverage = fit.leverage[:, None] + curved * added / size
    residual = fit.residual[:, None] - curved * (total / size)
    residual /= 1.0 - np.minimum(leverage, MOST_LEVERAGE)
    return _score(total, (added**2 * residual**2).sum(axis=0))


def _centred(values: FloatArray) -> FloatArray:
    values -= values.mean(axis=0)
    return values


def _score(total: FloatArray, square: FloatArray) -> FloatArray:
    score: FloatArray = np.abs(total) / np.sqrt(np.maximum(square, TINY))
    return score


def _pair_scores(left: Single, right: _Scored) -> FloatArray:
    """(a, b) scores of all products of a column on the right with one on the left.

    Columns on the left are multiplied by the residual.
    """
    total, square = left.T @ right.values, (left**2).T @ right.squares
    return _score(total.astype(np.float64), square.astype(np.float64))


def _front(z: FloatArray, name: Callable[[int], Term]) -> Scored:
    best = np.argsort(-z, kind="stable")[:FINALISTS]
    return [name(int(i)) for i in best], z[best], len(z)
