"""Predictions for a table: one a row, with notes, and written to one file or to none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hetrisk import atomic
from hetrisk.tables.errors import TableError, counted, listed, quoted

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
    flag : add a column "outside" that names, for each row, what lies clearly outside what the
        model learned from; empty where nothing does.

    Attributes
    ----------
    rows : number of rows so far.
    notes : notes so far, each once.
    """

    def __init__(
        self,
        deployed: Deployed,
        frames: Iterable[pd.DataFrame],
        *,
        label: str | None = None,
        probabilities: bool = False,
        interval: bool = False,
        flag: bool = False,
    ) -> None:
        self.deployed, self.frames = deployed, frames
        self.label, self.flag = label, flag
        self.probabilities, self.interval = probabilities, interval
        self.rows = 0
        self._outside: Counter[str] = Counter()
        self._notes: dict[str, None] = {}

    @property
    def notes(self) -> list[str]:
        """Notes so far, in the order they came up."""
        return [*self._notes, *_outside_notes(self._outside, self.flag)]

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
        columns: dict[str, Any] = {}
        if self.label is not None:
            columns[self.label] = _copied(frame, self.label, self._names())
        model = self.deployed
        if model.classes is None:
            columns["prediction"] = _rounded(model, model.predict(frame))
            if self.interval:
                low, high = model.predict_interval(frame, LEVEL).T
                columns |= {"lower": _rounded(model, low), "upper": _rounded(model, high)}
        else:
            chances = model.predict_proba(frame)
            columns["prediction"] = np.asarray(model.classes)[chances.argmax(axis=1)]
            if self.probabilities:
                for k, value in enumerate(model.classes):
                    columns[probability_name(value)] = np.round(chances[:, k], CHANCE_DECIMALS)
        self._notes.update(dict.fromkeys(_notes(model, frame)))
        outside = _outside(model, frame)
        self._outside.update(outside)
        if self.flag:
            columns["outside"] = outside
        return pd.DataFrame(columns)

    def _names(self) -> set[str]:
        """Names that columns of predictions have."""
        taken = {"prediction", "outside", "lower", "upper"}
        classes = () if self.deployed.classes is None else self.deployed.classes
        return taken | {probability_name(value) for value in classes}


def probability_name(label: object) -> str:
    """What the column of a class's probabilities is called."""
    return f"probability of {label}"


def _copied(frame: pd.DataFrame, label: str, taken: set[str]) -> np.ndarray:
    names = [str(name) for name in frame.columns]
    if label not in names:
        raise TableError(f"there is no column {quoted(label)}; the columns are {listed(names, 12)}")
    if label in taken:
        raise TableError(
            f"{quoted(label)} is what a column of the predictions is called: rename the column, "
            "or copy another"
        )
    return frame.iloc[:, names.index(label)].to_numpy()


def _rounded(model: Deployed, values: np.ndarray) -> np.ndarray:
    """Leave out digits that say nothing: a millionth of the target's spread is enough."""
    forecast = model.summary.get("forecast")
    spread = float("nan") if forecast is None else forecast.constant.mean
    if not 0 < spread < np.inf:
        return values
    return np.round(values, DIGITS - int(np.floor(np.log10(spread))))


def _notes(model: Deployed, frame: pd.DataFrame) -> list[str]:
    """What had to be done to the table before it could be predicted."""
    encoder = model.encoder
    return [] if encoder is None else [note.in_flags for note in encoder.encode(frame)[1]]


def _outside(model: Deployed, frame: pd.DataFrame) -> list[str]:
    """For each row the columns that lie outside what was learned."""
    from hetrisk.monitoring.checking import observed
    from hetrisk.monitoring.reference import from_record

    outside = [""] * len(frame)
    if model.reference is None:
        return outside
    reference = from_record(model.reference)
    used = np.array([reference.weights.get(group, 0.0) > 0 for group in reference.groups])
    far = reference.columns.outside(observed(model, frame)) & used
    for i in np.flatnonzero(far.any(axis=1)):
        outside[i] = "; ".join(dict.fromkeys(reference.groups[j] for j in np.flatnonzero(far[i])))
    return outside


def _outside_notes(outside: Counter[str], flag: bool) -> list[str]:
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
    return [text if flag else f"{text}; --flag marks them"]


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
    from hetrisk.tables.errors import shown

    for i, piece in enumerate(predictions):
        if file.isatty():  # what a table or a model file calls things must not drive a terminal
            piece = piece.map(lambda v: shown(v, 1000) if isinstance(v, str) else v)
            piece.columns = [shown(name, 200) for name in piece.columns]
        file.write(piece.to_csv(index=False, header=i == 0, lineterminator="\n"))


def _write_parquet(predictions: Iterable[pd.DataFrame], path: Path) -> None:
    try:
        import pyarrow as pa

        from hetrisk.blocks.writing import write_tables
    except ImportError:
        message = "writing Parquet needs pyarrow: pip install 'hetrisk[parquet]'"
        raise TableError(message) from None
    write_tables((pa.Table.from_pandas(p, preserve_index=False) for p in predictions), path)
