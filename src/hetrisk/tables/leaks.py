"""Columns that give the target away: copies of it, its logarithm, another unit, its summands.

A model with such a column is perfect on the training table and worthless anywhere else, where the
column is not known before the target is. Nothing is left out on suspicion: each leak is a record
with a sentence, for the terminal and the report to show before anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hetrisk.columns import BoolArray, FloatArray, IntArray
from hetrisk.tables.errors import quoted

FEWEST_ROWS = 20
FEWEST_VALUES = 5  # a function is no finding where the target has fewer distinct values
EXACT = 1e-4  # share of the variance a function may miss: rounding to a few digits
NEARLY = 0.005  # share of the variance that a column which nearly determines the target may miss
HARDLY_WRONG = 0.01  # the same for classes: share of the errors that the most frequent class makes
SUMMED = 1e-9  # share of the variance that parts which add up to the target may miss
MOST_SUMMED = 200
MOST_RANGES = 20  # that a column may cut the target into
FEWEST_IN_RANGE = 5  # rows of the second largest of them
MOSTLY_PRESENT = 0.9  # of the cells of a column that may be a part of the target
CLOCK = 0.999  # rank correlation with the rows beyond which a column tells the time
BORDER = 0.1  # of the rows of a range, that may lie on its border with the next
_SMALL = 1e-6  # relative to the scale of the target


@dataclass(frozen=True)
class Leak:
    """A column that gives the target away.

    Attributes
    ----------
    column : the column; several, joined by " + ", where they make the target up together.
    kind : "copy", "line", "log", "range", "parts" or "determines".
    sentence : what was seen, for a person to act on.
    """

    column: str
    kind: str
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def find_leaks(
    names: Sequence[str], features: Sequence[FloatArray], y: np.ndarray, target: str
) -> tuple[Leak, ...]:
    """Name the columns that are the target, a function of it, or nearly determine it.

    Parameters
    ----------
    names : the columns.
    features : (n, d_j) features of each, NaN where a value is missing: those rows do not count.
    y : (n,) the target: numbers, or classes.
    target : its name.
    """
    if y.dtype.kind not in "fiu":
        _, y = np.unique(y, return_inverse=True)
        judge: Callable[..., Leak | None] = _of_classes
    elif len(np.unique(y)) >= FEWEST_VALUES:
        judge = _of_numbers
    else:
        return ()
    leaks = []
    for name, values in zip(names, features, strict=True):
        seen: BoolArray = np.asarray(np.isfinite(values).all(axis=1))
        leak = judge(name, values[seen], y[seen], target) if seen.sum() >= FEWEST_ROWS else None
        if leak is not None:
            leaks.append(leak)
    if not leaks and judge is _of_numbers:
        leaks = _parts(names, features, y, target)
    return tuple(leaks)


def _of_numbers(name: str, features: FloatArray, y: FloatArray, target: str) -> Leak | None:
    if features.shape[1] == 1:
        x = features[:, 0]
        if np.array_equal(x, y):
            return Leak(name, "copy", _sentence(name, f"is a copy of the target {quoted(target)}"))
        function = _function(x, y)
        if function is not None:
            kind, words = function
            return Leak(name, kind, _sentence(name, words))
    if _cuts(features, y):
        words = f"says in which range the target {quoted(target)} lies"
        return Leak(name, "range", _sentence(name, words))
    if features.shape[1] == 1 and _runs(features[:, 0]) and not _runs(y):
        return None  # a clock: in a series the rows next to each other are alike
    # In ranks too: of a square with a long tail they say more than the values do.
    ranks = np.unique(y, return_inverse=True)[1].astype(np.float64)
    share = min(_unexplained(features, y / _size(y)), _unexplained(features, ranks))
    if share <= NEARLY:
        words = f"alone tells the target {quoted(target)} almost exactly (R2 = {1 - share:.4f})"
        return Leak(name, "determines", _sentence(name, words))
    return None


def _sentence(name: str, words: str) -> str:
    return f"{quoted(name)} {words}: drop it?"


def _function(x: FloatArray, y: FloatArray) -> tuple[str, str] | None:
    """Return the kind and the words for x as a function of y that fits best, if one fits."""
    missed, slope, start = _line(y, x)
    log = _line(np.log(y), x)[0] if y.min() > 0 else np.inf
    if min(missed, log) > EXACT:
        return None
    if missed <= max(10 * log, 1e-12):  # where the target varies little both fit
        return "line", _line_words(slope, start, x)
    return "log", "is the logarithm of the target"


def _line(x: FloatArray, y: FloatArray) -> tuple[float, float, float]:
    """Return the share of y's variance a line in x misses, its slope and its start."""
    wide, high = _size(x), _size(y)
    x, y = x / wide, y / high
    centred, about = x - x.mean(), y - y.mean()
    scale, total = float(centred @ centred), float(about @ about)
    if scale == 0:
        return np.inf, 0.0, 0.0
    slope = float(centred @ about) / scale
    missed = float(np.sum((about - slope * centred) ** 2) / total) if total > 0 else np.inf
    with np.errstate(over="ignore", under="ignore"):
        unit = float(np.float64(high) / wide)
    return missed, slope * unit, high * float(y.mean() - slope * x.mean())


