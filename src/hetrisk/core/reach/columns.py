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

# Columns up to which one leaves or enters at a time; of more, a share does.
SINGLY: Budget[int] = 60
SHARE: Budget[float] = 0.08  # of those in play
RIVALS: Budget[int] = 12  # sets that compete again in every resample


@dataclass(frozen=True)
class ColumnChoice:
    """A set of columns and what was considered on the way.

    Attributes
    ----------
    support : (d,) the set.
    rivals : (m, d) the best sets met, this one and the full set among them.
    met : (n, d) all sets met.
    """

    support: BoolArray
    rivals: BoolArray
    met: BoolArray


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
    rivals = search.best(n_rivals)
    rivals = np.unique(np.vstack([rivals, full[None], best[None]]), axis=0)
    return ColumnChoice(best, rivals, search.best(len(search.met)))


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
        values = SweptFit.of(environments, columns).with_more(reach, outside)
        order = np.argsort(values, kind="stable")[: _step(len(outside))]
        columns = _with(columns, np.concatenate([outside[i] for i in order]))
        path.append(columns)


class _Search:
    """Sets met so far with their expected errors."""

    def __init__(
        self, environments: Environments, reach: float, groups: IntArray, keep: BoolArray
    ) -> None:
        self.environments, self.reach, self.keep = environments, reach, keep
        kept = np.unique(groups[keep])
        self.members = {int(g): np.flatnonzero(groups == g) for g in np.unique(groups)}
        self.free = [g for g in self.members if g not in kept]
        self.met: dict[bytes, tuple[float, BoolArray]] = {}

    def note(self, columns: BoolArray, value: float | None = None) -> float:
        """Remember a set, and what it costs."""
        key = columns.tobytes()
        if key not in self.met:
            if value is None:
                value = fit_set(self.environments, columns).expected(self.reach)
            self.met[key] = (value, columns.copy())
        return self.met[key][0]

    def best(self, count: int) -> BoolArray:
        """(count, d) the sets with the least expected errors."""
        ranked = sorted(self.met.values(), key=lambda found: found[0])[:count]
        return np.array([columns for _, columns in ranked])

    def backward(self, start: BoolArray) -> None:
        """From a set, take out the group whose leaving costs least, until none is left."""
        columns, state = start.copy(), SweptFit.of(self.environments, start)
        self.note(columns)
        while True:
            inside = [g for g in self.free if columns[self.members[g]].all()]
            if not inside:
                return
            values = state.without(self.reach, [self.members[g] for g in inside])
            leaving = np.argsort(values, kind="stable")[: _step(len(inside))]
            state = state.dropped(np.concatenate([self.members[inside[i]] for i in leaving]))
            columns = state.columns
            self.note(columns, float(values[leaving[0]]) if len(leaving) == 1 else None)

    def forward(self, start: BoolArray) -> None:
        """From a set, take in the group whose coming helps most, until all are in."""
        columns, state = start.copy(), SweptFit.of(self.environments, start)
        self.note(columns)
        while True:
            outside = [g for g in self.free if not columns[self.members[g]].any()]
            if not outside:
                return
            values = state.with_more(self.reach, [self.members[g] for g in outside])
            coming = np.argsort(values, kind="stable")[: _step(int(columns.sum()))]
            state = state.extended(np.concatenate([self.members[outside[i]] for i in coming]))
            columns = state.columns
            self.note(columns, float(values[coming[0]]) if len(coming) == 1 else None)

    def nested(self, order: FloatArray) -> None:
        """Try the groups with the largest values, one more at a time."""
        size = {g: float(np.max(order[self.members[g]])) for g in self.free}
        columns = self.keep.copy()
        waiting = sorted(self.free, key=lambda g: -size[g])
        count = max(1, len(waiting) // SINGLY)
        while waiting:
            for g in waiting[:count]:
                columns[self.members[g]] = True
            waiting = waiting[count:]
            self.note(columns)

    def refined(self) -> BoolArray:
        """The best set met, improved by single steps until none helps."""
        value, best = min(self.met.values(), key=lambda found: found[0])
        while True:
            state = SweptFit.of(self.environments, best)
            inside = [g for g in self.free if best[self.members[g]].all()]
            outside = [g for g in self.free if not best[self.members[g]].any()]
            values = np.append(
                state.without(self.reach, [self.members[g] for g in inside]),
                state.with_more(self.reach, [self.members[g] for g in outside]),
            )
            if len(values) == 0:
                return best
            first = int(np.argmin(values))
            changed = best.copy()
            members = self.members[(inside + outside)[first]]
            changed[members] = ~changed[members]
            found = self.note(changed)
            if not found < value - EQUAL * abs(value):
                return best
            value, best = found, changed


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

    def without(self, reach: float, groups: list[IntArray]) -> FloatArray:
        """(m,) expected error when each group of columns leaves on its own."""
        if groups and max(map(len, groups)) == 1:
            return self._one_leaving(reach, 1 + np.concatenate(groups))
        return np.array([self._leaving(reach, 1 + members) for members in groups])

    def with_more(self, reach: float, groups: list[IntArray]) -> FloatArray:
        """(m,) expected error when each group of columns comes in on its own."""
        if groups and max(map(len, groups)) == 1:
            return self._one_coming(reach, 1 + np.concatenate(groups))
        return np.array([self._coming(reach, 1 + members) for members in groups])

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

    def _one_leaving(self, reach: float, members: IntArray) -> FloatArray:
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
        return self._all_expected(reach, risk, regret, len(self.chosen) - 1)

    def _one_coming(self, reach: float, members: IntArray) -> FloatArray:
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
        return self._all_expected(reach, risk, regret, len(self.chosen) + 1)

    def _leaving(self, reach: float, members: IntArray) -> float:
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
        return self._expected(reach, risk, gap, A, len(self.chosen) - len(at))

    def _coming(self, reach: float, members: IntArray) -> float:
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
        return self._expected(reach, risk, gap, A[1:, place[:, None], place], len(place))

    def _expected(
        self, reach: float, risk: FloatArray, gap: FloatArray, A: FloatArray, size: int
    ) -> float:
        regret = np.einsum("kit,kit->k", gap, A @ gap)
        return float(self._all_expected(reach, risk[:, None], regret[:, None], size)[0])

    def _all_expected(
        self, reach: float, risk: FloatArray, regret: FloatArray, size: int
    ) -> FloatArray:
        """(m,) expected errors from risks (K + 1, m) and regrets (K, m)."""
        beyond = np.maximum(regret - self.environments.noise(risk[1:], size), 0.0)
        worst = beyond.max(axis=0, initial=0.0)
        expected: FloatArray = np.maximum(risk[0], 0.0) + reach**2 * worst
        return expected


def _with(columns: BoolArray, members: IntArray) -> BoolArray:
    wider = columns.copy()
    wider[members] = True
    return wider
