"""Draw docs/reach-curve.svg: the reach curve of computer prices, as the README shows it.

Usage: python benchmarks/figure_reach_curve.py docs/reach-curve.svg
"""

import sys

import matplotlib as mpl
import matplotlib.pyplot as plt

from hetrisk import HRMRegressor, plotting
from hetrisk.datasets import load_natural


def main(path):
    mpl.rcParams.update(
        {"svg.hashsalt": "reach", "axes.spines.top": False, "axes.spines.right": False}
    )
    table = load_natural("computer_prices")
    month = table.environments.astype(int)
    past = month <= 17
    model = HRMRegressor().fit(table.features[past], table.y[past], hints=month[past])
    fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
    plotting.ReachDisplay.from_estimator(model, ax=ax)
    ax.set_title("Computer prices, learned from 17 months", loc="left")
    fig.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1])
