"""What comes back, recomputed by hand from the records and from fits of one's own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hetrisk import BacktestClassifier, BacktestRegressor
from hetrisk.estimators import trees

N = 360


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setitem(trees.SETTINGS, "max_iter", 4)


def table(seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N)})
    X["when"] = np.arange(N) * 9 // N + 2010
    X["where"] = np.arange(N) % 6
    level = rng.normal(size=6)[X["where"]]
    return X, (X["a"] + 0.8 * (X["when"] - 2010) + level + rng.normal(size=N)).to_numpy()


X, Y = table()
LABELS = np.digitize(Y, [2.5, 5.0])
SITES = X.drop(columns="when")
OF_TIME = BacktestRegressor(time="when").fit(X.drop(columns="where"), Y)
OF_SITES = BacktestRegressor(environment="where").fit(SITES, Y)
OF_BOTH = BacktestRegressor(time="when", environment="where").fit(X, Y)
OF_LABELS = BacktestClassifier(time="when", candidates=["trend", "level", "ridge"])
OF_LABELS.fit(X.drop(columns="where"), LABELS)
MODELS = {"time": OF_TIME, "sites": OF_SITES, "both": OF_BOTH, "labels": OF_LABELS}


def lines_of(model, name: str) -> pd.DataFrame:
    table = model.backtest_.to_frame()
    return table[table["candidate"] == name]


def losses_of(model, name: str) -> np.ndarray:
    """Losses by environment left out: the mean over the trainings it was judged after."""
    lines = lines_of(model, name)
    loss = lines["error"] ** (2 if model.forecast_.unit == "RMSE" else 1)
    # New sites are called by their group, periods by their time.
    return loss.groupby(lines["environment"].to_numpy()).mean().to_numpy()


def x_t(losses: np.ndarray, reach: float) -> float:
    n_worst = max(1, int(np.ceil(0.1 * len(losses))))
    worst = np.sort(losses)[-n_worst:].mean()
    return float(losses.mean() + reach * (worst - losses.mean()))


def test_plain_in_sites_left_out_by_hand() -> None:
    where = SITES["where"].to_numpy()
    for line in OF_SITES.backtest_:
        if line.candidate != "plain":
            continue
        # Six sites in five groups: two are left out together.
        left = where == int(line.environment)
        assert line.n_rows == left.sum()
        assert np.isnan(line.horizon)
        outs = [{int(line.environment)}, *({int(line.environment), k} for k in range(6))]
        errors = []
        for out in outs:
            rest = ~np.isin(where, list(out))
            own = LinearRegression().fit(X.loc[rest, ["a", "b"]], Y[rest])
            missed = Y[left] - own.predict(X.loc[left, ["a", "b"]])
            errors.append(np.sqrt(np.mean(missed**2)))
        assert np.abs(np.array(errors) - line.error).min() < 1e-8


def test_plain_for_labels_takes_copies_of_columns_as_scikit_learn_does() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    label = rng.random(300) < 1 / (1 + np.exp(-2 * x[:, 0]))
    table = pd.DataFrame({"a": x[:, 0], "again": 3 * x[:, 0], "b": x[:, 1]})
    model = BacktestClassifier(candidates="plain", environment="where")
    model.fit(table.assign(where=np.arange(300) % 5), label)
    own = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10, max_iter=1000))
    expected = own.fit(table, label).predict_proba(table)
    found = model.predict_proba(table.assign(where=0))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_plain_in_later_periods_by_hand() -> None:
    when = X["when"].to_numpy()
    plain = [line for line in OF_TIME.backtest_ if line.candidate == "plain"]
    assert len({line.cut for line in plain}) == 4
    for line in plain:
        train, left = when <= int(line.cut), when == int(line.environment)
        assert line.horizon == int(line.environment) - int(line.cut) > 0
        own = LinearRegression().fit(X.loc[train, ["a", "b"]], Y[train])
        missed = Y[left] - own.predict(X.loc[left, ["a", "b"]])
        assert line.error == pytest.approx(np.sqrt(np.mean(missed**2)), abs=1e-8)


def test_every_period_after_a_cut_is_judged() -> None:
    table = OF_TIME.backtest_.to_frame()
    for cut, lines in table[table["candidate"] == "plain"].groupby("cut"):
        assert list(lines["environment"]) == [str(k) for k in range(int(cut) + 1, 2019)]


def test_time_and_sites_are_told_apart() -> None:
    table = OF_BOTH.backtest_.to_frame()
    plain = table[table["candidate"] == "plain"]
    new = plain[~plain["known"]]
    assert new["environment"].str.startswith("new sites").all()
    assert len(new) == 5
    assert plain["known"].sum() == len(lines_of(OF_TIME, "plain"))


@pytest.mark.parametrize("kind", MODELS)
def test_the_ranking_is_that_of_the_backtest(kind) -> None:
    model = MODELS[kind]
    plain = losses_of(model, "plain")
    root = np.sqrt if model.forecast_.unit == "RMSE" else np.asarray
    told = {line.candidate: line for line in model.ranking_}
    # An average that was not chosen stands in the ranking alone.
    for name in {line.candidate for line in model.backtest_}:
        losses, line = losses_of(model, name), told[name]
        assert line.mean == pytest.approx(root(losses.mean()))
        assert line.worst == pytest.approx(root(losses.max()))
        assert line.criterion == pytest.approx(x_t(losses, model.reach))
        assert line.ratio == pytest.approx(x_t(losses, model.reach) / x_t(plain, model.reach))
    criteria = [line.criterion for line in model.ranking_]
    assert criteria == sorted(criteria)
    chosen = [line for line in model.ranking_ if line.chosen]
    assert [line.candidate for line in chosen] == [model.best_name_]
    assert sum(model.weights_.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", MODELS)
def test_the_reach_curve_is_that_of_the_backtest(kind) -> None:
    model = MODELS[kind]
    root = np.sqrt if model.forecast_.unit == "RMSE" else np.asarray
    for line in model.reach_curve_[::4]:
        for name, value in [
            (model.best_name_, line.chosen),
            ("plain", line.plain),
            ("constant", line.constant),
        ]:
            assert value == pytest.approx(root(x_t(losses_of(model, name), line.reach)))
    chosen, plain = (losses_of(model, name) for name in (model.best_name_, "plain"))
    at = model.break_even_
    if model.best_name_ == "plain":
        assert np.isinf(at)
    elif np.isfinite(at) and at > 0:
        assert x_t(chosen, at) == pytest.approx(x_t(plain, at))
    elif at == 0:
        assert x_t(chosen, 0.0) <= x_t(plain, 0.0)
    else:
        assert x_t(chosen, 100.0) >= x_t(plain, 100.0)


@pytest.mark.parametrize("kind", MODELS)
def test_the_forecast_brackets_its_mean_and_what_was_seen(kind) -> None:
    forecast = MODELS[kind].forecast_
    for expected in (forecast, forecast.plain, forecast.constant):
        assert 0 < expected.lower < expected.mean < expected.upper
    errors = lines_of(MODELS[kind], "constant")["error"]
    assert errors.min() <= forecast.constant.mean <= errors.max()
    assert forecast.n_environments == len(losses_of(MODELS[kind], "plain"))
    assert bool(forecast.by_horizon) == (kind != "sites")
    horizons = [line.horizon for line in forecast.by_horizon]
    assert horizons == sorted(horizons)
    means = [line.chosen.mean for line in forecast.by_horizon]
    assert (np.diff(means) >= -1e-12).all()
    failing = [h.horizon for h in forecast.by_horizon if h.plain.mean > h.constant.mean]
    if kind != "sites":
        assert forecast.plain_fails_at == (failing[0] if failing else np.inf)


def test_the_forecast_of_sites_by_hand() -> None:
    """Mean by the rows learned from, a t interval of log errors about it."""
    lines = lines_of(OF_SITES, "plain")
    learned = []
    where = SITES["where"].to_numpy()
    noise = []
    for line in lines.itertuples():
        alone = LinearRegression().fit(
            X.loc[where != int(line.environment), ["a", "b"]], Y[where != int(line.environment)]
        )
        left = where == int(line.environment)
        missed = Y[left] - alone.predict(X.loc[left, ["a", "b"]])
        noise.append(0.25 * np.mean((missed**2 / np.mean(missed**2) - 1) ** 2) / len(missed))
        single = abs(np.sqrt(np.mean(missed**2)) - line.error) < 1e-8
        learned.append(N - (1 if single else 2) * N // 6)
    share = np.square(learned)
    expected = float(share @ lines["error"] / share.sum())
    assert OF_SITES.forecast_.plain.mean == pytest.approx(expected)
    logs = np.log(lines["error"])
    # Trainings that two sites share have other errors: the noise is theirs to some per cent.
    variance = (np.mean(noise) + 6 * logs.var(ddof=0)) / 6
    wide = student.ppf(0.95, 6) * np.sqrt(variance * 7 / 6)
    assert OF_SITES.forecast_.plain.upper == pytest.approx(expected * np.exp(wide), rel=1e-3)


def test_log_losses_by_hand() -> None:
    when = X["when"].to_numpy()
    for line in OF_LABELS.backtest_:
        if line.candidate != "constant":
            continue
        share = np.bincount(LABELS[when <= int(line.cut)], minlength=3) + 1 / 3
        rows = LABELS[when == int(line.environment)]
        p = np.maximum(np.tile(share / share.sum(), (len(rows), 1)), 1e-3)
        expected = -np.log(p[np.arange(len(rows)), rows]).mean()
        assert line.error == pytest.approx(expected, abs=1e-6)
    assert log_loss(LABELS, OF_LABELS.predict_proba(X)) < 1.0


def test_intervals_widen_with_level_and_horizon() -> None:
    ahead = X.drop(columns="where").assign(when=2030)
    narrow = OF_TIME.predict_interval(X.drop(columns="where"), level=0.5)
    wide = OF_TIME.predict_interval(X.drop(columns="where"), level=0.9)
    far = OF_TIME.predict_interval(ahead, level=0.9)
    centre = OF_TIME.predict(X.drop(columns="where"))
    np.testing.assert_allclose(wide.mean(axis=1), centre)
    assert (np.diff(wide) > np.diff(narrow)).all()
    assert (np.diff(far) >= np.diff(wide) - 1e-12).all()
    inside = (wide[:, 0] < Y) & (wide[:, 1] > Y)
    assert inside.mean() > 0.85


def test_adapt_returns_a_moved_copy() -> None:
    rng = np.random.default_rng(1)
    new = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200), "where": 99})
    y = new["a"].to_numpy() + 6.0 + rng.normal(size=200)
    before = OF_SITES.predict(new)
    moved = OF_SITES.adapt(new[:20], y[:20])
    assert OF_SITES.adaptation_ is None
    np.testing.assert_array_equal(OF_SITES.predict(new), before)
    assert moved.adaptation_.n_rows == 20
    error = np.mean((y[20:] - moved.predict(new[20:])) ** 2)
    assert error < 0.8 * np.mean((y[20:] - before[20:]) ** 2)
    assert moved.predictor_ is not OF_SITES.predictor_
    more = OF_SITES.adapt(new[:100], y[:100], sample_weight=np.full(100, 2.0))
    assert more.adaptation_.shift_error < moved.adaptation_.shift_error
    assert np.isfinite(moved.predict_interval(new)).all()


def drifting(seed: int, n_environments: int) -> tuple[pd.DataFrame, np.ndarray]:
    """One cause, whose slope is 1.5 in half of the environments and -0.5 in the others."""
    rng = np.random.default_rng(seed)
    n = 60 * n_environments
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    X["where"] = np.arange(n) % n_environments
    slope = np.where(X["where"] % 2 == 0, 1.5, -0.5)
    return X, (slope * X["a"] + X["b"] - X["c"] + rng.normal(size=n)).to_numpy()


@pytest.mark.parametrize("n_environments", [3, 4, 8])
@pytest.mark.parametrize("reach", [1.0, 4.0])
def test_a_cause_that_drifts_stays(n_environments, reach) -> None:
    """Never worse than plain by 2 % where the slope goes as far as was asked for."""
    ratios = []
    for seed in range(4):
        X, y = drifting(seed, n_environments)
        candidates = ["ridge", "stable", "splines"]
        model = BacktestRegressor(candidates, environment="where", reach=reach).fit(X, y)
        rng = np.random.default_rng(1000 + seed)
        new = pd.DataFrame(rng.normal(size=(4000, 4)), columns=list("abcd")).assign(where=99)
        plain = LinearRegression().fit(X[list("abcd")], y)
        worst = []
        for predicted in (model.predict(new), plain.predict(new[list("abcd")])):
            far = [(0.5 + k * reach) * new["a"] + new["b"] - new["c"] for k in (-1.0, 1.0)]
            worst.append(max(np.sqrt(1 + np.mean((mean - predicted) ** 2)) for mean in far))
        ratios.append(worst[0] / worst[1])
    assert max(ratios) <= 1.02
