"""The page of a check: one HTML file, dressed as the report is."""

from __future__ import annotations

import math
import os
from pathlib import Path

from hetrisk import atomic
from hetrisk.monitoring.findings import Check, Status
from hetrisk.report.labels import brief
from hetrisk.report.page import dress, template

WORD = {
    Status.FINE: ("this", "Nothing moved"),
    Status.MOVED: ("plain", "The world moved"),
    Status.BROKE: ("unknown", "A relation broke"),
}


def render_check(found: Check, title: str | None = None) -> str:
    """Return the page of a check as one self-contained HTML file.

    Parameters
    ----------
    found : what `hetrisk.monitoring.check` returned.
    title : shown on top; any text.
    """
    badge, word = WORD[found.status]
    reach = None if found.outcome is None else found.outcome.reach
    place = reach.value if reach is not None and math.isfinite(reach.value) else None
    return template("check.html", "hetrisk.monitoring").render(
        c=found,
        title=brief(title or "Check of new rows", 200),
        badge=badge,
        word=word,
        place=place,
        **dress(),
    )


def write_check(found: Check, path: str | os.PathLike[str], title: str | None = None) -> Path:
    """Write the page to ``path``, all at once or not at all, and return it."""
    atomic.write_bytes(path, render_check(found, title).encode("utf-8", errors="replace"))
    return Path(path)
