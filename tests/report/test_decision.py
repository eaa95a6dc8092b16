"""The answer in words: computed from the backtest, and never against it."""

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contradictions import contradictions
from hetrisk.report.decision import Action, decide

from .made import ERRORS, answer


def opening(decision):
    return " ".join(filter(None, (decision.headline, decision.evidence, decision.expect)))


def test_a_model_that_is_shown_to_err_less_is_to_be_used():
    decision = decide(*answer(fails=3.0))
    assert decision.action is Action.USE
    assert opening(decision) == (
        "Use boosted trees. Predicting later periods from earlier ones, it erred 0.500 (plain "
        "0.800, the mean 1.00). Expect RMSE 0.400 to 0.650 (1 ahead) and 0.552 to 0.897 (5 ahead), "
        "90 %."
    )
    assert decision.watch[0] == (
        "1 ahead the plain model errs 60\u00a0% more. The plain model is worse than predicting "
        "the mean from 3 ahead on."
    )


def test_a_band_that_does_not_grow_holds_for_all_horizons():
    ranking, backtest, forecast, curve = answer()
    one = forecast.by_horizon[0]
    alike = tuple(replace(h, chosen=one.chosen) for h in forecast.by_horizon)
    decision = decide(ranking, backtest, replace(forecast, by_horizon=alike), curve)
    assert decision.expect == "Expect RMSE 0.400 to 0.650 (1 to 5 ahead), 90 %."


def test_plain_is_used_where_nothing_else_is_shown_to_err_less():
    decision = decide(*answer(chosen="plain", timed=False))
    assert decision.action is Action.PLAIN
    assert decision.headline == (
        "Use the plain linear model: nothing else is shown to err less in environments left out."
    )


def test_what_erred_less_but_not_surely_is_named():
    decision = decide(*answer(chosen="plain"))
    assert decision.watch[0] == (
        "The relation may bend: boosted trees erred 0.500 on average, less, but not by two "
        "standard errors."
    )


def test_what_plain_was_held_against_is_named_before_what_erred_least():
    ranking, *rest = answer(chosen="plain")
    tried = replace(ranking[0], candidate="0.6 trend + 0.4 constant", mean=0.6)
    tried = replace(tried, chosen=False, note="least error, but not by two standard errors")
    watch = decide((tried, *ranking), *rest).watch
    assert watch[0] == (
        "An average of a linear model with a trend (60 %) and the mean (40 %) erred "
        "0.600 on average, less, but not by two standard errors."
    )


def test_nothing_is_said_of_horizons_at_which_nothing_was_judged():
    ranking, backtest, forecast, curve = answer(fails=9.0)
    far = replace(forecast.by_horizon[-1], horizon=9.0, label="9 ahead")
    far = replace(far, chosen=replace(far.chosen, mean=99.0))
    forecast = replace(forecast, by_horizon=(*forecast.by_horizon, far))
    said = " ".join(decide(ranking, backtest, forecast, curve).watch)
    assert "9 ahead" not in said
    assert "worse than predicting" not in said


def test_what_erred_less_on_average_alone_is_named():
    ranking, *rest = answer(chosen="trend")
    decision = decide(ranking, *rest)
    assert "erred 0.500 on average, less, but more in the worst environments" in decision.watch[0]


def test_a_model_that_errs_no_less_than_the_mean_is_not_to_be_relied_on():
    errors = ERRORS | {"plain": 1.01, "trees": 1.0}
    decision = decide(*answer(errors, "plain"))
    assert decision.action is Action.NO_MODEL
    assert decision.headline == (
        "Rely on no model yet: in periods not yet seen, the plain linear model errs no less than "
        "the mean."
    )


def test_the_mean_may_be_the_answer():
    decision = decide(*answer(ERRORS | {"constant": 0.2}, "constant"))
    assert decision.action is Action.CONSTANT
    assert decision.headline.startswith("Predict the mean:")


def test_labels_speak_of_shares_and_log_loss():
    decision = decide(*answer(unit="log loss"))
    assert "the class shares 1.00" in decision.evidence
    assert "log loss" in decision.expect


def test_without_a_backtest_nothing_is_claimed_of_other_environments():
    decision = decide(*answer(chosen="plain", n=0))
    assert decision.action is Action.UNTESTED
    assert not decision.evidence
    assert "rows like these" in opening(decision)


def test_what_is_said_of_plain_is_said_once():
    ranking, backtest, forecast, curve = answer(chosen="plain", timed=False, fails=1.5)
    worse = tuple(replace(line, chosen=2.0, plain=2.0) for line in curve)
    said = decide(ranking, backtest, forecast, worse).watch
    assert not any(sentence.startswith("The plain model is worse") for sentence in said)
    ranking, backtest, forecast, curve = answer(timed=False)
    for at, words in (
        (1, "Where environments are worse than most (reach 1.0)"),
        (2, "If the world"),
    ):
        lines = tuple(replace(r, chosen=2.0 if r.reach >= at else 0.1) for r in curve)
        assert any(s.startswith(words) for s in decide(ranking, backtest, forecast, lines).watch)


@settings(max_examples=200, deadline=None)
@given(
    errors=st.tuples(*[st.floats(0.01, 100) for _ in range(4)]),
    chosen=st.sampled_from(["constant", "plain", "trend", "trees"]),
    timed=st.booleans(),
    unit=st.sampled_from(["RMSE", "log loss"]),
    fails=st.sampled_from([1.0, 4.0, math.inf]),
)
def test_no_action_is_one_the_backtest_argues_against(errors, chosen, timed, unit, fails):
    errors = dict(zip(ERRORS, errors, strict=True))
    ranking, backtest, forecast, curve = answer(errors, chosen, timed, unit, fails=fails)
    decision = decide(ranking, backtest, forecast, curve)
    assert contradictions(decision, ranking, forecast) == []
    everything = " ".join([opening(decision), *decision.watch])
    assert not re.search(r"\bnan\b|None|\binf\b|–", everything)


@pytest.mark.parametrize("n", [1, 4])
def test_few_environments_are_said(n):
    assert f"rests on {n} period" in " ".join(decide(*answer(n=n)).watch)


def test_a_candidate_that_failed_is_named_with_its_reason():
    ranking, *rest = answer()
    broken = replace(ranking[2], criterion=math.nan, note="it needs 30 rows")
    decision = decide((*ranking[:2], broken, ranking[3]), *rest)
    assert "Not fitted: trend (it needs 30 rows)." in decision.watch
