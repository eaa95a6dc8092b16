"""From what the rows answer to a verdict: what leaves must pay, and hold on other rows."""

from dataclasses import replace

import numpy as np
import pytest

from hetrisk import HRMRegressor
from hetrisk.core import inferred
from hetrisk.core.pricing import priced
from hetrisk.datasets import load_task
from hetrisk.estimators.base import UnstableWarning


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"agreement": 0.4}, "in 20 of 50 resamples it would pay. In doubt: x5."),
        (
            {"stability": np.full(7, 0.4)},
            "in most resamples other columns would leave. In doubt: x5.",
        ),
    ],
)
def test_columns_that_stay_on_other_rows_do_not_leave(monkeypatch, changed, said):
    task = load_task("flipping_cause", seed=0, visible=False)
    assert HRMRegressor().fit(task.train.X, task.train.y).verdict_ == "invariant"
    monkeypatch.setattr(inferred, "priced", lambda *given: replace(priced(*given), **changed))
    with pytest.warns(UnstableWarning, match="does not hold on other rows"):
        model = HRMRegressor().fit(task.train.X, task.train.y)
    assert model.verdict_ == "unstable"
    assert model.support_.all()
    assert said in model.verdict_reason_
