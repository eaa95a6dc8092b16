"""A search, a question, a form: one function and one line; everything else takes it from there."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.utils._param_validation import StrOptions

from hetrisk import HRMClassifier, HRMRegressor, HRMSelector, modelfile
from hetrisk.core.pricing import one_environment, priced
from hetrisk.core.reach import forms
from hetrisk.core.result import INVARIANT, Findings, HistoryRecord
from hetrisk.core.sources import questions
from hetrisk.core.sources.question import Question, mask_of, nothing_found
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
    monkeypatch.setitem(hrm.METHODS, NAME, hrm.Method(first_half))
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


class Suspicious(Question):
    """Doubts the last column, whatever it says."""

    name = "suspicion"
    kind = "suspicion"
    tests = False

    def applies(self, family):
        return True

    def propose(self, case):
        return mask_of(case.support[-1:], len(case.excluded))

    def test(self, case, proposal):
        doubted = nothing_found(self, case, 1.0, "The last column is never to be trusted.")
        return replace(doubted, against=proposal, assumption=True)

    def confirm(self, case, finding, rows):
        return finding


def test_a_new_question_is_asked_and_reported(monkeypatch):
    monkeypatch.setattr(questions, "QUESTIONS", (*questions.QUESTIONS, Suspicious()))
    X, y = table()
    for model in (HRMRegressor().fit(X, y), HRMClassifier().fit(X, y > 0)):
        assert model.support_.tolist() == [True, True, True, False]
        assert [source.name for source in model.sources_][-1] == "suspicion"
        assert model.evidence_.assumed.tolist() == [False, False, False, True]
        assert "The last column is never to be trusted." in render(model)


def halved(problem):
    """Half of every coefficient of plain ERM: less to lose wherever things differ."""
    found = forms.plain(problem)
    coef = 0.5 * found.coef
    line = forms.model_line(problem.environments, coef, found.support)
    return replace(found, coef=coef, line=line, dense=True)


def test_a_new_form_is_decided_on_and_reported(monkeypatch):
    monkeypatch.setitem(forms.FORMS, "halves", forms.Form(halved, "Every coefficient is halved"))
    options = StrOptions(set(forms.FORMS))
    monkeypatch.setitem(HRMRegressor._parameter_constraints, "form", [options])
    rng = np.random.default_rng(0)
    X, place = rng.normal(size=(600, 3)), np.arange(600) % 3
    y = X[:, 0] + np.where(place == 1, -2.0, 2.0) * X[:, 2] + 0.1 * rng.normal(size=600)
    plain = HRMRegressor(form="columns", reach=0.0).fit(X, y, environments=place)
    model = HRMRegressor(form="halves").fit(X, y, environments=place)
    assert model.verdict_ == "invariant"
    assert "Every coefficient is halved" in model.verdict_reason_
    np.testing.assert_allclose(model.coef_, 0.5 * plain.coef_)
    assert "Every coefficient is halved" in render(model)
    with pytest.raises(ValueError, match="form='halves' shrinks the coefficients"):
        HRMRegressor(form="halves", final_estimator=LinearRegression()).fit(X, y, place)
