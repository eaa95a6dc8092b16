"""Model files: the same predictions back, for every model that may travel."""

import copy
import io
import json
import typing
import zipfile

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn import dummy, ensemble, linear_model, preprocessing, tree
from sklearn.base import clone, is_classifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from hetrisk import (
    EnvironmentMixture,
    HRMClassifier,
    HRMRegressor,
    HRMSelector,
    InvariantClassifier,
    InvariantRegressor,
    baselines,
    modelfile,
)
from hetrisk.modelfile.named import NAMED
from hetrisk.modelfile.own import fits
from hetrisk.tables.model import fit_table
from model_files import N, again, rows, table

# Few rows: the search may warn that nothing is safe, scikit-learn that it did not settle.
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def check_round_trip(model, X):
    back = again(model)
    assert type(back) is type(model)
    for name in ("predict", "predict_proba", "transform"):
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(back, name)(X), getattr(model, name)(X))
    return back


@pytest.fixture(scope="module", params=["y", "label"])
def fitted(request):
    data = table()
    other = "label" if request.param == "y" else "y"
    return fit_table(data, request.param, drop=[other]), data.frame


def test_a_round_trip_changes_no_bit(fitted, tmp_path):
    model, frame = fitted
    modelfile.save(model, tmp_path / "m.hetrisk")
    back = modelfile.load(tmp_path / "m.hetrisk")
    assert isinstance(back, Pipeline)
    np.testing.assert_array_equal(back.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(back[-1].support_, model[-1].support_)
    assert back[0].columns_ == model[0].columns_
    assert back[-1].verdict_reason_ == model[-1].verdict_reason_
    assert modelfile.dumps(back) == modelfile.dumps(model)  # every attribute that travels
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(back.predict_proba(frame), model.predict_proba(frame))


def test_environments_of_new_rows_survive_the_round_trip(fitted):
    model, frame = fitted
    back = again(model)
    X = model[0].transform(frame)
    y = frame[model[0].description_.target].to_numpy()
    np.testing.assert_array_equal(
        back[-1].predict_environments(X, y), model[-1].predict_environments(X, y)
    )


def _arrays(node):
    if isinstance(node, dict):
        if node.get("is") in ("array", "texts"):
            yield node
        for part in node.values():
            yield from _arrays(part)
    elif isinstance(node, list):
        for part in node:
            yield from _arrays(part)


def test_a_file_holds_nothing_per_training_row(fitted):
    model, _ = fitted
    with zipfile.ZipFile(io.BytesIO(modelfile.dumps(model))) as archive:
        tree = json.loads(archive.read("model.json"))
    shapes = [node["shape"] for node in _arrays(tree)]
    assert shapes
    assert all(size < N for shape in shapes for size in shape)
    with pytest.raises(AttributeError, match="environment_proba_"):
        _ = again(model)[-1].environment_proba_
    assert len(model[-1].environments_) == N


REGRESSORS = [
    linear_model.LinearRegression(),
    linear_model.Ridge(),
    linear_model.RidgeCV(),
    linear_model.Lasso(0.01),
    linear_model.LassoCV(cv=3),
    linear_model.ElasticNet(0.01),
    linear_model.ElasticNetCV(cv=3),
    linear_model.HuberRegressor(max_iter=1000),
    linear_model.QuantileRegressor(),
    tree.DecisionTreeRegressor(),
    tree.ExtraTreeRegressor(),
    ensemble.RandomForestRegressor(4, random_state=0),
    ensemble.ExtraTreesRegressor(4, random_state=0),
    ensemble.GradientBoostingRegressor(n_estimators=4),
    ensemble.GradientBoostingRegressor(n_estimators=3, init="zero", loss="huber"),
    ensemble.HistGradientBoostingRegressor(max_iter=4),
    ensemble.HistGradientBoostingRegressor(loss="poisson", max_iter=3),
    dummy.DummyRegressor(),
    *(
        make_pipeline(step, linear_model.Ridge())
        for step in (
            preprocessing.StandardScaler(),
            preprocessing.MinMaxScaler(),
            preprocessing.MaxAbsScaler(),
            preprocessing.RobustScaler(),
            SimpleImputer(),
        )
    ),
]


CLASSIFIERS = [
    linear_model.LogisticRegression(),
    linear_model.LogisticRegressionCV(Cs=3, cv=3),
    tree.DecisionTreeClassifier(),
    tree.ExtraTreeClassifier(),
    ensemble.RandomForestClassifier(4, random_state=0),
    ensemble.ExtraTreesClassifier(4, random_state=0),
    ensemble.GradientBoostingClassifier(n_estimators=4),
    ensemble.HistGradientBoostingClassifier(max_iter=4),
    dummy.DummyClassifier(),
]


def _kinds(final):
    return (
        [type(s) for s in final.named_steps.values()] if hasattr(final, "steps") else [type(final)]
    )


def test_every_estimator_on_the_list_is_tried():
    tried = {kind.__name__ for final in REGRESSORS + CLASSIFIERS for kind in _kinds(final)}
    assert tried == set(NAMED)


@pytest.fixture(scope="module")
def searched():
    """Models whose final estimator is fitted anew in each test, without another search."""
    X, y, labels, _ = rows()
    targets = [y, labels, y > 0.5]
    kinds = [HRMRegressor, HRMClassifier, HRMClassifier]
    models = [k("gates", max_rounds=1).fit(X, t) for k, t in zip(kinds, targets, strict=True)]
    return list(zip(models, targets, strict=True))


@pytest.mark.parametrize("final", REGRESSORS + CLASSIFIERS, ids=str)
def test_final_estimators_on_the_list_travel(final, searched):
    X = rows()[0]
    for model, target in searched[1:] if is_classifier(final) else searched[:1]:
        model = copy.copy(model)
        model.final_estimator = final
        model.final_estimator_ = clone(final).fit(X[:, model.support_], target)
        check_round_trip(model, X)


OWN = {
    "HRMRegressor": lambda X, y, c, e: HRMRegressor(random_state=0).fit(X, y),
    "gates": lambda X, y, c, e: HRMRegressor("gates", random_state=0, n_jobs=2).fit(X, y),
    "HRMClassifier": lambda X, y, c, e: HRMClassifier("gates", max_rounds=1).fit(X, c),
    "numbers for classes": lambda X, y, c, e: HRMClassifier("gates", max_rounds=1).fit(X, e + 3),
    "a generator": lambda X, y, c, e: HRMRegressor(
        "gates", max_rounds=1, random_state=np.random.RandomState(0)
    ).fit(X, y),
    "a frame": lambda X, y, c, e: HRMRegressor("gates", max_rounds=1).fit(
        pd.DataFrame(X, columns=list("abcd")), y
    ),
    "told": lambda X, y, c, e: HRMRegressor(random_state=0).fit(X, y, environments=e),
    "hinted": lambda X, y, c, e: HRMRegressor(random_state=0).fit(X, y, hints=e),
    "directions": lambda X, y, c, e: HRMRegressor(form="directions", random_state=0).fit(
        X, y, environments=e
    ),
    "HRMSelector": lambda X, y, c, e: HRMSelector("gates", max_rounds=1).fit(X, y),
    "selector in a pipeline": lambda X, y, c, e: make_pipeline(
        StandardScaler(), HRMSelector("gates", max_rounds=1), ensemble.RandomForestRegressor(3)
    ).fit(X, y),
    "scaled": lambda X, y, c, e: make_pipeline(
        StandardScaler(), HRMRegressor("gates", max_rounds=1)
    ).fit(X, y),
    "EnvironmentMixture": lambda X, y, c, e: EnvironmentMixture(2, random_state=0).fit(X, y),
    "mixture of labels": lambda X, y, c, e: EnvironmentMixture(1, random_state=0).fit(X, c),
    "InvariantRegressor": lambda X, y, c, e: InvariantRegressor().fit(X, y, e),
    "InvariantClassifier": lambda X, y, c, e: InvariantClassifier().fit(X, c, e),
}


@pytest.mark.parametrize("case", OWN)
def test_every_estimator_of_ours_travels(case):
    X, y, labels, environments = rows()
    model = OWN[case](X, y, labels, environments)
    if case == "a frame":
        X = pd.DataFrame(X, columns=list("abcd"))
    check_round_trip(model, X)


def _baselines():
    return [name for name in baselines.__all__ if name.endswith(("Regressor", "Classifier"))]


@pytest.mark.parametrize("name", _baselines())
def test_every_baseline_travels(name):
    X, y, labels, environments = rows(60)
    kind = getattr(baselines, name)
    strength = {kind.strength: 0.1} if kind.strength else {}
    with_labels = "environments" in kind.fit.__code__.co_varnames
    given = (environments,) if with_labels else ()
    check_round_trip(kind(**strength).fit(X, y if "Regressor" in name else labels, *given), X)


def test_a_frame_of_anything_travels():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=N),
            "kind": pd.Categorical(rng.choice(["p", "q"], N)),
            "when": pd.date_range("2020-01-01", periods=N),
            "word": rng.choice(["u", "v", "w"], N),
        }
    )
    model = HRMRegressor(random_state=0).fit(frame, frame["a"] + (frame["kind"] == "p"))
    check_round_trip(model, frame)


