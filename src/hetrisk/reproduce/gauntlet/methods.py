"""The methods that run the gauntlet: ours at several settings, and what people would use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hetrisk.datasets.task import REGRESSION, ShiftTask
from hetrisk.reproduce.methods import HINTED, METHODS, TOLD, Build, Method, hrm_model
from hetrisk.reproduce.peers import PeerAnchorRegression, PeerInvariantPrediction
from hetrisk.reproduce.records import NotApplicable

ERM, ORACLE = "erm", "oracle"
REACHES = (1.0, 4.0, 10.0)
SHRINKAGES = np.logspace(-3, 4, 15)
MOST_GATED = 12
PENALTIES = np.logspace(-4, 2, 7)


def _ridge(task: ShiftTask, seed: int) -> Any:
    if task.task_type == REGRESSION:
        return make_pipeline(StandardScaler(), RidgeCV(alphas=SHRINKAGES))
    logistic = LogisticRegression(max_iter=500)
    return make_pipeline(StandardScaler(), GridSearchCV(logistic, {"C": PENALTIES}, cv=5))


def _trees(task: ShiftTask, seed: int) -> Any:
    if task.task_type == REGRESSION:
        return HistGradientBoostingRegressor(random_state=seed)
    return HistGradientBoostingClassifier(random_state=seed)


def _peer_anchor(task: ShiftTask, seed: int, gamma: float) -> Any:
    return PeerAnchorRegression(gamma, task.task_type)


def _peer_icp(task: ShiftTask, seed: int) -> Any:
    return PeerInvariantPrediction(task_type=task.task_type)


def _gates(task: ShiftTask, seed: int) -> Any:
    if task.n_features > MOST_GATED:
        raise NotApplicable(
            f"the gates take up to a minute a fit beyond {MOST_GATED} columns, and were not run."
        )
    return hrm_model(task, seed, method="gates")


def _ours(**parameters: Any) -> Build:
    return partial(hrm_model, **parameters)


def _told(form: str, reach: float) -> Method:
    return Method(f"{form} at reach {reach:g}", None, _ours(form=form, reach=reach), given=TOLD)


GAUNTLET: Mapping[str, Method] = {
    "erm": METHODS["erm"],
    "ridge-cv": Method("Ridge, cross-validated", None, _ridge),
    "ridge-1se": METHODS["ridge-1se"],
    "dro": Method("Wasserstein DRO", None, METHODS["dro"].build),
    "eiil": METHODS["eiil"],
    "trees": Method("Boosted trees", None, _trees),
    "hrm": Method("hetrisk", None, _ours()),
    "hrm-gates": Method("hetrisk, gates", None, _gates),
    "hrm-trees": Method("hetrisk, boosted trees on what stays", None, _ours(trees=True)),
    "hinted-columns": Method("columns at reach 4", None, _ours(reach=4.0), given=HINTED),
    "hinted-directions": Method(
        "directions at reach 4", None, _ours(form="directions", reach=4.0), given=HINTED
    ),
    "anchor": Method("Anchor regression, chosen gamma", None, METHODS["anchor"].build, given=TOLD),
    **{
        f"anchor-{gamma}": Method(
            f"Anchor regression, gamma {gamma} (ivmodels)",
            None,
            partial(_peer_anchor, gamma=float(gamma)),
            given=TOLD,
        )
        for gamma in (5, 20)
    },
    "icp": Method("Invariant causal prediction (causalicp)", None, _peer_icp, given=TOLD),
    "irm": Method("IRM", None, METHODS["irm"].build, given=TOLD),
    "vrex": Method("V-REx", None, METHODS["vrex"].build, given=TOLD),
    "group-dro": Method("GroupDRO", None, METHODS["group-dro"].build, given=TOLD),
    **{f"columns-{k:g}": _told("columns", k) for k in REACHES},
    **{f"directions-{k:g}": _told("directions", k) for k in REACHES},
    "told-trees": Method(
        "columns at reach 4, boosted trees on what stays",
        None,
        _ours(reach=4.0, trees=True),
        given=TOLD,
    ),
    "oracle": Method(
        "stable columns", None, METHODS["oracle"].build, features=METHODS["oracle"].features
    ),
}
OURS = tuple(
    name
    for name in GAUNTLET
    if name.split("-")[0] in ("hrm", "hinted", "columns", "directions", "told")
)
