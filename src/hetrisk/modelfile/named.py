"""The scikit-learn estimators a model file may hold, named one by one.

Each is described by the fitted attributes its predictions need (`hetrisk.modelfile.shapes`);
what scikit-learn derives from its parameters is derived again. An estimator is made by calling
its class with parameters that scikit-learn's own rules accept, then given those attributes once
they agree with one another. To allow another estimator, add a line here and a round trip to the
tests; it must not keep training rows (as `Nystroem` does, whose ``components_`` are some of
them), and compiled code must not follow unchecked indices.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import dummy, ensemble, impute, linear_model, preprocessing, tree
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.pipeline import Pipeline

from hetrisk.modelfile.codec import Kind, Reader, Writer
from hetrisk.modelfile.errors import ModelFileError
from hetrisk.modelfile.own import OF_THE_MACHINE
from hetrisk.modelfile.shapes import Sizes, check_shapes
from hetrisk.modelfile.trees import check_boosted_features
from hetrisk.tables.errors import listed, quoted

Settle = Callable[[Any, Sizes], None]


@dataclass(frozen=True)
class Named:
    """An estimator of scikit-learn that may travel.

    Attributes
    ----------
    kind : its class.
    fitted : description of each attribute its predictions need.
    settle : checks what shapes cannot say, and derives what the file does not hold.
    """

    kind: type[BaseEstimator]
    fitted: dict[str, str]
    settle: Settle


def _nothing(estimator: Any, sizes: Sizes) -> None:
    """Shapes have said it all."""


def _one_row_a_class(estimator: Any, sizes: Sizes) -> None:
    _require(sizes["r"] == (1 if sizes["c"] == 2 else sizes["c"]), "a class has no coefficients")


def _one_tree(estimator: Any, sizes: Sizes) -> None:
    grown = estimator.tree_
    fits = isinstance(grown, tree._tree.Tree) and grown.n_features == sizes["d"]
    _require(fits and grown.value.shape[2] == sizes.get("c", 1), "a tree does not fit its model")


def _many_trees(estimator: Any, sizes: Sizes) -> None:
    members = estimator.estimators_
    base = type(estimator.estimator)
    _require(isinstance(members, list) and len(members) > 0, "a forest has no trees")
    for member in members:
        fits = type(member) is base and getattr(member, "n_features_in_", -1) == sizes["d"]
        _require(fits and member.tree_.value.shape[2] == sizes.get("c", 1), "a tree is not its own")


def _stages(estimator: Any, sizes: Sizes) -> None:
    stages = estimator.estimators_
    per_stage = 1 if sizes.get("c", 2) == 2 else sizes["c"]
    _require(sizes["k"] == per_stage and isinstance(stages, list), "a stage lacks a tree")
    _require(len(stages) == sizes["m"] > 0, "a stage is missing")
    grid = np.empty((sizes["m"], sizes["k"]), dtype=object)
    for i, stage in enumerate(stages):
        _require(isinstance(stage, list) and len(stage) == sizes["k"], "a stage lacks a tree")
        for j, member in enumerate(stage):
            fits = type(member) is tree.DecisionTreeRegressor
            fits = fits and getattr(member, "n_features_in_", -1) == sizes["d"]
            _require(fits and member.tree_.value.shape[2] == 1, "a tree is not its own")
            grid[i, j] = member
    estimator.estimators_ = grid
    plain = (dummy.DummyRegressor, dummy.DummyClassifier)
    _require(estimator.init_ == "zero" or type(estimator.init_) in plain, "it starts from nothing")
    estimator._loss = estimator._get_loss(sample_weight=None)


def _histogram_stages(estimator: Any, sizes: Sizes) -> None:
    per_stage = 1 if sizes.get("c", 2) == 2 else sizes["c"]
    stages = estimator._predictors
    _require(sizes["k"] == per_stage and isinstance(stages, list), "a stage lacks a tree")
    for stage in stages:
        _require(isinstance(stage, list) and len(stage) == sizes["k"], "a stage lacks a tree")
        for member in stage:
            _require(type(member) is TreePredictor, "a stage lacks a tree")
            check_boosted_features(member, sizes["d"])
    estimator._n_features = sizes["d"]
    estimator._preprocessor = estimator.is_categorical_ = estimator._is_categorical_remapped = None
    estimator._loss = estimator._get_loss(sample_weight=None)
    # Predicting asks it which features are categories: none is.
    estimator._bin_mapper = _BinMapper()
    estimator._bin_mapper.is_categorical_ = np.zeros(sizes["d"], dtype=np.uint8)
    estimator._bin_mapper.bin_thresholds_ = [np.empty(0)] * sizes["d"]


def _constant_classes(estimator: Any, sizes: Sizes) -> None:
    _require(estimator.strategy in ("prior", "most_frequent"), "it guesses at random")
    estimator._strategy, estimator.sparse_output_ = estimator.strategy, False


def _imputed(estimator: Any, sizes: Sizes) -> None:
    _require(not estimator.add_indicator, "it adds columns")
    estimator.indicator_ = None
    estimator._fit_dtype = estimator._fill_dtype = estimator.statistics_.dtype


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise ModelFileError(f"is damaged or was tampered with: {reason}")


_COLUMNS = {"n_features_in_": "count d", "feature_names_in_?": "texts d"}
_CLASSES = {"classes_": "labels c"}
_LINEAR = {**_COLUMNS, "coef_": "float d", "intercept_": "number|float 1"}
_LOGISTIC = {**_COLUMNS, **_CLASSES, "coef_": "float r d", "intercept_": "float r"}
_TREE = {**_COLUMNS, "n_outputs_": "count 1", "max_features_?": "count x"}
_TREE_CLASSES = {**_TREE, **_CLASSES, "n_classes_": "count c"}
_STAGES = {**_COLUMNS, "n_trees_per_iteration_": "count k", "n_estimators_": "count m"}
_STAGE_CLASSES = {**_STAGES, **_CLASSES, "n_classes_": "count c"}
_HISTOGRAM = {
    **_COLUMNS,
    "n_trees_per_iteration_": "count k",
    "_baseline_prediction": "float 1 k",
    "train_score_?": "measured s",
    "validation_score_?": "measured v",
}
_SCALED = {**_COLUMNS, "scale_": "float d|none"}
_CONSTANT = {"n_features_in_?": "count d", "n_outputs_": "count 1"}

_TABLE: list[tuple[type[BaseEstimator], dict[str, str], Settle]] = [
    *(
        (kind, _LINEAR, _nothing)
        for kind in (
            linear_model.LinearRegression,
            linear_model.Ridge,
            linear_model.RidgeCV,
            linear_model.Lasso,
            linear_model.LassoCV,
            linear_model.ElasticNet,
            linear_model.ElasticNetCV,
            linear_model.HuberRegressor,
            linear_model.QuantileRegressor,
        )
    ),
    (linear_model.LogisticRegression, _LOGISTIC, _one_row_a_class),
    (linear_model.LogisticRegressionCV, _LOGISTIC, _one_row_a_class),
    (tree.DecisionTreeRegressor, _TREE, _one_tree),
    (tree.ExtraTreeRegressor, _TREE, _one_tree),
    (tree.DecisionTreeClassifier, _TREE_CLASSES, _one_tree),
    (tree.ExtraTreeClassifier, _TREE_CLASSES, _one_tree),
    (ensemble.RandomForestRegressor, _TREE, _many_trees),
    (ensemble.ExtraTreesRegressor, _TREE, _many_trees),
    (ensemble.RandomForestClassifier, _TREE_CLASSES, _many_trees),
    (ensemble.ExtraTreesClassifier, _TREE_CLASSES, _many_trees),
    (ensemble.GradientBoostingRegressor, _STAGES, _stages),
    (ensemble.GradientBoostingClassifier, _STAGE_CLASSES, _stages),
    (ensemble.HistGradientBoostingRegressor, _HISTOGRAM, _histogram_stages),
    (ensemble.HistGradientBoostingClassifier, {**_HISTOGRAM, **_CLASSES}, _histogram_stages),
    (dummy.DummyRegressor, {**_CONSTANT, "constant_": "float 1 1"}, _nothing),
    (
        dummy.DummyClassifier,
        {**_CONSTANT, **_CLASSES, "n_classes_": "count c", "class_prior_": "float c"},
        _constant_classes,
    ),
    (preprocessing.StandardScaler, {**_SCALED, "mean_": "float d|none"}, _nothing),
    (preprocessing.MinMaxScaler, {**_SCALED, "min_": "float d"}, _nothing),
    (preprocessing.MaxAbsScaler, _SCALED, _nothing),
    (preprocessing.RobustScaler, {**_SCALED, "center_": "float d|none"}, _nothing),
    (impute.SimpleImputer, {**_COLUMNS, "statistics_": "measured d"}, _imputed),
]
# Attributes that hold trees or estimators are checked by `settle`, and stand beside the shapes.
_PARTS = ("tree_", "estimators_", "init_", "_predictors")
# Some of those that keep training rows: the message says why they are not on the list.
KEEPS_ROWS = (
    *("Nystroem", "KernelRidge", "SVR", "SVC", "KNeighborsRegressor", "KNeighborsClassifier"),
    *("GaussianProcessRegressor", "GaussianProcessClassifier"),
)
NAMED = {kind.__name__: Named(kind, fitted, settle) for kind, fitted, settle in _TABLE}


class NamedEstimator(Kind):
    """An estimator of scikit-learn on the list."""

    tag = "scikit-learn"

    def holds(self, value: Any) -> bool:
        """Whether it is on the list; a subclass is not."""
        named = NAMED.get(type(value).__name__)
        return named is not None and type(value) is named.kind

    def write(self, value: Any, writer: Writer) -> dict[str, Any]:
        """Write its parameters, and what its predictions need if it is fitted."""
        if getattr(value, "_preprocessor", None) is not None:
            raise ModelFileError(
                "the model cannot be written: its boosted trees split categories; encode them as "
                "numbers first, as hetrisk.tables.TableEncoder does"
            )
        named = NAMED[type(value).__name__]
        parameters = {
            name: writer.write(part)
            for name, part in value.get_params(deep=False).items()
            if name not in OF_THE_MACHINE
        }
        names = [*(name.rstrip("?") for name in named.fitted), *_PARTS]
        fitted = {name: _as_list(vars(value)[name]) for name in names if name in vars(value)}
        return {
            "type": type(value).__name__,
            "parameters": parameters,
            "of": {name: writer.write(part) for name, part in fitted.items()},
        }

    def read(self, node: dict[str, Any], reader: Reader) -> Any:
        """Return the estimator, once its parts agree."""
        named = NAMED.get(str(node.get("type")))
        if named is None:
            raise ModelFileError(
                f"was refused, and nothing in it was run: {quoted(node.get('type'))} is not one "
                "of the estimators a model file may hold"
            )
        parameters = reader.fields(node, "parameters")
        fitted = reader.fields(node, "of")
        known = named.kind._get_param_names()
        # A parameter scikit-learn has dropped since the model was written is dropped too.
        estimator = named.kind(**{k: v for k, v in parameters.items() if k in known})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about parameters that are deprecated by now
            estimator._validate_params()
        if not fitted:
            return estimator
        allowed = {*(name.rstrip("?") for name in named.fitted), *_PARTS}
        _require(set(fitted) <= allowed, f"{named.kind.__name__} has a part too many")
        sizes = check_shapes(named.kind.__name__, fitted, named.fitted)
        vars(estimator).update(fitted)
        named.settle(estimator, sizes)
        return estimator


class Steps(Kind):
    """A pipeline: its steps by name, and nothing else."""

    tag = "pipeline"

    def holds(self, value: Any) -> bool:
        """Whether it is one."""
        return type(value) is Pipeline

    def write(self, value: Any, writer: Writer) -> dict[str, Any]:
        """Write the steps."""
        return {"of": [[name, writer.write(step)] for name, step in value.steps]}

    def read(self, node: dict[str, Any], reader: Reader) -> Pipeline:
        """Return a pipeline of the steps."""
        steps = node["of"]
        right = isinstance(steps, list) and 0 < len(steps) <= 20
        right = right and all(isinstance(s, list) and len(s) == 2 for s in steps)
        _require(right and all(isinstance(name, str) for name, _ in steps), "a pipeline is broken")
        return Pipeline([(name, reader.read(step)) for name, step in steps])


def _as_list(part: Any) -> Any:
    """Stages of gradient boosting as lists: an array of objects has no place in a file."""
    objects = isinstance(part, np.ndarray) and part.ndim == 2 and part.dtype == object
    return part.tolist() if objects else part


def refusal(estimator: Any) -> str:
    """Say which estimators may travel, for one that may not."""
    name, names = type(estimator).__name__, listed(sorted(NAMED), most=len(NAMED))
    why = " (it keeps rows it was fitted on, and a file holds none)" if name in KEEPS_ROWS else ""
    return f"{name} is not among the estimators a model file holds{why}: {names}"


KINDS: tuple[Kind, ...] = (NamedEstimator(), Steps())
