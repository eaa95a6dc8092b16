"""
What a few labelled rows are worth
==================================

In each later month some offers are labelled; the model is adapted to them and judged on the others. Beside it: refitting least squares on
the new rows alone.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from hetrisk import BacktestRegressor
from hetrisk.datasets import load_natural

table = load_natural("computer_prices")
frame, y, month = table.frame, table.y, table.frame["trend"].to_numpy()
past = month <= 17
model = BacktestRegressor(time="trend", random_state=0).fit(frame[past], y[past])
X = frame.drop(columns="trend").replace({"yes": "1", "no": "0"}).astype(float).to_numpy()

rng, sizes = np.random.default_rng(0), (5, 10, 20, 50)
kept, adapted, refitted = [], [], []
for size in sizes:
    errors = []
    for m in (18, 21, 24, 27, 30):
        drawn = rng.permutation(np.flatnonzero(month == m))
        new, rest = drawn[:size], drawn[size:]
        moved = model.adapt(frame.iloc[new], y[new])
        alone = LinearRegression().fit(X[new], y[new]).predict(X[rest])
        predicted = (model.predict(frame.iloc[rest]), moved.predict(frame.iloc[rest]), alone)
        errors.append([np.sqrt(np.mean((p - y[rest]) ** 2)) for p in predicted])
    for found, mean in zip((kept, adapted, refitted), np.mean(errors, axis=0)):
        found.append(mean)
    print(
        f"{size:3d} rows: as it was {kept[-1]:.3f}, adapted {adapted[-1]:.3f}, refitted {refitted[-1]:.3f}"
    )

# %%
fig, ax = plt.subplots()
ax.plot(sizes, kept, "o-", color="#4a6076", label="as it was")
ax.plot(sizes, adapted, "o-", color="#b3331d", label="adapted")
ax.plot(sizes, refitted, "o-", color="#c9922b", label="refitted on the new rows")
ax.set(
    xscale="log",
    xlabel="labelled rows of the new month",
    ylabel="RMSE of the log price",
    ylim=(0, 1),
)
ax.set_xticks(sizes, sizes)
ax.legend(frameon=False)
plt.show()
