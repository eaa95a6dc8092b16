"""What a page says of the rows a model was fitted to: columns, differences, what may hurt later.

All of it is computed once, from a bounded number of rows, and none of them is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hetrisk.core.drift.columns import ROOM
from hetrisk.core.drift.rise import misses
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.result import ColumnEvidence
from hetrisk.report.labels import brief, number, percent, precise
from hetrisk.report.summary import ColumnLine, Difference, Quality
from hetrisk.tables.errors import counted

WEIGHED_ROWS = 400  # for the weight of a column: two digits are enough
SLOPE_COLUMNS = 10  # whose slopes are compared between environments
LEAST_ROWS = 20  # of an environment that is described
GROUPS = 10  # of rows of like prediction
MOST_SENTENCES = 3
NOTABLE_SHIFT, NOTABLE_SHARE, NOTABLE_Z = 0.5, 0.15, 4.0
RARE, HEAVY = 0.01, 0.5  # a column all but constant, and a weight that may hurt (in SD of y)
OUTGROWN = 0.2  # of later rows, beyond the range of earlier ones


@dataclass(frozen=True)
class Sample:
    """Rows a model was fitted to, as it sees them.

    Attributes
    ----------
    X : (n, d) numbers.
    observed : (n, d) the same, NaN where the table has no value.
    names, groups : (d,) names of the numbers, and the column of the table each comes from.
    y : (n, K) outcomes: numbers, or one column a class of zeros and ones.
    predicted : (n, K).
    predict : the model: from numbers (m, d) of some of the rows, and which these are.
    classes : names of the K classes; () for numbers.
    environment : (n,) name of each row's environment (its period, its site); None without.
    time : (n,) numbers; None without.
    """

    X: FloatArray
    observed: FloatArray
    names: tuple[str, ...]
    groups: tuple[str, ...]
    y: FloatArray
    predicted: FloatArray
    predict: Callable[[FloatArray, IntArray], FloatArray]
    classes: tuple[str, ...] = ()
    environment: np.ndarray | None = None
    time: FloatArray | None = None

    @property
    def spread(self) -> float:
        """Standard deviation of the outcomes, over all outputs."""
        return float(np.sqrt(self.y.var(axis=0).sum())) or 1.0

    def members(self) -> dict[str, list[int]]:
        """Numbers that come from each column of the table."""
        found: dict[str, list[int]] = {}
        for j, group in enumerate(self.groups):
            found.setdefault(group, []).append(j)
        return found


# --- columns --------------------------------------------------------------------------------


def column_lines(s: Sample, evidence: Sequence[ColumnEvidence] = ()) -> tuple[ColumnLine, ...]:
    """Return the columns of the table, those that move predictions most first."""
    known = {line.column: line for line in evidence}
    lines = []
    weights = column_weights(s)
    for group, members in s.members().items():
        found = [known[s.names[j]] for j in members if s.names[j] in known]
        found = found or ([known[group]] if group in known else [])
        first = min(found, key=lambda line: line.p_slope, default=None)
        slopes = first.coefficients if first is not None and len(members) == 1 else ()
        lines.append(
            ColumnLine(
                group,
                weights[group],
                math.nan if first is None else first.p_slope,
                (min(slopes), max(slopes)) if slopes else (math.nan, math.nan),
                "" if first is None else first.reason,
            )
        )
    return tuple(sorted(lines, key=lambda line: -line.weight))


def column_weights(s: Sample) -> dict[str, float]:
    """How far predictions move when a column's values change places, in SD of the target.

    Every value gives way to the one half the rows further in the order of the column: the same
    whatever the order of rows.
    """
    order = np.lexsort((s.y[:, 0], s.predicted[:, 0]))
    rows = np.sort(order[np.linspace(0, len(order) - 1, min(len(order), WEIGHED_ROWS)).astype(int)])
    part, weights = s.X[rows], {}
    for group, members in s.members().items():
        own = part[:, members]
        ranks = np.lexsort(own.T)
        exchanged = np.empty_like(own)
        exchanged[ranks] = own[np.roll(ranks, len(ranks) // 2)]
        if np.array_equal(exchanged, own, equal_nan=True):
            weights[group] = 0.0
            continue
        changed = part.copy()
        changed[:, members] = exchanged
        moved = s.predict(changed, rows) - s.predicted[rows]
        weights[group] = float(np.sqrt(np.nanmean(np.sum(moved**2, axis=1)) / 2)) / s.spread
    return weights


# --- what differs between environments --------------------------------------------------------


def differences(s: Sample, target: str, lines: Sequence[ColumnLine]) -> tuple[Difference, ...]:
    """Return what is different in each environment, the most different first."""
    if s.environment is None:
        return ()
    top = {line.name for line in lines[:SLOPE_COLUMNS] if line.weight > 0}
    slopes = [j for j, group in enumerate(s.groups) if group in top][: 2 * SLOPE_COLUMNS]
    residual = _residual(s, slopes)
    found = []
    for place in dict.fromkeys(s.environment.tolist()):
        inside = s.environment == place
        if not LEAST_ROWS <= inside.sum() < len(inside) - 1:
            continue
        said = sorted(
            [*_shifts(s, inside, target), *_slopes(s, inside, slopes, residual)], reverse=True
        )
        if said:
            strength = sum(size for size, _ in said[:MOST_SENTENCES])
            sentences = tuple(sentence for _, sentence in said[:MOST_SENTENCES])
            found.append((strength, Difference(str(place), int(inside.sum()), sentences)))
    return tuple(d for _, d in sorted(found, key=lambda pair: -pair[0]))


def _residual(s: Sample, columns: list[int]) -> FloatArray:
    """What least squares on all rows leaves of the first output: slopes there are zero."""
    outcome = s.y[:, -1]
    Z = np.column_stack([np.ones(len(outcome)), np.nan_to_num(s.X[:, columns])])
    residual: FloatArray = outcome - Z @ np.linalg.lstsq(Z, outcome, rcond=None)[0]
    return residual


Said = list[tuple[float, str]]


def _shifts(s: Sample, inside: BoolArray, target: str) -> Said:
    """The target, and columns, that are higher or lower there; of several classes one."""
    outcomes = [
        _shift(name, y, inside) for name, y in zip(s.classes or (target,), s.y.T, strict=True)
    ]
    columns = [_shift(name, x, inside) for name, x in zip(s.names, s.observed.T, strict=True)]
    return [*sorted(filter(None, outcomes))[-1:], *filter(None, columns)]


def _shift(name: str, x: FloatArray, inside: BoolArray) -> tuple[float, str] | None:
    known = ~np.isnan(x)
    mine, others = x[inside & known], x[~inside & known]
    if not len(mine) or not len(others):
        return None
    here, there, sd = float(mine.mean()), float(others.mean()), float(others.std())
    if set(np.unique(x[known]).tolist()) <= {0.0, 1.0}:
        if abs(here - there) < NOTABLE_SHARE:
            return None
        text = f"{percent(here)} of rows (elsewhere {percent(there)})"
        return 2 * abs(here - there), f"{brief(name, 40)} in {text}"
    if not sd > 0 or abs(here - there) < NOTABLE_SHIFT * sd:
        return None
    text = f"{precise(here, sd)} (elsewhere {precise(there, sd)})"
    return abs(here - there) / sd, f"mean {brief(name, 40)} {text}"


def _slopes(s: Sample, inside: BoolArray, columns: list[int], residual: FloatArray) -> Said:
    if inside.sum() < 3 * (len(columns) + 1) or not columns:
        return []
    X = np.nan_to_num(s.X[inside][:, columns])
    line = misses(X, residual[inside, None], X.mean(axis=0))
    said: Said = []
    for k, j in enumerate(columns, start=1):
        slope, error = float(line.line[k, 0]), float(line.error[k, 0])
        size = abs(slope) * float(s.X[:, j].std()) / s.spread
        if error > 0 and abs(slope) > NOTABLE_Z * error and size > 0.1:
            sign = "more" if slope > 0 else "less"
            what = f"a unit of {brief(s.names[j], 40)} is worth {number(abs(slope))} {sign}"
            said.append((size, f"{what} than on average"))
    return said


# --- what may hurt later ----------------------------------------------------------------------


def cautions(s: Sample, lines: Sequence[ColumnLine]) -> tuple[str, ...]:
    """Return what is better said before it hurts."""
    return (*_all_but_constant(s), *_outgrown(s, {line.name: line.weight for line in lines}))


def _all_but_constant(s: Sample) -> list[str]:
    said = []
    for members in s.members().values():
        j, name = members[0], s.names[members[0]]
        if len(members) > 1:
            continue  # a level of a category is no column: few rows are what it has
        values, counts = np.unique(s.X[:, j], return_counts=True)
        usual = values[counts.argmax()]
        rare = np.flatnonzero(s.X[:, j] != usual)
        if not 0 < len(rare) <= max(3.0, RARE * len(s.X)):
            continue
        changed = s.X[rare]
        changed[:, j] = usual
        moved = s.predict(changed, rare) - s.predicted[rare]
        size = float(np.sqrt(np.max(np.sum(moved**2, axis=1)))) / s.spread
        if size >= HEAVY:
            said.append(
                f"{brief(name, 60)} is {number(float(usual))} in all but "
                f"{counted(len(rare), 'row')}, yet moves predictions by {number(size, 2)} "
                "standard deviations: learn without it unless you know why."
            )
    return said[:MOST_SENTENCES]


def _outgrown(s: Sample, weight: dict[str, float]) -> list[str]:
    """Columns whose later values leave the range of earlier ones."""
    if s.time is None:
        return []
    known = ~np.isnan(s.time)
    early, late = (s.time <= np.quantile(s.time[known], q) for q in (0.5, 0.75))
    late = known & ~late
    found = []
    for j, name in enumerate(s.names):
        before, after = s.observed[early & known, j], s.observed[late, j]
        before, after = before[~np.isnan(before)], after[~np.isnan(after)]
        if len(before) < LEAST_ROWS or not len(after) or weight.get(s.groups[j], 0.0) < 0.05:
            continue
        low, high = before.min(), before.max()
        room = ROOM * (high - low)
        share = float(np.mean((after < low - room) | (after > high + room)))
        if share >= OUTGROWN:
            found.append((share, name))
    return [
        f"{brief(name, 60)} leaves its range: {percent(share)} of the last quarter lie beyond the "
        "first half; predictions go further than what was learned."
        for share, name in sorted(found, reverse=True)[:MOST_SENTENCES]
    ]


# --- outcomes against predictions -------------------------------------------------------------


def quality(s: Sample) -> Quality | None:
    """Return outcomes against predictions, in groups of like prediction."""
    k = int(s.y.mean(axis=0).argmin()) if len(s.classes) > 2 else s.y.shape[1] - 1
    p, y = s.predicted[:, k], s.y[:, k]
    if len(y) < 2 * GROUPS:
        return None
    parts = [part for part in np.array_split(np.argsort(p, kind="stable"), GROUPS) if len(part)]
    if s.classes:
        ends = [_share_interval(float(y[part].mean()), len(part)) for part in parts]
    else:
        ends = [tuple(np.quantile(y[part], (0.1, 0.9)).tolist()) for part in parts]
    return Quality(
        outcome=s.classes[k] if s.classes else "",
        predicted=tuple(float(p[part].mean()) for part in parts),
        observed=tuple(float(y[part].mean()) for part in parts),
        low=tuple(low for low, _ in ends),
        high=tuple(high for _, high in ends),
        count=tuple(len(part) for part in parts),
        held_out=False,
    )


def _share_interval(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(middle - half, 0.0), min(middle + half, 1.0)
