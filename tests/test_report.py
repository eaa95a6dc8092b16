"""The page as a whole: well formed, small, and nothing a stranger wrote can act on it."""

import base64
import hashlib
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hetrisk import HRMRegressor
from hetrisk.report import render, repr_html, summarize
from hetrisk.report.page import render_summary
from report_models import HOSTILE, fitted
from report_pages import Page

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


def test_rows_learned_from_are_drawn_in_the_environment_they_came_from():
    """Two of the sites share a regression: placed where they fit best, one of them has no row."""
    rng = np.random.default_rng(0)
    site = rng.integers(0, 3, 600)
    X = rng.normal(size=(600, 2)) + site[:, None]
    y = X[:, 0] + np.where(site == 2, 3.0, 0.0) * X[:, 1] + rng.normal(size=600)
    model = HRMRegressor().fit(X, y, environments=np.array(["a", "b", "c"])[site])
    spread = summarize(model, (X, y)).spreads[0]
    centres = (spread.edges[1:] + spread.edges[:-1]) / 2
    drawn = (spread.shares * centres).sum(axis=1)
    np.testing.assert_allclose(drawn, [X[site == k, 0].mean() for k in range(3)], atol=0.15)
