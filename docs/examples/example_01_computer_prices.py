"""
A constant beats regression: computer prices
============================================

Offers of personal computers, 1993 to 1995. A model learned from the first seventeen months is used in the next eighteen. Least squares
on all columns errs more than saying the last month's mean; random cross-validation does not notice, a backtest does.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from hetrisk import BacktestRegressor
from hetrisk.datasets import load_natural

table = load_natural("computer_prices")  # y is the logarithm of the price
frame, y, month = table.frame, table.y, table.frame["trend"].to_numpy()
past = month <= 17

model = BacktestRegressor(time="trend", random_state=0).fit(frame[past], y[past])
print(model.ranking_)

# %%
# What came true, month by month, with the constant and boosted trees beside.

X = frame.drop(columns="trend").replace({"yes": "1", "no": "0"}).astype(float)
last = np.mean(y[month == 17])
others = {
    "mean of the last month": np.full(len(y), last),
    "plain": LinearRegression().fit(X[past], y[past]).predict(X),
    "boosted trees": HistGradientBoostingRegressor(random_state=0).fit(X[past], y[past]).predict(X),
    f"backtest: {model.best_name_}": model.predict(frame),
}
months = np.arange(18, 36)
fig, ax = plt.subplots()
for (name, predicted), colour in zip(others.items(), ("#8a9199", "#4a6076", "#c9922b", "#b3331d")):
    errors = [np.sqrt(np.mean((predicted - y)[month == m] ** 2)) for m in months]
    ax.plot(months, errors, "o-", ms=3, color=colour, label=name)
    print(f"{name:32s} mean {np.mean(errors):.3f}  worst {max(errors):.3f}")
ax.set(xlabel="month", ylabel="RMSE of the log price", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
