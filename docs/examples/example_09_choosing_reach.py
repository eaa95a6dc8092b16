"""
Which reach came true
=====================

Hide the last part of the past, fit at several values of ``reach``, and see which one would have been right.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np

from hetrisk import HRMRegressor
from hetrisk.datasets import load_natural
from hetrisk.metrics import environment_errors, max_error, mean_error

reaches = [0.0, 0.5, 1.0, 2.0, 3.0, 5.0]
fig, axes = plt.subplots(1, 3, figsize=(10, 3.6))
for ax, name in zip(axes, ("computer_prices", "school_results", "texas_house_prices"), strict=True):
    table = load_natural(name)
    task = table.split("first half", max_rows=4000)
    X, y, when = task.train
    found = [
        environment_errors(
            HRMRegressor(reach=k, feature_groups=task.feature_groups).fit(X, y, environments=when),
            task,
        )
        for k in reaches
    ]
    plain = found[0]
    ax.plot(reaches, [max_error(f) / max_error(plain) for f in found], "o-", label="worst")
    ax.plot(reaches, [mean_error(f) / mean_error(plain) for f in found], "s--", label="mean")
    ax.axhline(1, color="0.6", lw=1)
    ax.set(title=name.replace("_", " "), xlabel="reach asked for")
    best = reaches[int(np.argmin([max_error(f) for f in found]))]
    print(f"{name}: least error in the worst environment to come at reach {best:g}")
axes[0].set_ylabel("error to come / plain model's")
axes[0].legend()
plt.show()

# %%
# Reach 0 is the plain model. Where the past is a trend that goes on, more reach pays; where the years
# to come lie among those seen, it buys nothing.
