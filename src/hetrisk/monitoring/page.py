"""The page of a check: one HTML file, dressed as the report is."""

from __future__ import annotations

from pathlib import Path

from hetrisk import atomic
from hetrisk.monitoring.findings import Check, Status
from hetrisk.monitoring.words import column_words, lines_of, parts_of
from hetrisk.report.labels import brief
from hetrisk.report.page import dress, template

BADGE = {
    Status.FINE: ("this", "As expected"),
    Status.LOOK: ("plain", "Look at it"),
    Status.ALARM: ("unknown", "Alarm"),
}


def render_check(found: Check, title: str) -> str:
    """Return the page of a check as one self-contained HTML file.

    Parameters
    ----------
    found : what `hetrisk.monitoring.check` returned.
    title : shown on top; any text.
    """
    badge, word = BADGE[found.status]
    return template("check.html", "hetrisk.monitoring").render(
        c=found,
        title=brief(title, 200),
        badge=badge,
        word=word,
        parts=[] if found.outcome is None else parts_of(found.outcome),
        lines=[line for line in lines_of(found)[1:] if line.startswith("Environments")],
        words=column_words,
        **dress(),
    )


def write_check(found: Check, path: Path, title: str) -> None:
    """Write the page to ``path``, all at once or not at all."""
    atomic.write_bytes(path, render_check(found, title).encode("utf-8", errors="replace"))
