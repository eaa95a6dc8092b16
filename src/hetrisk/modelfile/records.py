"""From a `Deployed` to its four records, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetrisk.modelfile.codec import Reader, Writer
from hetrisk.modelfile.deployed import Deployed
from hetrisk.modelfile.schema import RECORDS, VERSIONS


def write_records(deployed: Deployed, out: Writer) -> dict[str, Any]:
    """Return the four records as plain JSON; arrays go to ``out``."""
    return {
        name: {
            "version": VERSIONS[name],
            **record.write({field: getattr(deployed, field) for field in record.fields}, out),
        }
        for name, record in RECORDS.items()
    }


def read_records(node: Any, src: Reader) -> Deployed:
    """Check the four records one by one, then against one another."""
    src.need(type(node) is dict and set(node) == set(RECORDS), f"hold {', '.join(RECORDS)}")
    read: dict[str, Any] = {}
    for name, record in RECORDS.items():
        whole = node[name]
        with src.inside(name):
            right = type(whole) is dict and type(whole.get("version")) is int
            src.need(right, "say its version")
            src.version = whole["version"]
            read |= record.read({k: v for k, v in whole.items() if k != "version"}, src)
        if name == "predictor":  # what follows has the same dimensions
            src.dims = {"d": len(read["columns"]), "K": read.pop("n_scores")}
    labels = read["classes"]
    if labels is not None:  # text as objects: an array of letters has room for the longest in each
        read["classes"] = np.array(labels, dtype=object if str in map(type, labels) else None)
    deployed = Deployed(**read)
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
    encoded = None if deployed.encoder is None else deployed.encoder.feature_names
    src.need(encoded in (None, deployed.columns), "encode the columns it predicts from")
    compared = None if deployed.reference is None else deployed.reference["names"]
    src.need(compared in (None, deployed.columns), "compare the columns it predicts from")
