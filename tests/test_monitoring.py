"""New rows held against a fitted model: what moved, what broke, and what is said about it."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hetrisk
from hetrisk import HRMClassifier, HRMRegressor, check
from hetrisk.monitoring.columns import check_environments
from hetrisk.monitoring.findings import Status
from hetrisk.monitoring.page import render_check, write_check
from hetrisk.report.provenance import stored_quality
from hetrisk.report.record import plain_record
from hetrisk.tables.model import fit_table
from hetrisk.tables.reading import read_table


def world(seed, strength=1.0, n=1500, shift=0.0):
    """Two causes, and an echo of the target whose relation has a strength."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 3))
    y = X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n)
    each = strength * np.array([1.0, 1.6, 0.2])[site]
    X[:, 2] = each * y + 0.4 * rng.normal(size=n)
    X[:, 0] += shift
    return pd.DataFrame(X, columns=["a", "b", "echo"]), y, site


@pytest.fixture(scope="module")
def model():
    X, y, site = world(0)
    return HRMRegressor(random_state=0).fit(X, y, environments=site)


@pytest.fixture(scope="module")
def labels():
    X, y, site = world(0, n=3000)
    return HRMClassifier(random_state=0).fit(X, np.where(y > 0, "up", "down"), environments=site)


def test_the_models_leave_the_echo_out(model, labels):
    assert model.support_.tolist() == [True, True, False]
    assert labels.support_.tolist() == [True, True, False]


def test_rows_like_the_training_rows_are_fine(model):
    X, y, site = world(1)
    found = check(model, X, y, environments=site)
    assert found.status is Status.FINE
    assert found.moved == ()
    assert found.outcome.error.value == pytest.approx(0.5, abs=0.05)
    assert "Go on" in found.sentence
    assert found.outside < 0.01
    assert found.n_reference == 1500


def test_a_column_that_moved_is_named_and_measured(model):
    X, _, _ = world(2, shift=1.0)
    found = check(model, X)
    assert found.status is Status.MOVED
    assert [c.name for c in found.moved] == ["a"]
    (a,) = found.moved
    assert a.shift == pytest.approx(1.0, abs=0.1)
    assert a.distance == pytest.approx(0.38, abs=0.05)
    assert "Look at it: a moved." in found.sentence
    assert "Without the target nobody can say" in found.sentence
    assert found.outcome is None


def test_a_relation_that_broke_is_found_and_the_model_praised(model):
    X, y, _ = world(3, strength=-1.0)
    found = check(model, X, y)
    assert found.status is Status.BROKE
    assert found.outcome.weakened
    assert not found.outcome.beyond
    assert "was right to leave out echo" in found.sentence
    assert found.outcome.plain.value > 1.2 * found.outcome.error.value
    assert found.outcome.reach.value > 0.5
    assert "it would have erred" in str(found)


def test_an_error_beyond_the_reach_asks_for_another_fit(model):
    X, y, _ = world(4)
    found = check(model, X, -y)
    assert found.status is Status.BROKE
    assert found.outcome.beyond
    assert found.sentence.startswith("Fit again")


def test_labels_are_checked_too(labels):
    X, y, _ = world(5, strength=-1.0)
    found = check(labels, X, np.where(y > 0, "up", "down"))
    assert found.status is Status.BROKE
    assert found.outcome.weakened
    assert found.outcome.unit == "root Brier score"
    X, y, _ = world(6)
    assert check(labels, X, np.where(y > 0, "up", "down")).status is Status.FINE


def test_an_error_that_rose_is_an_alarm_before_it_is_beyond_the_reach(labels):
    X, y, _ = world(6)
    up = np.where(y > 0, "up", "down")
    turned = np.where(np.random.default_rng(0).random(len(up)) < 0.08, up[::-1], up)
    found = check(labels, X, turned)
    assert found.status is Status.MOVED
    assert found.outcome.risen
    assert not found.outcome.beyond
    assert "was expected" in found.sentence


