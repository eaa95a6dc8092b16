"""The page: what it says, and that nothing a stranger wrote can act on it."""

import base64
import hashlib
import math
import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from markupsafe import escape
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from hetrisk import HRMClassifier, HRMRegressor
from hetrisk.estimators.hrm import UnstableWarning
from hetrisk.estimators.quality import assess
from hetrisk.report import pictures, render, repr_html, summarize, write_report
from hetrisk.report.extraction import environment_names
from hetrisk.report.page import render_summary
from hetrisk.report.record import record
from hetrisk.report.spreads import spreads
from hetrisk.report.summary import Action, Decision, by_importance
from hetrisk.report.svg import LEFTWARD, RIGHTWARD, Scale
from hetrisk.tables import Table
from hetrisk.tables.model import fit_table
from report_models import HOSTILE, fitted

VOID = {"meta", "link", "img", "br", "input"}
CASES = {
    "regression": lambda: fitted(),
    "one feature": lambda: fitted(d=1),
    "hostile": lambda: fitted(HOSTILE),
    "homogeneous": lambda: fitted(K=1, verdict="homogeneous"),
    "unstable": lambda: fitted(verdict="unstable"),
    "not searched": lambda: fitted(K=1, verdict="unsearched"),
    "named": lambda: fitted(K=3, labels=("north", "<b>south</b>", "west")),
    "binary": lambda: fitted(classes=["no", "yes"]),
    "multiclass": lambda: fitted(K=3, classes=["<b>", "2", "three"]),
    "many classes": lambda: fitted(K=4, classes=[f"c{i}" for i in range(40)]),
    "not linear": lambda: fitted(
        classes=["a", "b"], final_estimator=RandomForestClassifier(n_estimators=3)
    ),
    "wide": lambda: fitted(d=200, K=5),
    "many environments": lambda: fitted(d=4, K=39),
}


