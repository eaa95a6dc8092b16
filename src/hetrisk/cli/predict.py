"""``hetrisk predict``: a model file and a table in, one prediction a row out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hetrisk.cli.arguments import DATA, OUTPUT, check_outputs, read, reading_options

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.pipeline import Pipeline

    from hetrisk.tables.predictions import Predictions

EPILOG = """
\b
Examples:
  hetrisk predict houses.hetrisk new.csv
  hetrisk predict houses.hetrisk new.csv --id house --out predictions.csv
  hetrisk predict houses.hetrisk new.csv --flag
  hetrisk predict patients.hetrisk new.parquet --probabilities --json
  hetrisk predict shops.hetrisk shops/ --out predictions.parquet    a folder, a piece at a time

The columns may come in any order. Columns the model does not use may be absent, and extra ones are
ignored. A category the model never saw counts as a rare one; a missing value is filled in as it was
when fitting; text where a number should be is an error that names the row. Rows with a value (or a
prediction) outside what the model learned from, by more than a tenth of that range, are counted in
a note.
"""


@click.command(epilog=EPILOG)
@click.argument("model", type=DATA)
@click.argument("data", type=DATA)
@click.option("--out", "-o", type=OUTPUT, metavar="FILE", help="Write here (.csv or .parquet).")
@click.option("--id", "label", metavar="COL", help="Copy this column beside the predictions.")
@click.option("--probabilities", is_flag=True, help="Add the probability of each class.")
@click.option(
    "--flag", is_flag=True, help="Add a column that names what lies outside what was learned."
)
@click.option("--json", "as_json", is_flag=True, help="Print predictions and notes as JSON.")
@reading_options
def predict(
    model: Path,
    data: Path,
    out: Path | None,
    label: str | None,
    probabilities: bool,
    flag: bool,
    as_json: bool,
    encoding: str,
    delimiter: str | None,
) -> None:
    """Predict every row of DATA with the model in the file MODEL.

    Predictions go to the terminal as CSV, in the order of the rows, or to a file with --out.
    """
    check_outputs({"--out": out}, data, model)
    from hetrisk.cli.terminal import progress, say_notes
    from hetrisk.tables.large import is_large, pieces
    from hetrisk.tables.predictions import Predictions, write_predictions

    pipeline = open_model(model)
    if probabilities and pipeline[0].description_.task != "classification":
        raise click.UsageError(
            "--probabilities needs a model of classes; this one predicts numbers."
        )
    large = is_large(data)
    if large and as_json and out is None:
        raise click.UsageError("--json needs --out when the data is read in pieces.")
    table = None if large else read(data, encoding, delimiter)
    frames = pieces(data, encoding, delimiter) if table is None else [table.frame]
    predictions = Predictions(pipeline, frames, label=label, probabilities=probabilities, flag=flag)
    with progress("predicting"):
        if out is not None:
            write_predictions(predictions, out)
        held = [] if out is not None or large else list(predictions)
    if as_json:
        _print_json(predictions, out, held)
        return
    say_notes(predictions.notes)
    if out is None:
        write_predictions(predictions if large else held, sys.stdout)
        say_notes(predictions.notes if large else [])  # those of a table in pieces come last


def open_model(path: Path) -> Pipeline:
    """Open a model file, and refuse one that was not fitted from a table."""
    import warnings

    from sklearn.pipeline import Pipeline

    from hetrisk import modelfile
    from hetrisk.cli.terminal import progress, say_notes
    from hetrisk.tables import TableEncoder
    from hetrisk.tables.errors import quoted

    with progress("opening the model"), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", modelfile.NewerModelWarning)
        pipeline = modelfile.load(path)
    say_notes(note.message for note in told)
    first = pipeline.steps[0][1] if isinstance(pipeline, Pipeline) else pipeline
    if not isinstance(first, TableEncoder) or "description_" not in vars(first):
        raise modelfile.ModelFileError(
            f"{quoted(path.name)} was not fitted from a table by 'hetrisk fit': use it from Python"
        )
    return pipeline


def _print_json(predictions: Predictions, out: Path | None, shown: list[pd.DataFrame]) -> None:
    from hetrisk.cli.terminal import print_json

    record: dict[str, Any] = {
        "rows": predictions.rows,
        "notes": [{"column": note.column, "note": note.text} for note in predictions.notes],
        "out": None if out is None else str(out),
    }
    for frame in shown:
        record["predictions"] = frame.to_dict(orient="list")
    print_json(record)
