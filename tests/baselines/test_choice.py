import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from hetrisk.baselines import BASELINES, IRMRegressor, WassersteinDRORegressor
from hetrisk.baselines.choice import choose, choose_by_environments, folds
from hetrisk.datasets import load_task

from .conftest import table


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=80), st.integers(0, 5))
def test_folds_share_out_every_stratum_evenly(strata, seed):
    strata = np.array(strata)
    fold = folds(strata, seed)
    k = min(5, len(strata))
    for stratum in np.unique(strata):
        counts = np.bincount(fold[strata == stratum], minlength=k)
        assert counts.max() - counts.min() <= 1
    np.testing.assert_array_equal(fold, folds(strata, seed))


def test_the_strongest_value_within_one_standard_error_is_chosen():
    risks = np.array(
        [  # five folds: value 1 is best (1.0), its standard error 0.1
            [[1.3], [1.0 + e], [1.05 + e], [1.2 + e]]
            for e in np.array([-1, -1, 0, 1, 1]) * np.sqrt(0.05)
        ]
    )
    per_fold = iter(risks)
    choice = choose([0, 1, 2, 3], np.arange(10) % 5, lambda train, test: next(per_fold))
    assert choice.error == pytest.approx(0.1)
    assert choice.value == 2
    np.testing.assert_allclose(choice.scores, [1.3, 1.0, 1.05, 1.2])


def test_the_worst_labelled_environment_counts():
    def held_out(train, test):
        return np.array([[0.1, 2.0], [0.5, 1.0], [1.5, 1.2]])  # rows: values; columns: environments

    choice = choose([0, 1, 2], np.arange(10) % 5, held_out)
    assert choice.value == 1
    np.testing.assert_allclose(choice.scores, [2.0, 1.0, 1.5])


def test_an_environment_missing_from_a_fold_is_left_out_of_it():
    def held_out(train, test):
        gone = np.nan if 0 in test else 3.0
        return np.array([[1.0, gone], [1.0, gone - 1]])

    choice = choose([0, 1], np.arange(10) % 5, held_out)
    np.testing.assert_allclose(choice.scores, [3.0, 2.0])


def test_with_three_environments_each_is_left_out_and_the_weakest_within_an_error_is_taken():
    environment = np.arange(30) % 3
    seen = []

    def held_out(train, test):
        seen.append(set(environment[test]))
        assert not set(environment[train]) & set(environment[test])
        risk = np.full((3, 3), np.nan)
        risk[:, environment[test[0]]] = np.array([1.2, 1.1, 1.0]) + 0.3 * environment[test[0]]
        return risk

    choice = choose_by_environments([0, 1, 2], environment, held_out)
    assert seen == [{0}, {1}, {2}]
    np.testing.assert_allclose(choice.scores, [1.5, 1.4, 1.3])
    assert choice.error == pytest.approx(0.3 / np.sqrt(3))
    assert choice.value == 1


def test_held_out_rows_never_meet_the_fit():
    seen = []
    fold = folds(np.zeros(23, int), 0)
    choose([0.0], fold, lambda train, test: seen.append((train, test)) or np.zeros((1, 1)))
    for train, test in seen:
        assert not set(train) & set(test)
        assert len(train) + len(test) == 23
    assert sorted(np.concatenate([test for _, test in seen])) == list(range(23))


def test_labels_let_irm_choose_a_strong_penalty_under_selection_bias():
    X, y, environments = load_task("selection_bias", seed=0).train
    model = IRMRegressor().fit(X, y, environments=environments)
    assert model.choices_[0].value >= 1
    biased = np.argmax(np.abs(model.coef_ - LinearRegression().fit(X, y).coef_))
    assert abs(model.coef_[biased]) < 0.5 * abs(LinearRegression().fit(X, y).coef_[biased])


def test_shrinkage_is_chosen_where_there_is_only_noise():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 20)), rng.normal(size=60)
    model = WassersteinDRORegressor().fit(X, y)
    assert model.choices_[0].value == model.values[-1]
    assert np.linalg.norm(model.coef_) < 0.2 * np.linalg.norm(LinearRegression().fit(X, y).coef_)


@pytest.mark.parametrize("name", [n for n in BASELINES if n != "group-dro"])
def test_the_seed_alone_decides_the_folds(name):
    X, y, environments, _ = table(n=80)
    kind = BASELINES[name]
    told = {"environments": environments % 2} if kind.needs_labels else {}
    first, again = (kind.regressor(random_state=3).fit(X, y, **told) for _ in range(2))
    assert first.choices_[0].value == again.choices_[0].value
    np.testing.assert_array_equal(first.choices_[0].scores, again.choices_[0].scores)
    other = kind.regressor(random_state=4).fit(X, y, **told)
    assert np.any(other.choices_[0].scores != first.choices_[0].scores)
