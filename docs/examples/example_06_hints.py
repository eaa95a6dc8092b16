"""
Hints that are wrong, thin or empty
===================================

A hint need not be right for every row. Here the truth is known, and the hint is spoiled more and more.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

from hetrisk import HRMRegressor
from hetrisk.datasets import load_task
from hetrisk.metrics import environment_errors, max_error

task = load_task("selected_on_target", seed=0)
X, y, place = task.train
rng = np.random.default_rng(0)


def worst(model):
    return max_error(environment_errors(model, task))


plain = worst(LinearRegression().fit(X, y))
told = worst(HRMRegressor().fit(X, y, environments=place))
print(f"worst environment: plain {plain:.2f}, told {told:.2f}")

# %%
# Wrong for some rows
# -------------------

shares = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
gained = []
for share in shares:
    wrong = rng.random(len(y)) < share
    hint = pd.Series(np.where(wrong, rng.permutation(place), place), name="site").astype(str)
    gained.append((plain - worst(HRMRegressor().fit(X, y, hints=hint))) / (plain - told))

fig, ax = plt.subplots()
ax.plot(np.multiply(shares, 100), np.multiply(gained, 100), "o-", color="#0a66a8")
ax.axhline(100, color="0.6", lw=1)
ax.set(
    xlabel="rows whose hint was shuffled (%)",
    ylabel="of the gain of being told (%)",
    ylim=(-10, 120),
)
plt.show()

# %%
# Two hundred sites of ten rows each
# ----------------------------------
# No site has enough rows to be trusted alone. Rows of one site share their kind, and kinds are found.

site = np.empty(len(y), dtype=object)
for code in np.unique(place):
    rows = np.flatnonzero(place == code)
    site[rows] = [f"{code}-{i // 10}" for i in range(len(rows))]
model = HRMRegressor().fit(X, y, hints=pd.Series(site, name="site"))
print(f"{len(set(site))} sites: {model.sources_[0].sentence}")
print(f"worst environment: {worst(model):.2f}")

# %%
# A hint that means nothing
# -------------------------

model = HRMRegressor().fit(
    X, y, hints=pd.Series(rng.integers(0, 5, len(y)).astype(str), name="colour")
)
print(model.sources_[0].sentence)
