"""
A label, and years to come
==========================

Released or held after an arrest in Toronto, 1997 to 2002. For labels the error is the log loss, and a *level* the shares of the classes.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from hetrisk import BacktestClassifier
from hetrisk.datasets import load_natural

table = load_natural("arrests_released")
frame, y = table.frame, table.y
year = frame["year"].to_numpy()
past = year <= 2000
model = BacktestClassifier(time="year", random_state=0).fit(frame[past], y[past])
print(model.ranking_)

# %%
lines = [line for line in model.ranking_ if np.isfinite(line.mean)]
shown = [line for line in lines if line.candidate in ("constant", "plain", "trees") or line.chosen]
later = ~past
chance = model.predict_proba(frame[later])[
    np.arange(later.sum()), np.searchsorted(model.classes_, y[later])
]
came = -np.log(np.clip(chance, 1e-3, 1)).mean()
fig, ax = plt.subplots(figsize=(7, 2.6))
names = [line.candidate for line in shown]
ax.barh(
    names,
    [line.mean for line in shown],
    color=["#b3331d" if line.chosen else "#8a9199" for line in shown],
)
ax.axvline(came, color="black", lw=1, label=f"came true in 2001 and 2002: {came:.3f}")
ax.set(xlabel="log loss in years left out", xlim=(0.8 * min(line.mean for line in shown), None))
ax.legend(frameon=False)
plt.show()
