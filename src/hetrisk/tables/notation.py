"""How the numbers of a column are written: decimal marks, thousands, percent, currencies, clocks.

``7,700`` is 7700 in one column and 7.7 in another. One cell cannot tell, the column often can:
``3,14`` proves a decimal comma, ``1,234,567`` and ``1,234.50`` prove a comma between thousands,
and nobody who writes decimals writes both ``656`` and ``7,700`` (with its zeros the first would be
``656,000``, without them the second ``7,7``). What no cell proves is not guessed: the column is
refused with a clause that says so, until the user names the decimal mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from hetrisk.columns import FloatArray

POINT, COMMA = ".", ","
MARK_NAMES = {",": "commas", ".": "points", " ": "blanks", "'": "apostrophes"}
READABLE_SHARE = 0.95  # of the texts must look like numbers before their notation is judged
LONGEST_NUMBER = 60
FEWEST_HUNDREDS = 100  # whole numbers of three digits stand beside 7,700 where thousands are meant

_CURRENCIES = (
    r"(?:US|CA|AU|NZ|HK|S|R|A|C|NT|MX)?\$|[€£¥₹₽₩₺₫₪฿₴₱]|zł|Kč|Ft|Fr\.?|kr\.?|"
    "USD|EUR|GBP|JPY|CHF|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|RUB|TRY|KRW|ZAR|SGD"
)
_BODY = r"[0-9.,' ]*[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?"
_AMOUNT = re.compile(
    rf"(?P<sign>[+-]?) ?(?P<before>{_CURRENCIES})? ?(?P<inner>[+-]?)"
    rf"(?P<body>{_BODY}) ?(?P<after>%|‰|{_CURRENCIES})?"
)
_LOSS = re.compile(r"\((.*)\)")  # accountants write (5) for -5
_BLANKS = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-", "’": "'"})
_CLOCK = re.compile(
    r"([0-9]{1,3}):([0-5][0-9])(?::([0-5][0-9](?:\.[0-9]+)?))?(?: ?([ap])\.?m\.?)?", re.I
)

# Every way to read digits with marks: (thousands, decimal), "" where the text shows none.
_EXPONENT = r"(?:[eE][+-]?[0-9]+)?"
_READINGS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile(rf"[0-9]+{_EXPONENT}"), "", ""),
    *((re.compile(rf"(?:[0-9]+\{d}[0-9]*|\{d}[0-9]+){_EXPONENT}"), "", d) for d in ",."),
    *((re.compile(rf"[1-9][0-9]{{0,2}}(?:\{t}[0-9]{{3}})+"), t, "") for t in ",. '"),
    *(
        (re.compile(rf"[1-9][0-9]{{0,2}}(?:\{t}[0-9]{{3}})+\{d}[0-9]*"), t, d)
        for t in ",. '"
        for d in ",."
        if t != d
    ),
    # Lakhs and crores: 12,34,567.
    (re.compile(r"[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}"), ",", ""),
    (re.compile(r"[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}\.[0-9]*"), ",", "."),
)


@dataclass(frozen=True)
class Notation:
    """How the numbers of one column are written.

    Attributes
    ----------
    decimal : the decimal mark, "." or ",".
    thousands : the mark between groups of three digits, or "" where there was none.
    unit : "%" or a currency that stands beside the numbers, or "".
    """

    decimal: str = POINT
    thousands: str = ""
    unit: str = ""

    @property
    def example(self) -> str:
        """A number in this notation; "" for the notation of programs."""
        if self == PLAIN:
            return ""
        number = f"1{self.thousands}234{self.decimal}5"
        return f"{number}{self.unit}" if self.unit in ("", "%", "‰") else f"{number} {self.unit}"

    def read(self, text: str) -> float:
        """Return the number a text spells in this notation, or NaN.

        A mark between thousands that the notation has not is read only where the text itself
        proves it: ``1,234.50`` and ``1,234,567``, not ``1,234``.
        """
        if self.unit not in ("%", "‰") and (self.decimal == POINT or POINT not in text):
            value = parse_number(text)
            if not np.isnan(value):
                return value
        amount = split_amount(text)
        if amount is None or not self._same_unit(amount):
            return np.nan
        for thousands, decimal in readings(amount.body):
            if decimal not in ("", self.decimal) or thousands == self.decimal:
                continue
            proven = decimal != "" or amount.body.count(thousands) > 1
            if thousands in ("", self.thousands) or proven:
                body = amount.body.replace(thousands, "") if thousands else amount.body
                return amount.sign * float(body.replace(",", "."))
        return np.nan

    def spells(self, text: str) -> bool:
        """Whether the text is a number in this notation, however large."""
        return not np.isnan(self.read(text))

    def _same_unit(self, amount: Amount) -> bool:
        if amount.unit == self.unit:
            return True
        if self.unit in ("%", "‰"):
            return amount.unit == "" and amount.body.strip("0.,") == ""
        return amount.unit == ""

    def numbers(self, texts: Sequence[str]) -> FloatArray:
        """Return the number each text spells, NaN where it spells none."""
        plain = plain_numbers(texts) if self == PLAIN else None
        return np.asarray([self.read(t) for t in texts], dtype=float) if plain is None else plain

    def described(self, texts: Iterable[str]) -> list[str]:
        """Return what the owner of these texts should know about the notation, a clause each."""
        if self == PLAIN:
            return []
        mark = self.thousands or self.decimal
        example = min((text for text in texts if mark in text and self.spells(text)), default="")
        shown = f" ('{example}' is {self.read(example):.12g})" if example else ""
        notes = []
        if self.thousands:
            notes.append(f"{MARK_NAMES[self.thousands]} read as thousands separators{shown}")
        elif self.decimal == COMMA:
            notes.append(f"commas read as decimal points{shown}")
        if self.unit == "%":
            notes.append("percent: 12.5% read as 12.5")
        elif self.unit:
            notes.append(f"amounts in {self.unit} read as numbers")
        return notes


PLAIN = Notation()


@dataclass(frozen=True)
class Amount:
    """A text that may be a number: its sign, its digits and marks, and its unit."""

    sign: float
    body: str
    unit: str


@dataclass(frozen=True)
class Reading:
    """What the texts of a column say about their notation.

    Attributes
    ----------
    notation : the one found; plain where there is trouble.
    trouble : why the numbers cannot be read without guessing, as a clause, or ""; where ``open``
        it ends in "say which with", for the remedy to follow.
    proven : whether the values prove the decimal mark, so that it speaks for other columns too.
    open : whether nothing in the values tells the decimal mark, so that other columns may.
    """

    notation: Notation = PLAIN
    trouble: str = ""
    proven: bool = False
    open: bool = False


def parse_number(text: str) -> float:
    """Return the number a text spells, to the last bit, or NaN; infinities are numbers here."""
    if "_" in text or not text.isascii():  # Python's own notation, not that of tables
        return np.nan
    try:
        return float(text)
    except ValueError:
        return np.nan


def plain_numbers(texts: Sequence[str]) -> FloatArray | None:
    """Return the numbers of texts that are all written as programs write them, else None."""
    if not all(map(str.isascii, texts)) or any("_" in text for text in texts):
        return None
    try:
        return np.fromiter(map(float, texts), dtype=np.float64, count=len(texts))
    except ValueError:
        return None


def clock(text: str) -> float:
    """Return a time of day (``14:30``, ``2:30 pm``, ``14:30:05``) in hours, or NaN."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        return np.nan
    hours, minutes, seconds, half = match.groups()
    hour = int(hours)
    if half is not None:
        if not 1 <= hour <= 12:
            return np.nan
        hour = hour % 12 + 12 * (half.lower() == "p")
    return hour + int(minutes) / 60 + float(seconds or 0) / 3600


