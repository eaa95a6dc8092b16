"""Whether the nodes of a file are trees: before anything follows them."""

from __future__ import annotations

import numpy as np

from hetrisk.core.predictor import LevelPart, TreesPart

DEEPEST_TREE = 128  # every row takes so many steps in every tree


def wrong_level(part: LevelPart) -> str:
    """Say what is wrong with levels: one at least must be known."""
    return "" if len(part.level) else "know an environment"


def wrong_trees(part: TreesPart) -> str:
    """Say what is wrong with the nodes of trees; "" for nothing.

    Nodes stand parents first, a leaf is its own child, and every node but the roots has one
    parent: so no path comes back, none is longer than ``depth``, and a file of n nodes costs a
    row at most n steps times the deepest tree allowed.
    """
    count = len(part.feature)
    at = np.arange(count)
    leaf = (part.left == at) & (part.right == at)
    split = ~leaf
    children = np.concatenate([part.left[split], part.right[split]])
    later = (part.left[split] > at[split]) & (part.right[split] > at[split])
    if not later.all() or (children.size and children.max() >= count):
        return "have children that stand after their parent"
    if not np.array_equal(np.sort(np.concatenate([children, part.root])), at):
        return "have nodes that each belong to one place of one tree"
    if part.feature.size and part.feature.max() >= part.n_features + part.uses_time:
        return "test columns that exist"
    if len(part.output) and part.output.max() >= len(part.base):
        return "add to scores that exist"
    if _depth(part, leaf) > part.depth:
        return "be as deep as it says"
    return ""


def _depth(part: TreesPart, leaf: np.ndarray) -> int:
    depth, level = 0, part.root[~leaf[part.root]]
    while level.size and depth <= part.depth:
        depth += 1
        level = np.concatenate([part.left[level], part.right[level]])
        level = level[~leaf[level]]
    return depth
