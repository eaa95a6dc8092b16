"""
Methods side by side
====================

Every environment is left out in turn; every method learns from the others and is tested there. Strengths are
chosen by one rule on training rows, for all methods alike.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np

from hetrisk.compare import leave_one_environment_out
from hetrisk.datasets import load_natural
from hetrisk.tables import Table

natural = load_natural("school_results")
frame = natural.features.assign(passed=natural.y, year=natural.environments)
frame = frame.sample(1500, random_state=0).reset_index(drop=True)
found = leave_one_environment_out(
    Table(frame, "schools"),
    target="passed",
    environment="year",
    methods=["erm", "ridge-1se", "dro", "anchor", "vrex", "group-dro", "hrm"],
)

# %%

ordered = sorted(found.methods, key=lambda m: m.worst)
years = sorted(ordered[0].errors)
errors = np.array([[m.errors[year] for year in years] for m in ordered], dtype=float)
fig, ax = plt.subplots()
picture = ax.imshow(errors / errors.min(axis=0), cmap="Blues", vmin=1.0, aspect="auto")
ax.set_xticks(range(len(years)), years)
ax.set_yticks(
    range(len(ordered)), [m.method + (" *" if m.told_environments else "") for m in ordered]
)
ax.set(xlabel="year left out")
fig.colorbar(picture, label="error / best method's")
plt.show()
for m in ordered:
    print(f"{m.method:10s} mean {m.mean:6.2f}  worst {m.worst:6.2f}")

# %%
# A star marks methods that are told which row came from where. One table proves nothing: the gauntlet
# has them all.
