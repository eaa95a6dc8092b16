"""A gain that effects share: the test, its level, and the environments it makes."""

import numpy as np
import pytest

from hetrisk import HRMRegressor
from hetrisk.core.numerics.rows import Held, Rows
from hetrisk.core.sources.effect import Effect, recognised
from hetrisk.core.sources.shared_gain import by_gain, knots_of, shared_gain
from sources.made import case_of, standardised

EFFECTS = np.arange(3)
SLOPES = np.array([1.0, -0.8, 1.2])


def answering(seed, n=1500, gains=(0.4, 1.6), bend=lambda y: y):
    """Three effects of y, one of which answers the other way, that share noise and a gain."""
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(n)
    gain = rng.choice(gains, n)
    noise = 0.6 * rng.standard_normal((n, 1)) + 0.8 * rng.standard_normal((n, 3))
    return standardised((gain * bend(y))[:, None] * SLOPES + noise, y)


def caused(seed, n=2000, gains=(0.4, 1.6)):
    """Four causes of y, and two effects that answer to it by one gain."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    y = X @ [1.0, -0.8, 0.6, 0.5] + 0.7 * rng.standard_normal(n)
    factor = 0.5 * rng.standard_normal((n, 1))
    effects = (rng.choice(gains, n) * y)[:, None] * [1.0, -0.7]
    return np.hstack([X, effects + factor + 0.6 * rng.standard_normal((n, 2))]), y


def p_values(rows, groups=EFFECTS, knots=None):
    knots = knots_of(rows.y) if knots is None else knots
    return shared_gain(Held(rows), EFFECTS, groups, knots).p_values(Held(rows))


def test_a_gain_that_differs_between_rows_is_seen_by_every_effect():
    assert max(p_values(answering(seed)).max() for seed in range(5)) < 1e-6


@pytest.mark.parametrize(
    "bend",
    [lambda y: y, np.exp, lambda y: y + np.sin(3 * y), np.sign],
    ids=["straight", "exponential", "waves", "steps"],
)
def test_noise_that_effects_share_is_no_gain_however_their_mean_bends(bend):
    smallest = [p_values(answering(s, gains=(1.0,), bend=bend)).min() for s in range(100)]
    # Three tests a table: at most 3 % below 0.01 in the mean.
    assert np.mean(np.array(smallest) < 0.01) <= 0.08
    assert min(smallest) > 1e-5


@pytest.mark.parametrize("unit", [0.01, 10.0])
def test_the_unit_of_the_weights_does_not_matter(unit):
    rows = answering(0, n=400)
    weight = np.random.default_rng(1).exponential(1.0, 400)
    one, other = (p_values(Rows(rows.X, rows.y, w)) for w in (weight, unit * weight))
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_uneven_weights_keep_the_level():
    smallest = []
    for seed in range(60):
        rows = answering(seed, gains=(1.0,))
        weight = np.random.default_rng(seed).uniform(5.0, 15.0, len(rows))
        smallest.append(p_values(Rows(rows.X, rows.y, weight)).min())
    assert np.mean(np.array(smallest) < 0.01) <= 0.1


def test_blocks_of_rows_add_up():
    rows = answering(3, n=600)

    class Halves(Held):
        def sum(self, function):
            parts = np.array_split(np.arange(600), 2)
            some = [Rows(rows.X[i], rows.y[i], rows.weight[i]) for i in [*parts, parts[0][:0]]]
            return function(some[0]) + function(some[1]) + function(some[2])

    knots = knots_of(rows.y)
    found = shared_gain(Halves(rows), EFFECTS, EFFECTS, knots).p_values(Halves(rows))
    np.testing.assert_allclose(found, p_values(rows), rtol=1e-8)


def test_targets_beyond_those_of_the_sample_do_not_count():
    rng = np.random.default_rng(0)
    y = rng.standard_t(3, 60_000)
    noise = 0.6 * rng.standard_normal((60_000, 1)) + 0.8 * rng.standard_normal((60_000, 3))
    rows = standardised(y[:, None] * SLOPES + noise, y)
    assert p_values(rows, knots=knots_of(rows.y[:2000])).min() > 1e-3


def test_columns_of_one_group_are_no_witnesses_of_each_other():
    assert (p_values(answering(0), groups=np.zeros(3, dtype=int)) == 0.5).all()
    assert (p_values(answering(0), groups=np.array([0, 0, 1])) < 1e-4).all()


def test_the_environments_are_those_of_the_gain():
    rng = np.random.default_rng(0)
    y, second = rng.standard_normal(3000), rng.random(3000) < 0.3
    noise = 0.3 * rng.standard_normal((3000, 3))
    rows = standardised((np.where(second, -1.0, 1.0) * y)[:, None] * SLOPES + noise, y)
    partition = by_gain(rows, shared_gain(Held(rows), EFFECTS, EFFECTS, knots_of(rows.y)))
    each = partition.responsibilities(rows.X, rows.y)
    np.testing.assert_allclose(each.sum(axis=1), 1.0)
    np.testing.assert_allclose(each.mean(axis=0), partition.share, atol=0.01)
    backwards = partition.coef[:, 1] @ SLOPES < 0
    sharp = np.abs(rows.y) > 0.7
    found = each[:, backwards].sum(axis=1) > 0.5
    assert np.mean(found[sharp] == second[sharp]) > 0.97


def test_effects_that_share_a_gain_are_recognised_as_a_block_and_leave():
    rows = standardised(*caused(0))
    question, case = Effect(), case_of(rows)
    known = recognised(case)
    assert known.effect.tolist() == [False] * 4 + [True] * 2
    assert known.block[:4].tolist() == [-1] * 4
    assert known.block[4] == known.block[5] >= 0
    finding = question.test(case, question.propose(case))
    assert np.flatnonzero(finding.against).tolist() == [4, 5]
    more, steady = (Held(standardised(*caused(1, 5000, gains))) for gains in [(0.4, 1.6), (1.0,)])
    assert question.confirm(case, finding, more).against[[4, 5]].all()
    assert not question.confirm(case, finding, steady).against.any()


def test_an_effect_to_keep_stays_and_the_others_of_its_block_leave():
    keep = np.arange(6) == 4
    question, case = Effect(), case_of(standardised(*caused(0)), keep=keep)
    finding = question.test(case, question.propose(case))
    assert np.flatnonzero(finding.against).tolist() == [5]


def test_a_block_of_effects_with_one_gain_stays():
    question, case = Effect(), case_of(standardised(*caused(0, gains=(1.0,))))
    known = question.propose(case)
    assert known.block[4] == known.block[5] >= 0
    assert not question.test(case, known).against.any()


def test_the_model_leaves_them_out_and_says_why():
    model = HRMRegressor().fit(*caused(2))
    assert model.verdict_ == "invariant"
    assert np.flatnonzero(~model.support_).tolist() == [4, 5]
    assert "may follow from the target" in model.verdict_reason_
    assert model.break_even_ <= model.reach
