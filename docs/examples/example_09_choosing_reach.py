"""
Which reach came true
=====================

Hide a part of the past, fit at several values of ``reach``, and see which one would have been right. Which part
is hidden matters: the months after those learned from, or months between them.
"""

# %%

import matplotlib.pyplot as plt

from hetrisk import HRMRegressor
from hetrisk.datasets import load_natural
from hetrisk.metrics import environment_errors, max_error, mean_error

reaches = [0.0, 0.5, 1.0, 2.0, 3.0, 5.0]
hidden = (
    ("computer_prices", "first half", "computer prices,\nmonths after those seen"),
    ("computer_prices", "random half", "computer prices,\nmonths between those seen"),
    ("texas_house_prices", "first half", "house prices in Texas,\nyears after those seen"),
)
fig, axes = plt.subplots(1, 3, figsize=(10, 3.8), sharey=True)
for ax, (name, learned_from, title) in zip(axes, hidden, strict=True):
    task = load_natural(name).split(learned_from, max_rows=4000)
    X, y, when = task.train
    found = [
        environment_errors(HRMRegressor(reach=k).fit(X, y, environments=when), task)
        for k in reaches
    ]
    worst = [max_error(errors) / max_error(found[0]) for errors in found]
    mean = [mean_error(errors) / mean_error(found[0]) for errors in found]
    ax.plot(reaches, worst, "o-", label="worst")
    ax.plot(reaches, mean, "s--", label="mean")
    ax.axhline(1, color="0.6", lw=1)
    ax.set(title=title, xlabel="reach asked for")
    print(title.replace("\n", " ") + ": worst", ", ".join(f"{value:.2f}" for value in worst))
axes[0].set_ylabel("error to come / plain model's")
axes[0].legend()
plt.show()

# %%
# Reach 0 is the plain model. Where a trend goes on, some reach pays, and more of it no further. Learned from months at
# random, every relation moves and no column is to blame: what comes lies among what was seen, and the model stays
# the plain one whatever is asked for, as it does in Texas.
