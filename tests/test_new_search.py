"""A search is one function and one line: everything else takes it from there."""

import numpy as np
import pytest
from sklearn.utils._param_validation import StrOptions

from hetrisk import HRMClassifier, HRMRegressor, HRMSelector, modelfile
from hetrisk.core.pricing import one_environment, priced
from hetrisk.core.result import INVARIANT, Findings, HistoryRecord
from hetrisk.estimators import hrm
from hetrisk.report import render

NAME = "first-half"


def first_half(rows, family, groups, settings):
    """Keep the first half of the columns, whatever they say."""
    d = rows.n_features
    support = np.arange(d) < d // 2
    record = HistoryRecord(
        round=1,
        n_environments=1,
        score=0.25,
        score_name="share of faith",
        support=tuple(map(bool, support)),
        chosen=True,
        note="no doubt",
    )
    findings = Findings(
        support=support,
        gates=support.astype(float),
        partition=one_environment(rows, family),
        verdict=INVARIANT,
        reason="The first half is always right.",
        reasons=tuple("Of the first half." if kept else "Of the second." for kept in support),
        history=(record,),
    )
    return priced(rows, family, groups, settings, findings)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """The one line, and the constraint that is made of it."""
    monkeypatch.setitem(hrm.METHODS, NAME, first_half)
    options = StrOptions(set(hrm.METHODS))
    for kind in (HRMRegressor, HRMClassifier, HRMSelector):
        monkeypatch.setitem(kind._parameter_constraints, "method", [options])


def table(n=120, d=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, X @ np.arange(1.0, d + 1) + 0.1 * rng.normal(size=n)


def test_a_new_search_is_fitted_reported_and_kept():
    X, y = table()
    model = HRMRegressor(method=NAME).fit(X, y)
    assert model.support_.tolist() == [True, True, False, False]
    assert model.history_[0].score_name == "share of faith"
    page = render(model)
    assert "The first half is always right." in page
    assert "Of the second." in page
    back = modelfile.loads(modelfile.dumps(model))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))


def test_a_new_search_serves_labels_and_selection():
    X, y = table()
    labels = HRMClassifier(method=NAME).fit(X, y > 0)
    assert labels.support_.tolist() == [True, True, False, False]
    assert "The first half is always right." in render(labels)
    assert HRMSelector(method=NAME).fit(X, y).transform(X).shape == (120, 2)
