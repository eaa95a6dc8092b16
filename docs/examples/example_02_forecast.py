"""
How wrong will it be? Foretold, and what came true
==================================================

The forecast is made from errors in months that were left out of the fit. Here it stands beside what happened later.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from hetrisk import BacktestRegressor
from hetrisk.datasets import load_natural

table = load_natural("computer_prices")
frame, y, month = table.frame, table.y, table.frame["trend"].to_numpy()
past = month <= 17
model = BacktestRegressor(time="trend", random_state=0).fit(frame[past], y[past])

ahead = np.arange(1, 19)
came = [np.sqrt(np.mean((model.predict(frame) - y)[month == 17 + h] ** 2)) for h in ahead]
horizons = model.forecast_.by_horizon
fig, ax = plt.subplots()
at = [line.horizon for line in horizons]
ax.fill_between(
    at, [h.chosen.lower for h in horizons], [h.chosen.upper for h in horizons], color="#f0d9d3"
)
for name, colour in (("chosen", "#b3331d"), ("plain", "#4a6076"), ("constant", "#8a9199")):
    ax.plot(at, [getattr(h, name).mean for h in horizons], color=colour, label=f"foretold: {name}")
ax.plot(ahead, came, "ko", ms=4, label=f"came true: {model.best_name_}")
ax.set(xlabel="months ahead", ylabel="RMSE of the log price", ylim=(0, None))
ax.legend(frameon=False)
plt.show()

# %%
# The band is for one month not seen. `plain_fails_at` is the horizon from which on plain errs more than the constant:

print(
    f"foretold {model.forecast_.mean:.3f} ({model.forecast_.lower:.3f} to {model.forecast_.upper:.3f}), "
    f"came true {np.mean(came):.3f}; plain fails at {model.forecast_.plain_fails_at:g}"
)
