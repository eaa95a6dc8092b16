"""The displays draw the numbers of the summary, and refuse what they cannot draw."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

from hetrisk import HRMRegressor, plotting
from report_models import HOSTILE, fitted

mpl.use("Agg")
from matplotlib import pyplot

DISPLAYS = [getattr(plotting, name) for name in plotting.__all__]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")  # emoji: the reader's font
@pytest.mark.parametrize("display", DISPLAYS)
@pytest.mark.parametrize(
    "model",
    [
        fitted(),
        fitted(HOSTILE),
        fitted(K=1, verdict="homogeneous"),
        fitted(K=8, d=3),
        fitted(classes=["a", "b", "$c$"]),
        fitted(classes=["no", "yes"]),
    ],
    ids=["regression", "hostile", "homogeneous", "many environments", "multiclass", "binary"],
)
def test_every_display_draws_every_model(display, model):
    drawn = display.from_estimator(model)
    assert drawn.figure_ is drawn.ax_.get_figure()
    drawn.figure_.canvas.draw()
    assert drawn.ax_.get_xlabel() or drawn.ax_.get_title()


@pytest.mark.parametrize("display", DISPLAYS)
def test_axes_can_be_given(display):
    _, ax = pyplot.subplots()
    assert display.from_estimator(fitted(), ax=ax).ax_ is ax
    assert len(pyplot.get_fignums()) == 1


def test_margins_are_drawn_the_most_important_first():
    model = fitted()
    ax = plotting.MarginDisplay.from_estimator(model, max_features=4).ax_
    widths = sorted((bar.get_width() for c in ax.containers for bar in c), reverse=True)
    np.testing.assert_allclose(widths, np.sort(100 * model.evidence_.margin)[::-1][:4])
    assert [label.get_text() for label in ax.get_yticklabels()][:2] == ["x0", "x1"]


def test_margins_that_were_not_measured_are_not_drawn():
    model = fitted()
    model.evidence_.margin[3] = np.nan
    model.evidence_.margin[4] = np.inf
    ax = plotting.MarginDisplay.from_estimator(model).ax_
    assert sum(len(container) for container in ax.containers) == 4


def test_the_reach_curve_is_drawn_with_its_marks():
    model = fitted()
    ax = plotting.ReachDisplay.from_estimator(model).ax_
    curve = model.reach_curve_
    lines = {line.get_label(): line for line in ax.lines}
    np.testing.assert_array_equal(lines["This model"].get_ydata(), curve.error)
    np.testing.assert_array_equal(lines["Plain model (ERM)"].get_ydata(), curve.error_erm)
    assert lines["Reach asked for"].get_xdata()[0] == model.reach
    assert lines["Pays from 0.61 on"].get_xdata()[0] == pytest.approx(curve.break_even)
    assert len(ax.collections) == 2  # the bands
    assert ax.get_ylabel() == "Expected RMSE"


def test_a_curve_of_any_model_can_be_drawn():
    curve = fitted().reach_curve_
    ax = plotting.ReachDisplay.from_curve(curve, name="Boosted trees").ax_
    assert "Boosted trees" in [line.get_label() for line in ax.lines]
    assert "Reach asked for" not in [line.get_label() for line in ax.lines]


def test_a_model_that_was_not_searched_has_no_curve():
    with pytest.raises(ValueError, match="estimator has no reach curve: its verdict is 'unsear"):
        plotting.ReachDisplay.from_estimator(fitted(K=1, verdict="unsearched"))


def test_coefficients_are_those_of_the_class_asked_for():
    model = fitted(classes=["a", "b", "c"])
    display = plotting.CoefficientDisplay.from_estimator(model, target="b", max_features=2)
    effect = display.summary.coefficients[1].effect
    drawn = [container.lines[0].get_xdata() for container in display.ax_.containers]
    np.testing.assert_allclose(drawn, effect[:, :2])  # the most important are the first two
    assert "log-odds of b" in display.ax_.get_xlabel()


def test_risks_are_drawn_side_by_side():
    ax = plotting.RiskDisplay.from_estimator(fitted()).ax_
    widths = [[bar.get_width() for bar in container] for container in ax.containers]
    np.testing.assert_allclose(widths, [[0.1, 0.4], [0.2, 0.21]])


def test_a_feature_is_found_by_name_or_position():
    model = fitted(["sun", "rain", "$wind$"])
    by_name = plotting.EnvironmentDisplay.from_estimator(model, feature="rain").ax_
    by_position = plotting.EnvironmentDisplay.from_estimator(model, feature=1).ax_
    assert by_name.get_xlabel() == by_position.get_xlabel() == "rain"
    plotting.EnvironmentDisplay.from_estimator(model, feature="$wind$").figure_.canvas.draw()


def test_data_turn_a_feature_into_histograms():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.integers(0, 3, size=200)])
    y = X @ [1.0, 0.5] + 0.1 * rng.normal(size=200)
    model = HRMRegressor(random_state=0).fit(X, y)
    draw = plotting.EnvironmentDisplay.from_estimator
    continuous = draw(model, data=(X, y), feature=0).ax_
    assert continuous.patches[0].get_data().values.sum() == pytest.approx(100)
    few = draw(model, data=(X, y), feature="x1").ax_
    assert [label.get_text() for label in few.get_xticklabels()] == ["0", "1", "2"]
    assert sum(bar.get_height() for bar in few.containers[0]) == pytest.approx(100)


def test_a_search_without_a_chosen_step_has_no_legend():
    model = fitted()
    model.history_ = [replace(record, chosen=False) for record in model.history_]
    assert plotting.SearchDisplay.from_estimator(model).ax_.get_legend() is None


def test_the_chosen_step_is_marked():
    ax = plotting.SearchDisplay.from_estimator(fitted(), quantity="score").ax_
    path, chosen = (line.get_xydata().tolist() for line in ax.lines)
    assert path == [[1, 2.0], [2, 1.0], [3, 2.0 / 3]]
    assert chosen == [[2, 1.0]]


@pytest.mark.parametrize(
    ("display", "options", "message"),
    [
        (plotting.SearchDisplay, {"quantity": "x"}, "quantity must be 'score' or"),
        (plotting.CoefficientDisplay, {"target": "z"}, r"target must be one of \[\] or None"),
        (
            plotting.CoefficientDisplay,
            {"max_features": 0},
            "max_features must be at least 1; got 0",
        ),
        (plotting.EnvironmentDisplay, {"feature": "z"}, "feature must be the name or position"),
    ],
)
def test_bad_options_are_named(display, options, message):
    with pytest.raises(ValueError, match=message):
        display.from_estimator(fitted(), **options)


def test_other_models_are_refused():
    with pytest.raises(TypeError, match="model must be a fitted HRM"):
        plotting.RiskDisplay.from_estimator(3)