def split_amount(text: str) -> Amount | None:
    """Return the sign, the digits with their marks, and the unit of a text; None: no number."""
    if len(text) > LONGEST_NUMBER:
        return None
    text = text.translate(_BLANKS)
    loss = _LOSS.fullmatch(text)
    match = _AMOUNT.fullmatch(loss.group(1) if loss else text)
    if match is None or (match["sign"] and match["inner"]):
        return None
    before, after = match["before"] or "", match["after"] or ""
    if (before and after) or (loss and (match["sign"] or match["inner"])):
        return None
    negative = loss is not None or "-" in (match["sign"], match["inner"])
    return Amount(-1.0 if negative else 1.0, match["body"].strip(), before or after)


@lru_cache(maxsize=1 << 16)
def readings(body: str) -> tuple[tuple[str, str], ...]:
    """Return every (thousands, decimal) under which the digits and marks make a number."""
    return tuple((t, d) for pattern, t, d in _READINGS if pattern.fullmatch(body))


def notation_of(texts: Sequence[str], decimal: str | None = None) -> Reading:
    """Find how the distinct texts of a column write numbers.

    Parameters
    ----------
    texts : the distinct values, missing ones aside.
    decimal : the decimal mark where the user, or the rest of the table, has said it; else None.
    """
    if _are_plain(texts, decimal):
        return Reading(proven=any("." in text for text in texts))
    amounts = {text: amount for text in texts if (amount := split_amount(text)) is not None}
    ways = {text: readings(amount.body) for text, amount in amounts.items()}
    ways = {text: found for text, found in ways.items() if found}
    if len(ways) < READABLE_SHARE * len(texts) or not ways:
        return Reading()
    unit, trouble = _unit([amounts[text] for text in ways])
    if trouble:
        return Reading(trouble=trouble)
    found = _marks(ways, {text: amounts[text].body for text in ways}, decimal)
    return replace(found, notation=replace(found.notation, unit=unit))


