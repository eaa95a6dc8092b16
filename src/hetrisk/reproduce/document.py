"""The reproduction report in the documentation: prose from a template, tables from the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from hetrisk.atomic import write_bytes
from hetrisk.reproduce.agreement import (
    erm_agreement,
    filled_tables,
    hrm_agreement,
    overview,
    side_by_side,
)
from hetrisk.reproduce.output import Section, timing_rows
from hetrisk.reproduce.records import Record
from hetrisk.reproduce.tables import markdown_table
from hetrisk.reproduce.targets import TARGETS


def write_document(
    path: Path,
    sections: Sequence[Section],
    records: Mapping[str, Record],
    n_seeds: int,
    out: Path,
) -> None:
    """Write the report to ``path``; its figures and every table go into a folder beside it.

    The folder has the name of the report. The report says what a reader needs; ``records.md`` in
    the folder holds every panel, cell by cell.
    """
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    figures = dict.fromkeys(TARGETS, "Not run.")
    for section in sections:
        figures[section.name] = _figure(section, folder, out)
    tables = filled_tables(records, n_seeds)
    hrm = {
        name: hrm_agreement(tables, name)
        for name in ("hrm", "hrm-s", "hrm-fixed", "hrm-released", "stable")
    }
    text = _template("paper.md").render(
        overview=markdown_table(overview(tables)),
        erm=erm_agreement(tables),
        nonlinear=markdown_table(side_by_side("nonlinear", records, n_seeds)),
        hrm={name: found.split("\n")[0] for name, found in hrm.items()},
        figures=figures,
        titles={name: target.title for name, target in TARGETS.items()},
        timings=markdown_table(timing_rows(records)),
        n_seeds=n_seeds,
        records=f"{folder.name}/records.md",
    )
    write_bytes(path, text.encode())
    every = {
        section.title: [(title, markdown_table(lines)) for title, lines in section.tables]
        for section in sections
        if section.tables
    }
    details = _template("records.md").render(
        page=f"../{path.name}",
        hrm=hrm,
        sections=every,
        n_seeds=n_seeds,
    )
    write_bytes(folder / "records.md", details.encode())


def _figure(section: Section, folder: Path, out: Path) -> str:
    """Copy a section's figure beside the report, and return the link to it."""
    if not section.image:
        return f"No figure: {section.problem}" if section.problem else ""
    write_bytes(folder / section.image, (out / section.image).read_bytes())
    return f"![{section.caption}]({folder.name}/{section.image})\n\n{section.caption}"


def _template(name: str) -> Template:
    # Markdown, not HTML: the text is the project's own and the cells are already made harmless.
    environment = Environment(
        loader=PackageLoader("hetrisk.reproduce", "templates"),
        autoescape=False,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)
