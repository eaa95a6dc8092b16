"""
Computer prices through time
============================

Offers of personal computers from January 1993 on, one row an offer: what would the next eighteen months
cost a model that was fitted to the first seventeen?

The month of an offer is never a feature. It is a *hint*: it may go along with where rows come from.
"""

# %%
# The table
# ---------
# The target is the logarithm of the price, so errors are (nearly) relative.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from hetrisk import HRMRegressor, plotting
from hetrisk.datasets import load_natural

table = load_natural("computer_prices")
X = table.features.replace({"yes": "1", "no": "0"}).astype(float)
y, month = table.y, table.environments.astype(int)
past = month <= 17
print(X.assign(log_price=y, month=month).head(3).to_string(index=False))

# %%
# The fit
# -------

model = HRMRegressor().fit(X[past], y[past], hints=month[past])
plain = LinearRegression().fit(X[past], y[past])
print(f"{model.verdict_}: {model.verdict_reason_}")

# %%
# The reach curve says it in one picture: what caution costs where nothing shifts (left), and what it
# saves as the shift grows.

plotting.ReachDisplay.from_estimator(model)
plt.show()

# %%
# What came true
# --------------
# The months after the seventeenth were not looked at.


def errors(fitted):
    months = range(18, 36)
    return [np.sqrt(np.mean((fitted.predict(X[month == m]) - y[month == m]) ** 2)) for m in months]


fig, ax = plt.subplots()
ax.plot(range(18, 36), errors(plain), "o-", color="#8a9199", label="plain least squares")
ax.plot(
    range(18, 36), errors(model), "o-", color="#0a66a8", label="hetrisk, told the month as a hint"
)
ax.set(xlabel="month", ylabel="RMSE of the log price", ylim=(0, None))
ax.legend()
plt.show()
print(f"worst month: plain {max(errors(plain)):.2f}, hetrisk {max(errors(model)):.2f}")

# %%
# Why
# ---
# Fitted month by month, what a megahertz and a megabyte of disk are worth falls and falls. The plain
# model takes the average of a worth that is on its way to zero.

fig, ax = plt.subplots()
for name in ("speed", "hd", "ram", "screen"):
    worth = [
        LinearRegression().fit(X[month == m], y[month == m]).coef_[X.columns.get_loc(name)]
        for m in range(1, 36)
    ]
    ax.plot(range(1, 36), np.array(worth) * X[name].std(), label=name)
ax.axvspan(1, 17, color="0.93", zorder=0)
ax.set(xlabel="month (shaded: learned from)", ylabel="change of log price per std of the column")
ax.legend(ncols=2)
plt.show()