def _are_plain(texts: Sequence[str], decimal: str | None) -> bool:
    """Whether all are numbers as programs write them, and no point may separate thousands."""
    numbers = plain_numbers(texts)
    if numbers is None or np.isnan(numbers).any():
        return False
    return decimal == POINT or not _all_in_threes((t for t in texts if "." in t), POINT)


def _all_in_threes(texts: Iterable[str], mark: str) -> bool:
    """Whether there are texts, and each could have the mark between thousands."""
    some = False
    for text in texts:
        some = True
        amount = split_amount(text)
        if amount is None or not any(t == mark for t, _ in readings(amount.body)):
            return False
    return some


def _unit(amounts: list[Amount]) -> tuple[str, str]:
    """Return the unit the amounts share, and what is wrong where they share none."""
    units = sorted({amount.unit for amount in amounts} - {""})
    if len(units) > 1:
        return "", f"amounts in different units ('{units[0]}' and '{units[1]}')"
    if units and units[0] in ("%", "‰"):
        bare = [a.body for a in amounts if a.unit == "" and a.body.strip("0.,")]
        if bare:
            return "", f"some values are in percent and some are not ('{min(bare)}')"
    return (units[0] if units else ""), ""


# (thousands, decimal), the fewest marks first: a mark nobody uses is not assumed.
_CONVENTIONS = tuple((t, d) for d in (POINT, COMMA) for t in ("", ",", ".", " ", "'") if t != d)
Ways = dict[str, tuple[tuple[str, str], ...]]


def _fits(ways: Iterable[tuple[str, str]], convention: tuple[str, str]) -> bool:
    thousands, decimal = convention
    return any(t in ("", thousands) and d in ("", decimal) for t, d in ways)


def _marks(ways: Ways, bodies: dict[str, str], decimal: str | None) -> Reading:
    """Find the marks that fit the most texts, or say why they cannot be told."""
    counts = {c: sum(_fits(found, c) for found in ways.values()) for c in _CONVENTIONS}
    most = max(counts.values())
    best = [c for c in _CONVENTIONS if counts[c] == most]
    if most < READABLE_SHARE * len(ways):
        return Reading(trouble=_two_ways(ways, best[0]))
    by_mark = {d: (t, d) for t, d in reversed(best)}
    if len(by_mark) == 1:
        thousands, mark = best[0]
        return Reading(Notation(mark, thousands), proven=True)
    if not any(t or d for found in ways.values() for t, d in found):
        return Reading()  # whole numbers alone: nothing to tell apart
    if decimal is not None:
        return Reading(Notation(decimal, by_mark[decimal][0]), open=True)
    return _weighed(ways, bodies)


def _weighed(ways: Ways, bodies: dict[str, str]) -> Reading:
    """Both decimal marks fit every text: look at how whole numbers stand beside the others."""
    marked = {m: [t for t in ways if m in bodies[t]] for m in (COMMA, POINT)}
    if not marked[COMMA] and not marked[POINT]:  # 1 234: the same number either way
        thousands = next(t for found in ways.values() for t, _ in found if t)
        return Reading(Notation(POINT, thousands))
    if marked[COMMA] and marked[POINT]:
        return Reading(trouble=_may_be(min(marked[COMMA]), bodies), open=True)
    mark = COMMA if marked[COMMA] else POINT
    whole = [int(bodies[text]) for text in ways if bodies[text].isdigit()]
    padded = any(bodies[text].endswith("0") for text in marked[mark])
    if whole and FEWEST_HUNDREDS <= max(whole) < 1000 and padded:
        return Reading(Notation(POINT if mark == COMMA else COMMA, mark))
    if mark == POINT:  # what programs write, and nothing speaks against it
        return Reading(open=True)
    return Reading(trouble=_may_be(min(marked[COMMA]), bodies), open=True)


def _may_be(text: str, bodies: dict[str, str]) -> str:
    grouped = bodies[text].replace(",", "")
    decimal = float(bodies[text].replace(",", "."))
    return f"it cannot be told whether '{text}' is {grouped} or {decimal:g}: say which with"


def _two_ways(ways: Ways, best: tuple[str, str]) -> str:
    fitting = [text for text, found in ways.items() if _fits(found, best) and not text.isdigit()]
    odd = [text for text, found in ways.items() if not _fits(found, best)]
    return f"numbers are written in more than one way ('{min(fitting or odd)}' and '{min(odd)}')"
