"""Tables of records print and convert."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from hetrisk.core.records import SHOWN, Records


@dataclass(frozen=True)
class Line:
    name: str
    error: float
    rows: int


def lines(n: int) -> Records[Line]:
    return Records(Line(f"l{k}", k / 3, k) for k in range(n))


def test_they_are_tuples() -> None:
    records = lines(3)
    assert len(records) == 3
    assert records[1].name == "l1"
    assert records == tuple(lines(3))
    assert pickle.loads(pickle.dumps(records)) == records


def test_they_print_as_a_table() -> None:
    assert repr(lines(2)).splitlines() == [
        "name   error  rows",
        "l0         0  0",
        "l1    0.3333  1",
    ]
    assert repr(Records()) == "Records()"
    many = repr(lines(SHOWN + 5)).splitlines()
    assert len(many) == SHOWN + 2
    assert many[-1] == "... and 5 more"


def test_they_are_frames() -> None:
    frame = lines(4).to_frame()
    assert list(frame.columns) == ["name", "error", "rows"]
    assert frame["rows"].tolist() == [0, 1, 2, 3]
    assert len(Records().to_frame()) == 0
