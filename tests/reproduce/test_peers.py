"""Other people's methods, as estimators of ours."""

import sys

import numpy as np
import pytest

from hetrisk.baselines import AnchorRegressor
from hetrisk.datasets import load_task
from hetrisk.reproduce.peers import PeerAnchorRegression, PeerInvariantPrediction
from hetrisk.reproduce.records import NotApplicable


@pytest.fixture
def peers():
    pytest.importorskip("ivmodels", reason="pip install 'hetrisk[peers]'")
    pytest.importorskip("causalicp", reason="pip install 'hetrisk[peers]'")


@pytest.mark.usefixtures("peers")
def test_the_anchor_regressions_agree():
    X, y, environments = load_task("anti_causal", n_test=10).train
    theirs = PeerAnchorRegression(5.0).fit(X, y, environments)
    ours = AnchorRegressor(5.0).fit(X, y, environments)
    np.testing.assert_allclose(theirs.predict(X), ours.predict(X), atol=1e-8)


@pytest.mark.usefixtures("peers")
def test_anchor_regression_of_labels():
    X, y, environments = load_task("copied_label", n_samples=300, n_test=10).train
    named = np.array(["no", "yes"])[y]
    model = PeerAnchorRegression(5.0, "classification").fit(X, named, environments)
    assert np.mean(model.predict(X) == named) > 0.7
    three = np.arange(len(y)) % 3
    with pytest.raises(NotApplicable, match="anchor regression has no 3 classes"):
        PeerAnchorRegression(5.0, "classification").fit(X, three, environments)


@pytest.mark.usefixtures("peers")
def test_invariant_prediction_finds_parents_or_predicts_the_mean():
    rng = np.random.default_rng(0)
    environments = np.repeat([0, 1], 300)
    scale = 1.0 + environments
    cause = scale * rng.normal(size=600)
    y = cause + rng.normal(size=600)
    effect = y + scale * rng.normal(size=600)
    X = np.column_stack([cause, effect])
    model = PeerInvariantPrediction().fit(X, y, environments)
    assert model.support_.tolist() == [True, False]
    np.testing.assert_allclose(model.predict(X), model.predict(X * [1, 0]))
    moved = y + 50.0 * environments  # no set of columns explains this
    nothing = PeerInvariantPrediction().fit(X, moved, environments)
    np.testing.assert_allclose(nothing.predict(X), moved.mean())


@pytest.mark.usefixtures("peers")
def test_invariant_prediction_says_where_it_does_not_apply():
    X, y, environments = load_task("copied_label", n_samples=50, n_test=10).train
    with pytest.raises(NotApplicable, match="residuals of numbers, not of labels"):
        PeerInvariantPrediction(task_type="classification").fit(X, y, environments)
    wide = np.zeros((len(y), 12))
    with pytest.raises(NotApplicable, match=r"2\^12 sets of columns in 2 environments are more"):
        PeerInvariantPrediction().fit(wide, y.astype(float), environments)


@pytest.mark.parametrize(
    ("kind", "module"),
    [(PeerAnchorRegression, "ivmodels.models"), (PeerInvariantPrediction, "causalicp")],
)
def test_without_the_package_it_says_how_to_install_it(monkeypatch, kind, module):
    monkeypatch.setitem(sys.modules, module, None)
    library = module.split(".")[0]
    with pytest.raises(ImportError, match=rf"{library} is not installed: pip install 'hetrisk\["):
        kind().fit(np.zeros((4, 1)), np.zeros(4), np.zeros(4))
