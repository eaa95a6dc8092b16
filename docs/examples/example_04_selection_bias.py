"""
The paper's simulator: a column that selection made look like the target
========================================================================

Five columns matter; ``vb1`` does not, but rows were selected so that it goes with the target in 95 % of them
and against it in the rest. The paper's Table 1 is made of this [1]_.

.. [1] Liu, Hu, Cui, Li, Shen (2021), *Heterogeneous Risk Minimization*, ICML, arXiv 2105.03818.
"""

# %%

import matplotlib.pyplot as plt
from sklearn.linear_model import LinearRegression

from hetrisk import HRMRegressor
from hetrisk.datasets import load_task
from hetrisk.metrics import environment_errors

task = load_task("selection_bias", seed=0)
X, y, shop = task.train
models = {
    "plain": LinearRegression().fit(X, y),
    "told the environments": HRMRegressor().fit(X, y, environments=shop),
    "told nothing": HRMRegressor(random_state=0).fit(X, y),
    "the paper's gates": HRMRegressor(method="gates", random_state=0).fit(X, y),
}
for name, model in models.items():
    if name != "plain":
        left = [n for n, s in zip(task.feature_names, model.support_, strict=True) if not s]
        print(f"{name}: {model.verdict_}, left out {left}")

# %%
# The shift is known here: the selection goes from as in training (r = 1.9) to its opposite.

fig, ax = plt.subplots()
for (name, model), style in zip(models.items(), ("s-", "o-", "^--", "v:"), strict=True):
    found = environment_errors(model, task)
    ax.plot(list(found), list(found.values()), style, label=name)
ax.set(xlabel="strength of selection", ylabel="RMSE", ylim=(0, None))
ax.legend()
plt.show()
