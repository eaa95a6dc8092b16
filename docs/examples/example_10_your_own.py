"""
Your own model among the candidates
===================================

Any scikit-learn estimator takes part. The backtest judges it as it judges the others; here a support vector machine beside built-in names.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from hetrisk import BacktestRegressor
from hetrisk.datasets import load_natural

table = load_natural("computer_prices")
frame, y, month = table.frame, table.y, table.frame["trend"].to_numpy()
past = (month <= 17) & (np.arange(len(y)) % 2 == 0)
candidates = {
    "support vectors": make_pipeline(StandardScaler(), SVR()),
    **{name: name for name in ("constant", "plain", "trees", "level", "trend")},
}
model = BacktestRegressor(candidates, time="trend", random_state=0).fit(frame[past], y[past])
print(model.ranking_)

# %%
tested = model.backtest_.to_frame()
fig, ax = plt.subplots()
for name, lines in tested.groupby("candidate"):
    by = lines.groupby("horizon")["error"].mean()
    ax.plot(
        by.index, by, "o-", ms=3, label=name, color="#b3331d" if name == model.best_name_ else None
    )
ax.set(xlabel="months ahead", ylabel="RMSE in months left out", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
