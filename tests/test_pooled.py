"""The default search from end to end: what it finds, what it leaves alone, what it is free of."""

import importlib.util
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from hetrisk import HRMClassifier, HRMRegressor, HRMSelector
from hetrisk.core.numerics.families import Gaussian
from hetrisk.core.numerics.rows import Rows
from hetrisk.core.pooled import pooled
from hetrisk.core.pooled.evidence import LEAN, NO_FORK, consequences
from hetrisk.core.result import HOMOGENEOUS, INVARIANT, UNSTABLE, SearchSettings
from hetrisk.datasets import load_task
from hetrisk.estimators.hrm import UnstableWarning

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def load(name):
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look their module up by name
        spec.loader.exec_module(module)
    return sys.modules[name]


homogeneous = load("homogeneous")
study = load("study_pooled")


@pytest.fixture(scope="module")
def task():
    return load_task("selection_bias", seed=0)


@pytest.fixture(scope="module")
def fitted(task):
    return HRMRegressor(random_state=0).fit(task.train.X, task.train.y)


# Power.


@pytest.mark.parametrize(
    "setting",
    [{"r": 1.9}, {"r": -1.5}, {"n_biased": 3}, {"kappa": 0.7}],
    ids=["r=1.9", "r=-1.5", "n_b=3", "nearly in balance"],
)
@pytest.mark.parametrize("seed", [11, 12])
def test_selection_bias_leaves_exactly_the_biased_features(setting, seed):
    task = load_task("selection_bias", seed=seed, **setting)
    model = HRMRegressor(random_state=seed).fit(task.train.X, task.train.y)
    assert model.verdict_ == INVARIANT
    assert task.recovered(model.support_)


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_anti_causal_leaves_exactly_the_effects(seed):
    task = load_task("anti_causal", seed=seed, n_phi=5, n_psi=5)
    model = HRMRegressor(random_state=seed).fit(task.train.X, task.train.y)
    assert task.recovered(model.support_)
    assert "shifting consequence" in model.verdict_reason_


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_a_shortcut_to_the_label_leaves(spread):
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        disagree = np.where(rng.random(4000) < 0.95, 0.05, 0.9)
        X, y = study.shortcut(rng, 4000, disagree, spread)
        model = HRMClassifier(random_state=seed).fit(X, y)
        assert model.support_[:5].all()
        assert not model.support_[9]
        assert model.verdict_ == INVARIANT


def three_classes(seed, n=3000):
    """Class scores from three causes, a column of noise, and three that mostly name the class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (2.0 * X[:, :3] + rng.gumbel(size=(n, 3))).argmax(axis=1)
    flipped = rng.random(n) < np.where(rng.random(n) < 0.9, 0.05, 0.9)
    named = np.where(flipped, rng.integers(0, 3, n), y)
    return np.column_stack([X, np.eye(3)[named]]), np.array(["red", "green", "blue"])[y]


def test_three_classes_keep_their_causes_and_lose_the_shortcut():
    X, y = three_classes(0)
    model = HRMClassifier(random_state=0, feature_groups=[0, 1, 2, 3, 4, 4, 4]).fit(X, y)
    assert model.support_[:3].all()
    assert not model.support_[4:].any()
    assert model.predict_proba(X).shape == (len(X), 3)
    json.dumps(model.history_)


def test_the_selector_finds_what_the_regressor_finds(task, fitted):
    selector = HRMSelector(random_state=0).fit(task.train.X, task.train.y)
    np.testing.assert_array_equal(selector.get_support(), fitted.support_)
    assert selector.transform(task.train.X).shape[1] == fitted.support_.sum()


def test_a_stand_in_must_not_plainly_follow_with_one_slope(task):
    X, y, _ = task.train
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    rows, groups = Rows(X, y, np.ones(len(y))), np.arange(10)
    measured = pooled.measure(rows, Gaussian(), groups, consequences(rows, Gaussian(), groups))
    shortcut = ~task.invariant & task.identifiable
    assert measured.stand_ins[shortcut].all()
    assert not replace(measured, fork=np.full(10, -5.0)).stand_ins.any()
    untold = replace(measured, fork=np.full(10, np.nan))  # as for features of two values
    assert untold.stand_ins[shortcut].all()


def test_a_consequence_is_judged_by_its_mechanism_even_if_it_stands_in_for_a_curve(task):
    X, y, _ = task.train
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    rows, groups = Rows(X, y, np.ones(len(y))), np.arange(10)
    found = consequences(rows, Gaussian(), groups)
    steady = replace(found, is_effect=~task.invariant, mechanism=np.ones(10))
    measured = pooled.measure(rows, Gaussian(), groups, steady)
    assert measured.stand_ins.any()
    assert not measured.shifting.any()


# No harm.


@pytest.mark.parametrize(
    "name",
    ["linear", "common_factor", "counts", "cubic", "steps", "t3", "growing", "weak", "diabetes"],
)
def test_homogeneous_regression_is_plain_least_squares(name):
    X, y, _, _ = homogeneous.families()[name](21, 2000, 10)
    model = HRMRegressor(random_state=0).fit(X, y)
    assert model.verdict_ == HOMOGENEOUS
    assert model.support_.all()
    assert model.environment_proba_.shape[1] == 1
    if (model.gates_ == 1).all():
        np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, rtol=1e-6)
        assert "The model is plain ERM" in model.verdict_reason_


@pytest.mark.parametrize("name", ["logistic", "logistic_product", "multiclass"])
def test_homogeneous_labels_keep_every_feature(name):
    X, y, _, _ = homogeneous.classification_families()[name](21, 2000, 10)
    model = HRMClassifier(random_state=0).fit(X, y)
    assert model.verdict_ == HOMOGENEOUS
    assert model.support_.all()


@pytest.mark.parametrize("seed", range(3))
def test_three_clouds_are_one_population(seed):
    """Given one class against the rest, features still go together: the rest is two clouds."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 1500)
    X = rng.normal(size=(1500, 6)) * np.array([1.0, 0.5, 2.0])[y][:, None]
    X += 2.0 * np.random.default_rng(9).normal(size=(3, 6))[y]
    model = HRMClassifier(random_state=seed).fit(X, y)
    assert model.verdict_ == HOMOGENEOUS


