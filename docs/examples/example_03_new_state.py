"""
A state it has never seen
=========================

Interest rates of loans by state. Half of the states are learned from, the others judged. Sites are left out as wholes: the error foretold
is that of a new state, not of a new loan in a known one.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from hetrisk import BacktestRegressor
from hetrisk.datasets import load_natural

table = load_natural("interest_rates")
states = sorted(table.frame[table.environment].unique())[::2]
frame = table.frame.groupby("state").head(80)
y, seen = table.y[frame.index], frame["state"].isin(states).to_numpy()

model = BacktestRegressor(environment="state", random_state=0).fit(frame[seen], y[seen])
print(model.ranking_)

# %%
numbers = pd.get_dummies(frame.drop(columns="state"), dtype=float).fillna(0.0)
trees = HistGradientBoostingRegressor(random_state=0).fit(numbers[seen], y[seen])
plain = LinearRegression().fit(numbers[seen], y[seen])
predicted = {
    "constant": np.full(len(y), y[seen].mean()),
    "plain": plain.predict(numbers),
    "boosted trees": trees.predict(numbers),
    f"backtest: {model.best_name_}": model.predict(frame),
}
new = frame["state"][~seen]
new = new[new.map(new.value_counts()) >= 20]
fig, ax = plt.subplots()
for i, (name, p) in enumerate(predicted.items()):
    losses = pd.Series((p - y) ** 2, index=frame.index)[new.index]
    errors = np.sqrt(losses.groupby(new).mean())
    ax.plot(errors, np.full(len(errors), -i), "|", ms=14, color="#4a6076")
    ax.plot(errors.mean(), -i, "o", color="#b3331d")
    print(f"{name:28s} {errors.mean():.3f}")
forecast = model.forecast_
ax.axvspan(forecast.lower, forecast.upper, color="#f0d9d3", zorder=0, label="foretold, 90 %")
ax.set(yticks=-np.arange(len(predicted)), xlabel="RMSE in a state not seen, percent")
ax.set_yticklabels(list(predicted))
ax.legend(frameon=False)
plt.show()
