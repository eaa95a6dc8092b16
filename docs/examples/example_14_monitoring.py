"""
Watching a model
================

A model of computer prices goes into production after seventeen months. Every month afterwards its new rows are
held against what it learned from.
"""

# %%

import matplotlib.pyplot as plt

from hetrisk import HRMRegressor, check
from hetrisk.datasets import load_natural

table = load_natural("computer_prices")
month = table.environments.astype(int)
past = month <= 17
model = HRMRegressor().fit(table.features[past], table.y[past], hints=month[past])
months = list(range(18, 36))
found = [check(model, table.features[month == m], table.y[month == m]) for m in months]

# %%
# How far along the reach curve has the world come? The colour is what ``hetrisk check`` would have ended
# with.

colours = {0: "#00735a", 3: "#bf5600", 4: "#b02a1c"}
words = {0: "fine", 3: "columns moved", 4: "fit again"}
fig, ax = plt.subplots()
ax.plot(months, [f.outcome.reach.value for f in found], color="0.7", zorder=0)
for status in sorted({int(f.status) for f in found}):
    at = [
        (m, f.outcome.reach.value)
        for m, f in zip(months, found, strict=True)
        if int(f.status) == status
    ]
    ax.scatter(*zip(*at, strict=True), s=50, color=colours[status], label=words[status])
ax.axhline(model.reach, color="0.5", ls="--", lw=1)
ax.text(months[-1], model.reach, "the reach it was fitted for", ha="right", va="top")
ax.set(xlabel="month", ylabel="reach so far", ylim=(0, None))
ax.legend()
plt.show()

# %%
# The world is further than the reach asked for from the twenty-third month on, by the middle of the curve. ``check``
# asks for another fit when the error is beyond the upper end of the curve's band, and beyond chance.

# %%
# In words, for the last month:

print(found[-1])

# %%
# Without targets, the columns alone can be looked at:

blind = check(model, table.features[month == 35])
print(blind.status.name, "-", ", ".join(c.name for c in blind.moved))
