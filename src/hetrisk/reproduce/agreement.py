"""What agrees with the paper and what does not, computed from the filled panels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hetrisk.reproduce.methods import METHODS
from hetrisk.reproduce.panels import Cell, Filled, Row, fill
from hetrisk.reproduce.records import Record
from hetrisk.reproduce.tables import markdown_table, number
from hetrisk.reproduce.targets import TARGETS

TABLES = ("table1", "table2", "table3")
CLOSE = 0.03  # what counts as the paper's ERM number
SLACK = 0.005  # above the paper's mean that HRM may be


@dataclass(frozen=True)
class Numbered:
    """A cell with its address."""

    table: str
    panel: str
    column: str
    cell: Cell

    @property
    def address(self) -> str:
        """Table, panel and column in words."""
        return f"{self.table}, {self.panel}, {self.column}"


def filled_tables(
    records: Mapping[str, Record], n_seeds: int, names: Sequence[str] = TABLES
) -> dict[str, list[Filled]]:
    """Return the panels of targets, filled; those of the three tables if none are named."""
    return {
        name: [fill(panel, records, TARGETS[name].seeds(n_seeds)) for panel in TARGETS[name].panels]
        for name in names
    }


def cells(tables: Mapping[str, Sequence[Filled]], method: str) -> Iterator[Numbered]:
    """Every cell of a method that the paper has too."""
    for table, panels in tables.items():
        for filled in panels:
            row = filled.row(method)
            for column, cell in (row.cells if row else {}).items():
                if cell.paper is not None:
                    yield Numbered(table, filled.panel.title, column, cell)


OVERVIEW = ("erm", "hrm-s", "hrm", "stable", "oracle")


def overview(tables: Mapping[str, Sequence[Filled]]) -> list[list[str]]:
    """One line a panel: mean error of a few methods, ours beside the paper's, heading first."""
    heading = ["setting", *(METHODS[name].label for name in OVERVIEW), "exact sets (HRM)"]
    lines = [heading]
    settings = []
    for name, panels in tables.items():
        for filled in panels:
            rows = {method: filled.row(method) for method in OVERVIEW}
            ran = any(row is not None and row.cells for row in rows.values())
            # One setting stands in four scenarios of the paper: once is enough here.
            if not ran or (name != "table2" and filled.panel.setting in settings):
                continue
            settings.append(filled.panel.setting)
            hrm = rows["hrm"]
            exact = "" if hrm is None or hrm.exact is None else f"{hrm.exact}/{hrm.n_seeds}"
            numbers = [_mean_cell(row) for row in rows.values()]
            lines.append([f"{name}, {filled.panel.title}", *numbers, exact])
    return lines


def side_by_side(target: str, records: Mapping[str, Record], n_seeds: int) -> list[list[str]]:
    """One line a method, one column a panel of the target: mean errors, heading first."""
    panels = filled_tables(records, n_seeds, (target,))[target]
    lines = [["method", *(filled.panel.title for filled in panels)]]
    for method in dict.fromkeys(row.method for filled in panels for row in filled.rows):
        rows = [filled.row(method) for filled in panels]
        lines.append([METHODS[method].label, *(_mean_cell(row) for row in rows)])
    return lines


def _mean_cell(row: Row | None) -> str:
    """Mean over environments, and the paper's in brackets."""
    if row is None or not row.cells:
        return ""
    counted = [row.cells["mean"]] if "mean" in row.cells else list(row.cells.values())
    published = [cell.paper for cell in counted if cell.paper is not None]
    ours = number(sum(cell.ours for cell in counted) / len(counted))
    if len(published) < len(counted):
        return ours
    return f"{ours} (paper {number(sum(published) / len(published))})"


def erm_agreement(tables: Mapping[str, Sequence[Filled]]) -> str:
    """Say how many cells of ERM are the paper's, table by table, and name the others."""
    lines = []
    for table in tables:
        found = list(cells({table: tables[table]}, "erm"))
        far = [n for n in found if abs(n.cell.difference or 0.0) > CLOSE]
        text = f"- {table}: {len(found) - len(far)} of {len(found)} cells within {CLOSE}"
        listed = (f"{n.panel}, {n.column} ({number(n.cell.difference, sign=True)})" for n in far)
        lines.append(text + (f"; beyond: {'; '.join(listed)}." if far else "."))
    return "\n".join(lines)


def hrm_agreement(tables: Mapping[str, Sequence[Filled]], method: str) -> str:
    """Return a table of every cell in which HRM is not within the slack of the paper's mean.

    In tables 1 and 3 the means count; in table 2 every environment does.
    """
    counted = [n for n in cells(tables, method) if n.table == "table2" or n.column == "mean"]
    if not counted:
        return f"{METHODS[method].label} was not run."
    missed = [n for n in counted if (n.cell.difference or 0.0) > SLACK]
    text = (
        f"{METHODS[method].label}: {len(counted) - len(missed)} of {len(counted)} cells at or "
        f"below the paper's HRM + {SLACK}."
    )
    if not missed:
        return text
    heading = ["cell above", "paper", "ours", "oracle", "± s.e."]
    rows = [
        [n.address, *(number(v) for v in (n.cell.paper, n.cell.ours, n.cell.oracle, n.cell.error))]
        for n in missed
    ]
    return f"{text}\n\n{markdown_table([heading, *rows])}"
