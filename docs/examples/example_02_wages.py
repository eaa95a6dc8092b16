"""
Wages of young women: little to gain, and it says so
====================================================

The National Longitudinal Survey asked the same women from 1968 to 1988. Do the years disagree about what
school, experience and unions are worth? A method that always leaves something out would find something here.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from hetrisk import HRMRegressor
from hetrisk.datasets import load_natural
from hetrisk.metrics import environment_errors

task = load_natural("wages_young_women").split("first half", max_rows=4000)
X, y, year = task.train
model = HRMRegressor(feature_groups=task.feature_groups).fit(X, y, environments=year)
print(f"{model.verdict_}: {model.verdict_reason_}")

# %%
# What was looked at, and how far it is from chance:

for source in model.sources_:
    print(f"{source.name}: {source.n_environments} environments, p = {source.p_value:.2g}")

# %%
# Where little is to be gained the model stays (nearly) the plain one, coefficient by coefficient, and so do
# its errors in the years that were held back.

plain = LinearRegression().fit(X, y)
print("largest difference of a coefficient:", f"{np.abs(model.coef_ - plain.coef_).max():.1e}")
ours, theirs = environment_errors(model, task), environment_errors(plain, task)
fig, ax = plt.subplots()
ax.plot(list(theirs), list(theirs.values()), "s", ms=11, mfc="none", color="#8a9199", label="plain")
ax.plot(list(ours), list(ours.values()), "o", ms=5, color="#0a66a8", label="hetrisk")
ax.set(xlabel="year, not learned from", ylabel="RMSE of the log wage", ylim=(0, None))
ax.legend()
plt.show()
