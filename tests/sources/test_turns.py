"""Slopes that turn with a column: interactions stay, marks of environments are seen through."""

import numpy as np
import pytest

from hetrisk.core.numerics.rows import Held
from hetrisk.core.sources.flexible import fit_population
from hetrisk.core.sources.hidden import Hidden
from hetrisk.core.sources.turns import surest_turn, turning_columns
from hetrisk.core.thresholds import Thresholds
from sources.made import asked, case_of, standardised


def marked(seed, n=1200, share=0.25, blur=0.5, curve=None):
    """The slope of column 2 turns in a share of the rows; column 3 shows which, more or less.

    Where ``curve`` is given the slope is that function of column 3: an interaction.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    site = np.where(rng.random(n) < share, -1.0, 1.0)
    X[:, 3] = site + blur * rng.standard_normal(n)
    slope = site if curve is None else curve(X[:, 3])
    return X, X[:, :2] @ [1.0, -1.0] + 1.5 * slope * X[:, 2] + 0.5 * rng.standard_normal(n)


def turned(rows):
    population = fit_population(rows, np.arange(4), Thresholds())
    asked_of = turning_columns(rows, population, np.arange(4))
    assert asked_of
    return surest_turn(rows, asked_of, Thresholds(), 0.01)


def test_a_mark_that_errs_now_and_then_is_told_from_an_interaction():
    turn = turned(standardised(*marked(0)))
    assert turn.turning == 2
    assert np.abs(turn.partition.chance[1:]).argmax() == 2  # of columns 0, 1, 3
    assert turn.p_value < 1e-3


@pytest.mark.parametrize("curve", [np.sign, lambda a: a, lambda a: np.tanh(2 * a)])
def test_interactions_are_one_population(curve):
    found = [turned(standardised(*marked(seed, curve=curve))) for seed in range(3)]
    assert min(turn.p_value for turn in found) > 0.01


def test_a_slope_that_turns_at_a_plane_is_an_interaction():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((1200, 4))
        y = X[:, 0] + 1.5 * X[:, 2] * np.sign(X[:, 1] + X[:, 3]) + 0.5 * rng.standard_normal(1200)
        assert turned(standardised(X, y)).p_value > 0.01


def test_columns_may_go_along_together():
    rng = np.random.default_rng(6)
    site = np.where(rng.random(2000) < 0.3, -1.0, 1.0)
    X = rng.standard_normal((2000, 4))
    X[:, 1:] += 0.9 * site[:, None]
    y = 1.5 * site * X[:, 0] + X[:, 1] - X[:, 2] + 0.5 * rng.standard_normal(2000)
    turn = turned(standardised(X, y))
    assert turn.turning == 0
    assert turn.p_value < 1e-4


def test_only_the_column_that_turns_leaves():
    question, case = Hidden(), case_of(standardised(*marked(1)))
    finding = question.test(case, question.propose(case))
    assert np.flatnonzero(finding.against).tolist() == [2]
    assert finding.safe


def test_a_column_to_keep_stays_and_nothing_is_safe():
    keep = np.array([False, False, True, False])
    answer = asked(standardised(*marked(1)), keep=keep)
    assert not answer.leave.any()
    assert answer.verdict == "unstable"


def test_the_partition_parts_the_rows_by_their_slopes_and_serves_new_rows():
    X, y = marked(2, n=2000)
    rows = standardised(X, y)
    question, case = Hidden(), case_of(rows)
    partition = question.test(case, question.propose(case)).partitions[0]
    share = partition.responsibilities(rows.X, rows.y)
    assert share.sum(axis=1) == pytest.approx(1.0)
    assert sorted(share.mean(axis=0)) == pytest.approx([0.25, 0.75], abs=0.03)
    again = partition.responsibilities(rows.X[:10], rows.y[:10])
    assert again == pytest.approx(share[:10])


def test_all_rows_confirm_a_turn():
    question, case = Hidden(), case_of(standardised(*marked(3)))
    finding = question.test(case, question.propose(case))
    more = Held(standardised(*marked(4, n=3000)))
    assert question.confirm(case, finding, more).against.any()
