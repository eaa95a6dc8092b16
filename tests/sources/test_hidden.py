"""Hidden slopes: the score, the sets, the partition."""

import numpy as np
import pytest

from hetrisk.core.numerics.families import Bernoulli, Gaussian
from hetrisk.core.numerics.rows import Held
from hetrisk.core.sources.candidate_sets import environment_grams, proposed_sets, regrets, units_of
from hetrisk.core.sources.hidden import Hidden
from hetrisk.core.sources.score import score
from hetrisk.core.thresholds import Thresholds
from sources.made import case_of, flipping, one_population, standardised


def scored(rows, **given):
    return score(rows, np.arange(rows.X.shape[1]), Thresholds(), block=100, **given)


def test_two_slopes_score_far_beyond_one_population():
    assert scored(standardised(*flipping(0))).p_value < 1e-4


def test_one_population_scores_as_chance_does_whatever_its_mean_and_noise():
    p = [scored(standardised(*one_population(seed))).p_value for seed in range(12)]
    assert np.mean(np.array(p) < 0.1) <= 0.34
    assert min(p) > 0.001


def test_the_column_that_turns_round_is_named_and_what_stays_is_one_population():
    question, case = Hidden(), case_of(standardised(*flipping(1)))
    finding = question.test(case, question.propose(case))
    assert np.flatnonzero(finding.against).tolist() == [3]
    assert finding.safe
    assert finding.p_value < 1e-3
    assert "without 1 column it is" in finding.sentence


@pytest.mark.parametrize("seed", range(3))
def test_two_columns_that_turn_round_together_leave_together(seed):
    # Without either, the other's two slopes drown in the noise that makes.
    rng = np.random.default_rng(seed)
    X, sign = rng.standard_normal((1500, 5)), np.where(rng.random(1500) < 0.2, -1.0, 1.0)
    y = X[:, :3] @ [1.0, -0.8, 0.6] + 1.2 * sign * (X[:, 3] + X[:, 4])
    question, case = Hidden(), case_of(standardised(X, y + 0.5 * rng.standard_normal(1500)))
    finding = question.test(case, question.propose(case))
    assert np.flatnonzero(finding.against).tolist() == [3, 4]


def test_a_column_to_keep_never_leaves():
    keep = np.array([False, False, False, True])
    question, case = Hidden(), case_of(standardised(*flipping(1)), keep=keep)
    finding = question.test(case, question.propose(case))
    assert not finding.against[3]


def test_the_partition_tells_rows_apart_and_serves_new_rows():
    rows = standardised(*flipping(2, n=1500))
    question, case = Hidden(), case_of(rows)
    partition = question.test(case, question.propose(case)).partitions[0]
    share = partition.responsibilities(rows.X, rows.y)
    assert share.shape == (1500, 2)
    assert share.sum(axis=1) == pytest.approx(1.0)
    slopes = [
        np.linalg.lstsq(rows.X * np.sqrt(r)[:, None], rows.y * np.sqrt(r), rcond=None)[0][3]
        for r in share.T
    ]
    assert min(slopes) < -0.3 < 0.3 < max(slopes)
    again = partition.responsibilities(rows.X[:10], rows.y[:10])
    assert again == pytest.approx(share[:10])


def test_chance_environments_come_with_the_partition():
    question, case = Hidden(), case_of(standardised(*flipping(3)))
    finding = question.test(case, question.propose(case))
    (grams,) = finding.chance
    assert len(grams) > 3
    assert all(g.gram.shape == (2, 6, 6) for g in grams)
    assert all(g.share.sum() == pytest.approx(1.0) for g in grams)


def test_all_rows_confirm_two_slopes_and_refuse_what_they_do_not_show():
    question, case = Hidden(), case_of(standardised(*flipping(4)))
    finding = question.test(case, question.propose(case))
    more = Held(standardised(*flipping(5, n=2000)))
    assert question.confirm(case, finding, more).against.any()
    X, y = flipping(6, n=2000, share=0.0)
    other = question.confirm(case, finding, Held(standardised(X, y)))
    assert not other.against.any()
    assert "not borne out" in other.sentence


def test_labels_are_not_asked():
    assert Hidden().applies(Gaussian())
    assert not Hidden().applies(Bernoulli())


def test_regret_is_what_the_pooled_fit_loses():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((400, 2))
    second = (np.arange(400) < 150).astype(float)
    y = X[:, 0] + np.where(second > 0, -1.0, 1.0) * X[:, 1] + 0.1 * rng.standard_normal(400)
    grams = environment_grams(X, y, np.ones(400), second)
    risk, regret = regrets(grams, np.array([[True, True], [True, False]]))
    z = np.column_stack([np.ones(400), X])
    pooled = np.linalg.lstsq(z, y, rcond=None)[0]
    assert risk[0] == pytest.approx(np.mean((y - z @ pooled) ** 2), rel=1e-3)
    lost = []
    for part in (second == 0, second == 1):
        own = np.linalg.lstsq(z[part], y[part], rcond=None)[0]
        lost.append(np.mean((z[part] @ (pooled - own)) ** 2))
    assert regret[0] == pytest.approx(max(lost), rel=0.02)
    assert regret[1] < 0.1 * regret[0]


@pytest.mark.parametrize("d", [4, 14])
def test_regret_proposes_to_leave_what_differs(d):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((600, d))
    second = (np.arange(600) < 200).astype(float)
    y = X[:, 0] + np.where(second > 0, -1.0, 1.0) * X[:, 1] + 0.1 * rng.standard_normal(600)
    real = environment_grams(X, y, np.ones(600), second)
    null = [environment_grams(X, X[:, 0], np.ones(600), second)]
    kept = proposed_sets(real, null, np.eye(d, dtype=bool), np.zeros(d, dtype=bool))
    assert (kept[:, 0] & ~kept[:, 1]).any()


def test_units_are_groups_with_nothing_to_keep():
    groups = np.array([0, 0, 1, 2])
    units = units_of(groups, np.array([False, False, False, True]))
    assert units.tolist() == [[True, True, False, False], [False, False, True, False]]
