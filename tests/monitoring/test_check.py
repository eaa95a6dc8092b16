"""New rows held against a model: one verdict, one rule, and what lies behind it."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hetrisk import modelfile
from hetrisk.core.predictor import Inputs, LinearPart, single
from hetrisk.core.result import Expected, Forecast, Horizon, Ranked
from hetrisk.modelfile import Deployed
from hetrisk.monitoring import Status, check
from hetrisk.monitoring.findings import Part
from hetrisk.monitoring.reference import reference_of
from hetrisk.monitoring.words import lines_of, parts_of
from hetrisk.report.learned import Sample, column_lines
from hetrisk.tables import TableError

COEF = np.array([2.0, -1.0, 0.0])
NAMES = ("size", "age", "idle")


def rows(n, seed, *, shift=0.0, slope=2.0, level=0.0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 0] += shift
    y = slope * X[:, 0] - X[:, 1] + level + noise * rng.normal(size=n)
    return pd.DataFrame(X, columns=list(NAMES)), y


def forecast(mean=1.1, lower=0.9, upper=1.4, unit="RMSE", constant=2.4):
    expected = Expected(mean, lower, upper)
    other = Expected(constant, constant, constant)
    far = Expected(2 * mean, 2 * lower, 2 * upper)
    horizons = (
        Horizon(1.0, "1 year ahead", expected, other, other, 6),
        Horizon(5.0, "5 years ahead", far, other, other, 6),
    )
    return Forecast(mean, lower, upper, other, other, horizons, math.inf, unit, 6)


@pytest.fixture(scope="module")
def model():
    frame, y = rows(1500, 0)
    predictor = single(LinearPart(COEF[:, None], np.zeros(1), np.zeros(1)))
    deployed = Deployed("numbers", "y", predictor, NAMES)
    inputs = deployed.inputs(frame)
    sample = Sample(
        X=inputs.X,
        observed=inputs.X,
        names=NAMES,
        groups=NAMES,
        y=y[:, None],
        predicted=predictor.predict(inputs),
        predict=lambda X, rows: predictor.predict(Inputs(X)),
    )
    reference = vars(reference_of(sample, column_lines(sample)))
    nan = math.nan
    ranking = (Ranked("plain", 1.1, 1.2, 1.4, 1.0, 1.0, 1.0, True, ""),)
    summary = {"ranking": ranking, "forecast": forecast(), "break_even": nan}
    made = replace(deployed, summary=summary, reference=reference)
    return modelfile.loads(modelfile.dumps(made))  # as a file gives it back


def test_rows_like_those_learned_from_are_fine(model):
    frame, y = rows(400, 1)
    found = check(model, frame, y)
    assert found.status is Status.FINE
    assert found.sentence.startswith("Go on: the error is ")
    assert found.notable == ()
    assert "foretold" in found.sentence


def test_an_error_beyond_the_band_is_an_alarm(model):
    frame, y = rows(400, 2, level=1.5)
    found = check(model, frame, y)
    assert found.status is Status.ALARM
    assert found.sentence.startswith("Stop: ")
    assert parts_of(found.outcome)[0].endswith("its level is off")


def test_worse_than_the_mean_is_an_alarm_whatever_the_band_says(model):
    wide = replace(model, summary={**model.summary, "forecast": forecast(5.0, 1.0, 90.0)})
    frame, y = rows(400, 3, slope=-2.0)
    found = check(wide, frame, y)
    assert found.outcome.error < 90
    assert found.status is Status.ALARM
    assert "predicting the mean errs" in found.sentence


def test_a_model_that_is_the_mean_is_not_worse_than_the_mean(model):
    frame, y = rows(400, 8)
    mean = single(LinearPart(np.zeros((3, 1)), model.reference["constant"] + 1e-6, np.zeros(1)))
    wide = {**model.summary, "forecast": forecast(2.4, 2.0, 3.0)}
    found = check(replace(model, predictor=mean, summary=wide), frame, y)
    assert found.status is Status.FINE


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"slope": 4.0}, "the target follows size in another way"),
        ({"level": 2.0}, "its level is off"),
        ({"noise": 3.0}, "the rest"),
    ],
)
def test_a_rise_is_taken_apart_and_adds_up(model, change, words):
    frame, y = rows(800, 4, **change)
    outcome = check(model, frame, y).outcome
    assert outcome.status is not Status.FINE
    assert sum(part.share for part in outcome.parts) == pytest.approx(1)
    assert words in parts_of(outcome)[0]
    assert outcome.rise == pytest.approx(outcome.error**2 - outcome.expected.mean**2)


def test_parts_that_are_read_add_up(model):
    outcome = check(model, *rows(400, 2, level=1.5)).outcome
    shares = (0.9, 0.7, -0.6, -0.3, -0.2, 0.1, 0.1, 0.1, 0.2)
    parts = tuple(Part("slope", f"c{k}", share, 0.0) for k, share in enumerate(shares))
    said = parts_of(replace(outcome, parts=parts))
    assert said[-1] == "+50\u00a0%: 4 smaller parts"
    assert sum(float(line.split("\u00a0%")[0].replace("−", "-")) for line in said) == 100


def test_where_no_band_is_known_none_is_named(model):
    known = model.summary["forecast"]
    nan = math.nan
    unknown = replace(known, lower=nan, upper=nan, by_horizon=())
    bare = replace(model, summary={**model.summary, "forecast": unknown})
    for slope, word in ((2.0, "Go on"), (-4.0, "Stop")):
        frame, y = rows(400, 1, slope=slope)
        sentence = check(bare, frame, y).sentence
        assert sentence.startswith(word)
        assert "–" not in sentence
        assert "foretold" not in sentence


def test_a_constant_target_is_an_error_like_any_other(model):
    frame, _ = rows(200, 8)
    found = check(model, frame, np.full(200, 3.0))
    assert found.status is Status.ALARM
    assert not any(part.startswith("0") for part in parts_of(found.outcome))


def test_columns_that_moved_do_not_overrule_the_error(model):
    frame, y = rows(400, 5, shift=1.0)
    found = check(model, frame, y)
    assert [c.name for c in found.notable] == ["size"]
    assert found.status is Status.FINE
    assert check(model, frame).status is Status.LOOK
    assert check(model, frame).sentence.startswith("Look: size moved.")


def test_a_column_the_model_does_not_use_may_move(model):
    frame, _ = rows(400, 6)
    found = check(model, frame.assign(idle=frame["idle"] + 5))
    assert [c.name for c in found.notable] == ["idle"]
    assert found.status is Status.FINE


def test_few_rows_do_not_raise_an_alarm_by_chance(model):
    alarms = [check(model, *rows(8, seed)).status is Status.ALARM for seed in range(100)]
    assert sum(alarms) <= 8


def test_the_horizon_decides_which_band(model):
    from hetrisk.tables.time import TimeColumn

    when = TimeColumn(np.empty(0), "year", "number")
    timed = replace(model, time_name="year", time=when, last_time=2000.0, period=1.0)
    frame, y = rows(400, 7, noise=2.2)
    near, far = (check(timed, frame.assign(year=year), y) for year in (2001, 2006))
    assert near.status is Status.ALARM
    assert "1 year ahead" in near.sentence
    assert far.status is Status.FINE
    assert "5 years ahead" in far.sentence


def test_sentence_status_and_exit_code_say_the_same(model):
    words = {Status.FINE: "Go on", Status.LOOK: "Look", Status.ALARM: "Stop"}
    for seed in range(12):
        frame, y = rows(60, seed, level=0.15 * seed)
        for target in (y, None):
            found = check(model, frame, target)
            assert found.sentence.startswith(words[found.status])
            assert lines_of(found)[0] == found.sentence


def test_bad_input_is_refused_in_a_sentence(model):
    frame, _ = rows(5, 0)
    with pytest.raises(TableError, match="the table has no rows"):
        check(model, frame.iloc[:0])
    with pytest.raises(TableError, match="lacks 'age'"):
        check(model, frame.drop(columns="age"))
    with pytest.raises(TableError, match="holds nothing to check"):
        check(replace(model, reference=None), frame)
