"""From a `Deployed` to its four records, and back."""

from __future__ import annotations

from typing import Any

from hetrisk.modelfile.deployed import Deployed, Encoder, Intervals
from hetrisk.modelfile.kinds import Reader, Writer
from hetrisk.modelfile.schema import RECORDS, VERSIONS
from hetrisk.tables.time import TimeColumn


def write_records(deployed: Deployed, out: Writer) -> dict[str, Any]:
    """Return the four records as plain JSON; arrays go to ``out``."""
    encoder, time = deployed.encoder, deployed.time
    values = {
        "encoder": {
            "table": None if encoder is None else encoder.to_record(),
            "time_name": deployed.time_name,
            "time": None if time is None else time.to_record(),
        },
        "predictor": {
            "kind": deployed.kind,
            "target": deployed.target,
            "columns": deployed.columns,
            "scores": deployed.n_scores,
            "classes": deployed.classes,
            "environment_name": deployed.environment_name,
            "environment_levels": deployed.environment_levels,
            "model": deployed.predictor,
            "intervals": deployed.intervals,
            "adaptation": deployed.adaptation,
        },
        "summary": deployed.summary,
        "reference": deployed.reference,
    }
    return {
        name: {"version": VERSIONS[name], "of": record.write(values[name], out)}
        for name, record in RECORDS.items()
    }


def read_records(node: Any, src: Reader) -> Deployed:
    """Check the four records one by one, then against one another."""
    src.need(type(node) is dict and set(node) == set(RECORDS), f"hold {', '.join(RECORDS)}")
    read = {}
    for name, record in RECORDS.items():
        whole = node[name]
        with src.inside(name):
            right = type(whole) is dict and set(whole) == {"version", "of"}
            src.need(right and type(whole["version"]) is int, "say its version")
            src.version = whole["version"]
            read[name] = record.read(whole["of"], src)
        if name == "predictor":  # what follows has the same dimensions
            src.dims = {"d": len(read[name]["columns"]), "K": read[name]["scores"]}
    deployed = _deployed(**read)
    _check_whole(deployed, src)
    return deployed


def _check_whole(deployed: Deployed, src: Reader) -> None:
    """Refuse records that do not fit one another."""
    labels = deployed.kind == "labels"
    src.need(labels == (deployed.classes is not None), "name classes where it predicts labels")
    link = "softmax" if labels else "identity"
    src.need(deployed.predictor.link == link, f"have the link {link}")
    timeless = deployed.time is None or deployed.time_name is None
    src.need(not (deployed.predictor.needs_time and timeless), "say how time is read")


def _deployed(
    encoder: dict[str, Any],
    predictor: dict[str, Any],
    summary: dict[str, Any],
    reference: dict[str, Any],
) -> Deployed:
    table, time = encoder["table"], encoder["time"]
    intervals = predictor["intervals"]
    return Deployed(
        kind=predictor["kind"],
        target=predictor["target"],
        predictor=predictor["model"],
        columns=predictor["columns"],
        encoder=None if table is None else _encoder(table),
        time_name=encoder["time_name"],
        time=None if time is None else TimeColumn.from_record(time),
        environment_name=predictor["environment_name"],
        environment_levels=predictor["environment_levels"],
        classes=predictor["classes"],
        intervals=None if intervals is None else Intervals(**intervals),
        adaptation=predictor["adaptation"],
        summary=summary,
        reference=reference,
    )


def _encoder(record: Any) -> Encoder:
    from hetrisk.tables.encoder import TableEncoder

    return TableEncoder.from_record(record)  # type: ignore[attr-defined,no-any-return]