@pytest.mark.parametrize("n", [3, 12, 29])
def test_too_few_rows_are_not_searched(n):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 3)), rng.normal(size=n)
    model = HRMRegressor(random_state=0).fit(X, y)
    assert model.verdict_ == HOMOGENEOUS
    assert model.support_.all()
    assert (model.evidence_.p_value == 1).all()
    assert len(model.history_) == model.n_rounds_ == 1


# The verdict that no set of features is safe.


def no_safe_set(seed, n=2000):
    """Two populations with slopes of their own, which no feature betrays."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    slopes = np.array([[2.0, 1, 0, 1], [-2, 1, 2, -1]])
    return X, (X * slopes[rng.integers(0, 2, n)]).sum(axis=1) + 0.1 * rng.normal(size=n)


def only_effects(seed, n=2000):
    """Nothing but effects of y, all of them noisier in a fifth of the rows."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    width = np.where(rng.random(n) < 0.2, 3.0, 0.3)
    return y[:, None] + width[:, None] * rng.normal(size=(n, 4)), y


@pytest.mark.parametrize(
    ("draw", "says"),
    [(no_safe_set, "different slopes"), (only_effects, "All 4 features would have to leave")],
)
def test_unstable_warns_and_is_plain_least_squares(draw, says):
    X, y = draw(0)
    with pytest.warns(UnstableWarning, match=says):
        model = HRMRegressor(random_state=0).fit(X, y)
    assert model.verdict_ == UNSTABLE
    assert model.support_.all()
    assert (model.gates_ == 1).all()
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, rtol=1e-6)
    assert not any(reason.startswith("Left out") for reason in model.evidence_.reason)
    assert model.environment_proba_.shape[1] == 2


# What the answer must not depend on.


def test_the_same_seed_gives_the_same_answer(task, fitted):
    again = HRMRegressor(random_state=0).fit(task.train.X, task.train.y)
    assert again.history_ == fitted.history_
    assert again.evidence_.reason == fitted.evidence_.reason
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    np.testing.assert_array_equal(again.environment_proba_, fitted.environment_proba_)


def test_units_change_nothing(task, fitted):
    rng = np.random.default_rng(0)
    scale, shift = 10 ** rng.uniform(-3, 3, 10), 5 * rng.normal(size=10)
    model = HRMRegressor(random_state=0).fit(task.train.X * scale + shift, -1e4 * task.train.y + 7)
    np.testing.assert_array_equal(model.support_, fitted.support_)
    np.testing.assert_allclose(model.coef_ * scale, -1e4 * fitted.coef_, rtol=1e-5)
    np.testing.assert_allclose(model.instability_, fitted.instability_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["selection_bias", "anti_causal"])
