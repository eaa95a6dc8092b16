"""``hetrisk report``: the page that explains a fitted model."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import click

from hetrisk.cli.arguments import DATA, OUTPUT, check_outputs, open_model

EPILOG = """
\b
Examples:
  hetrisk report houses.hetrisk
  hetrisk report houses.hetrisk --out houses.html --force

The page is one file, needs no network, and never holds a row of the data.
"""


@click.command(epilog=EPILOG)
@click.argument("model", type=DATA)
@click.option("--out", "-o", type=OUTPUT, metavar="FILE", help="Default: beside the model, .html.")
@click.option("--force", is_flag=True, help="Replace the file if it is there already.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def report(model: Path, out: Path | None, force: bool, as_json: bool) -> None:
    """Write the page that explains the model in the file MODEL."""
    if not model.name:  # "." and "" are folders, whatever stands in them
        raise IsADirectoryError(errno.EISDIR, "Is a directory", str(model))
    out = out or model.with_suffix(".html")
    check_outputs({"--out": out}, model)
    if out.is_file() and not force:
        message = f"'{out}' is there already: add --force to replace it."
        raise click.BadParameter(message, param_hint="--out")
    from hetrisk.cli.terminal import console, print_json, progress
    from hetrisk.modelfile import ModelFileError
    from hetrisk.report import write_report
    from hetrisk.report.stored import from_record
    from hetrisk.tables.errors import quoted, shown

    deployed = open_model(model)
    summary = from_record(deployed.summary)
    if summary is None:
        raise ModelFileError(
            f"{quoted(model.name)} was not fitted by 'hetrisk fit': it holds nothing to report"
        )
    if deployed.adaptation is not None:  # what was learned before is not all that the model is now
        told = f"Adapted: {deployed.adaptation['sentence']}"
        summary = replace(summary, advice=(told, *summary.advice))
    with progress("drawing the report"):
        write_report(summary, out)
    if as_json:
        print_json({"report": str(out)})
    else:
        console().print(f"Report written to {shown(out, 200)}.", soft_wrap=True)
