"""Bad input to a backtest: each says in a sentence what was expected and what came."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression

from hetrisk import BacktestClassifier, BacktestRegressor
from hetrisk.estimators.backtest import TooFewEnvironmentsWarning

N = 120
AT = np.arange(N)
rng = np.random.default_rng(0)
X = pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N)})
X["when"], X["where"] = AT * 6 // N + 2015, [f"s{k}" for k in AT % 5]
Y = (X["a"] + 2.0 * (X["when"] - 2015) + rng.normal(size=N)).to_numpy()
LABELS = np.where(Y > 5, "yes", "no")
LINEAR = ["ridge", "trend", "level"]


def fit(time="when", environment=None, X=X, y=Y, kind=BacktestRegressor, weight=None, **options):
    options.setdefault("candidates", LINEAR)
    return kind(time=time, environment=environment, **options).fit(X, y, sample_weight=weight)


MODEL = fit(environment="where")
CLASSIFIER = fit(kind=BacktestClassifier, y=LABELS)
PLAIN = fit(candidates=["plain"])


REFUSED = {
    "time that is words": (
        lambda: fit("where"),
        "time column 'where' must hold dates or numbers.*'s0' and 's1'",
    ),
    "time that is constant": (
        lambda: fit(X=X.assign(when=2000)),
        "time column 'when' must have several values; it is 2000 in every row",
    ),
    "time missing in some rows": (
        lambda: fit(X=X.assign(when=X["when"].where(AT > 3))),
        "must say when for every row; it is missing in 4 of 120, the first of them row 0: leave",
    ),
    "time missing in all rows": (lambda: fit(X=X.assign(when=np.nan)), "no value in any row"),
    "time not a column": (lambda: fit("whem"), "time must be a column of X; got 'whem'"),
    "time not a position": (lambda: fit(9), "time must be a column of X, which has 4; got 9"),
    "a name and an array": (
        lambda: fit(X=X[["a", "when"]].to_numpy()),
        "time must be a position where X is an array; got the name 'when'",
    ),
    "a position that an array lacks": (
        lambda: fit(7, X=X[["a", "when"]].to_numpy()),
        "time must be a column of X, which has 2; got 7",
    ),
    "one column for both": (lambda: fit("when", "when"), "must be two columns; both are 'when'"),
    "no candidates": (lambda: fit(candidates=[]), r"must name at least one; got \[\]"),
    "an empty dict": (lambda: fit(candidates={}), r"must name at least one; got \{\}"),
    "an unknown candidate": (
        lambda: fit(candidates=["ridge", "trnd"]),
        "candidates must be among .*got 'trnd'. Did you mean 'trend'",
    ),
    "an unknown one in a dict": (
        lambda: fit(candidates={"m": "tree"}),
        "got 'tree'. Did you mean 'trees'",
    ),
    "not an estimator": (
        lambda: fit(candidates={"m": 3}),
        "candidate 'm' must be an estimator with fit and predict.*got 3",
    ),
    "a name that is taken": (
        lambda: fit(candidates={"plain": LinearRegression()}),
        "the name 'plain' is taken",
    ),
    "an estimator alone": (
        lambda: fit(candidates=LinearRegression()),
        "candidates must be 'auto', names, or a dict",
    ),
    "reach below zero": (lambda: fit(reach=-1), r"'reach' .* in the range \[0.0, inf\). Got -1"),
    "reach without end": (lambda: fit(reach=np.inf), r"'reach' .* \[0.0, inf\). Got inf"),
    "gap below zero": (lambda: fit(gap=-1), r"'gap' .* \[0, inf\). Got -1"),
    "a target of words": (lambda: fit(y=LABELS), "y must hold numbers.*'(no|yes)'.*classifiers"),
    "a target with holes": (
        lambda: fit(y=np.where(AT == 3, np.nan, Y)),
        "y contains NaN or infinity: row 3 holds nan",
    ),
    "a target too short": (lambda: fit(y=Y[:-1]), r"inconsistent numbers of samples: \[120, 119\]"),
    "no target": (lambda: fit(y=None), "requires y to be passed"),
    "one class": (
        lambda: fit(kind=BacktestClassifier, y=np.full(N, "a")),
        r"at least two classes; got one class, \['a'\]",
    ),
    "negative weights": (
        lambda: fit(weight=-np.ones(N)),
        "Negative values in data passed to `sample_weight`",
    ),
    "no weight": (lambda: fit(weight=np.zeros(N)), "at least one non-zero number"),
    "one row of weight": (lambda: fit(weight=(AT == 3) * 1.0), "at least 2 rows .* got 1 sample"),
    "numbers too large": (
        lambda: fit(y=1e200 * Y),
        "numbers below 1e.100, .*take another unit",
    ),
    "sparse": (
        lambda: fit(2, X=sparse.csr_matrix(X[["a", "b", "when"]].to_numpy())),
        "dense data is required",
    ),
    "predict without time": (
        lambda: MODEL.predict(X.drop(columns="when")),
        "X must have the column of time 'when', which the model chosen needs",
    ),
    "predict with a time missing": (
        lambda: MODEL.predict(X.assign(when=X["when"].where(AT != 7))),
        "must say when for every row; it is missing in 1 of 120, .* row 7",
    ),
    "predict at words": (
        lambda: MODEL.predict(X.assign(when="next year")),
        "time column 'when', row 1: 'next year' is not",
    ),
    "predict without a column": (
        lambda: MODEL.predict(X.drop(columns="a")),
        "lacks the column 'a'",
    ),
    "adapt with no rows": (
        lambda: MODEL.adapt(X.iloc[:0], Y[:0]),
        "adapt needs at least 5 labelled rows of the new environment; got 0",
    ),
    "adapt with three rows": (lambda: MODEL.adapt(X.iloc[:3], Y[:3]), "at least 5 .* got 3"),
    "adapt with wrong columns": (
        lambda: MODEL.adapt(X.iloc[:9][["b", "when"]], Y[:9]),
        "lacks the column 'a'",
    ),
    "adapt with fewer targets": (
        lambda: MODEL.adapt(X.iloc[:9], Y[:8]),
        "y_new must have length 9; got 8",
    ),
    "adapt without weight": (
        lambda: MODEL.adapt(X.iloc[:9], Y[:9], sample_weight=np.zeros(9)),
        "at least one non-zero number",
    ),
    "adapt with a new class": (
        lambda: CLASSIFIER.adapt(X.iloc[:9], np.full(9, "maybe")),
        r"labels among \['no', 'yes'\]; got 'maybe'",
    ),
    "adapt with other labels": (lambda: CLASSIFIER.adapt(X.iloc[:9], AT[:9]), "labels among .*got"),
}
for _level in (0, 1, -0.1, 2, np.nan, "a", None):
    REFUSED[f"level {_level}"] = (
        lambda level=_level: MODEL.predict_interval(X, level=level),
        "level must lie between 0 and 1; got",
    )


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_a_sentence(case) -> None:
    call, sentence = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=sentence):
        call()


TOO_FEW = {
    "neither time nor environment": (
        lambda: fit(None),
        r"name the column of time or of environments, BacktestRegressor\(time=...\).*StableRegr",
    ),
    "one environment": (
        lambda: fit(None, "where", X=X.assign(where="x")),
        "'where' has 1 environment; a backtest needs at least 3. The plain model is used.*random",
    ),
    "two environments": (
        lambda: fit(None, "where", X=X.assign(where=AT % 2)),
        "'where' has 2 environments; a backtest needs at least 3",
    ),
    "an environment for every row": (
        lambda: fit(None, "where", X=X.assign(where=AT)),
        "'where' has a value of its own in every row, so it names no environment",
    ),
    "two periods": (
        lambda: fit(X=X.assign(when=AT // 60)),
        "'when' has 2 periods that can be judged; a backtest needs at least 3",
    ),
    "periods too thin": (lambda: fit(X=X[:45], y=Y[:45]), "'when' has 2 periods"),
    "a gap too wide": (
        lambda: fit(gap=9),
        "has 6 periods .* too few can be judged after a cut in time with a gap of 9",
    ),
}


@pytest.mark.parametrize("case", TOO_FEW)
def test_too_few_environments_is_plain_with_a_warning(case) -> None:
    call, sentence = TOO_FEW[case]
    with pytest.warns(TooFewEnvironmentsWarning, match=sentence):
        model = call()
    assert model.best_name_ == "plain"
    assert model.forecast_.n_environments == 0
    assert {line.environment for line in model.backtest_} == {
        f"random fold {k}" for k in range(1, 6)
    }
    assert np.isfinite(model.forecast_.mean)
    assert not any(line.note.endswith("but ") for line in model.ranking_)
    assert np.isfinite(model.predict_interval(X)).all()


def test_row_numbers_for_environments_are_left_aside_where_there_is_time() -> None:
    with pytest.warns(TooFewEnvironmentsWarning, match="a value of its own in every row"):
        model = fit("when", "where", X=X.assign(where=AT))
    assert model.ranking_ == fit("when", None, X=X.drop(columns="where")).ranking_


def test_two_periods_with_sites_are_backtested() -> None:
    few = X.assign(when=AT // 60)
    with pytest.warns(TooFewEnvironmentsWarning, match="'where' has 5 .* too few can be judged"):
        fit("when", "where", X=few)
    model = fit("when", "where", X=pd.concat([few, few]), y=np.concatenate([Y, Y]))
    assert {line.known for line in model.backtest_} == {True, False}


def test_one_period_with_sites_is_a_backtest_of_sites() -> None:
    data = X.assign(when=np.where(AT == 0, 2019, 2020), where=[f"s{k}" for k in AT % 6])
    both, sites = fit("when", "where", X=data), fit(None, "where", X=data.drop(columns="when"))
    found = {(t.environment, t.n_rows) for t in both.backtest_}
    assert found == {(t.environment, t.n_rows) for t in sites.backtest_}
    assert len(found) == 6


def test_a_class_that_a_cut_has_never_seen() -> None:
    for labels in (np.where(X["when"] == 2020, "new", LABELS), X["when"].astype(str).to_numpy()):
        model = fit(kind=BacktestClassifier, y=labels)
        assert all(np.isfinite(line.mean) for line in model.ranking_)
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert (p > 0).all()


def test_time_is_asked_for_only_where_the_model_needs_it() -> None:
    without = X.drop(columns="when")
    np.testing.assert_array_equal(PLAIN.predict(without), PLAIN.predict(X))
    gone = X.assign(when=X["when"].where(AT != 7))
    np.testing.assert_array_equal(PLAIN.predict(gone), PLAIN.predict(X))
    assert np.isfinite(PLAIN.predict_interval(without)).all()


def test_new_environments_at_predict() -> None:
    new = MODEL.predict(X.assign(where="never seen"))
    assert np.isfinite(new).all()
    np.testing.assert_array_equal(new, MODEL.predict(X.drop(columns="where")))
    levels = fit(environment="where", candidates=["levels", "trend"])
    assert np.isfinite(levels.predict(X.assign(where=None))).all()


def test_missing_environments_are_one_of_their_own() -> None:
    holes = X.assign(where=X["where"].where(AT % 3 > 0))
    model = fit("when", "where", X=holes)
    assert "(missing)" in model.environment_levels_
    named = fit("when", "where", X=holes.fillna({"where": "unknown"}))
    np.testing.assert_allclose(model.predict(holes), named.predict(holes))


def test_adapt_to_one_class_is_a_shift() -> None:
    moved = CLASSIFIER.adapt(X.iloc[:9], np.full(9, "yes"))
    before, after = CLASSIFIER.predict_proba(X)[:, 1], moved.predict_proba(X)[:, 1]
    assert after.mean() >= before.mean()
    assert "9 labelled rows" in str(moved.adaptation_)
    assert CLASSIFIER.adaptation_ is None


def test_odd_tables_that_are_none_of_the_users_fault() -> None:
    """Columns that stand still, targets without noise, nothing but time."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(fit(X=X.assign(a=np.nan)).predict(X.assign(a=np.nan))).all()
        assert fit(y=np.ones(N)).predict(X) == pytest.approx(np.ones(N))
        assert fit(y=X["a"].to_numpy()).predict(X) == pytest.approx(X["a"].to_numpy(), abs=1e-6)
        assert fit(X=X[["when"]]).best_name_
        assert fit("when", "where", X=X[["when", "where"]]).best_name_
        assert fit(2, 3, X=X.to_numpy()).best_name_ == MODEL.best_name_


def test_of_two_environments_only_what_is_beyond_doubt_is_used():
    rng = np.random.default_rng(0)
    X, site = rng.standard_normal((400, 3)), np.arange(400) % 2
    step = 3 * np.sign(X[:, 0]) + 0.05 * rng.standard_normal(400)
    with pytest.warns(TooFewEnvironmentsWarning, match="has 2 environments: how much errors"):
        model = BacktestRegressor(environment=3).fit(np.column_stack([X, site]), step)
    assert model.best_name_ != "plain"
    assert model.forecast_.n_environments == 2
    line = X[:, 0] + rng.standard_normal(400)
    with pytest.warns(TooFewEnvironmentsWarning, match="plain model is used"):
        model = BacktestRegressor(environment=3).fit(np.column_stack([X, site]), line)
    assert (model.best_name_, model.forecast_.n_environments) == ("plain", 0)
