"""Predictions for a table: one a row, with notes, and written to one file or to none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from hetrisk import atomic
from hetrisk.columns import FloatArray
from hetrisk.tables.columns import Note
from hetrisk.tables.errors import TableError, counted, listed, quoted

PARQUET = (".parquet", ".pq")
DIGITS = 6  # of the target's standard deviation
CHANCE_DECIMALS = 6


def _predicted(
    pipeline: Pipeline, frame: pd.DataFrame, label: str | None, probabilities: bool, flag: bool
) -> tuple[pd.DataFrame, list[Note], list[str]]:
    """Predictions, notes, and for each row what lies outside."""
    names = [str(name) for name in frame.columns]
    if label is not None and label not in names:
        raise TableError(f"there is no column {quoted(label)}; the columns are {listed(names, 12)}")
    _check_label(label, pipeline, probabilities)
    X, notes = _features(pipeline, frame)
    columns: dict[str, Any] = {}
    if label is not None:
        columns[label] = frame.iloc[:, names.index(label)].to_numpy()
    final = pipeline[-1]
    predicted = final.predict(X)
    columns["prediction"] = predicted if is_classifier(final) else _rounded(final, predicted)
    if probabilities:
        chances = final.predict_proba(X)
        for k, value in enumerate(final.classes_):
            columns[f"probability of {value}"] = np.round(chances[:, k], CHANCE_DECIMALS)
    outside = _outside(pipeline, X.to_numpy(), predicted)
    if flag:
        columns["outside"] = outside
    return pd.DataFrame(columns), notes, outside


def _rounded(final: Any, predicted: FloatArray) -> FloatArray:
    """Digits that say nothing are left out: a millionth of the target's spread is enough."""
    spread = float(final.reference_.sd[-1])
    if not 0 < spread < np.inf:
        return predicted
    return np.round(predicted, DIGITS - int(np.floor(np.log10(spread))))


def _outside(pipeline: Pipeline, Z: FloatArray, predicted: np.ndarray) -> list[str]:
    """For each row the columns outside what was learned, and "prediction" where that is."""
    encoder, final = pipeline[0], pipeline[-1]
    reference, support = final.reference_, final.support_
    far = reference.outside(Z[:, support], np.append(support, False))
    groups = encoder.feature_groups_[support]
    names = [str(name) for name in groups]
    if not is_classifier(final):
        last = np.arange(len(reference.mean)) == len(reference.mean) - 1
        far = np.column_stack([far, reference.outside(predicted[:, None], last)])
        names.append("prediction")
    outside = [""] * len(Z)
    for i in np.flatnonzero(far.any(axis=1)):
        outside[i] = "; ".join(dict.fromkeys(names[j] for j in np.flatnonzero(far[i])))
    return outside


def _outside_notes(outside: Counter[str], flag: bool) -> list[Note]:
    """``outside`` counts the rows by what of them lies outside, empty where nothing does."""
    rows = outside.total() - outside[""]
    if not rows:
        return []
    count: Counter[str] = Counter()
    for where, times in outside.items():
        count.update(dict.fromkeys(filter(None, where.split("; ")), times))
    most = ", ".join(f"{quoted(name)} in {times:,}" for name, times in count.most_common(5))
    text = (
        f"{counted(rows, 'row')} of {outside.total():,} clearly outside what the model learned "
        f"from ({most}): predictions there are guesses"
    )
    return [Note("", text if flag else f"{text}; --flag marks them")]


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
    frame = encoder.matched(frame)
    names = {str(name) for name in frame.columns}
    spare = [name for name in unused_columns(pipeline) if name not in names]
    values, notes = encoder.encode(frame, spare=spare)
    notes = [note for note in notes if note.column not in spare]
    about = encoder.description_
    roles = {about.target, about.environment, about.weight, *about.hints}  # known, and no features
    extra = names - {str(name) for name in encoder.feature_names_in_} - roles
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

    Numbers are rounded to a millionth of the standard deviation of the target, probabilities to
    six decimals.

    Parameters
    ----------
    pipeline : as `hetrisk.tables.model.fit_table` returns it.
    frames : the pieces of the table, in order; columns the model does not use may be absent.
    label : a column to copy beside the predictions.
    probabilities : add the probability of each class.
    flag : add a column "outside" that names, for each row, what lies clearly outside what the
        model learned from; empty where nothing does.

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
        flag: bool = False,
    ) -> None:
        self.pipeline, self.frames = pipeline, frames
        self.label, self.probabilities, self.flag = label, probabilities, flag
        self._outside: Counter[str] = Counter()
        self.rows = 0
        self._notes: dict[Note, None] = {}

    @property
    def notes(self) -> list[Note]:
        """Notes so far, in the order they came up."""
        return [*self._notes, *_outside_notes(self._outside, self.flag)]

    def __iter__(self) -> Iterator[pd.DataFrame]:
        try:
            for frame in self.frames:
                predicted, notes, outside = self._predict(frame)
                self._outside.update(outside)
                self.rows += len(predicted)
                self._notes.update(dict.fromkeys(notes))
                yield predicted
        except TableError:
            raise
        except ValueError as error:  # what is wrong with a file, with its name and row group
            raise TableError(str(error)) from error

    def _predict(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, list[Note], list[str]]:
        try:
            return _predicted(self.pipeline, frame, self.label, self.probabilities, self.flag)
        except TableError as error:
            place = frame.attrs.get("place")
            raise TableError(f"{place}: {error}" if place else str(error)) from None


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
