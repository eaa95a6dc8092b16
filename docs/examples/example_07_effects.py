"""
Columns that break: effects of the target
=========================================

Six causes, and three effects whose noise differs between environments. Everything that uses the effects breaks where they are noisier, the
boosted trees too; the stable columns do not.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from hetrisk import StableRegressor
from hetrisk.datasets import load_task

task = load_task("spreading_effects", seed=0)
X, y, environments = task.train
model = StableRegressor().fit(X, y, environments=environments)
print(model.verdict_, "-", model.verdict_reason_)
for line in model.evidence_:
    print(f"{line.column:4s} {'kept' if line.kept else 'left out':9s} {line.reason}")

# %%
fitted = {
    "constant": lambda Z: np.full(len(Z), y.mean()),
    "plain": LinearRegression().fit(X, y).predict,
    "boosted trees": HistGradientBoostingRegressor(random_state=0).fit(X, y).predict,
    "stable columns": model.predict,
}
fig, ax = plt.subplots()
for (name, predict), colour in zip(fitted.items(), ("#8a9199", "#4a6076", "#c9922b", "#b3331d")):
    errors = [np.sqrt(np.mean((predict(Z) - t) ** 2)) for Z, t in task.test.values()]
    ax.plot(list(task.test), errors, "o-", color=colour, label=name)
ax.set(xlabel="spread of the effects' noise (training: 0.3, 1, 2)", ylabel="RMSE", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