class Page(HTMLParser):
    """A strict reading of the page: every tag closed in order, every attribute kept."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        self.words.append((self.open[-1] if self.open else "", data))

    @property
    def text(self):
        shown = [word for tag, word in self.words if tag not in ("style", "script")]
        return " ".join(" ".join(shown).split())

    def attributes(self, name):
        return [attrs[name] for _, attrs in self.tags if name in attrs]


@pytest.fixture(params=CASES, scope="module")
def text(request):
    return render(CASES[request.param](), title="<script>alert('title')</script>")


def test_the_page_is_well_formed_and_holds_no_foreign_markup(text):
    page = Page(text)
    tags = [tag for tag, _ in page.tags]
    assert tags.count("script") == tags.count("style") == 1
    assert not {"img", "iframe", "object", "embed", "form", "input"} & set(tags)
    names = {name for _, attrs in page.tags for name in attrs}
    assert not {name for name in names if name.startswith("on")}
    assert "style" not in names
    assert "src" not in names
    targets = {f"#{identity}" for identity in page.attributes("id")}
    assert set(page.attributes("href")) <= {"data:,"} | targets


def test_the_page_can_be_read_out(text):
    page = Page(text)
    identities = page.attributes("id")
    assert len(identities) == len(set(identities))
    assert set(page.attributes("aria-labelledby")) <= set(identities)
    assert all("scope" in attrs for tag, attrs in page.tags if tag == "th")
    assert dict(page.tags)["html"]["lang"] == "en"
    headings = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(headings))


def test_every_picture_is_named_or_hidden(text):
    depth = 0
    for token in re.findall(r"<svg[^>]*>|</svg>", text):
        if token == "</svg>":
            depth -= 1
            continue
        if depth == 0:
            assert 'aria-hidden="true"' in token or re.search(
                'role="img" aria-label="[^"]+"', token
            )
        depth += 1


def test_the_policy_allows_exactly_the_page_s_own_style_and_script(text):
    (policy,) = [attrs["content"] for _, attrs in Page(text).tags if "http-equiv" in attrs]
    assert "default-src 'none'" in policy
    for tag in ("style", "script"):
        inside = re.search(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_the_page_is_small(text):
    assert len(text.encode()) < 2_000_000


def test_a_very_wide_table_with_very_long_names_stays_small():
    rng = np.random.default_rng(0)
    names = [f"{j} " + "<&\"'é👩🏽‍🔬" * 1000 + f" {j}" for j in range(2000)]
    summary = summarize(fitted(names, K=6))
    spread = replace(
        summary.spreads[0],
        edges=np.linspace(0, 1, 25),
        shares=rng.dirichlet(np.ones(24), size=6),
    )
    summary = replace(summary, spreads=(spread,) * 2000)
    page = render_summary(summary)
    assert len(page.encode()) < 2_000_000
    assert "The first 500 of 2000 columns" in Page(page).text


def test_the_penalties_of_a_step_are_numbers_and_shown():
    summary = summarize(fitted())
    steps = [replace(s, invariance_penalty=0.5, gate_penalty=0.012, note="") for s in summary.steps]
    assert "penalties: invariance 0.500, gate 0.0120" in render_summary(
        replace(summary, steps=tuple(steps))
    )
    none = [replace(s, invariance_penalty=None, gate_penalty=None) for s in summary.steps]
    assert "penalties" not in render_summary(replace(summary, steps=tuple(none)))


def test_the_same_model_gives_the_same_page():
    assert render(fitted()) == render(fitted())


def start_of(page):
    """Everything above the contents."""
    text = Page(page).text.replace("\u00a0", " ")
    return text[: text.index("The search’s own words")].partition("How the error grows")[0]


def test_the_first_screen_says_what_to_do():
    start = start_of(render(fitted(["sun", "rain", "wind", "fog"])))
    assert "Use this model. It leaves out sun and rain: what they say about the target" in start
    assert "10 % more error: RMSE 0.220 instead of 0.200." in start
    assert "From reach 0.61 on. At reach 2, the one asked for, it errs 39 % less" in start
    assert "Each of them left out in at least 47 of 50 resamples" in start
    assert "at most 2 times as far" in start


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
    assert "it pays From the start. At reach 2" in start_of(render(model))


def test_the_curve_is_drawn_with_its_marks():
    page = render(fitted())
    assert "asked for: 2" in page
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
    assert "at reach 2, the one asked for, this model is expected to err 100 % more" in said
    assert "verdict: invariant, not shown to pay" in said
    assert "No other choice of columns pays" not in said


def test_a_choice_that_resamples_do_not_make_is_not_recommended():
    model = fitted(["sun", "rain", "wind"])
    model.stability_[0] = 0.1
    said = start_of(render(model))
    assert "Cannot say. Use this model if what sun and rain say about the target is to go" in said
    assert "one of them stays out in only 5 of 50 resamples." in said


def test_a_plain_model_says_whether_anything_was_found():
    model = fitted(verdict="homogeneous")
    said = start_of(render(model))
    assert "Relations differ between environments, but up to reach 2, the one asked for, no" in said
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


def test_errors_of_a_stand_in_are_said_to_be_that():
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


odd = st.one_of(st.floats(), st.sampled_from([0.0, 1e308, -1e308, 5e-324]))


@settings(max_examples=25, deadline=None, phases=(Phase.reuse, Phase.generate))
@given(st.data())
def test_any_numbers_make_a_page(data):
    model = fitted(d=3, K=2)
    evidence, found = model.evidence_, model.environment_summary_
    for name in ("margin", "price", "regret", "p_value"):
        getattr(evidence, name)[:] = data.draw(st.lists(odd, min_size=3, max_size=3))
    model.stability_[:] = data.draw(st.lists(st.floats(0, 1), min_size=3, max_size=3))
    for name in ("error", "error_erm", "low", "high", "low_erm", "high_erm"):
        getattr(model.reach_curve_, name)[:] = data.draw(st.lists(odd, min_size=7, max_size=7))
    for name in ("coef", "coef_error", "feature_mean", "feature_sd", "risk", "distance"):
        array = getattr(found, name)
        array.flat = data.draw(st.lists(odd, min_size=array.size, max_size=array.size))
    model.history_[0] = replace(model.history_[0], log_likelihood=data.draw(odd))
    Page(render(model))
    repr_html(model)


# --- with data ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(240, 3)), columns=["a", "b", "c"])
    X["d"] = rng.integers(0, 3, size=240).astype(float)
    X.loc[7, "a"] = 123456.789
    sign = np.where(np.arange(240) < 60, -1, 1)
    return X, 2 * X["b"] + sign * X["c"] + rng.normal(scale=0.1, size=240)


@pytest.fixture(scope="module")
def pipeline(table):
    model = HRMRegressor(method="gates", max_rounds=2, random_state=0)
    pipeline = make_pipeline(StandardScaler(), model)
    return pipeline.set_output(transform="pandas").fit(*table)


def test_data_add_histograms_and_an_error_but_no_row(pipeline, table):
    summary = summarize(pipeline, table)
    X, y = table
    assert summary.table.n_rows == 240
    expected = np.sqrt(np.mean((pipeline.predict(X) - y) ** 2))
    assert summary.table.error == pytest.approx(expected)
    for spread in summary.spreads:
        assert spread.shares.shape[0] == len(summary.environments)
        np.testing.assert_allclose(spread.shares.sum(axis=1), 1)
    assert len(summary.spreads[3].values) == 3
    page = render(pipeline, data=table)
    assert "Page written with" in page
    assert "123456" not in page.replace(",", "")


def test_histograms_are_those_of_the_environments(pipeline, table):
    X, y = table
    summary = summarize(pipeline, table)
    environments = pipeline[-1].predict_environments(pipeline[:-1].transform(X), y)
    for k in range(len(summary.environments)):
        counts = X["d"][environments == k].value_counts(normalize=True).sort_index()
        np.testing.assert_allclose(summary.spreads[3].shares[k][: len(counts)], counts)


def test_names_come_from_the_pipeline(pipeline):
    assert [f.name for f in summarize(pipeline).features] == ["a", "b", "c", "d"]
    nameless = make_pipeline(FunctionTransformer(), fitted(d=3))
    assert [f.name for f in summarize(nameless).features] == ["x0", "x1", "x2"]
    alone = make_pipeline(fitted(["p", "q"]))
    assert [f.name for f in summarize(alone).features] == ["p", "q"]


def test_classification_data_are_described_by_their_labels(table):
    X, y = table
    labels = np.where(y > 1, "high", np.where(y < -1, "<low>", "mid"))
    model = HRMClassifier(method="gates", max_rounds=1, random_state=0).fit(X, labels)
    summary = summarize(model, (X, labels))
    assert summary.table.error == pytest.approx(1 - model.score(X, labels))
    assert summary.table.target.startswith("<low>: ")
    assert "&lt;low&gt;: " in render(model, data=(X, labels))
    assert len(summary.coefficients) == 3


def test_a_model_from_a_file_names_it_and_the_command(table, monkeypatch):
    X, y = table
    frame = X.assign(**{HOSTILE[0]: y, "kind": np.where(X["a"] > 0, "<i>", "b"), "id": range(240)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnstableWarning)  # whichever verdict: the page is the same
        model = fit_table(Table(frame, source="it's <b>.csv", notes=("<u>",)), HOSTILE[0])
    # The figures of merit are stored with it: to measure them again is to search once a fold.
    monkeypatch.delattr("hetrisk.report.extraction.assess")
    page = render(model, data=(frame, y))
    text = Page(page).text
    assert "File it's <b>.csv" in text
    assert "hetrisk fit 'it'\"'\"'s <b>.csv' --target" in text
    assert "Columns not used id : an identifier" in text
    assert summarize(model).quality.n_rows == 240
    assert "<u>" in text
    assert f"<title>Stability report: {escape(HOSTILE[0])}</title>" in page


def test_the_end_bins_take_the_far_rows():
    x = np.concatenate([np.zeros(500), np.arange(1, 14) * 1e6])
    (spread,) = spreads(np.zeros((1, 1)), np.ones((1, 1)), x[:, None], np.zeros(len(x)))
    np.testing.assert_allclose(spread.shares.sum(axis=1), 1)
    x = np.concatenate([np.zeros(5000), np.arange(1, 14)])
    (spread,) = spreads(np.zeros((1, 1)), np.ones((1, 1)), x[:, None], np.zeros(len(x)))
    assert spread.edges[-1] == 13  # nearly all rows alike: the hundredths are no range


@pytest.mark.parametrize("classes", [0, 2, 3])
@pytest.mark.parametrize("final", [False, True], ids=["linear", "forest"])
def test_the_errors_shown_are_those_of_the_predictions(classes, final):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    z = X[:, 0] + 0.5 * rng.normal(size=200)
    if classes:
        forest = RandomForestClassifier(n_estimators=5, random_state=0) if final else None
        y = np.digitize(z, [0.0] if classes == 2 else [-0.5, 0.5])
        model = HRMClassifier(final_estimator=forest, random_state=0).fit(X, y)
        error = np.mean(model.predict(X) != y)
    else:
        forest = RandomForestRegressor(n_estimators=5, random_state=0) if final else None
        y = z
        model = HRMRegressor(final_estimator=forest, random_state=0).fit(X, y)
        error = np.mean((model.predict(X) - y) ** 2)
    environments = summarize(model).environments
    power = 1 if classes else 2
    shown = sum(e.share * e.risk**power for e in environments)
    assert shown == pytest.approx(error)


# --- errors and files --------------------------------------------------------------------------


def test_other_models_are_refused():
    with pytest.raises(TypeError, match=r"model must be a fitted HRM.*; got LinearRegression"):
        render(LinearRegression())
    with pytest.raises(TypeError, match="got StandardScaler"):
        render(make_pipeline(StandardScaler()))


def test_an_unfitted_model_is_refused():
    with pytest.raises(NotFittedError):
        render(HRMRegressor())


@pytest.mark.parametrize("data", [3, (1, 2, 3), "a"])
def test_data_must_be_a_pair(data):
    with pytest.raises(TypeError, match=r"data must be a pair \(X, y\) or None; got"):
        render(fitted(), data=data)


def test_write_report_returns_the_path(tmp_path):
    path = write_report(fitted(), str(tmp_path / "page.html"), title="Mine")
    assert path == tmp_path / "page.html"
    assert "<title>Mine</title>" in path.read_text(encoding="utf-8")


def test_a_failure_leaves_the_old_page(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    broken = fitted()
    broken.verdict_ = "strange"
    with pytest.raises(KeyError):
        write_report(broken, path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


# --- in a notebook -----------------------------------------------------------------------------


def test_a_fitted_model_shows_its_verdict_and_its_diagram():
    shown = fitted()._repr_html_()
    assert "leaves out x0 and x1" in shown
    assert "sk-top-container" in shown
    assert fitted()._repr_mimebundle_()["text/html"].count("leaves out x0 and x1") == 1


def test_an_unfitted_model_looks_as_any_other():
    shown = HRMRegressor()._repr_html_()
    assert "sk-top-container" in shown
    assert "leaves out" not in shown
    assert "leaves out" not in clone(fitted())._repr_html_()


def test_the_text_display_is_scikit_learn_s():
    import sklearn

    with sklearn.config_context(display="text"):
        assert not hasattr(fitted(), "_repr_html_")
        assert fitted()._repr_mimebundle_() == {"text/plain": "HRMRegressor(random_state=0)"}


def test_a_pipeline_s_own_diagram_still_works():
    assert "HRMRegressor" in make_pipeline(StandardScaler(), fitted())._repr_html_()


def test_hostile_names_stay_text_in_a_notebook():
    card = repr_html(fitted(HOSTILE)).partition("<style")[0]
    assert "<script" not in card
    assert "<img" not in card
    assert "&lt;script&gt;" in card
