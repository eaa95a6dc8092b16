"""``hetrisk predict``: a model file and a table in, one prediction a row out."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hetrisk.cli.arguments import DATA, OUTPUT, check_output, read, reading_options

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.pipeline import Pipeline

EPILOG = """
\b
Examples:
  hetrisk predict houses.hetrisk new.csv
  hetrisk predict houses.hetrisk new.csv --id house --out predictions.csv
  hetrisk predict patients.hetrisk new.parquet --probabilities --json
  hetrisk predict shops.hetrisk shops/ --out predictions.parquet    a folder, a piece at a time

The columns may come in any order. Columns the model does not use may be absent, and extra ones are
ignored. A category the model never saw counts as a rare one; a missing value is filled in as it was
when fitting; text where a number should be is an error that names the row.
"""


@click.command(epilog=EPILOG)
@click.argument("model", type=DATA)
@click.argument("data", type=DATA)
@click.option("--out", "-o", type=OUTPUT, metavar="FILE", help="Write here (.csv or .parquet).")
@click.option("--id", "label", metavar="COL", help="Copy this column beside the predictions.")
@click.option("--probabilities", is_flag=True, help="Add the probability of each class.")
@click.option("--json", "as_json", is_flag=True, help="Print predictions and notes as JSON.")
@reading_options
def predict(
    model: Path,
    data: Path,
    out: Path | None,
    label: str | None,
    probabilities: bool,
    as_json: bool,
    encoding: str,
    delimiter: str | None,
) -> None:
    """Predict every row of DATA with the model in the file MODEL.

    Predictions go to the terminal as CSV, in the order of the rows, or to a file with --out.
    """
    check_output(out, "--out", data, model)
    from hetrisk.cli.terminal import progress, say_notes
    from hetrisk.tables.reading import is_large_parquet

    pipeline = open_model(model)
    if data.is_dir() or is_large_parquet(data):
        _predict_large(pipeline, data, out, label, probabilities, as_json)
        return
    table = read(data, encoding, delimiter)
    with progress("predicting"):
        predictions, notes = predicted(pipeline, table.frame, label, probabilities)
    if out is not None:
        _write(predictions, out)
    if as_json:
        _print_json(len(predictions), notes, out, None if out else predictions)
        return
    say_notes(notes)
    if out is None:
        sys.stdout.write(predictions.to_csv(index=False, lineterminator="\n"))


def _predict_large(
    pipeline: Pipeline,
    data: Path,
    out: Path | None,
    label: str | None,
    probabilities: bool,
    as_json: bool,
) -> None:
    """Predict Parquet files a piece at a time."""
    from hetrisk.cli.largepredict import predict_large
    from hetrisk.cli.terminal import progress, say_notes

    if as_json and out is None:
        raise click.UsageError("--json needs --out when the data is read in pieces.")
    with progress("predicting"):
        rows, notes = predict_large(pipeline, data, out, label, probabilities)
    if as_json:
        _print_json(rows, notes, out, None)
    else:
        say_notes(notes)


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


def predicted(
    pipeline: Pipeline, frame: pd.DataFrame, label: str | None, probabilities: bool
) -> tuple[pd.DataFrame, list[Any]]:
    """Return the predictions of a table, one a row, and the notes about it."""
    import pandas as pd

    from hetrisk.tables import TableError
    from hetrisk.tables.errors import listed, quoted

    names = [str(name) for name in frame.columns]
    if label is not None and label not in names:
        raise TableError(f"there is no column {quoted(label)}; the columns are {listed(names, 12)}")
    if probabilities and pipeline[0].description_.task != "classification":
        raise click.UsageError(
            "--probabilities needs a model of classes; this one predicts numbers."
        )
    X, notes = _features(pipeline, frame)
    columns: dict[str, Any] = {}
    if label is not None:
        columns[label] = frame.iloc[:, names.index(label)].to_numpy()
    columns["prediction"] = pipeline[-1].predict(X)
    if probabilities:
        chances = pipeline[-1].predict_proba(X)
        for k, value in enumerate(pipeline[-1].classes_):
            columns[f"probability of {value}"] = chances[:, k]
    return pd.DataFrame(columns), notes


def _features(pipeline: Pipeline, frame: pd.DataFrame) -> tuple[pd.DataFrame, list[Any]]:
    """Encode the table; columns the model does not use need not be there."""
    import pandas as pd

    from hetrisk.tables import Note
    from hetrisk.tables.errors import listed

    encoder = pipeline[0]
    names = {str(name) for name in frame.columns}
    spare = [name for name in unused_columns(pipeline) if name not in names]
    if spare:
        blank = pd.DataFrame(None, index=frame.index, columns=pd.Index(spare), dtype=object)
        frame = pd.concat([frame, blank], axis=1)
    values, notes = encoder.encode(frame)
    notes = [note for note in notes if note.column not in spare]
    extra = names - {str(name) for name in encoder.feature_names_in_}
    extra.discard(encoder.description_.target)
    if spare:
        notes.insert(0, Note("", f"columns not in the table, nor needed: {listed(spare)}"))
    if extra:
        notes.insert(
            0, Note("", f"columns the model does not know, ignored: {listed(sorted(extra))}")
        )
    # Without a copy, so that the rows lie in memory as they do in the pipeline's own predict:
    # sums then round alike to the last bit.
    return pd.DataFrame(values, columns=encoder.get_feature_names_out(), copy=False), notes


def unused_columns(pipeline: Pipeline) -> list[str]:
    """Columns none of whose features the model looks at."""
    encoder, final = pipeline[0], pipeline[-1]
    used = set(encoder.feature_groups_[final.support_])
    return [column.name for column in encoder.columns_ if column.name not in used]


def _write(predictions: pd.DataFrame, out: Path) -> None:
    from hetrisk import atomic
    from hetrisk.tables import TableError

    if out.suffix.lower() in (".parquet", ".pq"):
        buffer = io.BytesIO()
        try:
            predictions.to_parquet(buffer, index=False)
        except ImportError:
            message = "writing Parquet needs pyarrow: pip install 'hetrisk[parquet]'"
            raise TableError(message) from None
        atomic.write_bytes(out, buffer.getvalue())
        return
    text = predictions.to_csv(index=False, lineterminator="\n")
    atomic.write_bytes(out, text.encode("utf-8", errors="surrogateescape"))


def _print_json(
    rows: int, notes: list[Any], out: Path | None, predictions: pd.DataFrame | None
) -> None:
    from hetrisk.cli.terminal import print_json

    record: dict[str, Any] = {
        "rows": rows,
        "notes": [{"column": note.column, "note": note.text} for note in notes],
        "out": None if out is None else str(out),
    }
    if predictions is not None:
        record["predictions"] = predictions.to_dict(orient="list")
    print_json(record)
