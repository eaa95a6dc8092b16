"""Filled panels as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from hetrisk.reproduce.panels import Cell, Filled, Row


def number(value: float | None, sign: bool = False) -> str:
    """Three decimals, as in the paper; nothing for None."""
    if value is None:
        return ""
    return f"{value:+.3f}" if sign else f"{value:.3f}"


def shown(cell: Cell) -> str:
    """Ours with its standard error."""
    return number(cell.ours) + ("" if cell.error is None else f" ± {number(cell.error)}")


def compared(cell: Cell) -> str:
    """Return the paper's number with the difference, ours minus the paper's."""
    if cell.paper is None:
        return ""
    return f"{number(cell.paper)} ({number(cell.difference, sign=True)})"


def table_rows(filled: Filled) -> list[list[str]]:
    """Rows of text, the heading first: ours, and the paper's below where it has the method."""
    extra = ["exact set"] if any(row.exact is not None for row in filled.rows) else []
    heading = ["method", *filled.columns, *extra]
    most = max((row.n_seeds for row in filled.rows), default=0)
    lines = [heading]
    for row in filled.rows:
        if not row.cells:
            lines.append([row.label, row.note, *[""] * (len(heading) - 2)])
            continue
        numbers = [shown(row.cells[column]) for column in filled.columns]
        exact = "" if row.exact is None else f"{row.exact}/{row.n_seeds}"
        lines.append([_label(row, most), *numbers, *[exact for _ in extra]])
        if any(cell.paper is not None for cell in row.cells.values()):
            paper = [compared(row.cells[column]) for column in filled.columns]
            lines.append(["  paper (ours minus paper)", *paper, *["" for _ in extra]])
    return lines


def _label(row: Row, most: int) -> str:
    if row.note:
        return f"{row.label} ({row.note})"
    return row.label + (f" ({row.n_seeds} of {most} draws)" if row.n_seeds < most else "")


def markdown(panels: Sequence[Filled], level: int = 3) -> str:
    """Return one Markdown table a panel, under its title."""
    return "\n\n".join(
        f"{'#' * level} {filled.panel.title}\n\n{markdown_table(table_rows(filled))}"
        for filled in panels
        if filled.rows
    )


def markdown_table(lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; bars and line breaks in cells are made harmless."""

    def line(cells: Sequence[str]) -> str:
        safe = (cell.replace("|", "\\|").replace("\n", " ").strip() for cell in cells)
        return "| " + " | ".join(safe) + " |"

    rule = ["---", *["---:"] * (len(lines[0]) - 1)]
    return "\n".join([line(lines[0]), line(rule), *map(line, lines[1:])])
