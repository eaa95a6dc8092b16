"""
House prices in Texas: read the curve before you believe the verdict
====================================================================

Median house prices of towns, month by month, 2000 to 2015. We learn from the first half of the years. This
example is here because the answer is *not* a triumph: caution helps in most years and loses in some.
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
plain = LinearRegression().fit(X, y)
print(f"{model.verdict_}: {model.verdict_reason_}")

# %%

plotting.ReachDisplay.from_estimator(model)
plt.show()

# %%
# What came true, year by year:

ours, theirs = environment_errors(model, task), environment_errors(plain, task)
at = np.arange(len(ours))
fig, ax = plt.subplots()
ax.bar(at - 0.2, theirs.values(), 0.38, color="#8a9199", label="plain")
ax.bar(at + 0.2, ours.values(), 0.38, color="#0a66a8", label="hetrisk")
ax.set_xticks(at, list(ours))
ax.set(xlabel="year, not learned from", ylabel="RMSE of the log price")
ax.legend()
plt.show()
better = np.mean([ours[name] < theirs[name] for name in ours])
print(f"hetrisk errs less in {better:.0%} of the years to come")

# %%
# How sure was it? The share of resamples in which each column left, and the margin of each decision:

for name, share, margin in zip(
    task.feature_names, model.stability_, model.evidence_.margin, strict=True
):
    print(f"{name:10s} left in {share:4.0%} of resamples; the other decision costs {margin:+.1%}")
