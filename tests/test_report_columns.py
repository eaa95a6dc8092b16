"""Columns on the page: what is decided about each, its numbers and its picture."""

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from hetrisk.report import pictures, render, summarize
from hetrisk.report.record import record
from hetrisk.report.summary import Decision, by_importance
from hetrisk.report.svg import LEFTWARD, RIGHTWARD, Scale
from hetrisk.tables import Table
from hetrisk.tables.model import fit_table
from report_models import fitted
from report_pages import Page


@pytest.mark.parametrize(
    ("used", "gate", "stability", "decision"),
    [
        (True, 1.0, 0.0, Decision.KEPT),
        (True, 1.0, 0.2, Decision.KEPT),
        (True, 1.0, 0.22, Decision.UNCERTAIN),
        (False, 0.0, 0.94, Decision.DROPPED),
        (False, 0.0, 0.7, Decision.UNCERTAIN),
        (True, 0.5, 0.0, Decision.UNCERTAIN),
        (False, 0.5, 1.0, Decision.UNCERTAIN),
        (True, 1.0, math.nan, Decision.KEPT),  # nothing was resampled
    ],
)
def test_uncertain_is_a_half_open_gate_or_resamples_that_disagree(used, gate, stability, decision):
    model = fitted(d=3)
    model.support_[0], model.gates_[0], model.stability_[0] = used, gate, stability
    feature = summarize(model).features[0]
    assert feature.decision is decision
    assert feature.used is used


def test_numbers_that_were_not_measured_are_dashes():
    model = fitted(d=3)
    for name in ("margin", "price", "regret", "p_value"):
        getattr(model.evidence_, name)[:] = np.nan
    model.evidence_.margin[1] = np.inf
    model.evidence_.price[1] = np.inf
    model.stability_[:] = np.nan
    found = model.environment_summary_
    found.coef[0, 0] = np.nan
    found.coef_error[1, 1] = np.inf
    model.environment_summary_ = replace(found, risk=np.array([np.nan, 0.3]))
    model.history_ = [replace(model.history_[0], log_likelihood=math.nan, score=math.nan)]
    page = Page(render(model)).text
    assert "nan" not in page.lower().replace("hidden", "")
    assert "∞" in page
    assert "Log-likelihood" not in page
    assert math.isinf(summarize(model).features[1].margin)


def test_the_most_important_come_first():
    model = fitted(d=5)
    model.evidence_.margin[:] = [0.3, 0.7, 5.0, math.nan, 0.1]
    assert [f.position for f in by_importance(summarize(model).features)] == [2, 1, 0, 4, 3]
    named = re.findall(r'<tr><th scope="row"><bdi>(x\d)</bdi>', render(model))
    assert named[:5] == ["x2", "x1", "x0", "x4", "x3"]


def test_a_margin_of_any_size_can_be_read():
    model = fitted(d=3)
    model.evidence_.margin[:] = [1e9, 0.02, -3.0]
    page = Page(render(model)).text.replace("\u00a0", " ")
    assert "> 999 %" in page
    assert "−300.0 %" in page
    assert "e+09" not in page


@pytest.mark.parametrize("groups", [[0, 0, 1, 2, 2, 2], ["a", "a", "b", "c", "c", "c"]])
def test_columns_that_share_a_decision_are_one_feature(groups):
    names = ["sky=grey", "sky=blue", "wind", "rain", "sun", "moon"]
    model = fitted(names, feature_groups=groups)
    model.evidence_.p_value[:] = [0.5, 1e-5, 0.1, 0.3, 0.2, 0.4]
    summary = summarize(model)
    assert len(summary.columns) == 6
    labels = [f.label for f in summary.features]
    assert labels == (["sky", "wind", "rain and 2 more"] if groups[0] == 0 else ["a", "wind", "c"])
    sky, _, weather = summary.features
    assert weather.position == 4
    assert (sky.p_value, sky.position, sky.n_columns) == (1e-5, 1, 2)
    assert sky.price == model.evidence_.price[:2].max()
    assert sky.margin == model.evidence_.margin[:2].max()
    assert sky.decision is Decision.DROPPED
    assert f"It leaves out {labels[0]}: what it says" in summary.recommendation.sentence
    page = Page(render(model)).text
    assert "3 columns as 6 features" in page
    assert "sky=grey" in page


def test_history_tells_what_each_step_changed():
    page = Page(render(fitted(["sun", "rain", "wind"]))).text
    assert "− sun" in page
    assert "− rain" in page
    assert "− wind" in page


def test_effects_are_per_standard_deviation_over_all_rows():
    rng = np.random.default_rng(1)
    groups = [rng.normal(size=(300, 2)), rng.normal([3, 0], [2, 1], size=(100, 2))]
    model = fitted(d=2)
    model.environment_summary_ = replace(
        model.environment_summary_,
        weight=np.array([0.75, 0.25]),
        feature_mean=np.array([g.mean(axis=0) for g in groups]),
        feature_sd=np.array([g.std(axis=0) for g in groups]),
    )
    (coefficients,) = summarize(model).coefficients
    sd = np.vstack(groups).std(axis=0)
    np.testing.assert_allclose(coefficients.effect, model.environment_summary_.coef * sd)
    np.testing.assert_allclose(coefficients.effect_error, 0.1 * np.broadcast_to(sd, (2, 2)))


def test_one_panel_a_class():
    page = render(fitted(classes=["<b>", "2", "three"]))
    assert re.findall('class="panel" data-name="(.*?)"', page)[:3] == ["&lt;b&gt;", "2", "three"]


def test_a_final_model_that_is_not_linear_is_named():
    model = fitted(final_estimator=LinearRegression())
    assert "The final model (LinearRegression) is not linear" in render(model)
    assert "is not linear" not in render(fitted())


def test_rows_out_of_core_are_counted_too():
    model = fitted()
    model._environment_proba = None
    assert "90 rows, 6 columns" in Page(render(model)).text


def test_a_category_of_two_levels_goes_by_its_own_name():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"sky": ["grey", "blue"] * 60, "wind": rng.normal(size=120)})
    table["rain"] = table["wind"] + rng.normal(size=120)
    model = fit_table(Table(table, source="w.csv"), "rain")
    assert [f.label for f in summarize(model).features] == ["sky", "wind"]
    assert {c["column"] for c in record(summarize(model))["columns"]} == {"sky", "wind"}


def test_settings_and_code_repeat_the_fit():
    page = Page(render(fitted(max_rounds=4))).text
    assert "model = HRMRegressor(max_rounds=4, random_state=0)" in page
    assert "max_rounds 4" in page
    assert "gate_noise 0.1 default" in page
    assert "the same data give the same model" in page
    assert "another fit may differ" in Page(render(fitted().set_params(random_state=None))).text


def test_coefficients_far_outside_the_rest_become_arrows():
    model = fitted(d=20)
    model.environment_summary_.coef[:] = 1.0
    model.environment_summary_.coef[:, 7] = [1e6, -1e6]
    page = render(model)
    assert page.count("beyond the scale") == 2
    assert LEFTWARD in page
    assert RIGHTWARD in page


def test_coefficients_of_zero_are_drawn_at_zero():
    model = fitted()
    model.environment_summary_.coef[:] = 0.0
    assert pictures.effect_scale(summarize(model).coefficients, [0, 1]) == Scale(-1.0, 1.0)
    assert "beyond the scale" not in render(model)


def test_a_model_without_history_says_so():
    model = fitted()
    model.history_ = []
    assert "No step was recorded." in render(model)
