"""
A source of environments of your own
====================================

Environments may come from anywhere: a rule a colleague knows, a clustering of something you keep beside the
table, a model of who was sampled. Give labels, or an (n, K) array of probabilities.
"""

# %%
# Rows have a position (kept beside the table, not a feature). Somewhere on the map the relation of a
# shortcut to the target changes; nobody knows where.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.mixture import GaussianMixture

from hetrisk import HRMRegressor

rng = np.random.default_rng(1)
n = 3000
town = rng.integers(0, 3, n)
position = np.array([[0, 0], [4, 1], [1, 4]])[town] + rng.normal(size=(n, 2))
X = rng.normal(size=(n, 4))
y = X[:, 0] - 0.5 * X[:, 1] + 0.5 * rng.normal(size=n)
X[:, 3] = np.array([1.0, 0.8, 0.2])[town] * y + 0.4 * rng.normal(size=n)

# %%
# A mixture of Gaussians on the map, and its probabilities as environments:

mixture = GaussianMixture(3, random_state=0).fit(position)
model = HRMRegressor().fit(X, y, environments=mixture.predict_proba(position))
print(f"{model.verdict_}: {model.verdict_reason_}")

fig, ax = plt.subplots()
ax.scatter(*position.T, s=6, c=mixture.predict_proba(position))
ax.set(xlabel="east", ylabel="north", title="probability of each environment, as a colour")
plt.show()

# %%
# In a fourth town the shortcut says nothing at all:

A = rng.normal(size=(2000, 4))
b = A[:, 0] - 0.5 * A[:, 1] + 0.5 * rng.normal(size=2000)
for name, fitted in (("plain", LinearRegression().fit(X, y)), ("hetrisk", model)):
    print(f"{name}: RMSE {np.sqrt(np.mean((fitted.predict(A) - b) ** 2)):.2f} in a new town")

# %%
# A source that proposes partitions *inside* the search, tested with all others, is one file in
# ``hetrisk/core/sources``; the guide for contributors has the details.
