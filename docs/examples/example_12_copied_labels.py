"""
A shortcut to a label, in several copies
========================================

Cats and dogs were photographed in two places, and columns of the background go along with the label. Five
copies share one shortcut: each looks nearly harmless alone, so columns are judged as sets.
"""

# %%

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from hetrisk import HRMClassifier, plotting
from hetrisk.datasets import load_task
from hetrisk.metrics import environment_errors, max_error

task = load_task("copied_label", seed=0)
X, y, place = task.train
plain = LogisticRegression(C=1e6, max_iter=1000).fit(X, y)
model = HRMClassifier(reach=10.0).fit(X, y, environments=place)
left = [n for n, s in zip(task.feature_names, model.support_, strict=True) if not s]
print(f"{model.verdict_}, left out: {', '.join(left)}")

# %%

fig, (one, two) = plt.subplots(1, 2, figsize=(10, 4))
plotting.ReachDisplay.from_estimator(model, ax=one)
for name, fitted in (("plain", plain), ("hetrisk, reach 10", model)):
    found = environment_errors(fitted, task)
    two.plot(list(found), list(found.values()), "o-", label=f"{name}: worst {max_error(found):.2f}")
two.set(xlabel="environment", ylabel="error rate", ylim=(0, 1))
two.legend()
plt.show()
