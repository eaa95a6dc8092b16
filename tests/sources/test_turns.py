"""Slopes that turn with a column: interactions stay, marks of environments are seen through."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetrisk.core.numerics.rows import Held
from hetrisk.core.sources import turns
from hetrisk.core.sources.cuts import best_cuts
from hetrisk.core.sources.design import BatchDesign, BrokenDesign
from hetrisk.core.sources.flexible import fit_population
from hetrisk.core.sources.hidden import Hidden
from hetrisk.core.sources.one_regression import one_regression
from hetrisk.core.sources.score import DRAWS, FIRST, score
from hetrisk.core.sources.turns import surest_turn, turning_columns
from hetrisk.core.thresholds import THRESHOLDS, Thresholds
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


def turned(rows, level=0.01):
    population = fit_population(rows, np.arange(4), Thresholds())
    asked_of = turning_columns(rows, population, np.arange(4))
    assert asked_of
    return surest_turn(rows, asked_of, Thresholds(), level)


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
    turn = turned(standardised(X, y), level=1e-4)
    assert turn.turning == 0
    assert turn.p_value < 1e-3


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


def test_draws_are_made_until_they_decide(monkeypatch):
    counted = []
    compare = turns._compare

    def counting(seen, Y, weight, like=None):
        counted.append(len(Y))
        return compare(seen, Y, weight, like)

    monkeypatch.setattr(turns, "_compare", counting)
    rows = standardised(*marked(0))
    sure = turned(rows, level=0.01)
    assert counted[-1] == FIRST
    assert sure.p_value < 0.01
    turned(rows, level=1e-9)
    assert counted[-2:] == [FIRST, DRAWS - FIRST]


@given(seed=st.integers(0, 300))
@settings(max_examples=15, deadline=None)
def test_the_best_cut_is_the_best_of_all_cuts(seed):
    rng = np.random.default_rng(seed)
    n = 200
    Z, weight = np.column_stack([np.ones(n), rng.standard_normal(n)]), rng.random(n) + 0.1
    index, Y = rng.integers(0, 30, (2, n)) / 3.0, rng.standard_normal((2, n))
    places, explained = best_cuts(index, Z, Y, weight)
    for along, y, place, most in zip(index, Y, places, explained, strict=True):
        found = {}
        for value in np.unique(along)[:-1]:
            sides = (along <= value, along > value)
            if min(side.sum() for side in sides) < THRESHOLDS.least_share * n:
                continue
            found[value] = 0.0
            for side in sides:
                A = Z[side].T @ (weight[side, None] * Z[side])
                b = Z[side].T @ (weight[side] * y[side])
                found[value] += b @ np.linalg.lstsq(A, b, rcond=None)[0]
        assert most == pytest.approx(max(found.values()), rel=1e-3)
        best = max(found, key=found.get)
        assert place > best
        assert not np.any((along > best) & (along < place))


def test_a_broken_design_is_the_columns_beside_those_of_the_far_side():
    rng = np.random.default_rng(0)
    n, B = 300, 3
    Z, w = np.column_stack([np.ones(n), rng.standard_normal(n)]), rng.random(n)
    far, Y = rng.random((B, n)) < 0.4, rng.standard_normal((B, n)).astype(np.float32)
    every = np.ones((B, 4), dtype=bool)
    broken = one_regression(BrokenDesign(Z, w, far), Y, every)
    for b in range(B):
        plain = BatchDesign(np.hstack([Z, Z * far[b, :, None]]), w)
        alone = one_regression(plain, Y[[b]], every[:1])
        assert broken.log_likelihood[b] == pytest.approx(alone.log_likelihood[0], abs=1e-4)
        assert broken.coef[b] == pytest.approx(alone.coef[0], abs=0.02)


def test_what_the_terms_say_goes_with_the_columns_that_stand_in_them():
    rows = standardised(*marked(5))
    found = score(rows, np.arange(4), Thresholds(), np.arange(4))
    k, terms = len(found.columns.free), found.columns.population.terms
    assert {2, 3} <= {j for term in terms for j in term.columns}
    left = found.columns.without(np.eye(4, dtype=bool))
    assert left[:, 0].all()
    assert (left[:, 1 : 1 + k] == ~np.eye(4, dtype=bool)[:, found.columns.free]).all()
    assert not left[2, 1 + k :].any()
    assert left[0, 1 + k :].all() or 0 in {j for term in terms for j in term.columns}


def test_a_flip_beside_an_interaction_is_laid_at_the_door_of_the_column_that_flips():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((2000, 4))
    sign = np.where(rng.random(2000) < 0.25, -1.0, 1.0)
    y = X[:, 1:].sum(axis=1) + 1.5 * sign * X[:, 0] + 0.5 * X[:, 0] * X[:, 1]
    answer = asked(standardised(X, y + 0.5 * rng.standard_normal(2000)))
    assert np.flatnonzero(answer.leave).tolist() == [0]
    assert not any("along with" in finding.sentence for finding in answer.findings)
