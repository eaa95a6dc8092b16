"""Files of a run: a page of tables for each target, and its figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hetrisk.atomic import write_bytes
from hetrisk.reproduce.figures import PlottingUnavailable
from hetrisk.reproduce.methods import METHODS
from hetrisk.reproduce.panels import Filled, fill
from hetrisk.reproduce.records import OK, Record
from hetrisk.reproduce.tables import markdown, table_rows
from hetrisk.reproduce.targets import TARGETS, Target


@dataclass(frozen=True)
class Section:
    """One target, ready to be shown.

    ``tables`` pairs each panel's title with its rows of text, the heading first; ``image`` is a
    file in the output folder; ``problem`` says why there is no figure, if there is none.
    """

    name: str
    title: str
    tables: tuple[tuple[str, list[list[str]]], ...]
    image: str | None
    caption: str
    problem: str


def write_section(name: str, records: Mapping[str, Record], n_seeds: int, out: Path) -> Section:
    """Write a target's tables and figure; return what the page and the document show."""
    target = TARGETS[name]
    panels = [fill(panel, records, target.seeds(n_seeds)) for panel in target.panels]
    panels = [filled for filled in panels if filled.rows]
    image, caption, problem = _figure(name, target, panels, records, n_seeds, out)
    text = f"# {target.title}\n\n{markdown(panels)}\n"
    if image:
        text += f"\n![{caption}]({image})\n"
    elif problem:
        text += f"\nNo figure: {problem}\n"
    _write(out, f"{name}.md", text.encode())
    tables = tuple((filled.panel.title, table_rows(filled)) for filled in panels)
    return Section(name, target.title, tables, image, caption, problem)


def _figure(
    name: str,
    target: Target,
    panels: Sequence[Filled],
    records: Mapping[str, Record],
    n_seeds: int,
    out: Path,
) -> tuple[str | None, str, str]:
    """Draw a target's figure: its file name, caption, and what stood in the way."""
    if target.draw is None:
        return None, "", ""
    extra = [records[c.key] for c in target.extra_cases(n_seeds) if c.key in records]
    failed = [r["reason"] for r in extra if r["status"] != OK]
    good = [r for r in extra if r["status"] == OK]
    drawable = good if target.extra else [f for f in panels if any(r.cells for r in f.rows)]
    if not drawable or (not target.extra and len(drawable) < len(target.panels)):
        notes = [row.note for filled in panels for row in filled.rows if row.note]
        return None, "", next(iter([*failed, *notes]), "no finished runs")
    try:
        drawing = target.draw(panels, good)
    except PlottingUnavailable as error:
        return None, "", str(error)
    return _write(out, f"{name}.png", drawing.png()), drawing.caption, ""


def timing_rows(records: Mapping[str, Record]) -> list[list[str]]:
    """Seconds of each method on each task, averaged over the cases that finished."""
    tasks = sorted({r["task"] for r in records.values()})
    lines = [["method", *(f"{task} (s)" for task in tasks)]]
    for method, kind in METHODS.items():
        cells = []
        for task in tasks:
            spent = [
                r["seconds"]
                for r in records.values()
                if r["method"] == method and r["task"] == task and r["status"] == OK
            ]
            cells.append(f"{np.mean(spent):.2f}" if spent else "")
        if any(cells):
            lines.append([kind.label, *cells])
    return lines


def _write(out: Path, name: str, data: bytes) -> str:
    out.mkdir(parents=True, exist_ok=True)
    write_bytes(out / name, data)
    return name
