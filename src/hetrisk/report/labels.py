"""Names and numbers as a page shows them: safe to read, short enough, aligned.

Column names are written by strangers. Escaping is the template's business; here they are made
*readable*: control and direction characters, which could rewrite the text around them, become
visible escapes, and a name of ten thousand characters becomes one of sixty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hetrisk.tables.errors import spelled

MOST_PERCENT = 9.995


def brief(text: object, longest: int) -> str:
    """Return text with what acts or cannot be seen made visible, and its middle cut if it is long.

    Both ends tell names apart. Only they are read: spelling out never shortens, so the middle of a
    long text is cut whatever it holds.
    """
    whole = str(text)
    ends = whole if len(whole) <= 4 * longest else whole[: 2 * longest] + whole[-2 * longest :]
    seen = spelled(ends) or "(no name)"
    if len(seen) <= longest:
        return seen
    tail = longest // 3
    return f"{seen[: longest - tail - 1]}…{seen[-tail:]}"


def upper_first(text: str) -> str:
    """Return the text with a capital first; ``capitalize`` would make RMSE Rmse."""
    return text[:1].upper() + text[1:]


def number(value: float, digits: int = 3) -> str:
    """Format with ``digits`` significant digits, a true minus sign and thousands separated."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    # As written: 999.96 has the magnitude of 1000 once it has three digits.
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    magnitude = int(exponent)
    if magnitude >= 7 or magnitude < -4:
        return f"{mantissa}e{magnitude}".replace("-", "−")
    return f"{value:,.{max(digits - 1 - magnitude, 0)}f}".replace("-", "−")


def fixed(value: float, decimals: int = 2) -> str:
    """Format with the same decimals as the other numbers of a column, so that they line up."""
    if not math.isfinite(value):
        return number(value)
    return _unsigned_zero(f"{value:,.{decimals}f}")


def precise(value: float, spread: float) -> str:
    """Format to a hundredth of ``spread``: means of −122.21 and −122.35 are not alike."""
    if not (math.isfinite(value) and 0 < spread < math.inf):
        return number(value)
    decimals = max(1 - math.floor(math.log10(spread)), 0)
    if decimals > 8 or abs(value) >= 1e7:
        return number(value, 4)
    return _unsigned_zero(f"{value:,.{decimals}f}")


def tick(value: float) -> str:
    """Format a round number as short as it goes."""
    plain = 1e-4 <= abs(value) < 1e7 or value == 0
    return (f"{value:,.10g}" if plain else f"{value:.3g}").replace("-", "−")


def percent(value: float, signed: bool = False, decimals: int | None = None) -> str:
    """Format a fraction as a percentage; ``signed`` shows a plus.

    Without ``decimals``, one is shown below ten percent and none above.
    """
    if not math.isfinite(value):
        return number(value)
    if abs(value) >= MOST_PERCENT:  # no one reads +1e9 %
        return f"{'>' if value > 0 else '< −'} 999\u00a0%".replace("− ", "−")
    if decimals is None:
        decimals = 1 if abs(value) < 0.0995 else 0
    return _unsigned_zero(f"{100 * value:{'+' if signed else ''},.{decimals}f}") + "\u00a0%"


def _unsigned_zero(text: str) -> str:
    """Drop the sign of a number that was rounded to zero, and write a true minus otherwise."""
    if not any(digit in text for digit in "123456789"):
        return text.lstrip("+-")
    return text.replace("-", "−")


def probability(value: float) -> str:
    """Format a p-value: never 0, which no finite sample can show."""
    if math.isnan(value):
        return "–"
    return "< 0.0001" if value < 1e-4 else number(value, 2)


def listed(names: Sequence[str], most: int) -> str:
    """``a``, ``a and b``, ``a, b and 3 more``."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most:,} more")
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"
