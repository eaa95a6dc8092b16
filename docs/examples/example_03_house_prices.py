"""
House prices in Texas: the years differ, and no column leaves
=============================================================

Median house prices of towns, month by month, 2000 to 2015. We learn from the first half of the years. They
differ beyond chance, and some columns make the worst of them worse. They stay all the same: this example
shows why, and what would have happened.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from hetrisk import HRMRegressor, plotting
from hetrisk.datasets import load_natural
from hetrisk.metrics import environment_errors

task = load_natural("texas_house_prices").split("first half")
X, y, year = task.train
model = HRMRegressor().fit(X, y, environments=year)
print(f"{model.verdict_}: {model.verdict_reason_}")
print("the columns:", ", ".join(f"x{j} = {name}" for j, name in enumerate(task.feature_names)))

# %%
# Columns leave only if next to nothing moves without them, over *all* years. Here more than nine tenths of what moves
# would stay. The model is the plain one, and the two curves are one.

plotting.ReachDisplay.from_estimator(model)
plt.show()

# %%
# What would have happened without the column?

sales = task.feature_names.index("sales")


class WithoutSales(LinearRegression):
    """Least squares on the other columns."""

    def fit(self, X, y):
        return super().fit(np.delete(X, sales, axis=1), y)

    def predict(self, X):
        return super().predict(np.delete(X, sales, axis=1))


ours = environment_errors(model, task)
without = environment_errors(WithoutSales().fit(X, y), task)
at = np.arange(len(ours))
fig, ax = plt.subplots()
ax.bar(at - 0.2, ours.values(), 0.38, color="#0a66a8", label="hetrisk: all columns")
ax.bar(at + 0.2, without.values(), 0.38, color="#bf5600", label="without sales")
ax.set_xticks(at, list(ours))
ax.set(xlabel="year, not learned from", ylabel="RMSE of the log price")
ax.legend()
plt.show()
worse = sum(without[name] > ours[name] for name in ours)
rise = max(without.values()) / max(ours.values()) - 1
print(f"without sales: worse in {worse} of {len(ours)} years, by {rise:.1%} in the worst of them")

# %%
# Other rows would have said the same. The share of resamples in which each column leaves:

for name, share in zip(task.feature_names, model.stability_, strict=True):
    print(f"{name:10s} {share:4.0%}")
