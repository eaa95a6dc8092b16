"""Displays draw what the page draws."""

from types import SimpleNamespace

import pytest

pytest.importorskip("matplotlib").use("Agg")

from hetrisk import plotting  # noqa: E402

from .made import answer  # noqa: E402


@pytest.fixture
def fitted():
    ranking, backtest, forecast, curve = answer()
    return SimpleNamespace(
        ranking_=ranking, backtest_=backtest, forecast_=forecast, reach_curve_=curve, reach=1.0
    )


@pytest.mark.parametrize("name", plotting.__all__)
def test_a_display_draws_its_picture(fitted, name):
    from matplotlib import pyplot

    display = getattr(plotting, name).from_estimator(fitted)
    lines = [line for line in display.ax_.lines if len(line.get_xdata()) > 2]
    drawn = {tuple(line.get_ydata()) for line in lines}
    assert {s.y for s in display.picture.series if len(s.y) > 2} <= drawn
    assert display.ax_.get_ylabel() == "RMSE"
    pyplot.close("all")


def test_a_display_refuses_a_model_that_was_not_backtested():
    ranking, backtest, forecast, curve = answer(chosen="plain", n=0)
    model = SimpleNamespace(
        ranking_=ranking, backtest_=backtest, forecast_=forecast, reach_curve_=curve, reach=1.0
    )
    with pytest.raises(ValueError, match="no backtest: name a time or an environment"):
        plotting.BacktestDisplay.from_estimator(model)
