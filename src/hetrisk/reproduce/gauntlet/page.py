"""The page of the gauntlet: prose from a template, numbers from the records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from hetrisk.atomic import write_bytes
from hetrisk.reproduce.figures import Drawing, PlottingUnavailable
from hetrisk.reproduce.gauntlet import tables
from hetrisk.reproduce.gauntlet.cases import (
    DESIGNS,
    FIRST_SEED,
    MAX_ROWS,
    REAL,
    gauntlet_cases,
)
from hetrisk.reproduce.gauntlet.figures import foretold_and_came_true, harm_and_help
from hetrisk.reproduce.gauntlet.forecast import Forecast, calibration, forecasts, missed
from hetrisk.reproduce.gauntlet.methods import ERM, OURS
from hetrisk.reproduce.gauntlet.ratios import Found, Tally, tallies
from hetrisk.reproduce.tables import markdown_table

COMPLETE = 0.7  # share of the splits a method must have run to be called the best
SHOWN_CURVES = (
    ("computer_prices", "first half"),
    ("school_results", "first half"),
    ("baseball_runs", "second half"),
)


@dataclass(frozen=True)
class Picture:
    """A figure of the page: its file's name, and the drawing or why there is none."""

    name: str
    drawing: Drawing | None
    problem: str = ""

    def markdown(self, folder: str) -> str:
        """Return the link to the figure with its caption, or why there is none."""
        if self.drawing is None:
            return f"No figure: {self.problem}"
        caption = self.drawing.caption
        return f"![{caption}]({folder}/{self.name}.png)\n\n{caption}"


def write_gauntlet(found: Found, n_seeds: int, path: Path) -> None:
    """Write the page to ``path`` and its figures into a folder of the same name beside it."""
    counted, made = tallies(found), forecasts(found)
    pictures = [_scatter(counted), _curves(made)]
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        if picture.drawing is not None:
            write_bytes(folder / f"{picture.name}.png", picture.drawing.png())
    scatter, curves = (picture.markdown(folder.name) for picture in pictures)
    seconds = sum(r["seconds"] for r in found.values() if "seconds" in r)
    text = _template().render(
        n_seeds=n_seeds,
        n_records=len(found),
        n_cases=len(gauntlet_cases(n_seeds)),
        minutes=f"{seconds / 60:.0f}",
        n_tables=len({stage.name for stage in REAL}),
        n_designs=len(DESIGNS),
        first_seed=FIRST_SEED,
        max_rows=f"{MAX_ROWS:,}",
        summary=markdown_table(tables.summary_lines(counted, found, n_seeds)),
        scatter=scatter,
        best=best_sentence(counted),
        groups=markdown_table(tables.group_lines(found)),
        designs=markdown_table(tables.design_lines(found, n_seeds)),
        worst_tables=markdown_table(tables.table_lines(found, "worst")),
        mean_tables=markdown_table(tables.table_lines(found, "mean")),
        calibration=calibration_sentences(made),
        curves=curves,
        forecasts=markdown_table(tables.forecast_lines(made)),
        units=markdown_table(tables.unit_lines(found, n_seeds)),
        sources=markdown_table(tables.source_lines(found)),
        refused="\n".join(f"- {line}" for line in tables.refusals(found)) or "Everything ran.",
        times=markdown_table(tables.time_lines(found)),
        versions=versions_sentence(found),
    )
    write_bytes(path, text.encode())


def best_sentence(counted: Sequence[Tally]) -> str:
    """Say which of ours and which of the others had the lowest worst error, with its harm."""
    parts = []
    for label, group in (
        ("Of ours", [t for t in counted if t.method in OURS]),
        ("Of the others", [t for t in counted if t.method not in (*OURS, ERM)]),
    ):
        # A method that refused half of the splits is not compared on the other half.
        whole = [t for t in group if t.n >= COMPLETE * max(one.n for one in counted)]
        if whole:
            best = min(whole, key=lambda t: t.worst_error)
            parts.append(
                f"{label}, `{best.method}` has the lowest worst error: {best.worst_error:.3f} of "
                f"ERM's over {best.n} splits, {best.harmed} harmed and {best.helped} helped."
            )
    return " ".join(parts)


def calibration_sentences(made: Sequence[Forecast]) -> str:
    """Say how well the curve at reach 1 did, and where it did not."""
    measured = calibration(made)
    if measured is None:
        return "Too few curves were drawn to say."
    text = (
        f"Over {measured.n} splits with numbers as target, ERM's curve at reach 1: rank "
        f"correlation of foretold and realised worst error, both relative to reach 0, "
        f"**{measured.correlation:.2f}**; the error that came true is **{measured.ratio:.2f}** "
        f"times the one foretold in the median; it lies below the upper end of the 90 % band in "
        f"**{measured.covered:.0%}** of the splits."
    )
    above = missed(made)
    if not above:
        return text
    worst = "; ".join(f"{name} ({ratio:.2f} times the upper end)" for name, ratio in above[:8])
    return f"{text} It is not calibrated where more came than the band allows: {worst}" + (
        f"; and {len(above) - 8} more, in the table below." if len(above) > 8 else "."
    )


def versions_sentence(found: Found) -> str:
    """Return the versions of the run, one line for each set of them."""
    kinds = sorted({tuple(sorted(record["versions"].items())) for record in found.values()})
    return "\n".join("- " + ", ".join(f"{k} {v}" for k, v in versions) for versions in kinds)


def _scatter(counted: Sequence[Tally]) -> Picture:
    return _picture("harm-and-help", harm_and_help, counted, "no real table was run.")


def _curves(made: Sequence[Forecast]) -> Picture:
    by_split = {(f.stage.name, f.stage.split): f for f in made}
    chosen = [by_split[split] for split in SHOWN_CURVES if split in by_split]
    return _picture("reach-curves", foretold_and_came_true, chosen, "no curve was drawn.")


def _picture(
    name: str, drawn: Callable[[Sequence[Any]], Drawing], of: Sequence[Any], otherwise: str
) -> Picture:
    """Return a figure of something, or why there is none."""
    if not of:
        return Picture(name, None, otherwise)
    try:
        return Picture(name, drawn(of))
    except PlottingUnavailable as error:
        return Picture(name, None, str(error))


def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("hetrisk.reproduce", "templates"),
        autoescape=False,  # Markdown: the text is the project's own, cells are made harmless
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template("gauntlet.md")
