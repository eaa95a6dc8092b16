"""Trees as columns of plain numbers, with every index checked before scikit-learn follows it.

scikit-learn walks trees in compiled code that trusts its nodes: a child beyond the last node or
a feature beyond the last column reads memory that is not its own, and a child that points back
never ends. Here a tree is one array for each property of its nodes, in the order scikit-learn
grows them (a parent before its children), and is refused unless every inner node has two
children further on, inside the tree, each the child of one parent, and tests a feature there is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble._hist_gradient_boosting.predictor import (
    PREDICTOR_RECORD_DTYPE,
    TreePredictor,
)
from sklearn.tree._tree import NODE_DTYPE, TREE_LEAF, Tree

from hetrisk.modelfile.codec import Kind, Reader, Writer
from hetrisk.modelfile.errors import ModelFileError

GROWN = (
    *("left_child", "right_child", "feature", "threshold", "missing_go_to_left"),
    *("impurity", "n_node_samples", "weighted_n_node_samples"),
)
BOOSTED = (
    *("left", "right", "feature_idx", "num_threshold", "missing_go_to_left", "is_leaf"),
    *("value", "count", "gain", "depth", "bin_threshold"),
)


class GrownTree(Kind):
    """A tree of `sklearn.tree`, alone or in a forest or gradient boosting."""

    tag = "tree"

    def holds(self, value: Any) -> bool:
        """Whether it is one."""
        return type(value) is Tree

    def write(self, value: Any, writer: Writer) -> dict[str, Any]:
        """Write the columns of its nodes and the values of its leaves."""
        nodes = value.__getstate__()["nodes"]
        columns = {name: writer.write(nodes[name].copy()) for name in GROWN}
        return {
            "features": int(value.n_features),
            "of": {**columns, "value": writer.write(value.value.copy())},
        }

    def read(self, node: dict[str, Any], reader: Reader) -> Tree:
        """Return a tree whose nodes were checked."""
        parts = reader.fields(node, "of")
        features = node["features"]
        if type(features) is not int or not 0 < features < 1 << 31:
            raise ModelFileError("is damaged: a tree has an impossible number of features")
        values = parts.pop("value", None)
        nodes = _nodes(parts, GROWN, NODE_DTYPE)
        leaf = nodes["left_child"] == TREE_LEAF
        if not np.array_equal(leaf, nodes["right_child"] == TREE_LEAF):
            raise ModelFileError("is damaged or was tampered with: a tree has half a leaf")
        depth = check_nodes(nodes["left_child"], nodes["right_child"], leaf)
        _check_features(nodes["feature"][~leaf], features)
        if not _is_values(values, len(nodes)):
            raise ModelFileError("is damaged or was tampered with: a tree has values for no leaf")
        tree = Tree(features, np.asarray([values.shape[2]], dtype=np.intp), 1)
        tree.__setstate__(
            {"max_depth": depth, "node_count": len(nodes), "nodes": nodes, "values": values}
        )
        return tree


class BoostedTree(Kind):
    """A tree of histogram gradient boosting, on numbers alone."""

    tag = "boosted tree"

    def holds(self, value: Any) -> bool:
        """Whether it is one."""
        return type(value) is TreePredictor

    def write(self, value: Any, writer: Writer) -> dict[str, Any]:
        """Write the columns of its nodes."""
        if value.nodes["is_categorical"].any():
            raise ModelFileError(
                "the model cannot be written: its boosted trees split categories; encode them as "
                "numbers first, as hetrisk.tables.TableEncoder does"
            )
        return {"of": {name: writer.write(value.nodes[name].copy()) for name in BOOSTED}}

    def read(self, node: dict[str, Any], reader: Reader) -> TreePredictor:
        """Return a tree whose nodes were checked, except for the number of its features."""
        nodes = _nodes(reader.fields(node, "of"), BOOSTED, PREDICTOR_RECORD_DTYPE)
        leaf = nodes["is_leaf"] == 1
        check_nodes(nodes["left"].astype(np.int64), nodes["right"].astype(np.int64), leaf)
        empty = np.zeros((0, 8), dtype=np.uint32)
        return TreePredictor(nodes, empty, empty.copy())


def check_boosted_features(tree: TreePredictor, features: int) -> None:
    """Refuse a tree that tests a feature there is not."""
    inner = tree.nodes["is_leaf"] != 1
    _check_features(tree.nodes["feature_idx"][inner], features)


def check_nodes(left: np.ndarray, right: np.ndarray, leaf: np.ndarray) -> int:
    """Refuse nodes that are not one tree; return its depth.

    Parameters
    ----------
    left, right : (n,) the children of each node, of no meaning in leaves.
    leaf : (n,) which nodes have none.
    """
    inner = np.flatnonzero(~leaf)
    children = np.concatenate([left[inner], right[inner]])
    later = (left[inner] > inner).all() and (right[inner] > inner).all()
    # All but the root are the child of one node each, which comes before them: no way back.
    if not later or not np.array_equal(np.sort(children), np.arange(1, len(leaf))):
        raise ModelFileError("is damaged or was tampered with: the nodes of a tree are not a tree")
    depth, level = -1, np.zeros(1, dtype=np.int64)
    while level.size:
        depth, split = depth + 1, level[~leaf[level]]
        level = np.concatenate([left[split], right[split]])
    return depth


def _nodes(parts: dict[str, Any], names: tuple[str, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Return the nodes as scikit-learn keeps them; whatever it has beyond ``names`` is zero."""
    sizes = {len(part) if _is_column(part) else -1 for part in parts.values()}
    if set(parts) != set(names) or len(sizes) != 1 or not min(sizes) > 0:
        raise ModelFileError("is damaged or was tampered with: a tree lacks a part")
    nodes = np.zeros(min(sizes), dtype=dtype)
    for name in names:
        if parts[name].dtype != nodes.dtype[name]:
            raise ModelFileError(
                f"does not match this scikit-learn: {name} of a tree is {parts[name].dtype}"
            )
        nodes[name] = parts[name]
    return nodes


def _is_column(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.ndim == 1


def _check_features(tested: np.ndarray, features: int) -> None:
    if tested.size and not (tested.min() >= 0 and tested.max() < features):
        raise ModelFileError(
            "is damaged or was tampered with: a tree tests a feature that does not exist"
        )


def _is_values(values: Any, n_nodes: int) -> bool:
    right = isinstance(values, np.ndarray) and values.ndim == 3 and values.dtype == np.float64
    return right and values.shape[:2] == (n_nodes, 1) and values.shape[2] > 0


KINDS: tuple[Kind, ...] = (GrownTree(), BoostedTree())