MOMENTS = {
    "datetime64": lambda days: days,
    "with a zone": lambda days: days.tz_localize("UTC"),
    "dates of Python": lambda days: days.date,
    "periods": lambda days: days.to_period("D"),
    "ISO text": lambda days: days.strftime("%Y-%m-%d"),
    "day first": lambda days: days.strftime("%d.%m.%Y"),
    "months": lambda days: pd.date_range(days[0], periods=len(days), freq="MS").strftime("%Y-%m"),
    "times of day": lambda days: [f"{i % 24:02d}:{i * 7 % 60:02d}" for i in range(len(days))],
}


def frame_of_moments(case):
    """Return numbers and a column of moments, without a category that becomes other columns."""
    X, y, _, environments = rows()
    moments = MOMENTS[case](pd.date_range("2020-01-01", periods=N))
    return pd.DataFrame(X, columns=list("abcd")).assign(when=moments), y, environments


@pytest.mark.parametrize("case", MOMENTS)
def test_a_frame_of_numbers_and_moments_travels(case):
    frame, y, environments = frame_of_moments(case)
    model = HRMRegressor(random_state=0).fit(frame, y, environments=environments)
    assert list(model.encoder_.get_feature_names_out()) == list(frame)
    check_round_trip(model, frame)


@pytest.mark.parametrize(
    "kind", [HRMSelector, InvariantRegressor, EnvironmentMixture], ids=lambda kind: kind.__name__
)
def test_moments_travel_with_every_estimator_of_frames(kind):
    frame, y, environments = frame_of_moments("ISO text")
    told = {} if kind is EnvironmentMixture else {"environments": environments}
    check_round_trip(kind().fit(frame, y, **told), frame)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


