"""Linear methods on kernel features, and the cases they are asked about."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from hetrisk.datasets import load_task
from hetrisk.reproduce.agreement import side_by_side
from hetrisk.reproduce.cases import Case
from hetrisk.reproduce.evaluation import evaluate
from hetrisk.reproduce.methods import METHODS, methods_for
from hetrisk.reproduce.nonlinear import CASES, Lifted
from hetrisk.reproduce.targets import TARGETS

from .made_up import measure


def test_a_lift_lets_a_linear_method_bend():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (400, 2))
    y = X[:, 0] * X[:, 1]
    fitted = Lifted(LinearRegression(), random_state=0).fit(X, y)
    assert np.mean((fitted.predict(X) - y) ** 2) < 0.05 * y.var()


def test_labels_stay_labels():
    task = load_task("copied_label", n_samples=200)
    predicted = (
        Lifted(LogisticRegression(), random_state=0)
        .fit(task.train.X, task.train.y)
        .predict(task.train.X)
    )
    assert set(predicted) <= {0, 1}


@pytest.mark.parametrize("method", ["directions", "kernel-directions"])
def test_directions_told_the_environments_beat_the_pool(method):
    case = ("copied_label", (("rotated", True),), 0)
    ours, erm = (evaluate(Case(*case, name))["errors"] for name in (method, "erm"))
    assert np.mean(list(ours.values())) < np.mean(list(erm.values())) - 0.1


def test_hrm_takes_kernel_features():
    record = evaluate(Case("copied_label", (("n_samples", 100), ("n_test", 50)), 0, "kernel-hrm"))
    assert record["status"] == "ok", record.get("reason")
    assert record["loss"] == "error_rate"


def test_methods_stand_beside_each_other():
    found = {case.key: measure(case) for case in TARGETS["nonlinear"].cases(1)}
    lines = side_by_side("nonlinear", found, 1)
    assert lines[0] == ["method", *CASES]
    labels = [METHODS[name].label for name in methods_for("copied_label")]
    assert [line[0] for line in lines[1:]] == labels
    assert all(all(line) for line in lines)
