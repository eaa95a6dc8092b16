"""``hetrisk report``: the page that explains a fitted model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hetrisk.cli.arguments import DATA, OUTPUT, check_outputs, read, reading_options

EPILOG = """
\b
Examples:
  hetrisk report houses.hetrisk
  hetrisk report houses.hetrisk houses.csv --out houses.html

With DATA (a table with the target in it) the page also shows how the features are spread in each
environment. The page is one file, needs no network, and never holds a row of the data.
"""


@click.command(epilog=EPILOG)
@click.argument("model", type=DATA)
@click.argument("data", type=DATA, required=False)
@click.option("--out", "-o", type=OUTPUT, metavar="FILE", help="Default: beside the model, .html.")
@click.option("--title", help="Shown on top of the page.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
@reading_options
def report(
    model: Path,
    data: Path | None,
    out: Path | None,
    title: str | None,
    as_json: bool,
    encoding: str,
    delimiter: str | None,
) -> None:
    """Write the page that explains the model in the file MODEL."""
    out = out or model.with_suffix(".html")
    check_outputs({"--out": out}, model, data)
    from hetrisk import atomic
    from hetrisk.cli.predict import open_model
    from hetrisk.cli.terminal import console, print_json, progress
    from hetrisk.report import render
    from hetrisk.tables.errors import shown

    pipeline = open_model(model)
    pair = None if data is None else _pair(pipeline, read(data, encoding, delimiter))
    name = title or f"Stability report: {pipeline[0].description_.target}"
    with progress("drawing the report"):
        page = render(pipeline, data=pair, title=name).encode("utf-8", errors="replace")
    atomic.write_bytes(out, page)
    if as_json:
        print_json({"report": str(out), "bytes": len(page)})
    else:
        console().print(f"Report written to {shown(out, 200)}.", soft_wrap=True)


def _pair(pipeline: Any, table: Any) -> tuple[Any, Any]:
    """Return the rows that have a target, and those targets."""
    from hetrisk.tables import TableError, read_target
    from hetrisk.tables.errors import listed

    description = pipeline[0].description_
    target = read_target(table.frame, description.target, description.task, pipeline[0].decimal)
    if description.task == "classification":
        strange = sorted(set(target.values) - set(pipeline[-1].classes_.astype(str)))
        if strange:
            raise TableError(f"the table holds classes the model does not know: {listed(strange)}")
    return table.frame.loc[target.known], target.values