def test_the_order_of_columns_goes_through_to_the_answer(kind):
    task = load_task(kind, seed=3)
    X, y, _ = task.train
    order = np.random.default_rng(0).permutation(X.shape[1])
    model = HRMRegressor(random_state=0).fit(X, y)
    moved = HRMRegressor(random_state=0).fit(X[:, order], y)
    assert model.verdict_ == INVARIANT
    np.testing.assert_array_equal(moved.support_, model.support_[order])
    np.testing.assert_allclose(moved.coef_, model.coef_[order], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(moved.instability_, model.instability_[order], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("by", ["environment", "target", "biased feature"])
def test_the_order_of_rows_does_not_matter(by):
    """Tables are often sorted; what looks at the first few thousand rows must not be misled."""
    task = load_task("selection_bias", seed=0, n_samples=9000, kappa=0.8, n_biased=2)
    X, y, environments = task.train
    key = {"environment": environments, "target": y, "biased feature": X[:, 5]}[by]
    order = np.argsort(key, kind="stable")
    model = HRMRegressor(random_state=0).fit(X[order], y[order])
    assert task.recovered(model.support_)


@pytest.mark.parametrize("kind", ["selection_bias", "anti_causal"])
def test_a_row_of_weight_two_is_a_row_twice(kind):
    task = load_task(kind, seed=5)
    X, y, _ = task.train
    weight = 1.0 + (np.arange(len(y)) % 3 == 0)
    again = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = HRMRegressor(random_state=0).fit(X, y, sample_weight=weight)
    repeated = HRMRegressor(random_state=0).fit(X[again], y[again])
    np.testing.assert_array_equal(weighted.support_, repeated.support_)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)


def test_constant_and_duplicated_columns(task, fitted):
    X, y, _ = task.train
    wide = np.column_stack([X, np.full(len(X), 7.0), X[:, 0]])
    model = HRMRegressor(random_state=0).fit(wide, y)
    np.testing.assert_array_equal(model.support_[:10], fitted.support_)
    assert not model.support_[10]
    assert model.evidence_.reason[10] == "Left out: it never varies."
    np.testing.assert_allclose(model.predict(wide), fitted.predict(X), atol=1e-6)


@pytest.mark.parametrize("cls", [HRMRegressor, HRMClassifier])
def test_a_constant_column_in_a_homogeneous_table(cls):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(300, 3)), np.full(300, 7.0)])
    y = X[:, 0] - X[:, 1] + rng.normal(size=300)
    y = y if cls is HRMRegressor else (y > 0).astype(int)
    model = cls(random_state=0).fit(X, y)
    assert model.verdict_ == HOMOGENEOUS
    assert model.support_.tolist() == [True, True, True, False]
    assert np.ravel(model.coef_)[3] == 0.0


@pytest.mark.parametrize("method", ["pooled", "gates"])
def test_a_column_that_varies_by_rounding_alone_is_not_fitted(method):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(300, 3)), 1e6 + 1e-7 * rng.normal(size=300)])
    y = X[:, 0] + rng.normal(size=300)
    model = HRMRegressor(method=method, random_state=0).fit(X, y)
    assert not model.support_[3]
    assert model.coef_[3] == 0.0
    assert abs(model.intercept_) < 1.0


# Groups of columns.


def test_a_group_leaves_as_one_and_stays_as_one():
    """A category that names which side the biased feature is on leaves or stays whole."""
    task = load_task("selection_bias", seed=0)
    X, y, _ = task.train
    code = np.random.default_rng(0).integers(0, 3, len(y))
    wide = np.column_stack([X, np.eye(3)[code]])
    groups = [*range(10), 10, 10, 10]
    model = HRMRegressor(random_state=0, feature_groups=groups).fit(wide, y)
    assert task.recovered(model.support_[:10])
    assert len(set(model.support_[10:])) == 1
    together = [*range(9), 5, 10, 10, 10]  # the last noise feature goes where the biased one goes
    model = HRMRegressor(random_state=0, feature_groups=together).fit(wide, y)
    assert not model.support_[5]
    assert not model.support_[9]
    assert model.gates_[5] == model.gates_[9] == 0.0
    assert "1 of 10 features left out" in model.verdict_reason_


def in_doubt(monkeypatch, shifts):
    """Three causes, a group of two steady effects held at a gate, and an effect that may shift."""
    monkeypatch.setattr("hetrisk.core.pooled.conclusion.DOUBT", 1.1)
    monkeypatch.setattr("hetrisk.core.pooled.conclusion.soft_gate", lambda *given: 0.5)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    y = X[:, :3] @ [1.0, -1.0, 0.8] + 0.7 * rng.normal(size=2000)
    X[:, 3:] = y[:, None] + rng.normal(size=(2000, 3))
    if shifts:
        X[:, 5] = y + np.where(X[:, 0] > 0, 0.4, 2.0) * rng.normal(size=2000)
    return HRMRegressor(random_state=0, feature_groups=[0, 1, 2, 3, 3, 4]).fit(X, y)


