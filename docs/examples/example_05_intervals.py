"""
Intervals that hold in months not seen
======================================

A 90 % interval calibrated on a random split covers 90 % of rows like those seen. Next year's are not. `predict_interval` is calibrated
on whole months left out.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import cross_val_predict

from hetrisk import BacktestRegressor
from hetrisk.datasets import load_natural

table = load_natural("computer_prices")
frame, y, month = table.frame, table.y, table.frame["trend"].to_numpy()
past = month <= 17
model = BacktestRegressor(time="trend", random_state=0).fit(frame[past], y[past])
low, high = model.predict_interval(frame, level=0.9).T

X = frame.drop(columns="trend").replace({"yes": "1", "no": "0"}).astype(float)
trees = HistGradientBoostingRegressor(random_state=0)
half = np.quantile(np.abs(cross_val_predict(trees, X[past], y[past]) - y[past]), 0.9)
centre = trees.fit(X[past], y[past]).predict(X)

months = np.arange(18, 36)
fig, ax = plt.subplots()
for name, inside, colour in (
    ("trees, random cross-validation", np.abs(y - centre) <= half, "#c9922b"),
    (f"backtest ({model.best_name_})", (low <= y) & (y <= high), "#b3331d"),
):
    covered = [inside[month == m].mean() for m in months]
    ax.plot(months, covered, "o-", ms=3, color=colour, label=name)
    print(f"{name:34s} {np.mean(covered):.0%} on average, {min(covered):.0%} in the worst month")
ax.axhline(0.9, color="#8a9199", lw=0.8)
ax.set(xlabel="month", ylabel="share of prices inside", ylim=(0, 1.02))
ax.legend(frameon=False)
plt.show()
