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
    orderings,
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
    """Write the report to ``path`` and its figures into a folder of the same name beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = path.with_suffix("")
    shown = {}
    for section in sections:
        parts = [f"#### {title}\n\n{markdown_table(lines)}" for title, lines in section.tables]
        if section.image:
            folder.mkdir(exist_ok=True)
            write_bytes(folder / section.image, (out / section.image).read_bytes())
            link = f"![{section.caption}]({folder.name}/{section.image})\n\n{section.caption}"
            parts.insert(0, link)
        elif section.problem:
            parts.insert(0, f"No figure: {section.problem}")
        shown[section.name] = "\n\n".join(parts)
    tables = filled_tables(records, n_seeds)
    text = _template().render(
        erm=erm_agreement(tables),
        hrm={name: hrm_agreement(tables, name) for name in ("hrm", "hrm-gates")},
        orderings="\n".join(orderings(tables, name) for name in ("dro", "eiil", "irm")),
        sections={name: shown.get(name, "Not run.") for name in TARGETS},
        titles={name: target.title for name, target in TARGETS.items()},
        timings=markdown_table(timing_rows(records)),
        n_seeds=n_seeds,
    )
    write_bytes(path, text.encode())


def _template() -> Template:
    # Markdown, not HTML: the text is the project's own and the cells are already made harmless.
    environment = Environment(
        loader=PackageLoader("hetrisk.reproduce", "templates"),
        autoescape=False,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template("reproduction.md")
