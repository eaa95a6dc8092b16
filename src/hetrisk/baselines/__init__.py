"""What HRM is compared with: one method a file, linear and logistic.

Every method chooses its strength by the rules of `hetrisk.baselines.choice`, on training rows
alone. Methods that use environment labels take ``fit(X, y, environments=...)``; without labels they
treat the rows as one environment.
"""

from dataclasses import dataclass

from sklearn.base import BaseEstimator

from hetrisk.baselines.anchor import AnchorRegressor
from hetrisk.baselines.directions import DirectionsClassifier, DirectionsRegressor
from hetrisk.baselines.eiil import EIILClassifier, EIILRegressor
from hetrisk.baselines.group_dro import GroupDROClassifier, GroupDRORegressor
from hetrisk.baselines.irm import IRMClassifier, IRMRegressor
from hetrisk.baselines.vrex import VRExClassifier, VRExRegressor
from hetrisk.baselines.wasserstein import WassersteinDROClassifier, WassersteinDRORegressor

__all__ = [
    "BASELINES",
    "AnchorRegressor",
    "Baseline",
    "DirectionsClassifier",
    "DirectionsRegressor",
    "EIILClassifier",
    "EIILRegressor",
    "GroupDROClassifier",
    "GroupDRORegressor",
    "IRMClassifier",
    "IRMRegressor",
    "VRExClassifier",
    "VRExRegressor",
    "WassersteinDROClassifier",
    "WassersteinDRORegressor",
]


@dataclass(frozen=True)
class Baseline:
    """A method for both kinds of target, and whether it is given environment labels."""

    regressor: type[BaseEstimator]
    classifier: type[BaseEstimator]
    needs_labels: bool


BASELINES = {
    "dro": Baseline(WassersteinDRORegressor, WassersteinDROClassifier, False),
    "eiil": Baseline(EIILRegressor, EIILClassifier, False),
    "irm": Baseline(IRMRegressor, IRMClassifier, True),
    "vrex": Baseline(VRExRegressor, VRExClassifier, True),
    "group-dro": Baseline(GroupDRORegressor, GroupDROClassifier, True),
}
