"""
The reach curve of boosted trees
================================

Ask how far the world may move of the model you already have: any fitted scikit-learn estimator.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from hetrisk import HRMRegressor, plotting
from hetrisk.datasets import load_natural
from hetrisk.metrics import environment_errors, max_error, reach_curve

task = load_natural("computer_prices").split("first half")
X, y, month = task.train
trees = HistGradientBoostingRegressor(max_iter=80, random_state=0)
plain = trees.fit(X, y)
curve = reach_curve(plain, X, y, month)
plotting.ReachDisplay.from_curve(curve, name="Boosted trees, all columns")
plt.show()

# %%
# The same trees on the columns that the search keeps:

stable = HRMRegressor(final_estimator=HistGradientBoostingRegressor(max_iter=80, random_state=0))
stable.fit(X, y, environments=month)
for name, fitted in (("all columns", plain), ("stable columns", stable)):
    found = environment_errors(fitted, task)
    print(
        f"boosted trees, {name}: worst {max_error(found):.2f}, mean {np.mean(list(found.values())):.2f}"
    )