REQUESTING = {
    "regressor": lambda: HRMRegressor().set_fit_request(environments=True),
    "selector": lambda: HRMSelector().set_fit_request(environments=True, hints="when"),
    "baseline": lambda: baselines.AnchorRegressor().set_fit_request(environments=True),
    "pipeline": lambda: make_pipeline(
        StandardScaler().set_fit_request(sample_weight=False),
        HRMRegressor().set_fit_request(environments=True).set_score_request(sample_weight=True),
    ),
}


@pytest.mark.parametrize("case", REQUESTING)
@pytest.mark.usefixtures("routing")
def test_metadata_requests_stay_behind(case):
    X, y, _, environments = rows()
    model = REQUESTING[case]().fit(X, y, environments=environments)
    back = check_round_trip(model, X)
    for step in [step for _, step in back.steps] if isinstance(back, Pipeline) else [back]:
        assert "_metadata_request" not in vars(step)
    assert modelfile.dumps(back) == modelfile.dumps(model)


UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns")
YEARS = np.array(["2020", "2021", "2022"], dtype="datetime64[Y]")
FINALS = [None, ensemble.RandomForestClassifier(3, random_state=0), dummy.DummyClassifier()]


@pytest.mark.parametrize("unit", UNITS)
def test_labels_may_be_dates(unit):
    X, _, labels, _ = rows()
    dates = YEARS.astype(f"datetime64[{unit}]")[np.unique(labels, return_inverse=True)[1]]
    model = HRMClassifier("gates", max_rounds=1).fit(X, dates)
    back = check_round_trip(model, X)
    assert back.predict(X).dtype == dates.dtype


@pytest.mark.parametrize("final", FINALS, ids=str)
def test_labels_may_be_dates_whatever_the_final_estimator(final):
    X, _, labels, environments = rows()
    dates = pd.Series(YEARS.astype("datetime64[ns]")[np.unique(labels, return_inverse=True)[1]])
    model = HRMClassifier(final_estimator=final).fit(X, dates, environments=environments)
    check_round_trip(model, X)


@pytest.mark.skipif(not hasattr(typing, "TypeAliasType"), reason="needs Python 3.12")
def test_arrays_fit_types_that_are_named_aliases():
    # numpy 2.5 declares its array types so.
    scalar = typing.TypeVar("scalar", bound=np.generic)
    array = np.ndarray[tuple[typing.Any, ...], np.dtype[scalar]]
    alias = typing.TypeAliasType("Arrays", array, type_params=(scalar,))
    assert fits(np.zeros(2), alias[np.float64])
    assert not fits(np.zeros(2, dtype=int), alias[np.float64])
    assert not fits([0.0], alias[np.float64])
    assert fits(np.zeros(2, dtype=int), alias)
    assert fits(None, alias[np.float64] | None)
