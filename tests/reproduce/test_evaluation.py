import json
from dataclasses import replace

import numpy as np
import pytest

from hetrisk.datasets import load_task
from hetrisk.reproduce.cases import Case
from hetrisk.reproduce.distances import mean_distance, measured_distances
from hetrisk.reproduce.evaluation import DISTANCES, evaluate
from hetrisk.reproduce.methods import LABELS, METHODS, methods_for

SETTING = (("n_samples", 300), ("n_test", 100))


@pytest.mark.parametrize("method", methods_for("selection_bias"))
def test_every_method_leaves_a_whole_record(method):
    record = evaluate(Case("selection_bias", SETTING, 1, method))
    assert record["status"] == "ok", record.get("reason")
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert list(record["errors"]) == list(load_task("selection_bias", 1, **dict(SETTING)).test)
    assert record["seconds"] >= 0
    assert {"python", "hetrisk", "numpy", "scikit-learn"} <= set(record["versions"])
    assert record["setting"] == dict(SETTING)
    assert record["seed"] == 1


@pytest.mark.parametrize(
    "method",
    [name for name in METHODS if name not in ("oracle", "stable-copies", "kernel-hrm")],
)
def test_every_method_classifies(method):
    record = evaluate(
        Case("cats_and_dogs", (("n_samples", 200), ("n_test", 50), ("noise", 0.1)), 0, method)
    )
    assert record["status"] == "ok", record.get("reason")
    assert record["loss"] == "error_rate"


def test_the_same_case_gives_the_same_errors():
    case = Case("selection_bias", SETTING, 2, "irm")
    assert evaluate(case)["errors"] == evaluate(case)["errors"]


def test_a_case_that_cannot_run_says_why():
    record = evaluate(Case("house_price", (("path", "/nowhere/at/all.csv"),), 0, "erm"))
    assert record["status"] == "failed"
    assert "FileNotFoundError" in record["reason"]
    assert "errors" not in record


def test_only_methods_that_say_so_see_the_labels():
    task = load_task("selection_bias", **dict(SETTING))
    d = task.train.X.shape[1]
    for name, method in METHODS.items():
        given = {}

        class Spy:
            def fit(self, X, y, given=given, **more):
                given.update(more, columns=X.shape[1])
                return self

            def predict(self, X):
                return X[:, -1]

        view = type(method)(**{**vars(method), "build": lambda task, seed: Spy()})
        model = view.fit(task, 0)
        assert ("environments" in given) == (method.given == LABELS), name
        assert given["columns"] == d + (name == "backtest") - 5 * (name == "oracle"), name
        if name == "backtest":  # a test environment is one that was not seen
            assert (view.view(model, task).predict(task.train.X) == 2).all()


def test_methods_of_an_assumption_or_of_practice_run_where_they_belong():
    assert "stable-copies" in methods_for("car_insurance")
    assert "stable-copies" not in methods_for("income")
    assert {"trees", "backtest"} <= set(methods_for("house_price"))
    assert "oracle" not in methods_for("house_price")


def test_the_oracle_sees_the_invariant_features_alone():
    task = load_task("selection_bias", **dict(SETTING))
    model = METHODS["oracle"].fit(task, 0)
    assert model.n_features_in_ == task.invariant.sum()
    X, _ = task.test["r=-3"]
    predicted = METHODS["oracle"].view(model, task).predict(X)
    np.testing.assert_allclose(predicted, model.predict(X[:, task.invariant]))


def test_distances_between_environments_are_recorded():
    record = evaluate(Case("selection_bias", (("n_samples", 600),), 0, DISTANCES))
    assert record["status"] == "ok", record.get("reason")
    for features in record["distances"].values():
        assert set(features) == {"true", "first round", "learned"}
        assert np.shape(features["true"]) == (2, 2)
    assert mean_distance([[0, 0.2, 0.4], [0.2, 0, 0.6], [0.4, 0.6, 0]]) == pytest.approx(0.4)
    assert mean_distance([[0.0]]) == 0.0


def test_distances_need_a_known_truth():
    task = replace(load_task("selection_bias", **dict(SETTING)), invariant=None)
    with pytest.raises(ValueError, match="variant features of the task 'selection_bias'"):
        measured_distances(task, 0)
