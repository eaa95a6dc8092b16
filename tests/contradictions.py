"""What in a backtest speaks against the action that is advised: shared by tests."""

import math

from hetrisk.report.decision import Action


def contradictions(decision, ranking, forecast):
    """What in a backtest speaks against the action: the test on real tables asks the same."""
    lines = {line.candidate: line for line in ranking if math.isfinite(line.mean)}
    chosen = next(line for line in ranking if line.chosen)
    found = []
    if decision.action in (Action.USE, Action.PLAIN):
        constant = lines.get("constant")
        if constant is not None and constant.mean <= chosen.mean:
            found.append("the mean errs less")
        if forecast.constant.mean <= forecast.mean:
            found.append("the mean is foretold to err less")
    if decision.action is Action.PLAIN and chosen.candidate != "plain":
        found.append("plain is said, another is deployed")
    if decision.action is Action.CONSTANT and chosen.candidate != "constant":
        found.append("the mean is said, another is deployed")
    return found