def test_a_group_in_doubt_has_one_gate(monkeypatch):
    model = in_doubt(monkeypatch, shifts=True)
    assert model.verdict_ == INVARIANT
    assert model.gates_.tolist() == [1, 1, 1, 0.5, 0.5, 0]
    assert model.evidence_.reason[4].startswith("Kept in part, gate 0.50")


def test_a_homogeneous_table_gets_plain_erm_whatever_the_doubts(monkeypatch):
    model = in_doubt(monkeypatch, shifts=False)
    assert model.verdict_ == HOMOGENEOUS
    assert model.gates_.tolist() == [1] * 6
    assert "The model is plain ERM" in model.verdict_reason_


@pytest.mark.parametrize("noise", ["t3", "exponential", "two spreads"])
def test_a_steady_consequence_stays_whatever_its_noise(noise):
    """With noise that is not normal, what an effect says of y bends; that is no shift."""
    stayed = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2000, 5))
        y = X[:, :4].sum(axis=1) + 0.5 * rng.normal(size=2000)
        drawn = {
            "t3": rng.standard_t(3, 2000),
            "exponential": rng.exponential(size=2000),
            "two spreads": rng.normal(size=2000) * np.where(rng.random(2000) < 0.8, 0.4, 2.0),
        }
        X[:, 4] = 0.7 * y + drawn[noise]
        stayed += HRMRegressor(random_state=0).fit(X, y).support_[4]
    assert stayed >= 4


# Settings and records.


@pytest.mark.parametrize("n_environments", [2, 3])
def test_a_number_of_environments_can_be_asked_for(task, n_environments):
    model = HRMRegressor(n_environments=n_environments, random_state=0)
    model.fit(task.train.X, task.train.y)
    assert model.environment_proba_.shape == (len(task.train.y), n_environments)
    assert model.history_[-1]["n_environments"] == n_environments
    assert task.recovered(model.support_)


def test_one_round_takes_out_one_stand_in():
    task = load_task("selection_bias", seed=0, n_biased=3)
    one = HRMRegressor(max_rounds=1, random_state=0).fit(task.train.X, task.train.y)
    more = HRMRegressor(random_state=0).fit(task.train.X, task.train.y)
    assert one.n_rounds_ == 1
    assert (~one.support_).sum() == 1
    assert (~more.support_).sum() == 3
    assert more.n_rounds_ == 4
    assert (more.support_ <= one.support_).all()


def test_every_record_can_be_written_down(fitted, task):
    d = task.train.X.shape[1]
    assert json.loads(json.dumps(fitted.history_)) == fitted.history_
    assert [record["round"] for record in fitted.history_] == [1, 2]
    assert [record["chosen"] for record in fitted.history_] == [False, True]
    assert fitted.history_[-1]["support"] == fitted.support_.tolist()
    left = [j for record in fitted.history_ for j in record["left_out"]]
    assert left == np.flatnonzero(~fitted.support_).tolist()
    assert fitted.history_[0]["routes"] == ["stand-in"]
    path = fitted.history_[-1]["mixture_path"]
    assert np.all(np.diff(path) > -1e-9)
    for name in ("instability", "instability_error", "cost", "saving", "p_value", "reason"):
        assert len(getattr(fitted.evidence_, name)) == d
    p = fitted.evidence_.p_value
    assert ((p >= 0) & (p <= 1)).all()
    assert p[~fitted.support_].max() < 1e-5


def test_the_history_holds_what_was_decided_by(fitted, task):
    first, second = (record["evidence"][0] for record in fitted.history_)
    (j,) = np.flatnonzero(~fitted.support_)
    assert abs(first["lean"][j]) > LEAN
    assert abs(first["shift"][j]) > LEAN
    assert not first["needed"][j]
    assert first["fork"][j] > NO_FORK
    assert first["change_p_value"][j] < pooled.CHANGE
    assert fitted.evidence_.p_value[j] == first["change_p_value"][j]
    assert all(values[j] is None for values in second.values())
    assert all(first["needed"][k] for k in np.flatnonzero(task.invariant))
    assert all(len(values) == len(fitted.support_) for values in first.values())


