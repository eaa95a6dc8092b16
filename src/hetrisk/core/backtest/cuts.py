"""Which rows are learned from and which are judged: cuts in time, and environments left out.

Rows fall into *cells*: a period (1 where there is no time) and a group of environments (1 where
there are none). A `Split` says which cells are learned from and which are judged; an *environment
left out* is a period, a site, or with both a group in a period. All of it depends on the values in
the columns alone, never on the order of rows or on a seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray

LEAST_ROWS = 20  # rows of an environment that can be judged: an error is then known to some 15 %
MOST_PERIODS: Budget[int] = 40  # cells are held for each, d^2 numbers a cell
MOST_SITES: Budget[int] = 200
# Groups of sites left out in turn: each model sees four fifths, as deployment's almost will.
FOLDS = 5
ROUNDING = 1e-9  # share by which sums of the same weights may differ
SHARES = (0.35, 0.5, 0.65, 0.8)  # of the periods, learned from before a cut


@dataclass(frozen=True)
class Periods:
    """Consecutive values of time, thin ones merged.

    Attributes
    ----------
    lower, upper : (P,) smallest and largest value of time in each period.
    time : (P,) mean time of the rows of each.
    """

    lower: FloatArray
    upper: FloatArray
    time: FloatArray

    def __len__(self) -> int:
        return len(self.upper)

    @property
    def step(self) -> float:
        """Mean distance of two neighbours."""
        return float((self.time[-1] - self.time[0]) / max(len(self) - 1, 1)) or 1.0

    def of(self, time: FloatArray) -> IntArray:
        """(n,) period of each row; those after the last belong to it, -1 where time is missing."""
        found = np.minimum(np.searchsorted(self.upper, time), len(self) - 1)
        return np.where(np.isnan(time), -1, found)

    def horizon(self, time: FloatArray) -> FloatArray:
        """(n,) periods after the last one; at least one, and one where time is missing."""
        ahead = (np.nan_to_num(time, nan=self.time[-1]) - self.time[-1]) / self.step
        horizon: FloatArray = np.maximum(ahead, 1.0)
        return horizon


def merge_periods(values: FloatArray, weight: FloatArray) -> Periods:
    """Merge distinct sorted values of time until each period can be judged.

    Values are taken from the first on until they hold ``LEAST_ROWS`` rows and a fair share of all;
    what is left at the end joins the last.
    """
    # A little less: sums of weights differ in their last digits with the order of rows.
    enough = max(LEAST_ROWS, weight.sum() / MOST_PERIODS) * (1.0 - ROUNDING)
    starts, mass = [0], 0.0
    for k, rows in enumerate(weight.tolist()):
        mass += rows
        if mass >= enough:
            starts.append(k + 1)
            mass = 0.0
    if len(starts) > 1:
        starts.pop()  # what is left at the end, or nothing, belongs to the last period
    first = np.array(starts)
    last = np.append(first[1:], len(values)) - 1
    moment, total = np.add.reduceat(weight * values, first), np.add.reduceat(weight, first)
    return Periods(values[first], values[last], moment / np.maximum(total, 1e-300))


@dataclass(frozen=True)
class Sites:
    """Environments without an order.

    Attributes
    ----------
    site : (L,) of each level, the site it is judged in: itself, or with other thin ones.
    fold : (S,) of each site, the group it is left out with.
    names : (S,) what to call each.
    """

    site: IntArray
    fold: IntArray
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.fold)

    @property
    def n_folds(self) -> int:
        """Groups left out in turn."""
        return int(self.fold.max()) + 1


def group_sites(names: list[str], weight: FloatArray, content: FloatArray) -> Sites:
    """Share levels out among folds of about as many rows, and merge thin ones within a fold.

    The largest first, each to the fold that is smallest so far; of equal ones first that whose
    ``content`` (L, m), means of what its rows hold, is least: names have no say.
    """
    told = [tuple(np.round(line, 9)) for line in content]
    # In shares of all, rounded: sums of weights differ in their last digits with the order of rows.
    share = np.round(weight / max(float(weight.sum()), 1e-300) / ROUNDING)
    order = sorted(range(len(names)), key=lambda k: (-share[k], *told[k], names[k]))
    n_folds = min(FOLDS, len(names))
    size, fold = np.zeros(n_folds), np.zeros(len(names), dtype=np.int64)
    alone = np.zeros(len(names), dtype=bool)
    for rank, level in enumerate(order):
        fold[level] = size.argmin()
        size[fold[level]] += share[level]
        alone[level] = weight[level] >= LEAST_ROWS * (1.0 - ROUNDING) and rank < MOST_SITES
    site = np.zeros(len(names), dtype=np.int64)
    of_site: list[int] = []
    called: list[str] = []
    # Sites are numbered by rank, not by name: what is summed over them is summed in one order.
    for level in (k for k in order if alone[k]):
        site[level] = len(of_site)
        of_site.append(int(fold[level]))
        called.append(names[level])
    for group in range(n_folds):
        thin = np.array([k for k in order if not alone[k] and fold[k] == group], dtype=np.int64)
        if len(thin):
            site[thin] = len(of_site)
            of_site.append(group)
            called.append(names[thin[0]] if len(thin) == 1 else f"{len(thin)} small ones")
    return Sites(site, np.array(of_site, dtype=np.int64), tuple(called))


@dataclass(frozen=True)
class Layout:
    """Which cell a row falls into, from its time and the code of its environment.

    Attributes
    ----------
    periods, sites : None without time, without environments.
    """

    periods: Periods | None
    sites: Sites | None

    @property
    def n_periods(self) -> int:
        """Periods; one without time."""
        return 1 if self.periods is None else len(self.periods)

    @property
    def n_groups(self) -> int:
        """Groups of environments in each period: sites if there is one, else folds of them."""
        if self.sites is None:
            return 1
        return len(self.sites) if self.n_periods == 1 else self.sites.n_folds

    @property
    def n_cells(self) -> int:
        """Periods times groups."""
        return self.n_periods * self.n_groups

    @property
    def period(self) -> IntArray:
        """(C,) period of each cell; the groups of one period are neighbours."""
        return np.repeat(np.arange(self.n_periods), self.n_groups)

    def cells(self, time: FloatArray, level: IntArray) -> IntArray:
        """(n,) cell of each row; -1 for those without a time or an environment."""
        period = np.zeros(len(time), dtype=np.int64)
        group = np.zeros(len(time), dtype=np.int64)
        missing = np.zeros(len(time), dtype=bool)
        if self.periods is not None:
            period = self.periods.of(time)
            missing |= period < 0
        if self.sites is not None:
            site = self.sites.site[np.maximum(level, 0)]
            group = site if self.n_periods == 1 else self.sites.fold[site]
            missing |= level < 0
        return np.where(missing, -1, period * self.n_groups + group)


@dataclass(frozen=True)
class Left:
    """An environment left out: the cells that hold its rows, and how it is called.

    Attributes
    ----------
    cells : (C,) which cells.
    environment : its number; the same one may be judged at several cuts.
    name : as the user calls it.
    horizon : periods after the last one learned from; NaN without time.
    known : with both time and environments, whether the sites were learned from.
    """

    cells: BoolArray
    environment: int
    name: str
    horizon: float = np.nan
    known: bool = False


@dataclass(frozen=True)
class Split:
    """One training: the cells learned from, the environments it is judged in, and where it ends."""

    train: BoolArray
    left: tuple[Left, ...]
    cut: str = ""


def plan(
    layout: Layout, weight: FloatArray, names: tuple[str, ...] = (), gap: int = 0
) -> tuple[Split, ...]:
    """All trainings of a backtest.

    Parameters
    ----------
    layout : of the cells.
    weight : (C,) rows in each.
    names : what to call each period.
    gap : periods between the last one learned from and the first one judged that are not used.
    """
    n, groups, sites = layout.n_periods, layout.n_groups, layout.sites
    if n == 1:
        return () if sites is None else _left_out(sites, weight)
    period, group = layout.period, np.tile(np.arange(groups), n)
    cuts = sorted({int(np.clip(round(s * n), 1, n - 1)) for s in SHARES})
    splits = []
    for cut in cuts:
        left = tuple(
            Left(period == p, p, names[p], float(p - cut + 1), known=sites is not None)
            for p in range(cut + gap, n)
            if weight[period == p].sum() > 0
        )
        splits.append(Split(period < cut, left, names[cut - 1]))
    cut = cuts[len(cuts) // 2]
    for g in range(groups) if groups > 1 else ():
        # Learn from the other groups before the cut, judge one after it: its periods are thin, and
        # judged together.
        later = (group == g) & (period >= cut + gap)
        rows = weight * later
        if rows.sum() >= LEAST_ROWS * (1.0 - ROUNDING):
            horizon = float((rows * (period - cut + 1)).sum() / rows.sum())
            elsewhere = Left(later, n + g, f"new sites, group {g + 1}", horizon)
            splits.append(Split((period < cut) & (group != g), (elsewhere,), names[cut - 1]))
    return tuple(s for s in splits if s.left)


def _left_out(sites: Sites, weight: FloatArray) -> tuple[Split, ...]:
    splits = []
    for fold in range(sites.n_folds):
        inside = sites.fold == fold
        left = tuple(
            Left(np.arange(len(sites)) == s, int(s), sites.names[s])
            for s in np.flatnonzero(inside & (weight > 0))
        )
        if left and (weight[~inside] > 0).any():
            splits.append(Split(~inside, left))
    return tuple(splits)
