"""What a column means: a number, a truth, a date, a category, or nothing a model should use.

Rules are tried in order and the first that recognises the column decides. Each is a function
from the cells to a `Column`, a `LeftOut` or None; the notes say what a reader of the result
needs to know.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hetrisk.columns import BoolArray, FloatArray
from hetrisk.columns.dates import COMPACT, DATE_FORMATS, forms_of
from hetrisk.columns.names import names_kinds, names_things, says_code
from hetrisk.tables.cells import Cells
from hetrisk.tables.columns import (
    OTHER,
    TRUE_WORDS,
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    Note,
    NumberColumn,
    TimeColumn,
)
from hetrisk.tables.errors import counted, figure, listed, quoted, shown
from hetrisk.tables.notation import clock

MOST_LEVELS = 20  # levels of a category with a feature of their own
RARE_SHARE = 0.01  # a level in fewer rows than this shares the feature of the rare ones
RARE_ROWS = 5
MISTYPED_SHARE = 0.05  # of the cells of a number column may be text, treated as missing
DISTINCT_SHARE = 0.5  # text with more distinct values than this is an identifier or free text
MOST_SPELLINGS = 8  # of two words: yes, Yes, YES, no, No, NO
_IDENTIFIER_NAME = re.compile(
    r"(^|[\W_])(id|ids|uuid|guid|index|key|row|row_?(id|name|nr|num|number)s?)([\W_]|$)", re.I
)
_IDENTIFIER_CAMEL = re.compile(r"[a-z](Id|ID)$")
# Nothing else is called so, not even where a person or a route has several rows.
_ALWAYS_IDENTIFIER = re.compile(r"(^|[\W_])(id|ids|uuid|guid)([\W_]|$)", re.I)
# Of rows: whatever a table of a dozen rows holds under such a name.
_ROW_NAME = re.compile(r"(^|[\W_])(id|uuid|guid|row|row_?(id|name|nr|num|number)s?)$", re.I)
# One row a year: it counts the rows, and is the time.
_YEAR_NAME = re.compile(r"(^|[\W_])(years?|yr|jahr|ann[eé]e|anno|año)([\W_]|$)", re.I)
FEWEST_IDENTIFIED = 20  # rows in which numbers that differ are no accident
FEWEST_CODES, MOST_CODES = 3, 50
SENTINELS = frozenset({98.0, 99.0, 998.0, 999.0, 9999.0, -9.0, -99.0, -999.0})
_LEADING_ZERO = re.compile(r"0[0-9]+")
# A column read as an unnamed index of a data frame written to CSV.
_UNNAMED = re.compile(r"(Unnamed: [0-9]+|)$")


@dataclass(frozen=True)
class LeftOut:
    """A column the model does not use.

    Attributes
    ----------
    name : the column.
    reason : why, as a clause.
    """

    name: str
    reason: str


Decision = tuple[Column | LeftOut, list[Note]]


def understand(cells: Cells, *, category: bool = False, named: bool = False) -> Decision:
    """Decide what a column means.

    Parameters
    ----------
    cells : the column.
    category : take it as a category whatever it looks like.
    named : the user asked for this column by name, so it is used unless it holds nothing: no
        looking like an identifier overrules that.
    """
    rules: list[Callable[[Cells], Decision | None]] = [_empty, _constant]
    if not category:
        rules += [_truth, _time, _date, _code, _number]
        if not named:
            rules.insert(rules.index(_date), _identifier)
    for rule in rules:
        decision = rule(cells)
        if decision is not None:
            return decision
    return _category(cells, forced=category or named)


def _empty(cells: Cells) -> Decision | None:
    if cells.missing.all():
        return LeftOut(cells.name, "every value is missing"), []
    return None


def _constant(cells: Cells) -> Decision | None:
    codes, levels = cells.levels()
    if len(levels) > 1:
        return None
    gaps = " where there is a value" if (codes < 0).any() else ""
    return LeftOut(cells.name, f"constant: {quoted(levels[0])} in every row{gaps}"), []


def _truth(cells: Cells) -> Decision | None:
    _, levels = cells.levels()
    if len(levels) > MOST_SPELLINGS:
        return None
    found = {level.lower() for level in levels}
    words = next((pair for pair in TRUE_WORDS if found == set(pair)), None)
    if words is None:
        return None
    values = BooleanColumn(cells.name, 0.0, (), words).read(cells)
    fill = float(np.nanmean(values) >= 0.5)
    true, false = (next(x for x in levels if x.lower() == word) for word in words)
    notes = [Note(cells.name, f"{quoted(true)} read as 1 and {quoted(false)} as 0")]
    column = BooleanColumn(cells.name, fill, (), words)
    return column, notes + _filled(cells, np.isnan(values), fill)


def _time(cells: Cells) -> Decision | None:
    _, levels = cells.levels()
    if not cells.is_text or np.isnan(clock(levels[0])):
        return None
    hours = cells.hours()
    if (np.isnan(hours) & ~cells.missing).any():
        return None
    fill = float(np.nanmedian(hours))
    day = np.nanmax(hours) < 24
    text = "times of day turned into hours since midnight" if day else "times turned into hours"
    notes = [Note(cells.name, text), *_filled(cells, np.isnan(hours), fill)]
    return TimeColumn(cells.name, fill), notes


def _identifier(cells: Cells) -> Decision | None:
    _, levels = cells.levels()
    present = int((~cells.missing).sum())
    values = cells.numbers()[~cells.missing]
    whole = bool(np.isfinite(values).all()) and bool((values == np.rint(values)).all())
    named = _IDENTIFIER_NAME.search(cells.name) or _IDENTIFIER_CAMEL.search(cells.name)
    distinct = len(levels) > DISTINCT_SHARE * present
    if present < FEWEST_IDENTIFIED:
        named, distinct = _ROW_NAME.search(cells.name), len(levels) == present
    words = cells.is_text and not np.isfinite(values).any()
    if (named or _UNNAMED.fullmatch(cells.name)) and distinct and (whole or words):
        return LeftOut(cells.name, "an identifier, by its name and its distinct values"), []
    if present < FEWEST_IDENTIFIED:
        return None
    always = _ALWAYS_IDENTIFIER.search(cells.name) or _IDENTIFIER_CAMEL.search(cells.name)
    if always and whole and len(levels) > MOST_LEVELS:
        rows = f"{counted(len(levels), 'different value')} in {counted(present, 'row')}"
        return LeftOut(cells.name, f"an identifier, by its name ({rows})"), []
    counted_rows = whole and len(levels) == present and _counts_rows(cells, values)
    if counted_rows and not _YEAR_NAME.search(cells.name):
        return LeftOut(cells.name, "an identifier: it counts the rows"), []
    return None


def _counts_rows(cells: Cells, values: FloatArray) -> bool:
    """Whether each value is the same step further than the last, for each row further down."""
    rows = np.arange(len(cells)) if cells.positions is None else cells.positions
    rows = rows[~cells.missing]
    step = (values[-1] - values[0]) / (rows[-1] - rows[0]) if rows[-1] != rows[0] else 0.0
    return bool(step != 0 and (values - values[0] == step * (rows - rows[0])).all())


def _date(cells: Cells) -> Decision | None:
    if cells.is_dates:
        return _as_date(cells, "ISO8601", "")
    _, levels = cells.levels()
    form = next(iter(forms_of(levels)), None)
    if form is None or (form != COMPACT and np.isfinite(cells.numbers()).any()):
        return None
    return _as_date(cells, form, f" ({DATE_FORMATS[form]})")


def _as_date(cells: Cells, form: str, words: str) -> Decision:
    days = cells.days(form)
    fill = float(np.nanmedian(days))
    notes = [Note(cells.name, f"dates{words} turned into days since 1970-01-01")]
    return DateColumn(cells.name, fill, (), form), notes + _filled(cells, np.isnan(days), fill)


def _code(cells: Cells) -> Decision | None:
    """Numbers that are names: postcodes, region codes, anything with leading zeros."""
    _, levels = cells.levels()
    zeros = cells.is_text and any(_LEADING_ZERO.fullmatch(level) for level in levels)
    digits = all(level.isdigit() for level in levels)
    if not digits or not (zeros or says_code(cells.name)):
        return None
    decision, notes = _category(cells)
    why = "leading zeros" if zeros else "its name"
    return decision, [Note(cells.name, f"numbers taken as categories because of {why}"), *notes]


def _number(cells: Cells) -> Decision | None:
    if cells.reading.trouble:
        return LeftOut(cells.name, cells.reading.trouble), []
    values = cells.numbers()
    unread = np.isnan(values) & ~cells.missing
    codes, levels = cells.levels()
    spells = cells.reading.notation.spells
    strange = sorted({levels[code] for code in np.unique(codes[unread])})
    if len(strange) == len(levels):
        return _too_large(cells) if all(spells(text) for text in strange) else None
    texts = [text for text in strange if not spells(text)]
    if texts:
        words = np.isin(codes, [levels.index(text) for text in texts])
        if words.sum() > MISTYPED_SHARE * (~cells.missing).sum():
            return None
    fill = float(np.nanmedian(values))
    if np.nanmin(values) == np.nanmax(values):
        return LeftOut(cells.name, f"constant: {figure(fill)} wherever it is a number"), []
    notes = _number_notes(cells, unread, strange) + _filled(cells, np.isnan(values), fill)
    return NumberColumn(cells.name, fill, tuple(texts), cells.reading.notation), notes


def _too_large(cells: Cells) -> Decision:
    return LeftOut(cells.name, "no value is a finite number below 1e100"), []


def _number_notes(cells: Cells, unread: BoolArray, strange: list[str]) -> list[Note]:
    notes = []
    if strange:
        text = f"{counted(int(unread.sum()), 'cell')} not a usable number ({listed(strange, 3)})"
        notes.append(Note(cells.name, f"{text} treated as missing"))
    _, levels = cells.levels()
    notes += [Note(cells.name, text) for text in cells.reading.notation.described(levels)]
    if looks_like_a_code(cells):
        notes.append(Note(cells.name, f"looks like a code: --category {shown(cells.name)}"))
    elif looks_like_an_identifier(cells):
        text = f"{len(levels):,} whole numbers that look like names: --drop {shown(cells.name)}"
        notes.append(Note(cells.name, text))
    return notes


def looks_like_a_code(cells: Cells) -> bool:
    """Whether a column of whole numbers mostly stands for words: its name, or a 99 among a few."""
    distinct = np.unique(cells.numbers()[~cells.missing])
    distinct = distinct[np.isfinite(distinct)]
    if not FEWEST_CODES <= len(distinct) <= MOST_CODES or (distinct != np.rint(distinct)).any():
        return False
    if names_kinds(cells.name):
        return True
    # 1, 2, 3, 9 is an ordinary count; 1, 2, 3, 99 has a value that means "unknown".
    ordinary = np.asarray([value for value in distinct if value not in SENTINELS])
    far = len(ordinary) < len(distinct) and len(ordinary) >= FEWEST_CODES
    return bool(far and np.abs(ordinary).max() <= MOST_CODES // 2)


def looks_like_an_identifier(cells: Cells) -> bool:
    """Whether whole numbers, too many to be categories, stand for persons or places."""
    if not names_things(cells.name):
        return False
    distinct = np.unique(cells.numbers()[~cells.missing])
    whole = (distinct == np.rint(distinct)).all()
    return bool(whole and len(distinct) > MOST_CODES and distinct[0] >= 0)


def _filled(cells: Cells, missing: BoolArray, fill: float) -> list[Note]:
    if not missing.any():
        return []
    text = f"{_missing(int(missing.sum()), len(cells))} replaced by {figure(fill)}"
    return [Note(cells.name, text)]


def _missing(count: int, rows: int) -> str:
    share = f"{count / rows:.1%}" if count >= 0.0005 * rows else "under 0.1%"
    return f"{counted(count, 'missing value')} ({share})"


def _category(cells: Cells, *, forced: bool = False) -> Decision:
    codes, levels = cells.levels()
    present = int((codes >= 0).sum())
    if not forced and len(levels) > MOST_LEVELS and len(levels) > DISTINCT_SHARE * present:
        reason = f"text with {counted(len(levels), 'different value')} in {counted(present, 'row')}"
        return LeftOut(cells.name, f"{reason}: an identifier or free text"), []
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    order = np.lexsort((np.asarray(levels), -counts))
    enough = max(RARE_ROWS, math.ceil(RARE_SHARE * len(codes)))
    kept = [i for i in order if counts[i] >= enough][: MOST_LEVELS + 1]
    if not kept:
        reason = f"no value in {enough:,} rows or more: nothing to learn from"
        return LeftOut(cells.name, reason), []
    lumped = len(levels) - len(kept)
    absent = present < len(codes)
    column = CategoryColumn(
        cells.name,
        reference=levels[kept[0]],
        levels=tuple(sorted(levels[i] for i in kept[1:])),
        other=lumped > 0,
        absent=absent,
    )
    return column, _category_notes(cells, column, lumped, len(codes) - present)


def _category_notes(cells: Cells, column: CategoryColumn, lumped: int, absent: int) -> list[Note]:
    notes = []
    if lumped:
        rare = counted(lumped, "rare category", "rare categories")
        alike = f"counted as {quoted(OTHER)}" if lumped == 1 else "counted as one"
        notes.append(Note(cells.name, f"{rare} {alike}"))
    if absent:
        text = f"{_missing(absent, len(cells))} kept as a category of their own"
        notes.append(Note(cells.name, text))
    return notes
