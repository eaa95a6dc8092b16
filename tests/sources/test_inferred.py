"""From what the rows answer to a verdict: what leaves must pay, and hold on other rows."""

from dataclasses import replace

import numpy as np
import pytest

from hetrisk import HRMRegressor
from hetrisk.core import inferred
from hetrisk.core.numerics.families import Gaussian
from hetrisk.core.numerics.rows import Held, Rows
from hetrisk.core.pricing import priced
from hetrisk.core.sources import questions
from hetrisk.core.sources.question import Answer
from hetrisk.datasets import load_task
from hetrisk.estimators.base import UnstableWarning


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"agreement": 0.4}, "in 20 of 50 resamples it would pay. In doubt: x5."),
        (
            {"stability": np.full(7, 0.4)},
            "in too many resamples other columns would leave, or none. In doubt: x5.",
        ),
    ],
)
def test_columns_that_stay_on_other_rows_do_not_leave(monkeypatch, changed, said):
    task = load_task("flipping_cause", seed=0, visible=False)
    assert HRMRegressor().fit(task.train.X, task.train.y).verdict_ == "invariant"
    monkeypatch.setattr(inferred, "priced", lambda *given: replace(priced(*given), **changed))
    with pytest.warns(UnstableWarning, match="does not hold on other rows"):
        model = HRMRegressor().fit(task.train.X, task.train.y)
    assert model.verdict_ == "unstable"
    assert model.support_.all()
    assert said in model.verdict_reason_


def flips(n=1500):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    slope = np.where(rng.random(n) < 0.8, 1.5, -1.5)
    return X, slope * X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(n)


def test_a_set_that_does_not_leave_again_stays(monkeypatch):
    assert not HRMRegressor().fit(*flips()).support_[0]
    monkeypatch.setattr(inferred, "leaves_again", lambda *given: np.zeros(3, dtype=bool))
    with pytest.warns(UnstableWarning, match="never leave out x0"):
        model = HRMRegressor().fit(*flips())
    assert model.verdict_ == "unstable"
    assert model.support_.all()
    assert model.evidence_.reason[0] == "Kept: that it leaves does not hold on other rows."


@pytest.mark.parametrize(("left", "times"), [([True, False], 1), ([False, True], 2)])
def test_the_questions_are_asked_again_of_other_rows_until_all_has_left(monkeypatch, left, times):
    seen = []

    def answer(rows, *given, decide):
        assert decide
        seen.append(rows.sample(10_000, 0))
        return Answer(np.array([left[len(seen) - 1], False]), (), "invariant")

    monkeypatch.setattr(questions, "ask", answer)
    X, y = np.random.default_rng(0).standard_normal((500, 2)), np.arange(500.0)
    rows = Held(Rows(X, y, np.ones(500)))
    leave, nothing = np.array([True, False]), np.zeros(2, dtype=bool)
    again = questions.leaves_again(rows, Gaussian(), np.arange(2), nothing, 0.02, leave)
    assert again.tolist() == [True, False]
    assert [len(some) for some in seen] == [400] * times
    missing = [frozenset(y) - frozenset(some.y) for some in seen]
    assert len(set(missing)) == times


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_effect_with_two_slopes_is_priced_by_its_slopes(seed):
    """A code gives y away in a third of the rows and is empty elsewhere.

    Its spread goes along with a mark of those rows, and it follows y with two slopes; only rows
    parted by the slope show what that is worth.
    """
    rng = np.random.default_rng(seed)
    leaks = np.arange(2400) % 3 == 0
    X = rng.standard_normal((2400, 5))
    y = X @ np.array([1.0, -0.8, 0.6, 0.5, 0.3]) + 1.5 * rng.standard_normal(2400)
    code = np.where(leaks, y + 0.3 * rng.standard_normal(2400), 0.0)
    model = HRMRegressor().fit(np.column_stack([X, code, leaks]), y)
    assert np.flatnonzero(~model.support_).tolist() == [5]
    assert model.break_even_ <= 2.0


@pytest.mark.parametrize("seed", range(3))
def test_effects_without_which_nothing_is_said_stay(seed):
    """Stocks follow an index, all of them wildly at times; what else there is says nothing."""
    rng = np.random.default_rng(seed)
    y, noise = rng.standard_t(6, 1500), rng.standard_normal((1500, 3))
    wild = np.where(rng.random(1500) < 0.25, 3.0, 0.7)[:, None]
    stocks = y[:, None] * np.array([1.0, 0.9, 1.1]) + wild * noise
    X = np.column_stack([rng.standard_normal((1500, 2)), stocks])
    with pytest.warns(UnstableWarning, match="without them nothing is said about the target"):
        model = HRMRegressor().fit(X, y)
    assert model.support_.all()