def test_new_rows_are_held_against_the_error_out_of_fold(tmp_path):
    """A forest knows its own rows by heart; least squares errs far more than it does."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(600, 2)), columns=["a", "b"])
    frame["y"] = np.sin(3 * frame.a) + 0.3 * rng.normal(size=600)
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    forest = fit_table(
        read_table(path), "y", final_estimator=RandomForestRegressor(30, random_state=0)
    )
    shown = stored_quality(forest).error("RMSE").this
    outcome = check(forest, frame[["a", "b"]], frame.y).outcome
    assert outcome.expected == pytest.approx(shown)
    assert outcome.expected < 0.7 * forest[-1].reach_curve_.error[0]


def test_a_model_that_left_nothing_out_has_no_relation_left_out():
    X, y, site = world(0)
    shrunk = HRMRegressor(form="directions", random_state=0).fit(X, y, environments=site)
    assert shrunk.verdict_ == "invariant"
    Z, now, _ = world(9, strength=-1.0)
    said = check(shrunk, Z, now)
    assert said.outcome.weakened
    assert "right to lean less on what changes between environments" in said.sentence
    plain = HRMRegressor(keep=["a", "b", "echo"], random_state=0).fit(X, y, environments=site)
    assert plain.support_.all()
    assert check(plain, Z, now).outcome.strength is None


def test_no_plain_model_stands_beside_one_that_is_plain(model):
    Z, now, _ = world(9, strength=-1.0)
    assert "The plain model here" in str(check(model, Z, now))
    X, y, site = world(0)
    plain = HRMRegressor(reach=0.0, random_state=0).fit(X, y, environments=site)
    assert plain.verdict_ == "homogeneous"
    assert "The plain model here" not in str(check(plain, Z, now))


def test_targets_may_be_missing(model):
    X, y, _ = world(7)
    y = np.where(np.arange(len(y)) < 300, y, np.nan)
    found = check(model, X, y)
    assert found.outcome is not None
    assert found.n_rows == len(X)
    assert check(model, X, np.full(len(X), np.nan)).outcome is None


def test_the_mix_of_named_environments(model):
    X, y, site = world(8)
    found = check(model, X, y, environments=np.where(site == 0, 1, site))
    assert {e.label for e in found.environments if e.moved} == {"0", "1"}
    assert "The mix of environments" in [p.question for p in found.points]
    found = check(model, X, y, environments=np.where(site == 0, 7, site))
    assert [e.label for e in found.environments] == ["0", "1", "2", "7"]
    assert found.environments[3].before == 0


def test_shares_of_environments_are_compared_with_those_then():
    rng = np.random.default_rng(0)
    member = rng.multinomial(1, [0.5, 0.3, 0.2], size=1000).astype(float)
    same = check_environments(["a", "b", "c"], np.array([0.5, 0.3, 0.2]), member, 2000)
    assert not any(e.moved for e in same)
    moved = check_environments(["a", "b", "c"], np.array([0.2, 0.6, 0.2]), member, 2000)
    assert [e.moved for e in moved] == [True, True, False]


def test_nothing_moved_is_said_about_rows_that_did_not_move():
    """At level 0.01, of 60 checks of rows from the same world hardly one may move."""
    X, y, site = world(0)
    model = HRMRegressor(random_state=0).fit(X, y, environments=site)
    statuses = [check(model, *world(100 + seed)[:2]).status for seed in range(60)]
    assert sum(status is not Status.FINE for status in statuses) <= 3


def test_pipelines_are_checked_in_the_columns_they_take(model):
    X, y, site = world(0)
    pipeline = make_pipeline(StandardScaler(), HRMRegressor(random_state=0))
    pipeline.set_output(transform="pandas").fit(X, y, hrmregressor__environments=site)
    found = check(pipeline, world(2, shift=1.0)[0])
    assert [c.name for c in found.moved] == ["a"]


def test_columns_may_come_in_another_order(model):
    X, y, _ = world(1)
    first, second = check(model, X, y), check(model, X[["echo", "b", "a"]], y)
    assert first.outcome.error.value == second.outcome.error.value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((0, 3)),), "X must have at least one row; got 0"),
        ((np.zeros((5, 2)),), r"X must have 3 columns.*got an array of shape \(5, 2\)"),
        ((np.zeros((5, 3)), np.zeros(4)), r"y must have length n_samples=5; got an array of sh"),
    ],
)
def test_bad_input_is_named(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        check(model, *arguments)


def test_bad_environments_and_labels_are_named(model, labels):
    X, y, _ = world(1, n=20)
    with pytest.raises(ValueError, match="environments must have length n_samples=20"):
        check(model, X, y, environments=[1, 2, 3])
    with pytest.raises(ValueError, match=r"y must hold labels among the 2 classes.*got sideways"):
        check(labels, X, np.array(["up"] * 19 + ["sideways"]))
    untold = HRMRegressor(random_state=0).fit(*world(0)[:2])
    with pytest.raises(ValueError, match="environments were given, but the model was fitted"):
        check(untold, X, y, environments=np.arange(20))


def test_what_was_found_is_text_a_frame_and_json(model):
    X, y, site = world(2, shift=1.0)
    found = check(model, X, y, environments=site)
    assert str(found).startswith(found.sentence)
    frame = found.to_frame()
    assert frame["name"].tolist()[0] == "a"
    assert json.loads(json.dumps(plain_record(found)))["n_rows"] == 1500


def test_the_page_shows_where_the_world_is(model, tmp_path):
    X, y, _ = world(3, strength=-1.0)
    found = check(model, X, y)
    path = write_check(found, tmp_path / "check.html", "<b>Check</b>")
    page = path.read_text(encoding="utf-8")
    assert "&lt;b&gt;Check&lt;/b&gt;" in page
    assert "the world now" in page
    assert "exit code 4" in page
    assert "the world now" not in render_check(check(model, X))


def test_the_function_is_public():
    assert hetrisk.check is check
    assert "check" in dir(hetrisk)
    assert not {"Any", "import_module", "TYPE_CHECKING"} & set(dir(hetrisk))


def test_frames_with_categories_are_checked_by_their_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"sky": rng.choice(["grey", "blue", "red"], 600), "a": rng.normal(size=600)})
    y = X["a"] + (X["sky"] == "grey") + rng.normal(size=600)
    model = HRMRegressor().fit(X, y)
    new = X.assign(sky=np.where(rng.random(600) < 0.6, "red", X["sky"]))
    found = check(model, new, y)
    assert [c.name for c in found.moved] == ["sky"]
    assert found.moved[0].level.startswith("sky=")
    assert found.moved[0].distance == pytest.approx(0.4, abs=0.06)
    assert check(model, X, y).status is Status.FINE


def test_without_the_columns_left_out_nothing_is_said_about_them():
    X, y, site = world(0)
    sky = pd.Series(np.where(X["a"] > 0, "blue", "grey"), name="sky")
    model = HRMRegressor().fit(X.assign(sky=sky), y, environments=site)
    assert "echo" not in model.feature_names_in_[model.support_]
    new, target, _ = world(1, strength=-0.5)
    new = new.assign(sky=np.where(new["a"] > 0, "blue", "grey"))
    assert check(model, new, target).outcome.weakened
    found = check(model, new.drop(columns="echo"), target)
    assert found.outcome.error == check(model, new, target).outcome.error
    assert found.outcome.plain is None
    assert found.outcome.strength is None
    assert found.environments == ()
    assert not {"The relation left out", "The plain model here"} & {
        p.question for p in found.points
    }


def test_a_frame_of_numbers_may_lack_the_columns_that_were_left_out():
    rng = np.random.default_rng(0)
    site = rng.integers(0, 2, 2000)
    frame = pd.DataFrame(rng.standard_normal((2000, 3)), columns=["a", "b", "c"])
    y = frame["a"] + np.where(site == 0, 2.0, -2.0) * frame["c"] + 0.3 * rng.standard_normal(2000)
    model = HRMRegressor().fit(frame, y, environments=site)
    found = check(model, frame[["b", "a"]])
    assert {column.name for column in found.columns} == {"a", "b"}
    assert not found.moved
    with pytest.raises(ValueError, match="columns the model uses; it lacks 'a'"):
        check(model, frame[["b", "c"]])


def test_many_small_environments_that_all_went_away_are_noticed():
    """Eighteen years of a twentieth each, then others: no share alone moves by a tenth."""
    before = np.full(18, 1 / 18)
    labels = [str(year) for year in range(63, 81)]
    years = np.arange(600) % 12 + 81
    member = (years[:, None] == np.arange(63, 93)).astype(float)
    found = check_environments(
        [*labels, *map(str, range(81, 93))], np.append(before, np.zeros(12)), member, 800
    )
    assert all(e.moved for e in found)
    X, y, site = world(8)
    model = HRMRegressor(random_state=0).fit(X, y, environments=site)
    said = str(check(model, X, y, environments=site + 10)).replace("\u00a0", " ")
    assert "It changed: 100 % of the rows are from environments never seen (10, 11 and 12)." in said


def test_a_model_whose_error_doubled_is_not_said_to_hold(model):
    X, y, _ = world(3, strength=-1.0)
    wild = y + 0.45 * np.random.default_rng(0).normal(size=len(y))
    found = check(model, X, wild)
    assert found.outcome.weakened
    assert found.outcome.risen
    assert not found.outcome.beyond
    assert found.sentence.startswith("Look at it: on these rows the RMSE is")
    assert "It was right to leave out echo" in found.sentence
