"""From what the rows answer to a verdict: what leaves must pay, and hold on other rows."""

from dataclasses import replace

import pytest

from hetrisk import HRMRegressor
from hetrisk.core import untold
from hetrisk.core.pricing import priced
from hetrisk.datasets import load_task
from hetrisk.estimators.base import UnstableWarning


def test_columns_that_stay_on_other_rows_do_not_leave(monkeypatch):
    task = load_task("flipping_cause", seed=0, visible=False)
    assert HRMRegressor().fit(task.train.X, task.train.y).verdict_ == "invariant"

    def shaky(*arguments):
        return replace(priced(*arguments), agreement=0.4)

    monkeypatch.setattr(untold, "priced", shaky)
    with pytest.warns(UnstableWarning, match="does not hold on other rows"):
        model = HRMRegressor().fit(task.train.X, task.train.y)
    assert model.verdict_ == "unstable"
    assert model.support_.all()
    assert "in 20 of 50 resamples it would pay. In doubt: x5." in model.verdict_reason_
