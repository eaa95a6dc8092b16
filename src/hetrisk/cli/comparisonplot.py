"""A comparison of methods as a picture: one line a method, one place an environment."""

from __future__ import annotations

import io

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hetrisk.compare import Comparison
from hetrisk.tables.errors import shown

OURS = {"hrm": "black", "hrm-hinted": "#CC79A7", "hrm-told": "#D55E00"}


def picture(found: Comparison) -> bytes:
    """Return a PNG of the errors of every method in every environment left out.

    Parameters
    ----------
    found : from `hetrisk.compare.leave_one_environment_out`.
    """
    environments = list(found.methods[0].errors)
    figure = Figure(figsize=(max(6.0, 1.0 + 0.7 * len(environments)), 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for method in found.methods:
        errors = [e if isinstance(e, float) else np.nan for e in method.errors.values()]
        leading = method.method.startswith("hrm")
        mark = "*" if method.told_environments else "+" if method.given_hints else ""
        axes.plot(
            errors,
            {"hrm": "o-", "hrm-hinted": "s-", "hrm-told": "D-"}.get(method.method, ".--"),
            label=method.method + mark,
            color=OURS.get(method.method),
            linewidth=2.5 if leading else 1.2,
            zorder=3 if leading else 2,
        )
    # parse_math: a name such as $x$ is a name, not a formula.
    labels = [shown(name, 20) for name in environments]
    axes.set_xticks(range(len(environments)), labels, rotation=30, ha="right", parse_math=False)
    axes.set_xlabel("environment left out")
    axes.set_ylabel(found.risk_name)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(title="* is told environments, + hints", fontsize="small")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    return buffer.getvalue()
