"""Which columns to use: the set S whose expected error E_k(S) at the reach k is least.

Several copies of one shortcut must leave together, and a cause may only be safe beside its
fellows, so sets are judged, never columns one by one. Candidates come from three paths: from all
columns backward and from none forward, each time by the step with the least E_k, and the columns
in the order in which they survive as directions are shrunk (`hetrisk.core.reach.directions`),
which sees blocks as a whole. The best set is then improved by single steps.

What a step costs is known without fitting anew (`hetrisk.core.reach.sweep`). Beyond some sixty
columns several leave or enter at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from hetrisk.core.numerics.floors import EQUAL
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.directions import direction_path
from hetrisk.core.reach.regret import Environments, expected_error, fit_set
from hetrisk.core.reach.set_errors import evaluate_path
from hetrisk.core.reach.sweep import Cost, Costs, SweptFit, cost_of

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
    # Backward finds what must leave together, forward what is safe alone; neither finds blocks,
    # which the order by directions does.
    search.backward(full)
    search.forward(keep.copy())
    for order in direction_path(environments):
        search.nested(order)
    best = search.refined()
    met, costs = search.ranked()
    # What competes in resamples must hold the full set, to say how often leaving pays at all.
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
        # Greedy from the chosen set up: the nested sets in between are candidates for a decision
        # that leaves out less, at nearly the same error.
        values = SweptFit.of(environments, columns).with_more(outside).expected(reach)
        order = np.argsort(values, kind="stable")[: _step(len(outside))]
        columns = _with(columns, np.concatenate([outside[i] for i in order]))
        path.append(columns)


class _Met(NamedTuple):
    """A set of columns, what it costs, and what that comes to at the reach."""

    value: float
    cost: Cost
    columns: BoolArray


_value = attrgetter("value")


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
        self.met: dict[bytes, _Met] = {}

    def note(self, columns: BoolArray, cost: Cost | None = None) -> float:
        """Remember a set and its cost; return what it comes to."""
        key = columns.tobytes()
        if key not in self.met:
            if cost is None:
                cost = cost_of(fit_set(self.environments, columns))
            value = float(expected_error(*cost[:3], self.reach))
            self.met[key] = _Met(value, cost, columns.copy())
        return self.met[key].value

    def ranked(self) -> tuple[BoolArray, Costs]:
        """All sets met, those with the least expected errors first, and their costs."""
        found = sorted(self.met.values(), key=_value)
        costs = Costs(*np.array([met.cost for met in found]).T)
        return np.array([met.columns for met in found]), costs

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
        # Nearby strengths shrink columns in the same order.
        if any(columns.tobytes() not in self.met for columns in path[1:]):
            costs = evaluate_path(self.environments, np.array(path[1:])).costs
            each = zip(*(part.tolist() for part in costs.parts), strict=True)
            for columns, cost in zip(path[1:], each, strict=True):
                self.note(columns, cost)

    def refined(self) -> BoolArray:
        """The best set met, improved by single steps until none helps."""
        value, _, best = min(self.met.values(), key=_value)
        while True:
            state = SweptFit.of(self.environments, best)
            inside, outside = self._groups(best), self._groups(~best)
            costs = Costs.concatenated([state.without(inside), state.with_more(outside)])
            if not inside + outside:
                return best
            step, changed = int(costs.expected(self.reach).argmin()), best.copy()
            members = (inside + outside)[step]
            changed[members] = ~changed[members]
            found = self.note(changed, cost_of(costs.some(step)))
            if not found < value - EQUAL * abs(value):
                return best
            value, best = found, changed


def _only(costs: Costs, chosen: IntArray) -> Cost | None:
    """Cost of the one step chosen; of several taken together it is not known."""
    if len(chosen) > 1:
        return None
    return cost_of(costs.some(int(chosen[0])))


def _step(size: int) -> int:
    return 1 if size <= SINGLY else max(1, int(SHARE * size))


def _with(columns: BoolArray, members: IntArray) -> BoolArray:
    wider = columns.copy()
    wider[members] = True
    return wider
