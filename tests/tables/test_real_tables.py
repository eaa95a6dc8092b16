"""The three real tables with no flags but the target: what their columns are taken for."""

import os
from pathlib import Path

import numpy as np
import pytest

from hetrisk.tables import TableEncoder, read_table, read_target

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("HETRISK_DATA", ROOT.parent / "shared" / "data"))

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not DATA.is_dir(), reason="no real tables: set HETRISK_DATA"),
]

CASES = {
    "adult": ("income", "classification", 48_842, set(), {"date": set()}),
    "kc_house_data": ("price", "regression", 21_613, {"id"}, {"date": {"date"}}),
    "health_insurance_cross_sell": (
        "Response",
        "classification",
        381_109,
        {"id"},
        {"boolean": {"Vehicle_Damage"}},
    ),
}
CATEGORIES = {
    "adult": {
        *("workclass", "education", "marital-status", "occupation", "relationship", "race"),
        *("sex", "native-country", "split"),
    },
    "kc_house_data": {"zipcode"},
    "health_insurance_cross_sell": {"Gender", "Region_Code", "Vehicle_Age"},
}


@pytest.mark.parametrize("name", CASES)
def test_columns_of_real_tables(name):
    target, task, rows, left_out, kinds = CASES[name]
    path = DATA / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"no {path.name}")
    frame = read_table(path).frame
    wanted = read_target(frame, target)
    assert wanted.task == task
    assert wanted.known.all()
    assert len(frame) == rows
    encoder = TableEncoder().fit(frame.drop(columns=target))
    assert {out.name for out in encoder.left_out_} == left_out
    found = {column.name: column.kind for column in encoder.columns_}
    assert {n for n, kind in found.items() if kind == "category"} == CATEGORIES[name]
    for kind, names in kinds.items():
        assert {n for n, k in found.items() if k == kind} == names
    X = encoder.transform(frame)
    assert np.isfinite(X).all()
    assert (np.ptp(X, axis=0) > 0).all()
