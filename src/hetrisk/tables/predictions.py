"""Predictions for a table: one a row, with notes, and written to one file or to none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import pandas as pd
from sklearn.pipeline import Pipeline

from hetrisk import atomic
from hetrisk.tables.columns import Note
from hetrisk.tables.errors import TableError, listed, quoted

PARQUET = (".parquet", ".pq")


def predict_table(
    pipeline: Pipeline,
    frame: pd.DataFrame,
    *,
    label: str | None = None,
    probabilities: bool = False,
) -> tuple[pd.DataFrame, list[Note]]:
    """Return the predictions of a table, one a row, and the notes about it.

    Parameters
    ----------
    pipeline : as `hetrisk.tables.model.fit_table` returns it.
    frame : the table; columns the model does not use may be absent.
    label : a column to copy beside the predictions.
    probabilities : add the probability of each class.
    """
    names = [str(name) for name in frame.columns]
    if label is not None and label not in names:
        raise TableError(f"there is no column {quoted(label)}; the columns are {listed(names, 12)}")
    _check_label(label, pipeline, probabilities)
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


def _check_label(label: str | None, pipeline: Pipeline, probabilities: bool) -> None:
    """Refuse an identifier that would stand where a prediction does."""
    taken = {"prediction"}
    if probabilities:
        taken |= {f"probability of {value}" for value in pipeline[-1].classes_}
    if label in taken:
        raise TableError(
            f"{quoted(label)} is what a column of the predictions is called: rename the column, "
            "or copy another"
        )


def _features(pipeline: Pipeline, frame: pd.DataFrame) -> tuple[pd.DataFrame, list[Note]]:
    """Encode the table; columns the model does not use need not be there."""
    encoder = pipeline[0]
    names = {str(name) for name in frame.columns}
    spare = [name for name in unused_columns(pipeline) if name not in names]
    values, notes = encoder.encode(frame, spare=spare)
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


class Predictions:
    """The predictions of a table that comes in one piece or in many; iterate once.

    Parameters
    ----------
    pipeline, label, probabilities : as for `predict_table`.
    frames : the pieces of the table, in order.

    Attributes
    ----------
    rows : number of rows so far.
    notes : notes so far, each once.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        frames: Iterable[pd.DataFrame],
        *,
        label: str | None = None,
        probabilities: bool = False,
    ) -> None:
        self.pipeline, self.frames = pipeline, frames
        self.label, self.probabilities = label, probabilities
        self.rows = 0
        self._notes: dict[Note, None] = {}

    @property
    def notes(self) -> list[Note]:
        """Notes so far, in the order they came up."""
        return list(self._notes)

    def __iter__(self) -> Iterator[pd.DataFrame]:
        try:
            for frame in self.frames:
                predicted, notes = predict_table(
                    self.pipeline, frame, label=self.label, probabilities=self.probabilities
                )
                self.rows += len(predicted)
                self._notes.update(dict.fromkeys(notes))
                yield predicted
        except TableError:
            raise
        except ValueError as error:  # what is wrong with a file, with its name and row group
            raise TableError(str(error)) from error


def write_predictions(predictions: Iterable[pd.DataFrame], out: Path | IO[str]) -> None:
    """Write predictions a piece at a time.

    Parameters
    ----------
    predictions : the pieces, in order, all with the same columns.
    out : a file (.csv or .parquet), which appears whole or not at all; or a stream, for CSV.
    """
    if not isinstance(out, Path):
        _write_csv(predictions, out)
        return
    with atomic.replacing(out) as temporary:
        if out.suffix.lower() in PARQUET:
            _write_parquet(predictions, temporary)
        else:
            with temporary.open(
                "w", encoding="utf-8", errors="surrogateescape", newline=""
            ) as file:
                _write_csv(predictions, file)


def _write_csv(predictions: Iterable[pd.DataFrame], file: IO[str]) -> None:
    for i, piece in enumerate(predictions):
        file.write(piece.to_csv(index=False, header=i == 0, lineterminator="\n"))


def _write_parquet(predictions: Iterable[pd.DataFrame], path: Path) -> None:
    try:
        import pyarrow as pa

        from hetrisk.blocks.writing import write_tables
    except ImportError:
        message = "writing Parquet needs pyarrow: pip install 'hetrisk[parquet]'"
        raise TableError(message) from None
    write_tables((pa.Table.from_pandas(p, preserve_index=False) for p in predictions), path)
