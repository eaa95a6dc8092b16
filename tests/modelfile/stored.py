"""Writes the model files that every later version must open, and what they predict.

Once for each version that changes a record, and never again for one that has been released:

    PYTHONPATH=src:tests python -m modelfile.stored
"""

import json
from pathlib import Path

import numpy as np

import hetrisk
from hetrisk import modelfile
from hetrisk.core.predictor import Predictor
from hetrisk.tables.encoder import TableEncoder
from hetrisk.tables.time import TimeColumn
from modelfile.examples import deployed, hinges, level, linear, messy, reference, trees

DATA = Path(__file__).parents[1] / "data"


def table():
    """Every kind of column, with time and environment."""
    made = messy().assign(site=["p", "q", "new", None] * 20)
    return made.assign(when=[f"20{j % 30:02}-05-06" for j in range(80)])


def everything(K):
    """Return a model of numbers (one score) or of labels with something in every field."""
    encoder = TableEncoder().fit(messy()).encoding_
    names = encoder.feature_names
    d = len(names)
    members = ((linear(K, d), level(K)), (hinges(K, d), trees(K, d)))
    changes = {
        "predictor": Predictor(
            members, np.array([0.25, 0.75]), "identity" if K == 1 else "softmax"
        ),
        "columns": names,
        "encoder": encoder,
        "time_name": "when",
        "time": TimeColumn(np.empty(0), "when", "date", "ISO8601"),
        "last_time": 18_000.0,
        "period": 365.25,
        "reference": reference(names) if K == 1 else None,
    }
    if K > 1:
        labels = np.array([f"label {k}" for k in range(K)])
        changes |= {"kind": "labels", "classes": labels, "intervals": None}
    return deployed(**changes)


def predicted(model):
    """What a model says of the table, as plain numbers."""
    if model.classes is not None:
        return {"predict_proba": model.predict_proba(table()).tolist()}
    interval = model.predict_interval(table(), 0.85)
    return {"predict": model.predict(table()).tolist(), "predict_interval": interval.tolist()}


if __name__ == "__main__":
    for name, K in (("numbers", 1), ("labels", 3)):
        model = everything(K)
        place = DATA / f"{name}-{hetrisk.__version__}.hetrisk"
        modelfile.save(place, model)
        place.with_suffix(".json").write_text(json.dumps(predicted(model)) + "\n")
