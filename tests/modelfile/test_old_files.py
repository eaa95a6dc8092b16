"""A model file that was written by a version opens in every later one, and predicts the same."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest

from hetrisk import modelfile
from hetrisk.modelfile import schema
from hetrisk.modelfile.kinds import Record
from modelfile.stored import DATA, predicted, table

FILES = sorted(DATA.glob("*.hetrisk"))


def test_there_are_files_of_0_3_0():
    assert {"numbers-0.3.0.hetrisk", "labels-0.3.0.hetrisk"} <= {path.name for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_model_file_of_an_earlier_version_opens(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = modelfile.load(path)
    expected = json.loads(path.with_suffix(".json").read_text())
    for name, values in predicted(model).items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-12)
    assert model.summary["ranking"][0].candidate == "ridge"


def test_the_files_hold_every_field():
    """A field that no file holds could change without anyone noticing."""
    held = set()
    for path in FILES:
        model = modelfile.load(path)
        held |= {name for name in schema.PREDICTOR.fields if getattr(model, name) is not None}
        held |= {name for name, value in model.summary.items() if value not in (None, ())}
        held |= set(model.reference or ())
    declared = set(schema.PREDICTOR.fields) | set(schema.SUMMARY.fields)
    reference = schema.REFERENCE
    assert isinstance(reference, Record)
    assert declared | set(reference.fields) <= held


def test_opening_and_predicting_need_no_scikit_learn(tmp_path):
    table().to_csv(tmp_path / "t.csv", index=False)
    code = f"""
import sys
sys.modules["sklearn"] = None  # whoever imports it fails
import pandas as pd
from hetrisk import modelfile
model = modelfile.load({str(DATA / "numbers-0.3.0.hetrisk")!r})
assert len(model.predict(pd.read_csv({str(tmp_path / "t.csv")!r}))) == 80
"""
    subprocess.run([sys.executable, "-c", code], check=True)
