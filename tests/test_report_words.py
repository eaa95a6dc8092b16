"""What the page says: what to do, at what price, and what is assumed."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from hetrisk import HRMClassifier, HRMRegressor
from hetrisk.estimators.quality import assess
from hetrisk.report import render, summarize
from hetrisk.report.extraction import environment_names
from hetrisk.report.page import render_summary
from hetrisk.report.record import record
from hetrisk.report.summary import Action
from report_models import fitted
from report_pages import Page, start_of


def test_the_first_screen_says_what_to_do():
    start = start_of(render(fitted(["sun", "rain", "wind", "fog"])))
    assert "Use this model. It leaves out sun and rain: what they say about the target" in start
    assert "10 % more error: RMSE 0.220 instead of 0.200." in start
    assert "From reach 0.61 on. At reach 4, the one asked for, it errs 65 % less" in start
    assert "Each of them left out in at least 47 of 50 resamples" in start
    assert "at most 4 times as far" in start


@pytest.mark.parametrize(
    ("verdict", "action", "words"),
    [
        ("invariant", Action.THIS, "Use this model. It leaves out x0 and x1"),
        ("homogeneous", Action.PLAIN, "Use the plain model."),
        ("unstable", Action.UNKNOWN, "Cannot say. Relations differ between environments"),
        ("unsearched", Action.UNKNOWN, "Cannot say: not searched. There are too few rows (90)"),
    ],
)
def test_each_verdict_has_its_recommendation(verdict, action, words):
    advice = summarize(fitted(verdict=verdict)).recommendation
    assert advice.action is action
    assert words in advice.sentence
    assert bool(advice.points) is (verdict != "unsearched")


def test_too_few_rows_are_called_not_searched_on_the_page():
    page = Page(render(fitted(K=1, verdict="unsearched"))).text
    assert "verdict: not searched" in page
    assert "unsearched" not in page
    assert "p = 1" not in page


def test_what_was_not_searched_is_not_priced():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 40))
    summary = summarize(HRMRegressor().fit(X, X[:, 0]))
    assert summary.verdict == "unsearched"
    assert summary.curve is None
    assert all(math.isnan(f.margin) and math.isnan(f.price) for f in summary.features)
    assert "fitted with a ridge" in summary.reason


def test_an_assumption_is_called_one():
    model = fitted(["sun", "rain", "wind"])
    model.evidence_.assumed[1] = True
    start = start_of(render(model))
    assert "rain: left out by an assumption, not by a test." in start
    assert "(assumed)" in Page(render(model)).text
    assert "assumption" not in start_of(render(fitted(["sun", "rain", "wind"])))


def test_inferred_environments_are_an_assumption_too():
    model = fitted()
    assert "inferred from the rows" not in start_of(render(model))
    model.sources_ = tuple(replace(s, used=s.kind == "hidden") for s in model.sources_)
    assert "The environments were inferred from the rows" in start_of(render(model))


def test_columns_in_doubt_are_named():
    model = fitted(["sun", "rain", "wind"])
    model.stability_[2] = 0.3
    assert "In doubt, though kept: wind (left out in 15)." in start_of(render(model))


def test_one_column_left_out_is_spoken_of_in_the_singular():
    model = fitted(["sun", "rain", "wind"])
    model.support_[:] = [False, True, True]
    start = start_of(render(model))
    assert "leaves out sun: what it says about the target changes" in start
    assert "Left out in 47 of 50 resamples of the rows." in start


def test_a_model_that_leaves_nothing_out_leans_less():
    model = fitted(form="directions")
    model.support_[:] = True
    assert "It uses every column, and leans less on what changes" in start_of(render(model))


def test_a_model_that_never_pays_or_pays_at_once_says_so():
    model = fitted()
    model.reach_curve_ = replace(model.reach_curve_, break_even=math.inf)
    assert "these rows do not show" in start_of(render(model))
    model.reach_curve_ = replace(model.reach_curve_, break_even=0.0)
    assert "it pays From the start. At reach 4" in start_of(render(model))


def test_the_curve_is_drawn_with_its_marks():
    page = render(fitted())
    assert "asked for: 4" in page
    assert "pays from 0.61 on" in page
    assert 'class="band hrm"' in page
    assert 'class="band erm"' in page
    plain = render(fitted(K=1, verdict="homogeneous"))
    assert "pays from" not in plain
    assert 'class="band hrm"' not in plain
    assert "Plain model (this one)" in plain
    assert "reach-curve" not in render(fitted(verdict="unsearched"))
    flat = fitted(K=1, verdict="homogeneous")
    same = np.full(7, 0.2)
    flat.reach_curve_ = replace(flat.reach_curve_, error=same, error_erm=same)
    assert "reach-curve" not in render(flat)


def test_terminal_and_page_are_made_from_one_summary():
    summary = summarize(fitted(["sun", "rain", "wind"]))
    values = record(summary)
    assert values["recommendation"]["sentence"] in Page(render_summary(summary)).text
    assert [c["column"] for c in values["columns"]] == ["sun", "rain", "wind"]
    assert [c["kept"] for c in values["columns"]] == [False, False, True]
    assert values["columns"][0]["decision"] == "left out"
    assert values["curve"]["break_even"] == pytest.approx(0.612, abs=1e-3)
    assert values["environments"][0]["label"] == "0"


def test_environments_are_told_apart_in_words():
    model = fitted(["sun", "rain", "wet"], K=2, labels=("north", "south"))
    coef = np.array([[1.0, 2.0, 0.0], [1.0, -2.0, 0.0]])
    mean = np.array([[0.0, 5.0, 0.1], [0.0, 5.1, 0.9]])
    model.environment_summary_ = replace(
        model.environment_summary_,
        weight=np.array([0.5, 0.5]),
        coef=coef,
        coef_error=0.01 + 0 * coef,
        feature_mean=mean,
        feature_sd=np.column_stack([[1.0, 1.0], [1.0, 1.0], [0.3, 0.3]]),
        risk=np.array([0.2, 0.2]),
    )
    north, south = summarize(model).environments
    assert north.label == "north"
    assert north.differences[0] == "rain counts the other way: +2.00 a unit against −2.00"
    assert north.differences[1] == "wet is rarer: 10\u00a0% against 90\u00a0%"
    assert south.differences[1] == "wet is more frequent: 90\u00a0% against 10\u00a0%"
    assert len(north.differences) == 2  # sun does not differ, nor do the errors
    page = Page(render(model)).text
    assert "wet is rarer" in page.replace("\u00a0", " ")


def test_many_environments_are_a_list_and_no_menu():
    page = render(fitted(d=4, K=39, labels=tuple(f"site {k}" for k in range(39))))
    assert Page(page).text.count("site 38") >= 1
    assert "The first 8 of 39 environments." in page


def test_a_choice_that_does_not_pay_is_not_recommended():
    model = fitted(["sun", "rain", "wind"])
    worse = replace(model.reach_curve_, error=2 * model.reach_curve_.error_erm)
    model.reach_curve_ = worse
    said = start_of(render(model))
    assert "Cannot say. Use this model if what sun and rain say about the target is to go" in said
    assert "at reach 4, the one asked for, this model is expected to err 100 % more" in said
    assert "verdict: invariant, not shown to pay" in said
    assert "No other choice of columns pays" not in said


def test_a_plain_model_says_whether_anything_was_found():
    model = fitted(verdict="homogeneous")
    said = start_of(render(model))
    assert "Relations differ between environments, but up to reach 4, the one asked for, no" in said
    model.sources_ = tuple(replace(s, used=False, column=None) for s in model.sources_)
    said = start_of(render(model))
    assert "No relation was found to differ between environments." in said


def test_that_the_plain_model_was_better_in_environments_left_out_is_said_first():
    model = fitted(K=4)
    model.leave_one_out_ = tuple(replace(s, error=0.5, error_erm=0.4) for s in model.leave_one_out_)
    said = start_of(render(model))
    assert "Use this model if shifts beyond those seen are to be feared:" in said
    assert "each left out in turn, the plain model was better in 4 of 4. It leaves out" in said


def test_without_environments_none_are_spoken_of():
    model = fitted(verdict="homogeneous")
    model.sources_ = tuple(replace(s, used=False) for s in model.sources_)
    said = start_of(render(model))
    assert "The rows to come are like these" in said
    assert "between these environments" not in said


def test_errors_of_linear_models_are_said_to_be_that():
    model = fitted(final_estimator=RandomForestRegressor(n_estimators=2))
    assert "These are errors of linear models" in start_of(render(model))
    assert "Plain linear model" in Page(render(model)).text
    assert "These are errors of linear models" not in start_of(render(fitted()))


def test_margins_of_a_perfect_fit_are_not_rounding():
    model = fitted()
    flat = np.full_like(model.reach_curve_.error_erm, 1e-9)
    model.reach_curve_ = replace(model.reach_curve_, error=flat, error_erm=flat)
    model.reference_ = replace(model.reference_, sd=np.ones_like(model.reference_.sd))
    margin = np.full(6, -0.98)
    margin[3] = 1e6
    model.evidence_ = replace(model.evidence_, margin=margin, price=margin)
    features = summarize(model).features
    assert [f.position for f in features if np.isfinite(f.margin)] == [3]


def test_a_row_that_decides_the_figures_is_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = X[:, 0] + rng.normal(size=90)
    quality = assess(HRMRegressor(reach=0.0).fit(X, y), X, y)
    found = replace(summarize(fitted()), quality=quality)
    assert "One row makes up" not in Page(render_summary(found)).text
    far = replace(found, quality=replace(found.quality, worst_row=0.95))
    assert "One row makes up 95 % of the squared error" in Page(render_summary(far)).text


def test_a_diamond_is_spoken_of_where_there_is_one():
    model = fitted()
    assert "Left of the diamond" in Page(render(model)).text
    model.reach_curve_ = replace(model.reach_curve_, break_even=99.0)
    assert "Left of the diamond" not in Page(render(model)).text


def test_what_was_not_searched_has_no_p_values():
    features = summarize(fitted(verdict="unsearched")).features
    assert {f.reason for f in features} == {"Kept: too few rows to look for reasons against it."}
    assert all(np.isnan(f.p_value) for f in summarize(fitted(verdict="unsearched")).features)


def test_a_column_that_stands_still_in_an_environment_has_no_slope_there():
    model = fitted(K=2)
    found = model.environment_summary_
    sd = np.array(found.feature_sd)
    sd[0, 3] = 0.0
    coef = np.array(found.coef)
    coef[0, 3] = 1e5
    model.environment_summary_ = replace(found, feature_sd=sd, coef=coef)
    told = [d for e in summarize(model).environments for d in e.differences]
    assert told
    assert not any("x3 counts" in d for d in told)


def test_environments_of_a_hint_go_by_its_name():
    model = fitted(labels=("0", "1"))
    model.sources_ = (replace(model.sources_[1], used=True),)
    assert environment_names(model) == ("weekday = 0", "weekday = 1")


def test_leaving_environments_out_is_told():
    page = Page(render(fitted(K=4))).text
    assert "better than the plain model in 3, worse in 0, alike in 1." in page
    assert "Each environment left out in turn" not in Page(render(fitted(K=2))).text


def kept(stability=0.0, margin=0.1, d=3):
    """A plain model beside environments that differ."""
    model = fitted(d=d, verdict="unstable")
    model.stability_ = np.full(d, stability)
    model.evidence_ = replace(model.evidence_, margin=np.full(d, margin))
    return model


def test_where_no_column_can_stay_the_average_is_spoken_of():
    said = start_of(render(kept(stability=1.0, margin=-0.6, d=1)))
    assert "What every column says about the target changes from one environment" in said
    assert "Only a model without any column would pay up to reach 4" in said
    assert "Every column is kept, though resamples left out x0 in 50 of 50." in said
    assert "No other choice of columns pays" not in said
    assert "no choice of columns is both safe and stable" in start_of(render(kept()))


def test_a_column_that_could_be_spared_is_not_said_to_be_the_best_choice():
    model = fitted(verdict="homogeneous")
    assert "No other choice of columns pays up to reach 4" in start_of(render(model))
    model.evidence_.margin[4] = -0.031
    said = start_of(render(model))
    assert "no choice of columns does away with enough of that" in said
    assert "Without x4 it would err 3.1 % less at reach 4, where" in said
    assert "No other choice" not in said


def test_a_small_gain_beside_losses_where_it_was_tried_matters_little():
    model = fitted(["sun", "rain", "wind"], K=4)
    model.leave_one_out_ = tuple(replace(s, error=0.5, error_erm=0.4) for s in model.leave_one_out_)
    curve = model.reach_curve_
    model.reach_curve_ = replace(curve, error=0.98 * curve.error_erm)
    said = start_of(render(model))
    assert "Cannot say, and it matters little: at reach 4, the one asked for, this model is" in said
    assert "err 2.0 % less than the plain model, and in the environments seen, each left" in said
    model.leave_one_out_ = ()
    assert "Use this model. It leaves out sun and rain" in start_of(render(model))


def test_a_model_that_predicts_nothing_or_everything_says_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    noise, exact = rng.normal(size=60), X @ np.arange(1.0, 9.0)
    for y, words in ((noise, "No better than always saying the average"), (exact, "All but ex")):
        model = HRMRegressor().fit(X, y)
        said = summarize(model, (X, y)).recommendation.points[0]
        assert said.question == "How well it predicts"
        assert said.answer.startswith(words)
    few = HRMRegressor().fit(X[:20], noise[:20])
    assert summarize(few, (X[:20], noise[:20])).recommendation.points[0].answer.startswith("No bet")
    assert "expected RMSE is 0, up to rounding" in start_of(render(model, data=(X, exact)))
    fine = HRMRegressor().fit(X, exact + noise)
    points = summarize(fine, (X, exact + noise)).recommendation.points
    assert points[0].question == "What it costs if nothing shifts"


def test_without_a_search_columns_have_no_table_of_dashes():
    page = Page(render(fitted(verdict="unsearched"))).text
    assert "There are too few rows to say what each column is worth." in page
    assert "were this decision the other way" not in page
    assert "were this decision the other way" in Page(render(fitted())).text


def test_a_slope_next_to_none_does_not_count_the_other_way():
    model = fitted(["sun"], K=2)
    coef = np.array([[2.0], [-0.01]])
    model.environment_summary_ = replace(
        model.environment_summary_, coef=coef, coef_error=0.01 + 0 * coef
    )
    first, second = summarize(model).environments
    assert "sun counts more: +2.00 a unit against −0.0100" in first.differences
    assert "sun counts less: −0.0100 a unit against +2.00" in second.differences


def test_a_row_far_out_of_the_plain_model_is_told():
    quality = assess(*_far_row())
    assert quality.one_row_decides
    found = replace(summarize(fitted()), quality=replace(quality, worst_row=0.1))
    text = Page(render_summary(found)).text
    assert "of the squared error of the plain model: it lies far outside" in text


def _far_row():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = X[:, 0] + rng.normal(size=90)
    X[:, 1] = y + rng.normal(size=90)
    X[0, 1] = 1e3
    return HRMRegressor(reach=0.0).fit(X, y), X, y


def test_ten_classes_of_a_tenth_each_are_balanced():
    found = summarize(fitted(classes=("a", "b")))
    quality = assess(*_labels(2, 0.07))
    assert "Only" in Page(render_summary(replace(found, quality=quality))).text
    assert quality.imbalanced
    assert not assess(*_labels(10, 0.1)).imbalanced


def _labels(n_classes, rarest):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    shares = np.full(n_classes, (1 - rarest) / (n_classes - 1))
    shares[0] = rarest
    y = rng.choice(n_classes, 400, p=shares)
    return HRMClassifier(reach=0.0).fit(X, y), X, y


def test_errors_of_a_perfect_fit_are_zero_wherever_they_are_shown():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = 2 * X[:, 0] - X[:, 1]
    model = HRMRegressor().fit(X, y, environments=np.arange(600) % 3)
    found = summarize(model, (X, y))
    assert {e.risk for e in found.environments} == {e.risk_erm for e in found.environments} == {0.0}
    assert {e.error for e in found.leave_one_out} == {0.0}
    assert found.quality.error("RMSE").this == 0.0
    assert found.features[0].reason.endswith("would raise the error at reach 4 by more than 999%.")


def test_once_as_far_is_as_far():
    said = start_of(render(fitted(reach=1.0)))
    assert "what moved between these environments, at most as far." in said
