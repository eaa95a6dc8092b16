"""``hetrisk predict``: a model file and a table in, one prediction a row out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hetrisk.cli.arguments import DATA, OUTPUT, check_outputs, open_model, read, reading_options

if TYPE_CHECKING:
    from hetrisk.modelfile import Deployed

SPREADSHEETS = (".xlsx", ".xls", ".ods", ".feather", ".dta", ".json")
EPILOG = """
\b
Examples:
  hetrisk predict houses.hetrisk new.csv
  hetrisk predict houses.hetrisk new.csv --id house --out predictions.csv
  hetrisk predict houses.hetrisk new.csv --interval
  hetrisk predict patients.hetrisk new.parquet --probabilities --json
  hetrisk predict shops.hetrisk shops/ --out predictions.parquet    a folder, a piece at a time

The columns may come in any order, and extra ones are ignored. A category the model never saw counts
as the mean of all; a missing value is filled in as it was when fitting; text where a number should
be is an error that names the row. Rows with a value outside what the model learned from, by more
than a tenth of that range, are counted in a note. Cells are written as they are: open a CSV from
strangers in a spreadsheet with care.
"""


@click.command(epilog=EPILOG)
@click.argument("model", type=DATA)
@click.argument("data", type=DATA)
@click.option("--out", "-o", type=OUTPUT, metavar="FILE", help="Write here (.csv or .parquet).")
@click.option("--id", "label", metavar="COL", help="Copy this column beside the predictions.")
@click.option("--probabilities", is_flag=True, help="Add the probability of each class.")
@click.option("--interval", is_flag=True, help="Add an interval that holds 90 % of outcomes.")
@click.option("--json", "as_json", is_flag=True, help="Print predictions and notes as JSON.")
@reading_options
def predict(
    model: Path,
    data: Path,
    out: Path | None,
    label: str | None,
    probabilities: bool,
    interval: bool,
    as_json: bool,
    encoding: str,
    delimiter: str | None,
) -> None:
    """Predict every row of DATA with the model in the file MODEL.

    Predictions go to the terminal as CSV, in the order of the rows, or to a file with --out.
    """
    check_outputs({"--out": out}, data, model)
    if out is not None and out.suffix.lower() in SPREADSHEETS:
        raise click.BadParameter(
            f"predictions are written as CSV or Parquet; '{out.suffix}' is neither.",
            param_hint="--out",
        )
    from hetrisk.cli.predictions import Predictions, write_predictions
    from hetrisk.cli.terminal import print_json, progress, say_notes
    from hetrisk.tables.large import is_large, pieces

    deployed = open_model(model)
    _check_wishes(deployed, probabilities, interval)
    large = is_large(data)
    if large and as_json and out is None:
        raise click.UsageError("--json needs --out when the data is read in pieces.")
    frames = pieces(data, encoding, delimiter) if large else [read(data, encoding, delimiter).frame]
    predictions = Predictions(deployed, frames, label, probabilities, interval)
    with progress("predicting"):
        held = [] if large else list(predictions)
        made = held or predictions
        if out is not None:
            write_predictions(made, out)
    if as_json:
        record = {"rows": predictions.rows, "notes": predictions.notes, "out": out and str(out)}
        print_json(record if out else record | {"predictions": held[0].to_dict(orient="list")})
        return
    if out is None:
        write_predictions(made, sys.stdout)
    say_notes(predictions.notes)


def _check_wishes(deployed: Deployed, probabilities: bool, interval: bool) -> None:
    if probabilities and deployed.classes is None:
        raise click.UsageError(
            "--probabilities needs a model of classes; this one predicts numbers."
        )
    if interval and (deployed.classes is not None or deployed.intervals is None):
        why = "predicts classes" if deployed.classes is not None else "was not backtested"
        raise click.UsageError(f"--interval: the model {why}, and has no intervals.")