def _size(x: FloatArray) -> float:
    """Return the largest value: divided by it, the squares of 1e200 and of 1e-200 are numbers."""
    return float(np.abs(x).max(initial=0.0)) or 1.0


def _line_words(slope: float, start: float, x: FloatArray) -> str:
    size = _size(x)
    small = _SMALL * size
    if abs(slope + 1) < _SMALL and abs(start - 1) < small:
        return "is one minus the target"
    if abs(start) < max(small, 1e-3 * size * float((x / size).std())):
        return f"is the target in another unit (times {slope:.6g})"
    return f"is the target in another unit (times {slope:.6g}, plus {start:.6g})"


def _unexplained(features: FloatArray, y: FloatArray) -> float:
    """Share of y's variance that the column's own value leaves, each row predicted by others.

    Rows with the same value predict each other; a row without company is predicted by the next
    values below and above.
    """
    means, counts, codes = _groups(features, y)
    ordered = features.shape[1] == 1
    alone = counts[codes] == 1
    if not ordered and alone.any():
        return 1.0
    with np.errstate(invalid="ignore", divide="ignore"):
        others = (means[codes] * counts[codes] - y) / (counts[codes] - 1)
    predicted = np.where(alone, _neighbours(means)[codes], others)
    return float(np.mean((y - predicted) ** 2) / np.var(y))


def _cuts(features: FloatArray, y: FloatArray) -> bool:
    """Whether the values of a column are ranges of the target: low below 5.5, high above."""
    _, counts, codes = _groups(features, y)
    if not 2 <= len(counts) <= MOST_RANGES or np.sort(counts)[-2] < FEWEST_IN_RANGE:
        return False
    low, high = np.full(len(counts), np.inf), np.full(len(counts), -np.inf)
    np.minimum.at(low, codes, y)
    np.maximum.at(high, codes, y)
    order = np.lexsort((high, low))
    below, above = order[:-1], order[1:]
    # Ranges may touch where a few rows are rounded to the border, not where most rows lie on it.
    top, bottom = (np.bincount(codes, weights=y == end[codes]) / counts for end in (high, low))
    touching = (high[below] == low[above]) & (np.maximum(top[below], bottom[above]) <= BORDER)
    return bool(((high[below] < low[above]) | touching).all())


def _runs(x: FloatArray) -> bool:
    """Whether values, mostly distinct, all but always rise, or fall, from row to row."""
    if len(np.unique(x)) < len(x) / 2:
        return False
    ranks = np.argsort(np.argsort(x, kind="stable"))
    return bool(abs(np.corrcoef(ranks, np.arange(len(x)))[0, 1]) > CLOCK)


