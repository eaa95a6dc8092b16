"""Proxies, effects, copies of a label, and the driver that asks them all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from hetrisk import HRMClassifier, HRMRegressor
from hetrisk.core.numerics.families import Bernoulli
from hetrisk.core.numerics.multiplicity import holm
from hetrisk.core.numerics.rows import Held, Rows
from hetrisk.core.sources.copies import LabelCopy, explained
from hetrisk.core.sources.effect import Effect, roles
from hetrisk.core.sources.proxy import Proxy
from hetrisk.report import render, summarize
from hetrisk.report.summary import Action, Decision
from report_pages import start_of
from sources.made import asked, case_of, flipping, one_population, standardised


def proxied(seed, n=2000):
    """A product the line cannot draw, and a column that follows it in nine rows of ten."""
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((n, 3))
    f = S @ [0.5, -1.0, 1.0] + S[:, 0] * S[:, 1] * S[:, 2]
    v = np.where(rng.random(n) < 0.9, f, -f) + 0.4 * rng.laplace(size=n)
    return np.column_stack([S, v, rng.standard_normal(n)]), f + 0.3 * rng.standard_normal(n)


def spreading(seed, n=900, spreads=(0.3, 1.5), shift=1.5):
    """Two environments that shift the causes; an effect that is noisier in the second."""
    rng = np.random.default_rng(seed)
    second = np.arange(n) < n // 3
    X = rng.standard_normal((n, 3)) + shift * second[:, None] * [1.0, -1.0, 0.0]
    y = X @ [1.0, -0.5, 0.8] + 0.5 * rng.standard_normal(n)
    effect = y + np.where(second, spreads[1], spreads[0]) * rng.standard_normal(n)
    return np.column_stack([X, effect]), y


def found(question, rows, **given):
    case = case_of(rows, **given)
    return question.test(case, question.propose(case))


def test_a_proxy_that_follows_in_two_ways_leaves():
    finding = found(Proxy(), standardised(*proxied(0)))
    assert np.flatnonzero(finding.against).tolist() == [3]
    assert finding.partitions[0].target == 3
    assert not finding.chance


def test_a_proxy_that_follows_in_one_way_everywhere_stays():
    rng = np.random.default_rng(1)
    S = rng.standard_normal((2000, 3))
    f = S @ [0.5, -1.0, 1.0] + S[:, 0] * S[:, 1] * S[:, 2]
    X = np.column_stack([S, f + 0.6 * rng.standard_normal(2000)])
    question, case = Proxy(), case_of(standardised(X, f + 0.3 * rng.standard_normal(2000)))
    suspects = question.propose(case)
    assert suspects.columns.tolist() == [3]
    assert not question.test(case, suspects).against.any()


def test_linear_rows_have_no_suspect():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((600, 4))
    rows = standardised(X, X @ [1, 1, 0, 0.5] + rng.standard_normal(600))
    finding = found(Proxy(), rows)
    assert finding.p_value == 1.0
    assert "No column is a proxy" in finding.sentence


def test_proxies_are_confirmed_by_all_rows_or_not():
    question, case = Proxy(), case_of(standardised(*proxied(0)))
    finding = question.test(case, question.propose(case))
    assert question.confirm(case, finding, Held(standardised(*proxied(5)))).against[3]
    X, y = proxied(6)
    X[:, 3] = np.random.default_rng(6).standard_normal(len(y))
    assert not question.confirm(case, finding, Held(standardised(X, y))).against.any()


def test_effects_are_told_from_causes():
    rows = standardised(*spreading(0))
    seen = roles(rows, case_of(rows).family, np.arange(4))
    assert seen.effect.tolist() == [False, False, False, True]


def test_an_effect_leaves_where_its_spread_goes_along_with_other_columns():
    shifting = found(Effect(), standardised(*spreading(1)))
    assert np.flatnonzero(shifting.against).tolist() == [3]
    steady = found(Effect(), standardised(*spreading(1, spreads=(0.6, 0.6))))
    assert not steady.against.any()
    assert "does so in one way everywhere" in steady.sentence


def test_the_environments_of_an_effect_are_those_of_its_noise():
    X, y = spreading(2, n=3000)
    rows = standardised(X, y)
    (partition,) = found(Effect(), rows).partitions
    spreads = np.sqrt(partition.variance[:, 0]) * X[:, 3].std()
    np.testing.assert_allclose(spreads[[0, -1]], [0.3, 1.5], rtol=0.25)
    each = partition.responsibilities(rows.X, rows.y)
    np.testing.assert_allclose(each.sum(axis=1), 1.0)
    np.testing.assert_allclose(each.mean(axis=0), partition.share, atol=0.01)
    second = np.arange(len(y)) < len(y) // 3
    assert np.corrcoef(each[:, 0], second)[0, 1] < -0.7


def test_an_effect_leaves_only_where_that_pays_within_the_reach():
    X, y = spreading(7, n=3000, spreads=(0.6, 1.1))
    near, far = (HRMRegressor(reach=reach).fit(X, y) for reach in (1.0, 8.0))
    assert far.verdict_ == "invariant"
    assert not far.support_[3]
    assert 1.0 < far.break_even_ <= 8.0
    assert near.verdict_ == "homogeneous"
    assert near.support_.all()
    assert "beyond the 1 asked for" in near.verdict_reason_


def test_steady_effects_are_cleared_by_all_rows():
    question, case = Effect(), case_of(standardised(*spreading(1)))
    finding = question.test(case, question.propose(case))
    all_rows = Held(standardised(*spreading(3, n=3000, spreads=(0.6, 0.6))))
    assert not question.confirm(case, finding, all_rows).against.any()
    assert question.confirm(case, finding, Held(standardised(*spreading(4, n=3000)))).against[3]


def labels(seed, n=3000, wrong=0.08):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    y = (rng.random(n) < 1 / (1 + np.exp(-X[:, :4] @ [1.0, -1.0, 1.5, 0.7]))).astype(float)
    X[:, 4] = np.where(rng.random(n) < wrong, 1 - y, y)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return Rows(np.ascontiguousarray(X), y, np.ones(n))


def test_a_copy_of_a_label_leaves_by_assumption_unless_it_is_to_be_kept():
    finding = found(LabelCopy(), labels(0), family=Bernoulli())
    assert np.flatnonzero(finding.against).tolist() == [4]
    assert finding.assumption
    assert finding.p_value == 1.0
    assert "assumption" in finding.sentence
    keep = np.arange(5) == 4
    kept = found(LabelCopy(), labels(0), family=Bernoulli(), keep=keep)
    assert not kept.against.any()
    assert kept.sentence == (
        "1 column repeats the label better than any other tells it, and stays: asked for."
    )


def test_a_copy_stays_where_the_others_do_not_explain_the_label():
    rows = labels(1)
    X = rows.X.copy()
    X[:, :4] = np.random.default_rng(1).standard_normal((len(rows), 4)) + 0.05 * rows.y[:, None]
    finding = found(LabelCopy(), Rows(X, rows.y, rows.weight), family=Bernoulli())
    assert not finding.against.any()


def test_explained_share_and_rise():
    rows = labels(2)
    every = np.ones(5, dtype=bool)
    assert explained(rows, Bernoulli(), every, every) == pytest.approx((1.0, 1.0))
    share, rise = explained(rows, Bernoulli(), np.arange(5) < 4, every)
    assert 0 < share < 1 < rise


@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=8), level=st.floats(0.001, 0.2))
def test_holm_rejects_no_more_than_each_alone_and_no_less_than_bonferroni(p, level):
    p = np.array(p)
    rejected = holm(p) <= level
    assert not np.any(rejected & (p > level))
    assert np.all(rejected | (p > level / len(p)))


@pytest.mark.parametrize(("make", "leave"), [(flipping, [3]), (spreading, [3]), (proxied, [3])])
def test_the_driver_leaves_what_the_questions_speak_against(make, leave):
    answer = asked(standardised(*make(0)))
    assert answer.verdict == "invariant"
    assert np.flatnonzero(answer.leave).tolist() == leave
    assert any(finding.partitions for finding in answer.findings)
    assert answer.p_value[leave[0]] < 0.01


def test_one_population_is_homogeneous():
    verdicts = [asked(standardised(*one_population(seed))).verdict for seed in range(6)]
    assert verdicts.count("homogeneous") >= 5


def test_neither_the_order_of_rows_nor_that_of_columns_nor_their_scale_matters():
    X, y = flipping(0)
    plain = asked(standardised(X, y))
    rng = np.random.default_rng(0)
    order, columns = rng.permutation(len(y)), rng.permutation(4)
    moved = asked(standardised(X[order], y[order]))
    assert [f.p_value for f in moved.findings] == [f.p_value for f in plain.findings]
    assert np.array_equal(moved.leave, plain.leave)
    turned = asked(standardised(X[:, columns], y))
    assert np.array_equal(turned.leave, plain.leave[columns])
    scaled = asked(standardised(100.0 * X - 3.0, -2.0 * y + 1.0))
    assert np.array_equal(scaled.leave, plain.leave)


def test_too_few_rows_are_not_searched():
    X, y = flipping(0, n=25)
    answer = asked(standardised(X, y))
    assert answer.verdict == "unsearched"
    assert not answer.leave.any()


def test_rows_without_weight_do_not_count():
    X, y = flipping(0)
    bad = np.vstack([X, np.full((5, 4), 50.0)])
    weight = np.append(np.ones(len(y)), np.zeros(5))
    rows = standardised(X, y)
    more = Rows(np.vstack([rows.X, bad[-5:]]), np.append(rows.y, np.full(5, -90.0)), weight)
    assert [f.p_value for f in asked(more).findings] == [f.p_value for f in asked(rows).findings]


def test_columns_of_one_group_leave_together():
    X, y = flipping(0)
    answer = asked(standardised(X, y), groups=np.array([0, 1, 2, 2]))
    assert np.flatnonzero(answer.leave).tolist() == [2, 3]


def test_hidden_slopes_are_acted_upon_only_where_that_pays_within_the_reach():
    """A cause that turns round in some rows, and costs more to miss than small shifts cost."""
    X, y = flipping(3, n=1500)
    far = HRMRegressor(reach=2.0).fit(X, y)
    assert far.verdict_ == "invariant"
    assert far.break_even_ <= 2.0
    near = HRMRegressor(reach=far.break_even_ / 2).fit(X, y)
    assert near.verdict_ == "homogeneous"
    assert near.support_.all()
    assert "would pay from reach" in near.verdict_reason_
    assert not any(source.used for source in near.sources_)
    assert any("does not pay within the reach" in reason for reason in near.evidence_.reason)
    assert np.allclose(near.predict(X), LinearRegression().fit(X, y).predict(X))


def test_a_copy_of_a_label_leaves_by_assumption_though_no_environments_price_it():
    rows = labels(0)
    model = HRMClassifier().fit(rows.X, rows.y.astype(int))
    assert model.verdict_ == "invariant"
    assert model.evidence_.assumed.any()
    assert "an assumption, not a test" in model.verdict_reason_


@pytest.mark.parametrize("wrong", [0.08, 0.12])
def test_reason_and_recommendation_call_a_copy_an_assumption_that_is_not_shown_to_pay(wrong):
    """One environment shows no regret: what is left of it is rounding, and nothing is resampled."""
    rows = labels(0, wrong=wrong)
    model = HRMClassifier().fit(rows.X, rows.y.astype(int))
    assert model.verdict_ == "invariant"
    assert model.break_even_ == np.inf
    assert model.n_resamples_ == 0
    assert np.isnan(model.evidence_.regret).all()
    unknown = "ow far a shift must go for that to pay, these rows do not show."
    assert unknown in model.verdict_reason_
    found = summarize(model)
    advice = found.recommendation
    said = {point.question: point.answer for point in advice.points}
    assert advice.action is Action.UNKNOWN
    assert "That it changes is assumed, not shown" in advice.sentence
    assert said["From which shift on it pays"] == f"H{unknown}"
    assumed = "x4: left out by an assumption, not by a test. Named environments would"
    assert said["What is assumed, not shown"] == f"{assumed} replace it by one."
    assert "How stable the choice is" not in said
    assert found.features[4].decision is Decision.DROPPED
    assert "resample" not in start_of(render(model))


@pytest.mark.parametrize("seed", range(3))
def test_a_hint_that_means_nothing_leaves_what_is_assumed_as_it_is(seed):
    """It has no effect: none on what no test can tell, either."""
    rows = labels(seed)
    y = rows.y.astype(int)
    without = HRMClassifier().fit(rows.X, y)
    rng = np.random.default_rng(seed)
    for hint in (rng.standard_normal(len(y)), rng.choice(["a", "b", "c"], len(y))):
        model = HRMClassifier().fit(rows.X, y, hints=hint)
        assert model.sources_[0].sentence.endswith("it has no effect.")
        assert model.support_.tolist() == without.support_.tolist()
        assert model.evidence_.assumed.tolist() == without.evidence_.assumed.tolist()
        assert np.array_equal(model.predict_proba(rows.X), without.predict_proba(rows.X))


def test_what_speaks_against_a_column_to_be_kept_is_told():
    rows = labels(0)
    model = HRMClassifier(keep=[4]).fit(rows.X, rows.y.astype(int))
    assert model.verdict_ == "homogeneous"
    assert model.evidence_.reason[4] == "Kept: asked for."
    assert "was found among the columns that may leave" in model.verdict_reason_
    X, y = spreading(0)
    assert not HRMRegressor().fit(X, y).support_[3]
    effect = HRMRegressor(keep=[3]).fit(X, y)
    sources = {source.name: source for source in effect.sources_}
    assert "does not do so in one way" in sources["shifting effects"].sentence
    assert sources["shifting effects"].sentence.endswith("1 column stays: asked for.")
    assert sources["shifting effects"].column == 3
    assert sources["proxies"].sentence.startswith("No column that may leave is a proxy")
    assert effect.evidence_.reason[3] == "Kept: asked for."
    assert "no other choice of columns that keeps x3" in summarize(effect).recommendation.sentence


def test_without_environments_that_differ_directions_say_that_columns_were_asked_about():
    X, y = spreading(0)
    for hints in (None, np.arange(len(y)) % 2):
        model = HRMRegressor(form="directions").fit(X, y, hints=hints)
        assert not model.support_[3]
        assert "it is asked which columns are to leave" in model.verdict_reason_


def test_an_effect_whose_noise_multiplies_follows_from_the_target_in_one_way():
    """Skewed noise that grows with a skewed target: one mechanism, found out in 3 of 12 before."""
    shifting = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        causes = rng.standard_normal((1400, 5))
        y = np.exp(0.4 * causes @ [0.8, -0.6, 0.9, 0.5, -0.7] + 0.3 * rng.standard_normal(1400))
        effect = y * np.exp(0.4 * rng.standard_normal(1400))
        answer = asked(standardised(np.column_stack([causes, effect]), y))
        shifting += bool(answer.leave.any())
    assert shifting == 0


def test_a_reading_that_saturates_follows_from_the_target_in_one_way():
    """Heavy tails within the unit of a gauge, which cannot show them: one mechanism."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        causes = rng.standard_t(5, (1800, 5))
        y = causes @ rng.normal(0.5, 0.3, 5) + rng.standard_normal(1800)
        effects = y[:, None] * [0.8, 1.0] + [0.7, 1.5] * rng.standard_t(2.7, (1800, 2))
        effects[:, 1] = 3.0 * np.tanh(effects[:, 1] / 3.0)
        answer = asked(standardised(np.column_stack([causes, effects]), y))
        assert not answer.leave.any()
