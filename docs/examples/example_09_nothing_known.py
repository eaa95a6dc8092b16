"""
Nothing is known: what rows alone can tell
==========================================

The paper's first simulator: one column goes along with the target because of how rows were selected. Nobody says which row came from where.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from hetrisk import HRMRegressor, StableRegressor
from hetrisk.datasets import load_task

task = load_task("selection_bias", seed=0)
X, y, _ = task.train
stable = StableRegressor().fit(X, y)
print(stable.verdict_, "-", stable.verdict_reason_)

# %%
fitted = {
    "constant": lambda Z: np.full(len(Z), y.mean()),
    "plain": LinearRegression().fit(X, y).predict,
    "boosted trees": HistGradientBoostingRegressor(random_state=0).fit(X, y).predict,
    "HRM, the paper": HRMRegressor(random_state=0).fit(X, y).predict,
    "stable columns, inferred": stable.predict,
}
fig, ax = plt.subplots()
colours = ("#8a9199", "#4a6076", "#c9922b", "#3f7d4f", "#b3331d")
for (name, predict), colour in zip(fitted.items(), colours):
    errors = [np.sqrt(np.mean((predict(Z) - t) ** 2)) for Z, t in task.test.values()]
    ax.plot(list(task.test), errors, "o-", ms=4, color=colour, label=name)
ax.set(ylabel="RMSE", ylim=(0, None))
ax.tick_params(axis="x", rotation=45)
ax.legend(frameon=False, ncols=2)
plt.show()
