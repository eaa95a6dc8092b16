"""The page with data: histograms, errors, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from hetrisk import HRMClassifier, HRMRegressor
from hetrisk.estimators.hrm import UnstableWarning
from hetrisk.report import render, summarize, write_report
from hetrisk.report.spreads import spreads
from hetrisk.tables import Table
from hetrisk.tables.model import fit_table
from report_models import HOSTILE, fitted
from report_pages import Page


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
