"""Which columns to use: the set S whose expected error E_k(S) at the reach k is least.

Several copies of one shortcut must leave together, and a cause may only be safe beside its
fellows, so sets are judged, never columns one by one. Candidates come from three paths: from all
columns backward and from none forward, each time by the step with the least E_k, and the columns
in the order in which they survive as directions are shrunk (`hetrisk.core.reach.directions`),
which sees blocks as a whole. The best set is then improved by single steps.

Taking a column out of a least squares fit, or into it, changes the inverse of its Gram matrix by
a product of two vectors, so a step costs O(K d^2) for each candidate and no system is solved
anew. Beyond some sixty columns several leave or enter at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.floors import EQUAL, NEARLY_SINGULAR
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.numerics.thresholds import Budget
from hetrisk.core.reach.directions import direction_path
from hetrisk.core.reach.regret import Environments, fit_set
from hetrisk.core.reach.sets import evaluate_path

# Columns up to which one leaves or enters at a time; of more, a share does.
SINGLY: Budget[int] = 60
SHARE: Budget[float] = 0.08  # of those in play
RIVALS: Budget[int] = 12  # sets that compete again in every resample


@dataclass(frozen=True)
class Costs:
    """Of m sets of columns: the risk (m,), and the largest regret beyond chance (m,)."""

    risk: FloatArray
    worst: FloatArray

    def expected(self, reach: float) -> FloatArray:
        """(m,) E_k of each set."""
        expected: FloatArray = self.risk + reach**2 * self.worst
        return expected


@dataclass(frozen=True)
class ColumnChoice:
    """A set of columns and what was considered on the way.

    Attributes
    ----------
    support : (d,) the set.
    rivals : (m, d) the best sets met, this one and the full set among them.
    met, costs : (n, d) all sets met, the best first, and what they cost.
    """

    support: BoolArray
    rivals: BoolArray
    met: BoolArray
    costs: Costs


def choose_columns(
    environments: Environments,
    reach: float,
    groups: IntArray,
    keep: BoolArray,
    n_rivals: int = RIVALS,
) -> ColumnChoice:
    """Minimise E_k(S) over sets of columns.

    Parameters
    ----------
    environments : moments of the environments.
    reach : k.
    groups : (d,) columns of one group leave together.
    keep : (d,) columns that never leave.
    n_rivals : how many of the best sets to remember.
    """
    search = _Search(environments, reach, groups, keep)
    full = np.ones(len(groups), dtype=bool)
    search.backward(full)
    search.forward(keep.copy())
    for order in direction_path(environments):
        search.nested(order)
    best = search.refined()
    met, costs = search.ranked()
    rivals = np.unique(np.vstack([met[:n_rivals], full[None], best[None]]), axis=0)
    return ColumnChoice(best, rivals, met, costs)


def take_back_path(
    environments: Environments, reach: float, groups: IntArray, support: BoolArray
) -> BoolArray:
    """(m, d) nested sets from ``support`` to all columns, each time the group that costs least."""
    columns, path = support.copy(), [support.copy()]
    members = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    while True:
        outside = [m for m in members if not columns[m].all()]
        if not outside:
            return np.array(path)
        values = SweptFit.of(environments, columns).with_more(outside).expected(reach)
        order = np.argsort(values, kind="stable")[: _step(len(outside))]
        columns = _with(columns, np.concatenate([outside[i] for i in order]))
        path.append(columns)


class _Search:
    """Sets met so far with their expected errors."""

    def __init__(
        self, environments: Environments, reach: float, groups: IntArray, keep: BoolArray
    ) -> None:
        self.environments, self.reach, self.keep = environments, reach, keep
        free = np.setdiff1d(groups, groups[keep])
        self.free = [np.flatnonzero(groups == g) for g in free]
        # A group is in a set, or not, with all its columns.
        self.first = np.array([members[0] for members in self.free], dtype=np.int64)
        self.met: dict[bytes, tuple[float, float, BoolArray]] = {}

    def note(self, columns: BoolArray, cost: tuple[float, float] | None = None) -> float:
        """Remember a set and its cost, risk and worst regret; return what it comes to."""
        key = columns.tobytes()
        if key not in self.met:
            if cost is None:
                fits = fit_set(self.environments, columns)
                cost = float(fits.risk), fits.worst
            self.met[key] = (*cost, columns.copy())
        return self._value(self.met[key])

    def _value(self, found: tuple[float, float, BoolArray]) -> float:
        return found[0] + self.reach**2 * found[1]

    def ranked(self) -> tuple[BoolArray, Costs]:
        """All sets met, those with the least expected errors first, and their costs."""
        risk, worst, sets = zip(*sorted(self.met.values(), key=self._value), strict=True)
        return np.array(sets), Costs(np.array(risk), np.array(worst))

    def _groups(self, columns: BoolArray) -> list[IntArray]:
        """Free groups among some columns."""
        return [self.free[i] for i in np.flatnonzero(columns[self.first])]

    def backward(self, start: BoolArray) -> None:
        """From a set, take out the group whose leaving costs least, until none is left."""
        columns, state = start.copy(), SweptFit.of(self.environments, start)
        self.note(columns)
        while True:
            inside = self._groups(columns)
            if not inside:
                return
            costs = state.without(inside)
            leaving = np.argsort(costs.expected(self.reach), kind="stable")[: _step(len(inside))]
            state = state.dropped(np.concatenate([inside[i] for i in leaving]))
            columns = state.columns
            self.note(columns, _only(costs, leaving))

    def forward(self, start: BoolArray) -> None:
        """From a set, take in the group whose coming helps most, until all are in."""
        columns, state = start.copy(), SweptFit.of(self.environments, start)
        self.note(columns)
        while True:
            outside = self._groups(~columns)
            if not outside:
                return
            costs = state.with_more(outside)
            count = _step(int(columns.sum()))
            coming = np.argsort(costs.expected(self.reach), kind="stable")[:count]
            state = state.extended(np.concatenate([outside[i] for i in coming]))
            columns = state.columns
            self.note(columns, _only(costs, coming))

    def nested(self, order: FloatArray) -> None:
        """Try the groups with the largest values, one more at a time."""
        size = [-float(np.max(order[members])) for members in self.free]
        waiting = [self.free[i] for i in np.argsort(size, kind="stable")]
        count = max(1, len(waiting) // SINGLY)
        path = [self.keep]
        for start in range(0, len(waiting), count):
            path.append(_with(path[-1], np.concatenate(waiting[start : start + count])))
        if len(path) > 1:
            found = evaluate_path(self.environments, np.array(path[1:]))
            for columns, *cost in zip(path[1:], found.risk, found.worst, strict=True):
                self.note(columns, (float(cost[0]), float(cost[1])))

    def refined(self) -> BoolArray:
        """The best set met, improved by single steps until none helps."""
        first = min(self.met.values(), key=self._value)
        value, best = self._value(first), first[2]
        while True:
            state = SweptFit.of(self.environments, best)
            inside, outside = self._groups(best), self._groups(~best)
            sides = (state.without(inside), state.with_more(outside))
            values = np.concatenate([costs.expected(self.reach) for costs in sides])
            if len(values) == 0:
                return best
            changed = best.copy()
            members = (inside + outside)[int(np.argmin(values))]
            changed[members] = ~changed[members]
            found = self.note(changed)
            if not found < value - EQUAL * abs(value):
                return best
            value, best = found, changed


def _only(costs: Costs, chosen: IntArray) -> tuple[float, float] | None:
    """Cost of the one step chosen; of several taken together it is not known."""
    if len(chosen) > 1:
        return None
    return float(costs.risk[chosen[0]]), float(costs.worst[chosen[0]])


def _step(size: int) -> int:
    return 1 if size <= SINGLY else max(1, int(SHARE * size))


@dataclass(frozen=True)
class SweptFit:
    """Least squares on a set of columns, ready to lose or gain some.

    Attributes
    ----------
    environments : their moments.
    chosen : (s,) positions of the constant and the columns of the set.
    inverse : (K + 1, s, s) of the Gram matrices; all rows first.
    coef : (K + 1, s, t).
    risk : (K + 1,) squared errors of the fits.
    """

    environments: Environments
    chosen: IntArray
    inverse: FloatArray
    coef: FloatArray
    risk: FloatArray

    @classmethod
    def of(cls, environments: Environments, columns: BoolArray) -> SweptFit:
        """Fit a set from scratch."""
        A, b, c = environments.stacked
        chosen = np.flatnonzero(np.append(True, columns))
        inverse: FloatArray = np.linalg.inv(A[:, chosen][:, :, chosen]).astype(np.float64)
        coef = inverse @ b[:, chosen]
        risk = c - np.einsum("kit,kit->k", coef, b[:, chosen])
        return cls(environments, chosen, inverse, coef, risk)

    def without(self, groups: list[IntArray]) -> Costs:
        """Costs of the m sets from which one of the groups of columns has left."""
        if groups and max(map(len, groups)) == 1:
            return self._one_leaving(1 + np.concatenate(groups))
        return self._side_by_side([self._leaving(1 + members) for members in groups])

    def with_more(self, groups: list[IntArray]) -> Costs:
        """Costs of the m sets into which one of the groups of columns has come."""
        if groups and max(map(len, groups)) == 1:
            return self._one_coming(1 + np.concatenate(groups))
        return self._side_by_side([self._coming(1 + members) for members in groups])

    def dropped(self, members: IntArray) -> SweptFit:
        """The fit without some columns."""
        at = np.searchsorted(self.chosen, 1 + members)
        rest = np.delete(np.arange(len(self.chosen)), at)
        half = np.linalg.solve(self.inverse[:, at][:, :, at], self.inverse[:, at][:, :, rest])
        inverse = self.inverse[:, rest][:, :, rest] - self.inverse[:, rest][:, :, at] @ half
        return self._of(self.chosen[rest], inverse)

    def extended(self, members: IntArray) -> SweptFit:
        """The fit with more columns."""
        return SweptFit.of(self.environments, _with(self.columns, members))

    @property
    def columns(self) -> BoolArray:
        """(d,) the set."""
        columns = np.zeros(self.environments.n_columns, dtype=bool)
        columns[self.chosen[1:] - 1] = True
        return columns

    def _of(self, chosen: IntArray, inverse: FloatArray) -> SweptFit:
        _, b, c = self.environments.stacked
        coef = inverse @ b[:, chosen]
        risk = c - np.einsum("kit,kit->k", coef, b[:, chosen])
        return SweptFit(self.environments, chosen, inverse, coef, risk)

    def _one_leaving(self, members: IntArray) -> Costs:
        """As `_leaving`, for every column at once.

        Without column j a fit loses u_j = P e_j coef_j / P_jj, so the gap between the pooled fit
        and that of e changes by u_j of the one less u_j of the other; A_e P_e is the identity.
        """
        at = np.searchsorted(self.chosen, members)
        A = self.environments.stacked[0][1:, self.chosen[:, None], self.chosen]
        P0, gap = self.inverse[0], self.coef[0] - self.coef[1:]
        own = self.coef[:, at]
        diagonal = np.einsum("kii->ki", self.inverse)[:, at]
        multiplier = own / diagonal[..., None]
        risk = self.risk[:, None] + (own * multiplier).sum(axis=2)
        pooled, each = multiplier[:1], multiplier[1:]
        slope = A @ gap
        linear = pooled * (P0 @ slope)[:, at] - each * gap[:, at]
        spread = np.einsum("kij,ij->kj", A @ P0[:, at], P0[:, at])
        square = (
            spread[..., None] * pooled**2
            - 2.0 * pooled * each * diagonal[0, :, None]
            + diagonal[1:, :, None] * each**2
        )
        regret = np.einsum("kit,kit->k", gap, slope)[:, None] + (square - 2.0 * linear).sum(axis=2)
        return self._costs(risk, regret, len(self.chosen) - 1)

    def _one_coming(self, members: IntArray) -> Costs:
        """As `_coming`, for every column at once."""
        A, b, _ = self.environments.stacked
        inside = A[1:, self.chosen[:, None], self.chosen]
        cross = A[:, self.chosen[:, None], members]
        moved = self.inverse @ cross
        own = A[:, members, members]
        schur = np.maximum(own - (cross * moved).sum(axis=1), NEARLY_SINGULAR * own)
        regret = np.zeros((len(A) - 1, len(members)))
        risk = np.repeat(self.risk[:, None], len(members), axis=1)
        for t in range(b.shape[2]):
            right = b[:, members, t] - np.einsum("ksm,ks->km", cross, self.coef[:, :, t])
            added = right / schur
            risk -= added * right
            shift = moved * added[:, None]
            gap = (self.coef[0] - self.coef[1:])[:, :, t, None] - (shift[0] - shift[1:])
            new = added[0] - added[1:]
            regret += ((inside @ gap) * gap).sum(axis=1)
            regret += 2.0 * new * (cross[1:] * gap).sum(axis=1) + new**2 * own[1:]
        return self._costs(risk, regret, len(self.chosen) + 1)

    def _leaving(self, members: IntArray) -> Costs:
        """Project the optimum on the sets without ``members``, in the metric of its curvature."""
        at = np.searchsorted(self.chosen, members)
        P = self.inverse[:, at][:, :, at]
        own = self.coef[:, at]
        multiplier = np.linalg.solve(P, own)
        coef = self.coef - self.inverse[:, :, at] @ multiplier
        risk = self.risk + np.einsum("kit,kit->k", own, multiplier)
        A = self.environments.stacked[0][1:, self.chosen[:, None], self.chosen]
        gap = coef[:1] - coef[1:]
        gap[:, at] = 0.0
        return self._of_gap(risk, gap, A, len(self.chosen) - len(at))

    def _coming(self, members: IntArray) -> Costs:
        """Solve for the new coefficients first (Schur complement), then correct the others."""
        A, b, _ = self.environments.stacked
        cross = A[:, self.chosen[:, None], members]
        moved = self.inverse @ cross
        schur = A[:, members[:, None], members] - np.swapaxes(cross, 1, 2) @ moved
        right = b[:, members] - np.swapaxes(cross, 1, 2) @ self.coef
        added = np.linalg.solve(schur, right)
        risk = self.risk - np.einsum("kit,kit->k", added, right)
        coef = np.concatenate([self.coef - moved @ added, added], axis=1)
        place = np.append(self.chosen, members)
        gap = coef[:1] - coef[1:]
        return self._of_gap(risk, gap, A[1:, place[:, None], place], len(place))

    def _of_gap(self, risk: FloatArray, gap: FloatArray, A: FloatArray, size: int) -> Costs:
        regret = (gap * (A @ gap)).sum(axis=(1, 2))
        return self._costs(risk[:, None], regret[:, None], size)

    def _costs(self, risk: FloatArray, regret: FloatArray, size: int) -> Costs:
        """Costs from risks (K + 1, m) and regrets (K, m) of sets of one size."""
        beyond = regret - self.environments.noise(risk[1:], size)
        return Costs(np.maximum(risk[0], 0.0), beyond.max(axis=0, initial=0.0))

    def _side_by_side(self, each: list[Costs]) -> Costs:
        risk, worst = ([getattr(c, name) for c in each] for name in ("risk", "worst"))
        return Costs(np.concatenate([[], *risk]), np.concatenate([[], *worst]))


def _with(columns: BoolArray, members: IntArray) -> BoolArray:
    wider = columns.copy()
    wider[members] = True
    return wider
