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

from hetrisk.columns import BoolArray, FloatArray
from hetrisk.columns.dates import COMPACT, DATE_FORMATS, date_form
from hetrisk.tables import remedies
from hetrisk.tables.category import OTHER, CategoryColumn, digest
from hetrisk.tables.cells import CATEGORY, DATE, NUMBER, TEXT, TRUTH, Cells
from hetrisk.tables.columns import (
    TRUE_WORDS,
    BooleanColumn,
    ClockColumn,
    Column,
    DateColumn,
    Note,
    NumberColumn,
)
from hetrisk.tables.errors import TableError, counted, figure, listed, quoted
from hetrisk.tables.notation import clock
from hetrisk.tables.remedies import Remedy

FEWEST_LEVEL_ROWS = 5  # a level in fewer rows shares a column with the other rare ones
LONGEST_LEVEL = 1_000  # characters of a level: it names a column
MOST_RARE = 10_000  # rare levels that are told from those never seen
FEWEST_GAPS = 20  # missing values, and others, from which on it is worth a column which are missing
FEW_LEVELS = 20  # text with no more distinct values is a category, however few its rows
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
_CODE_NAME = re.compile(r"(^|[\W_])(zip|zipcode|postcode|postal|code)([\W_]|$)", re.I)
# Whole numbers under such a name mostly stand for words, in an order that means nothing.
_LIKELY_CODE = re.compile(
    r"(^|[\W_])(mode|type|kind|class|category|cat|group|grp|cluster|species|brand|make|model|"
    r"region|state|country|county|district|ward|site|sector|industry|ind|sic|naics|occupation|"
    r"occ|race|ethnicity|religion|marital|status|method|treatment|arm|cohort|channel|segment|"
    r"dept|department|shop|store|batch)([\W_0-9]|$)",
    re.I,
)
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
    remedy : what to say to use it all the same; the clause ends with it.
    """

    name: str
    reason: str
    remedy: Remedy | None = None

    def __str__(self) -> str:
        return f"{self.reason} {self.remedy.python}" if self.remedy else self.reason

    @property
    def in_flags(self) -> str:
        """The reason with the remedy of the command line."""
        return f"{self.reason} {self.remedy.flag}" if self.remedy else self.reason


Decision = tuple[Column | LeftOut, list[Note]]
Rule = Callable[[Cells], Decision | None]


def understand(
    cells: Cells,
    *,
    category: bool = False,
    number: bool = False,
    use: bool = False,
    dayfirst: bool | None = None,
) -> Decision:
    """Decide what a column means.

    Parameters
    ----------
    cells : the column; what its type declares is never overruled by how it looks.
    category, number : take it as that whatever it looks like.
    use : the user asked for this column by name, so it is used unless it holds nothing: no
        looking like an identifier overrules that.
    dayfirst : whether the day of a date comes before its month, where both may.
    """
    identifier: list[Rule] = [] if use or number else [_identifier]
    date: Rule = lambda cells: _date(cells, dayfirst)  # noqa: E731
    rules: dict[str, list[Rule]] = {
        CATEGORY: [],
        NUMBER: [*identifier, _number],
        TRUTH: [_declared_truth],
        DATE: [date],
        TEXT: [*identifier, _time, date],
        "": [_truth, _time, *identifier, date, _code, _number],
    }
    chosen = [] if category else [_forced_number] if number else rules[cells.declared]
    for rule in [_empty, _constant, *chosen]:
        decision = rule(cells)
        if decision is not None:
            return decision
    return _category(cells, forced=category or use or cells.declared == CATEGORY)


def _empty(cells: Cells) -> Decision | None:
    if cells.missing.all():
        return LeftOut(cells.name, "every value is missing"), []
    return None


def _constant(cells: Cells) -> Decision | None:
    gaps = " where there is a value" if cells.missing.any() else ""
    if cells.declared == NUMBER:  # its levels are looked at only where need be: they may be many
        values = cells.numbers()
        if np.isnan(values).all():
            return _too_large(cells)
        low, high = np.nanmin(values), np.nanmax(values)
        only = figure(float(low)) if low == high else ""
    else:
        _, levels = cells.levels()
        only = quoted(levels[0]) if len(levels) == 1 else ""
    return (LeftOut(cells.name, f"constant: {only} in every row{gaps}"), []) if only else None


def _truth(cells: Cells) -> Decision | None:
    _, levels = cells.levels()
    if len(levels) > MOST_SPELLINGS:
        return None
    found = {level.lower() for level in levels}
    words = next((pair for pair in TRUE_WORDS if found == set(pair)), None)
    if words is None:
        return None
    true, false = (next(x for x in levels if x.lower() == word) for word in words)
    notes = [Note(cells.name, f"{quoted(true)} read as 1 and {quoted(false)} as 0")]
    return _as_truth(cells, words, notes)


def _declared_truth(cells: Cells) -> Decision:
    return _as_truth(cells, ("true", "false"), [])


def _as_truth(cells: Cells, words: tuple[str, str], notes: list[Note]) -> Decision:
    values = BooleanColumn(cells.name, 0.0, (), False, words).read(cells)
    fill = float(np.nanmean(values) >= 0.5)
    gaps, filled = _gaps(cells, np.isnan(values), fill)
    return BooleanColumn(cells.name, fill, (), gaps, words), notes + filled


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
    gaps, filled = _gaps(cells, np.isnan(hours), fill)
    return ClockColumn(cells.name, fill, (), gaps), [Note(cells.name, text), *filled]


def _identifier(cells: Cells) -> Decision | None:
    """Names of rows: by what the column is called, or because it counts them, in whatever order."""
    named = _IDENTIFIER_NAME.search(cells.name) or _IDENTIFIER_CAMEL.search(cells.name)
    values = cells.numbers()[~cells.missing]
    whole = bool(np.isfinite(values).all()) and bool((values == np.rint(values)).all())
    words = cells.is_text and not np.isfinite(values).any()
    if not (whole or words):
        return None
    present, distinct = len(values), len(cells.levels()[1]) if words else len(cells.distinct)
    many = distinct > DISTINCT_SHARE * present
    if present < FEWEST_IDENTIFIED:
        named, many = _ROW_NAME.search(cells.name), distinct == present
    if (named or _UNNAMED.fullmatch(cells.name)) and many:
        return LeftOut(cells.name, "an identifier, by its name and its distinct values"), []
    if present < FEWEST_IDENTIFIED or not whole:
        return None
    always = _ALWAYS_IDENTIFIER.search(cells.name) or _IDENTIFIER_CAMEL.search(cells.name)
    if always and distinct > FEW_LEVELS:
        rows = f"{counted(distinct, 'different value')} in {counted(present, 'row')}"
        return LeftOut(cells.name, f"an identifier, by its name ({rows})"), []
    steps = np.diff(cells.distinct)
    if distinct == present and (steps == steps[0]).all() and not _YEAR_NAME.search(cells.name):
        return LeftOut(cells.name, "an identifier: it counts the rows"), []
    return None


def _date(cells: Cells, dayfirst: bool | None) -> Decision | None:
    if cells.is_dates:
        return _as_date(cells, "ISO8601", "")
    _, levels = cells.levels()
    form, trouble = date_form(levels, dayfirst)
    if trouble:
        return LeftOut(cells.name, trouble, remedies.DAYFIRST if dayfirst is None else None), []
    if not form or (form != COMPACT and np.isfinite(cells.numbers()).any()):
        return None
    return _as_date(cells, form, f" ({DATE_FORMATS[form]})")


def _as_date(cells: Cells, form: str, words: str) -> Decision:
    days = cells.days(form)
    fill = float(np.nanmedian(days))
    gaps, filled = _gaps(cells, np.isnan(days), fill)
    notes = [Note(cells.name, f"dates{words} turned into days since 1970-01-01")]
    return DateColumn(cells.name, fill, (), gaps, form), notes + filled


def _code(cells: Cells) -> Decision | None:
    """Numbers that are names: postcodes, region codes, anything with leading zeros."""
    _, levels = cells.levels()
    zeros = cells.is_text and any(_LEADING_ZERO.fullmatch(level) for level in levels)
    digits = all(level.isdigit() for level in levels)
    if not digits or not (zeros or _CODE_NAME.search(cells.name)):
        return None
    decision, notes = _category(cells)
    why = "leading zeros" if zeros else "its name"
    text = f"numbers taken as categories because of {why}; otherwise say"
    return decision, [Note(cells.name, text, remedies.number(cells.name)), *notes]


def _number(cells: Cells) -> Decision | None:
    if cells.reading.trouble:
        remedy = remedies.DECIMAL if cells.reading.open else None
        return LeftOut(cells.name, cells.reading.trouble, remedy), []
    values = cells.numbers()
    unread = np.isnan(values) & ~cells.missing
    strange, texts = _strange(cells, unread)
    if np.isnan(values).all():
        return None if texts else _too_large(cells)
    codes, levels = cells.levels() if texts else (np.empty(0), [])
    words = np.isin(codes, [levels.index(text) for text in texts])
    if words.sum() > MISTYPED_SHARE * (~cells.missing).sum():
        return None
    return _as_number(cells, values, strange, texts)


def _forced_number(cells: Cells) -> Decision:
    values = cells.numbers()
    if cells.reading.trouble:
        decision = _number(cells)
        assert decision is not None  # trouble is always said
        return decision
    strange, texts = _strange(cells, np.isnan(values) & ~cells.missing)
    if np.isnan(values).all():
        raise TableError(
            f"column {quoted(cells.name)} cannot be taken as numbers: {quoted(strange[0])} is none"
        )
    return _as_number(cells, values, strange, texts)


def _strange(cells: Cells, unread: BoolArray) -> tuple[list[str], list[str]]:
    """Return the values that are no usable number, and those of them that are none at all."""
    if not unread.any():
        return [], []
    codes, levels = cells.levels()
    strange = sorted({levels[code] for code in np.unique(codes[unread])})
    return strange, [text for text in strange if not cells.reading.notation.spells(text)]


def _as_number(cells: Cells, values: FloatArray, strange: list[str], texts: list[str]) -> Decision:
    missing = np.isnan(values)
    fill = float(np.nanmedian(values))
    if np.nanmin(values) == np.nanmax(values):
        return LeftOut(cells.name, f"constant: {figure(fill)} wherever it is a number"), []
    gaps, filled = _gaps(cells, missing, fill)
    notes = _number_notes(cells, int((missing & ~cells.missing).sum()), strange) + filled
    return NumberColumn(cells.name, fill, tuple(texts), gaps, cells.reading.notation), notes


def _too_large(cells: Cells) -> Decision:
    return LeftOut(cells.name, "no value is a finite number below 1e100"), []


def _number_notes(cells: Cells, unread: int, strange: list[str]) -> list[Note]:
    notes = []
    if strange:
        text = f"{counted(unread, 'cell')} not a usable number ({listed(strange, 3)})"
        notes.append(Note(cells.name, f"{text} treated as missing"))
    if cells.is_text:
        _, levels = cells.levels()
        notes += [Note(cells.name, text) for text in cells.reading.notation.described(levels)]
    if looks_like_a_code(cells):
        notes.append(Note(cells.name, "looks like a code:", remedies.category(cells.name)))
    return notes


def looks_like_a_code(cells: Cells) -> bool:
    """Whether a column of whole numbers mostly stands for words: its name, or a 99 among a few."""
    distinct = cells.distinct
    if not FEWEST_CODES <= len(distinct) <= MOST_CODES or (distinct != np.rint(distinct)).any():
        return False
    if _LIKELY_CODE.search(cells.name):
        return True
    # 1, 2, 3, 9 is an ordinary count; 1, 2, 3, 99 has a value that means "unknown".
    ordinary = np.asarray([value for value in distinct if value not in SENTINELS])
    far = len(ordinary) < len(distinct) and len(ordinary) >= FEWEST_CODES
    return bool(far and np.abs(ordinary).max() <= MOST_CODES // 2)


def _gaps(cells: Cells, missing: BoolArray, fill: float) -> tuple[bool, list[Note]]:
    """Whether missing values get a column of their own, and what is said of them."""
    count = int(missing.sum())
    if not count:
        return False, []
    gaps = min(count, len(missing) - count) >= FEWEST_GAPS
    text = f"{_missing(count, len(cells))} replaced by {figure(fill)}"
    return gaps, [Note(cells.name, f"{text}, and marked in a column" if gaps else text)]


def _missing(count: int, rows: int) -> str:
    share = f"{count / rows:.1%}" if count >= 0.0005 * rows else "under 0.1%"
    return f"{counted(count, 'missing value')} ({share})"


def _category(cells: Cells, *, forced: bool = False) -> Decision:
    codes, levels = cells.levels()
    present = int((codes >= 0).sum())
    if not forced and len(levels) > FEW_LEVELS and len(levels) > DISTINCT_SHARE * present:
        reason = f"text with {counted(len(levels), 'different value')} in {counted(present, 'row')}"
        reason += ": an identifier or free text"
        if np.isfinite(cells.numbers()).mean() > DISTINCT_SHARE:
            return LeftOut(cells.name, f"{reason}, or else", remedies.number(cells.name)), []
        return LeftOut(cells.name, reason), []
    longest = max(map(len, levels))
    if longest > LONGEST_LEVEL:
        return LeftOut(cells.name, f"text of up to {longest:,} characters: free text"), []
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    order = sorted(range(len(levels)), key=levels.__getitem__)
    kept = [i for i in order if counts[i] >= FEWEST_LEVEL_ROWS]
    rare = [levels[i] for i in order if counts[i] < FEWEST_LEVEL_ROWS]
    if not kept:
        reason = f"no value in {FEWEST_LEVEL_ROWS} rows or more: nothing to learn from"
        return LeftOut(cells.name, reason), []
    gone = len(codes) - present
    # Missing values that are as few as a rare level are counted among the rare ones or the mean.
    absent = gone >= FEWEST_LEVEL_ROWS
    rows = [*counts[kept], *([counts.sum() - counts[kept].sum()] if rare else []), *[gone] * absent]
    shares = np.asarray(rows, dtype=np.float64) / sum(rows)
    if len(shares) < 2:
        return LeftOut(cells.name, f"constant: {quoted(levels[kept[0]])} in all but a few rows"), []
    column = CategoryColumn(
        cells.name,
        levels=tuple(levels[i] for i in kept),
        shares=tuple(shares.tolist()),
        other=bool(rare),
        absent=absent,
        rare=frozenset(map(digest, rare)) if len(rare) <= MOST_RARE else None,
    )
    return column, _category_notes(cells, column, len(rare), gone)


def _category_notes(cells: Cells, column: CategoryColumn, rare: int, gone: int) -> list[Note]:
    notes = []
    if rare:
        alike = f"counted as {quoted(OTHER)}" if rare == 1 else "counted as one"
        levels = counted(rare, "rare category", "rare categories")
        notes.append(Note(cells.name, f"{levels} {alike}"))
    if gone:
        kept = "kept as a category of their own" if column.absent else "taken as the mean of all"
        notes.append(Note(cells.name, f"{_missing(gone, len(cells))} {kept}"))
    return notes
