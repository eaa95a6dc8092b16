"""What a column means: a number, a truth, a date, a category, or nothing a model should use.

Rules are tried in order and the first that recognises the column decides. Each is a function
from the cells to a `Column`, a `LeftOut` or None; the notes say what a reader of the result
needs to know.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.rows import BoolArray
from hetrisk.tables.cells import Cells, TextCells
from hetrisk.tables.columns import (
    TRUE_WORDS,
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    Note,
    NumberColumn,
    is_number,
    truth,
)
from hetrisk.tables.errors import counted, listed, quoted

MOST_LEVELS = 20  # levels of a category with a feature of their own
RARE_SHARE = 0.01  # a level in fewer rows than this shares the feature of the rare ones
RARE_ROWS = 5
MISTYPED_SHARE = 0.05  # of the cells of a number column may be text, treated as missing
DISTINCT_SHARE = 0.5  # text with more distinct values than this is an identifier or free text
LONGEST_DATE = 40
FEWEST_DATE_DIGITS = 5  # a day, a month by name, a year
DATE_FORMATS = {
    "ISO8601": "year-month-day",
    "%m/%d/%Y": "month/day/year",
    "%d/%m/%Y": "day/month/year",
    "%d.%m.%Y": "day.month.year",
    "%Y/%m/%d": "year/month/day",
    "%d-%m-%Y": "day-month-year",
    "%d %b %Y": "day month year",
    "%d-%b-%Y": "day-month-year",
    "%b %d, %Y": "month day, year",
    "%m/%d/%Y %H:%M": "month/day/year hour:minute",
    "%d/%m/%Y %H:%M": "day/month/year hour:minute",
    "%d.%m.%Y %H:%M": "day.month.year hour:minute",
    "%m/%d/%Y %H:%M:%S": "month/day/year hour:minute:second",
    "%d/%m/%Y %H:%M:%S": "day/month/year hour:minute:second",
}
_IDENTIFIER_NAME = re.compile(r"(^|[\W_])(id|ids|uuid|guid|index|key|rowid|row)([\W_]|$)", re.I)
_IDENTIFIER_CAMEL = re.compile(r"[a-z](Id|ID)$")
_CODE_NAME = re.compile(r"(^|[\W_])(zip|zipcode|postcode|postal|code)([\W_]|$)", re.I)
_LEADING_ZERO = re.compile(r"0[0-9]+")
_COMPACT_DATE = re.compile(r"(19|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])")
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


def understand(cells: Cells, *, category: bool = False) -> Decision:
    """Decide what a column means.

    Parameters
    ----------
    cells : the column.
    category : take it as a category whatever it looks like.
    """
    rules: list[Callable[[Cells], Decision | None]] = [_empty, _constant]
    if not category:
        rules += [_truth, _identifier, _date, _code, _number]
    for rule in rules:
        decision = rule(cells)
        if decision is not None:
            return decision
    return _category(cells, forced=category)


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
    words = {level.lower() for level in levels}
    if not any(words == {yes, no} for yes, no in TRUE_WORDS.items()):
        return None
    codes, _ = cells.levels()
    values = np.append([truth(level) for level in levels], np.nan)[codes]
    fill = float(np.nanmean(values) >= 0.5)
    notes = [Note(cells.name, f"{listed(levels)} read as 1 for true and 0 for false")]
    return BooleanColumn(cells.name, fill), notes + _filled(cells, np.isnan(values), fill)


def _identifier(cells: Cells) -> Decision | None:
    _, levels = cells.levels()
    present = int((~cells.missing).sum())
    if present < 20:
        return None
    values = cells.numbers()[~cells.missing]
    whole = bool(np.isfinite(values).all()) and bool((values == np.rint(values)).all())
    named = _IDENTIFIER_NAME.search(cells.name) or _IDENTIFIER_CAMEL.search(cells.name)
    distinct = len(levels) > DISTINCT_SHARE * present
    words = cells.is_text and not np.isfinite(values).any()
    if (named or _UNNAMED.fullmatch(cells.name)) and distinct and (whole or words):
        return LeftOut(cells.name, "an identifier, by its name and its distinct values"), []
    if whole and len(levels) == present and (np.diff(values) == values[1] - values[0]).all():
        return LeftOut(cells.name, "an identifier: it counts the rows"), []
    return None


def _date(cells: Cells) -> Decision | None:
    if cells.is_dates:
        return _as_date(cells, "ISO8601", "")
    _, levels = cells.levels()
    if all(_COMPACT_DATE.fullmatch(level) for level in levels):
        form = "%Y%m%d"
        if not (np.isnan(cells.days(form)) & ~cells.missing).any():
            return _as_date(cells, form, " (yearmonthday)")
    if not cells.is_text or not _looks_dated(levels[0]) or np.isfinite(cells.numbers()).any():
        return None
    for form, words in DATE_FORMATS.items():
        if not (np.isnan(cells.days(form)) & ~cells.missing).any():
            return _as_date(cells, form, f" ({words})")
    return None


def _looks_dated(text: str) -> bool:
    """Whether the text could be a date at all: trying every format on every value takes time."""
    return len(text) <= LONGEST_DATE and sum(c.isdigit() for c in text) >= FEWEST_DATE_DIGITS


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
    if not digits or not (zeros or _CODE_NAME.search(cells.name)):
        return None
    decision, notes = _category(cells)
    why = "leading zeros" if zeros else "its name"
    return decision, [Note(cells.name, f"numbers taken as categories because of {why}"), *notes]


def _number(cells: Cells) -> Decision | None:
    values = cells.numbers()
    unread = np.isnan(values) & ~cells.missing
    codes, levels = cells.levels()
    strange = sorted({levels[code] for code in np.unique(codes[unread])})
    if len(strange) == len(levels):
        return _too_large(cells) if all(is_number(text) for text in strange) else None
    texts = [text for text in strange if not is_number(text)]
    if texts:
        words = np.isin(codes, [levels.index(text) for text in texts])
        if words.sum() > MISTYPED_SHARE * (~cells.missing).sum():
            return None
    fill = float(np.nanmedian(values))
    if np.nanmin(values) == np.nanmax(values):
        return LeftOut(cells.name, f"constant: {fill:.6g} wherever it is a number"), []
    notes = _number_notes(cells, unread, strange) + _filled(cells, np.isnan(values), fill)
    return NumberColumn(cells.name, fill, tuple(texts)), notes


def _too_large(cells: Cells) -> Decision:
    return LeftOut(cells.name, "no value is a finite number below 1e100"), []


def _number_notes(cells: Cells, unread: BoolArray, strange: list[str]) -> list[Note]:
    notes = []
    if strange:
        text = f"{counted(int(unread.sum()), 'cell')} not a usable number ({listed(strange, 3)})"
        notes.append(Note(cells.name, f"{text} treated as missing"))
    if isinstance(cells, TextCells) and cells.has_decimal_comma():
        notes.append(Note(cells.name, "commas read as decimal points"))
    return notes


def _filled(cells: Cells, missing: BoolArray, fill: float) -> list[Note]:
    if not missing.any():
        return []
    share = missing.mean()
    text = f"{counted(int(missing.sum()), 'missing value')} ({share:.1%}) replaced by {fill:.6g}"
    return [Note(cells.name, text)]


def _category(cells: Cells, *, forced: bool = False) -> Decision:
    codes, levels = cells.levels()
    present = int((codes >= 0).sum())
    if not forced and len(levels) > MOST_LEVELS and len(levels) > DISTINCT_SHARE * present:
        reason = f"text with {counted(len(levels), 'different value')} in {counted(present, 'row')}"
        return LeftOut(cells.name, f"{reason}: an identifier or free text"), []
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    order = np.lexsort((np.asarray(levels), -counts))
    frequent = [i for i in order if counts[i] >= max(RARE_ROWS, RARE_SHARE * len(codes))]
    kept = frequent[: MOST_LEVELS + 1]
    if not kept:
        reason = f"no value in {RARE_ROWS} rows or more: nothing to learn from"
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
        text = f"{counted(lumped, 'rare category', 'rare categories')} counted as one"
        notes.append(Note(cells.name, text))
    if absent:
        text = f"{counted(absent, 'missing value')} ({absent / len(cells):.1%})"
        notes.append(Note(cells.name, f"{text} kept as a category of their own"))
    return notes