def test_the_price_of_leaving_out_is_that_of_a_refit(fitted, task):
    X, y, _ = task.train

    def rmse(columns):
        return np.sqrt(
            np.mean((y - LinearRegression().fit(X[:, columns], y).predict(X[:, columns])) ** 2)
        )

    out = np.flatnonzero(~fitted.support_)[0]
    every = np.ones(10, dtype=bool)
    assert fitted.evidence_.cost[out] == pytest.approx(
        rmse(every) ** -1 * rmse(fitted.support_) - 1
    )
    less = fitted.support_.copy()
    less[0] = False
    assert fitted.evidence_.cost[0] == pytest.approx(rmse(less) / rmse(fitted.support_) - 1)
    assert fitted.evidence_.saving[out] > 0
    price = 100 * (rmse(fitted.support_) / rmse(every) - 1)
    assert f"costs {price:.1f} % more error" in fitted.verdict_reason_


def test_progress_is_told(task):
    lines = []
    sample = Rows(task.train.X, task.train.y, np.ones(len(task.train.y)))
    settings = SearchSettings(verbose=lines.append)
    pooled.discover(Source(sample, sample), Gaussian(), np.arange(10), settings)
    assert lines[0] == "round 1: 9 features in play, left: 5"
    assert lines[1] == "round 2: 9 features in play, left: none"


# Decisions on all rows.


@dataclass(frozen=True)
class Source:
    """Rows whose sample is what the test says it is."""

    rows: Rows
    drawn: Rows

    @property
    def n_rows(self):
        return len(self.rows)

    @property
    def n_features(self):
        return self.rows.X.shape[1]

    def sum(self, function):
        return function(self.rows)

    def sample(self, size, seed):
        small = min(size, len(self.drawn))
        return Rows(self.drawn.X[:small], self.drawn.y[:small], self.drawn.weight[:small])


def standardised(X, y):
    return Rows((X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std(), np.ones(len(y)))


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        ("selection_bias", {"n_samples": 15_000}),
        ("anti_causal", {"n_phi": 5, "n_psi": 5, "n_train": (12_500, 1250, 1250)}),
    ],
)
def test_large_tables_are_searched_on_a_sample_and_decided_on_all_rows(kind, setting):
    task = load_task(kind, seed=4, **setting)
    model = HRMRegressor(random_state=0).fit(task.train.X, task.train.y)
    assert task.recovered(model.support_)
    assert model.environment_proba_.shape[0] == 15_000


@pytest.mark.parametrize("kind", ["selection_bias", "anti_causal"])
def test_what_a_misleading_sample_left_out_comes_back(kind):
    """The sample shifts, all rows do not: there the feature does its work, and stays."""
    if kind == "selection_bias":
        task = load_task(kind, seed=0)
        sample = standardised(task.train.X, task.train.y)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(12_000, 10))
        X[:, 5] += 0.3 * X[:, 0]
        y = X @ [0.5, -1, 1.5, -0.5, 1, 0.8, 0, 0, 0, 0] + 0.3 * rng.normal(size=12_000)
    else:
        task = load_task(kind, seed=0, n_phi=5, n_psi=5)
        sample = standardised(task.train.X, task.train.y)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(12_000, 10))
        y = X[:, :5] @ [1.0, -1, 0.5, 1, -0.5] + 0.3 * rng.normal(size=12_000)
        X[:, 5:] = y[:, None] + X[:, 5:]
    rows = standardised(X, y)
    settings = SearchSettings()
    misled = pooled.discover(Source(sample, sample), Gaussian(), np.arange(10), settings)
    assert not misled.support[5]
    found = pooled.discover(Source(rows, sample), Gaussian(), np.arange(10), settings)
    assert found.support.all()
    assert found.verdict == HOMOGENEOUS
    assert "not borne out by all rows" in found.evidence.reason[5]


def test_a_feature_that_varies_outside_the_sample_alone_is_kept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 4))
    X[:, 2:] = 0.0
    X[-3:, 2] = 1.0
    y = X @ [1.0, -1.0, 30.0, 0.0] + 0.3 * rng.normal(size=12_000)
    whole = Rows(X, y, np.ones(12_000))
    few = Rows(X[:5000], y[:5000], np.ones(5000))
    found = pooled.discover(Source(whole, few), Gaussian(), np.arange(4), SearchSettings())
    assert found.verdict == HOMOGENEOUS
    assert found.support.tolist() == [True, True, True, False]
    assert found.gates.tolist() == [1, 1, 1, 0]
    assert found.evidence.reason[2] == "Kept: it varies too rarely to judge."
    assert found.evidence.reason[3] == "Left out: it never varies."


def test_consequences_of_a_label_are_not_asked_again():
    rng = np.random.default_rng(0)
    n = 12_000
    X, y = study.shortcut(rng, n, np.where(rng.random(n) < 0.95, 0.05, 0.9), 0.3)
    model = HRMClassifier(random_state=0).fit(X, y)
    assert not model.support_[9]
    assert model.support_[:5].all()
