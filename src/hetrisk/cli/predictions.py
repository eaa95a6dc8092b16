"""Predictions for a table: one a row, with notes, and written to one file or to none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hetrisk import atomic
from hetrisk.cli.columns import named
from hetrisk.monitoring.checking import observed
from hetrisk.monitoring.reference import Reference
from hetrisk.tables.cells import cells_of
from hetrisk.tables.errors import TableError, counted, needs, quoted, shown

if TYPE_CHECKING:
    from hetrisk.modelfile import Deployed

PARQUET = (".parquet", ".pq")
DIGITS = 6  # of the target's spread
CHANCE_DECIMALS = 6
LEVEL = 0.9  # of an interval


class Predictions:
    """The predictions of a table that comes in one piece or in many; iterate once.

    Parameters
    ----------
    deployed : the model.
    frames : the pieces of the table, in order.
    label : a column to copy beside the predictions.
    probabilities : add the probability of each class.
    interval : add the ends of a 90 % interval.

    Attributes
    ----------
    rows : number of rows so far.
    """

    def __init__(
        self,
        deployed: Deployed,
        frames: Iterable[pd.DataFrame],
        label: str | None = None,
        probabilities: bool = False,
        interval: bool = False,
    ) -> None:
        self.deployed, self.frames, self.label = deployed, frames, label
        self.probabilities, self.interval = probabilities, interval
        self.rows, self._outside = 0, 0
        self._columns: Counter[str] = Counter()
        self._notes: dict[str, None] = {}
        self._reference = None if deployed.reference is None else Reference(**deployed.reference)

    @property
    def notes(self) -> list[str]:
        """Notes so far, each once, in the order they came up."""
        if not self._outside:
            return [*self._notes]
        most = ", ".join(f"{quoted(n)} in {k:,}" for n, k in self._columns.most_common(5) if k)
        outside = (
            f"{counted(self._outside, 'row')} of {self.rows:,} clearly outside what the model "
            f"learned from ({most}): predictions there are guesses"
        )
        return [*self._notes, outside]

    def __iter__(self) -> Iterator[pd.DataFrame]:
        place = ""
        try:
            for frame in self.frames:
                place = frame.attrs.get("place") or ""
                predicted = self._predict(frame)
                self.rows += len(predicted)
                yield predicted
                place = ""
        except ValueError as error:  # what is wrong with a file, with its name and row group
            raise TableError(f"{place}: {error}" if place else str(error)) from None

    def _predict(self, frame: pd.DataFrame) -> pd.DataFrame:
        model, columns = self.deployed, dict[str, Any]()
        if model.classes is None:
            columns["prediction"] = self._rounded(model.predict(frame))
            if self.interval:
                low, high = model.predict_interval(frame, LEVEL).T
                columns |= {"lower": self._rounded(low), "upper": self._rounded(high)}
        else:
            chances = model.predict_proba(frame)
            columns["prediction"] = model.classes[chances.argmax(axis=1)]
            if self.probabilities:
                for k, value in enumerate(model.classes):
                    columns[f"probability of {value}"] = np.round(chances[:, k], CHANCE_DECIMALS)
        if model.encoder is not None:
            self._notes |= {note.in_flags: None for note in model.encoder.encode(frame)[1]}
        self._look_outside(frame)
        return pd.DataFrame(self._copied(frame, columns) | columns)

    def _copied(self, frame: pd.DataFrame, columns: dict[str, Any]) -> dict[str, Any]:
        """The column that goes beside the predictions."""
        names = [str(name) for name in frame.columns]
        if self.label is None:
            return {}
        label = named(self.label, names, "--id")
        if label in columns:
            raise TableError(
                f"{quoted(label)} is what a column of the predictions is called: rename the "
                "column, or copy another"
            )
        column = frame.iloc[:, names.index(label)]
        if cells_of(label, column) is None:  # no format of predictions has all of these
            raise TableError(f"column {quoted(label)} does not hold single values to copy")
        return {label: column.to_numpy()}

    def _rounded(self, values: np.ndarray) -> np.ndarray:
        """Leave out digits that say nothing: a millionth of the target's spread is enough."""
        forecast = self.deployed.summary.get("forecast")
        spread = float("nan") if forecast is None else forecast.constant.mean
        if not 0 < spread < np.inf:
            return values
        return np.round(values, DIGITS - int(np.floor(np.log10(spread))))

    def _look_outside(self, frame: pd.DataFrame) -> None:
        """Count rows that lie outside what was learned, and the columns in which they do."""
        r = self._reference
        if r is None:
            return
        used = np.array([r.weights.get(group, 0.0) > 0 for group in r.groups], dtype=bool)
        far = r.columns.outside(observed(self.deployed, frame)) & used
        self._outside += int(far.any(axis=1).sum())
        for group in dict.fromkeys(r.groups):
            self._columns[group] += int(far[:, np.array(r.groups) == group].any(axis=1).sum())


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
        if file.isatty():  # what a table or a model file calls things must not drive a terminal
            piece = piece.map(lambda v: shown(v, 1000) if isinstance(v, str) else v)
            piece.columns = [shown(name, 200) for name in piece.columns]
        file.write(piece.to_csv(index=False, header=i == 0, lineterminator="\n"))


def _write_parquet(predictions: Iterable[pd.DataFrame], path: Path) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise needs("writing Parquet", "pyarrow", "parquet") from None
    tables = (pa.Table.from_pandas(piece, preserve_index=False) for piece in predictions)
    first = next(tables)
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for table in tables:  # the first one's types hold
            writer.write_table(table.cast(first.schema))
