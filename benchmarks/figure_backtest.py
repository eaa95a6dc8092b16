"""The picture of the README: errors in the years left out, and the forecast beside what came true.

python benchmarks/figure_backtest.py
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from hetrisk import BacktestRegressor
from hetrisk.datasets import load_economy

PAGE = Path(__file__).resolve().parents[1] / "docs" / "backtest.png"
OURS, GREY, DARK = "#b3331d", "#b9c0c7", "#4a6076"
SHOWN = 7


def main() -> None:
    table = load_economy()
    target = table.pop("psavert")
    past = (table["date"] < "1995-01-01").to_numpy()
    model = BacktestRegressor(time="date").fit(table[past], target[past])
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    names = [line.candidate for line in model.ranking_]
    shown = [name for name in names if "+" not in name or name == model.best_name_][:SHOWN]
    shown += [name for name in ("plain", "constant") if name not in shown]
    tested = model.backtest_.to_frame()
    for at, name in enumerate(reversed(shown)):
        errors = tested.loc[tested["candidate"] == name, "error"]
        colour = OURS if name == model.best_name_ else DARK
        left.plot(errors, np.full(len(errors), at), "|", ms=12, color=GREY)
        left.plot(np.sqrt(np.mean(errors**2)), at, "o", color=colour)
    left.set_yticks(range(len(shown)))
    left.set_yticklabels([_short(name) for name in reversed(shown)])
    left.set(xlabel="error in the periods left out, percent of income", xlim=(0, None))
    later = ~past
    years = table["date"][later].dt.year
    losses = (model.predict(table[later]) - target[later]) ** 2
    came = np.sqrt(losses.groupby(years).mean())
    forecast = model.forecast_
    right.axhspan(forecast.lower, forecast.upper, color="#f3ddd7", label="foretold, 90 %")
    right.axhline(forecast.mean, color=OURS, lw=1)
    right.plot(came.index, came, "o", color="black", ms=4, label="came true")
    right.set(xlabel="learned before 1995", ylabel="error, percent of income", ylim=(0, None))
    right.legend(frameon=False, loc="upper left")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PAGE, dpi=150)


def _short(name: str) -> str:
    return "average of " + str(name.count("+") + 1) if "+" in name else name


if __name__ == "__main__":
    main()