def _groups(features: FloatArray, y: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
    key = (
        features @ np.arange(1, features.shape[1] + 1) if features.shape[1] > 1 else features[:, 0]
    )
    _, codes = np.unique(key, return_inverse=True)
    counts = np.bincount(codes)
    return np.bincount(codes, weights=y) / counts, counts, codes


def _neighbours(means: FloatArray) -> FloatArray:
    if len(means) < 2:
        return means
    below = np.concatenate([means[1:2], means[:-1]])
    above = np.concatenate([means[1:], means[-2:-1]])
    return (below + above) / 2


def _of_classes(name: str, features: FloatArray, y: IntArray, target: str) -> Leak | None:
    """Name a column whose value alone tells the class, each row by the others of its value."""
    key = (
        features @ np.arange(1, features.shape[1] + 1) if features.shape[1] > 1 else features[:, 0]
    )
    values, codes = np.unique(key, return_inverse=True)
    table = np.zeros((len(values), y.max() + 1))
    np.add.at(table, (codes, y), 1)
    base = 1 - np.bincount(y).max() / len(y)
    if base == 0:
        return None  # where the column has values there is one class: nothing to tell
    if len(values) == table.shape[1] and ((table > 0).sum(axis=0) == 1).all():
        words = f"says the same as the target {quoted(target)} in every row"
        return Leak(name, "copy", _sentence(name, words))
    guessed = _guesses(table, codes, y, ordered=features.shape[1] == 1)
    wrong = float(np.mean(guessed != y))
    if wrong <= HARDLY_WRONG * base:
        words = f"alone tells the target {quoted(target)} in {1 - wrong:.2%} of the rows"
        return Leak(name, "determines", _sentence(name, words))
    return None


def _guesses(table: FloatArray, codes: IntArray, y: IntArray, *, ordered: bool) -> IntArray:
    others = table[codes].copy()
    others[np.arange(len(y)), y] -= 1
    alone = others.sum(axis=1) == 0
    guessed = others.argmax(axis=1)
    if ordered and len(table) > 2:
        near = np.zeros_like(table)
        near[1:] += table[:-1]
        near[:-1] += table[1:]
        guessed[alone] = near[codes[alone]].argmax(axis=1)
    else:
        guessed[alone] = -1
    return guessed


def _standardised(x: FloatArray) -> FloatArray:
    """Return values by deviation from their mean; not finite where they are all alike."""
    with np.errstate(all="ignore"):
        x = x / np.abs(x).max(axis=0)  # see _size
        scaled: FloatArray = (x - x.mean(axis=0)) / np.where(
            np.ptp(x, axis=0) > 0, x.std(axis=0), 0
        )
    return scaled


def _parts(
    names: Sequence[str], samples: Sequence[FloatArray], y: FloatArray, target: str
) -> list[Leak]:
    """Columns of numbers that add up to the target exactly, though none gives it away alone."""
    # A column with many gaps would leave too few rows to judge the others by.
    single = [
        j
        for j, x in enumerate(samples)
        if x.shape[1] == 1 and np.isfinite(x).mean() >= MOSTLY_PRESENT
    ]
    if not 2 <= len(single) <= min(MOST_SUMMED, len(y) // 3):
        return []
    X = np.column_stack([samples[j][:, 0] for j in single])
    seen = np.isfinite(X).all(axis=1)
    if seen.sum() < max(FEWEST_ROWS, 3 * len(single)):
        return []
    Z, about = _standardised(X[seen]), _standardised(y[seen])
    if not (np.isfinite(Z).all() and np.isfinite(about).all()):  # one of them does not vary
        return []
    weights = np.linalg.lstsq(Z, about, rcond=None)[0]
    if np.mean((about - Z @ weights) ** 2) > SUMMED:
        return []
    parts = [names[single[j]] for j in np.flatnonzero(np.abs(weights) > _SMALL)]
    if len(parts) < 2:
        return []
    shown = " and ".join([", ".join(quoted(p) for p in parts[:-1]), quoted(parts[-1])])
    words = f"{shown} together make up the target {quoted(target)} exactly: drop them?"
    return [Leak(" + ".join(parts), "parts", words)]
