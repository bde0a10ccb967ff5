"""Learnt models as arrays. The compiled loops do not check bounds, so everything is validated here."""

import numpy as np

from marline.flows.classify.archive import Arrays
from marline.flows.classify.bayes import Bayes
from marline.flows.classify.learners import ALGORITHMS, Learnt
from marline.flows.classify.nbtree import NaiveBayesTree
from marline.flows.classify.trees import Trees
from marline.limits import MAX_MODEL_DEPTH, MAX_MODEL_TREES

_TREES = {"roots": np.int32, "feature": np.int32, "threshold": np.float64, "child": np.int32, "shares": np.float64}


def pack(learnt: Learnt) -> Arrays:
    """The arrays by name."""
    if isinstance(learnt, Trees):
        return _pack_trees(learnt)
    if isinstance(learnt, Bayes):
        return _pack_bayes(learnt, "")
    assert isinstance(learnt, NaiveBayesTree)
    arrays = {**_pack_trees(learnt.tree), "leaf": learnt.leaf}
    for place, counts in enumerate(learnt.counts):
        arrays |= _pack_bayes(counts, f"{place}.")
    return arrays


def unpack(algorithm: str, arrays: Arrays, features: int, number: int) -> Learnt:
    """The packed model, with this number of features and classes. Raises :class:`ValueError` or :class:`KeyError`."""
    left = dict(arrays)
    learnt = _unpack(algorithm, left, features, number)
    if left:
        raise ValueError("arrays of something else")
    return learnt


def _pack_trees(trees: Trees) -> Arrays:
    return {name: np.asarray(getattr(trees, name), kind) for name, kind in _TREES.items()}


def _pack_bayes(counts: Bayes, prefix: str) -> Arrays:
    arrays: Arrays = {f"{prefix}prior": counts.prior}
    for at, (thresholds, evidence) in enumerate(zip(counts.thresholds, counts.evidence, strict=True)):
        arrays[f"{prefix}thresholds.{at}"] = thresholds
        arrays[f"{prefix}evidence.{at}"] = evidence
    return arrays


def _unpack(algorithm: str, left: Arrays, features: int, number: int) -> Learnt:
    if algorithm not in ALGORITHMS:
        raise ValueError(algorithm)
    if algorithm == "bayesnet":
        return _unpack_bayes(left, "", features, number)
    trees = _unpack_trees(left, features, number)
    if algorithm == "random_forest":
        return trees
    if len(trees.roots) != 1:
        raise ValueError("trees")
    return trees if algorithm == "c45" else _unpack_leaves(trees, left, features, number)


def _unpack_leaves(trees: Trees, left: Arrays, features: int, number: int) -> NaiveBayesTree:
    leaf = _taken(left, "leaf", np.int32)
    leaves = trees.child == np.arange(len(trees.child))
    sound = leaf.shape == trees.child.shape and bool((leaf[~leaves] == 0).all())
    # Each has counts of its own.
    if not sound or not np.array_equal(np.sort(leaf[leaves]), np.arange(leaves.sum())):
        raise ValueError("leaves")
    counts = tuple(_unpack_bayes(left, f"{at}.", features, number) for at in range(int(leaves.sum())))
    return NaiveBayesTree(trees, leaf, counts)


def _unpack_trees(left: Arrays, features: int, number: int) -> Trees:
    roots, feature, threshold, child, shares = (_taken(left, name, kind) for name, kind in _TREES.items())
    nodes = len(child)
    own = np.arange(nodes)
    sound = (
        nodes > 0
        and feature.shape == child.shape == threshold.shape == (nodes,)
        and shares.shape == (nodes, number)
        and roots.ndim == 1
        and 0 < len(roots) <= MAX_MODEL_TREES
        and bool(((feature >= 0) & (feature < features)).all())
        # Below its parent, so that a walk ends, and with its neighbour within the arrays.
        and bool(((child >= own) & (child < nodes - (child > own))).all())
        and bool(np.isfinite(threshold[child > own]).all())
        and bool(np.isposinf(threshold[child == own]).all())
        and bool(((shares >= 0) & (shares <= 1)).all())
        and bool((np.abs(shares.sum(axis=1) - 1) < 1e-6).all())
        and _each_reached_once(roots, child)
    )
    if not sound:
        raise ValueError("trees")
    trees = Trees(roots, feature, threshold, child, shares)
    if trees.depth > MAX_MODEL_DEPTH:
        raise ValueError("depth")
    return trees


def _each_reached_once(roots: "np.ndarray", child: "np.ndarray") -> bool:
    """Whether each node is a root or the child of one other: with two parents, the paths could be beyond number."""
    first = child[child > np.arange(len(child))]
    reached = np.concatenate([roots, first, first + 1])
    return bool((reached >= 0).all()) and np.array_equal(np.sort(reached), np.arange(len(child)))


def _unpack_bayes(left: Arrays, prefix: str, features: int, number: int) -> Bayes:
    thresholds, evidence = [], []
    for at in range(features):
        ends = _taken(left, f"{prefix}thresholds.{at}", np.float64)
        table = _taken(left, f"{prefix}evidence.{at}", np.float64)
        sound = ends.ndim == 1 and table.shape == (len(ends) + 1, number) and _are_logarithms(table)
        if not sound or not np.isfinite(ends).all() or not bool((np.diff(ends) > 0).all()):
            raise ValueError("intervals")
        thresholds.append(ends)
        evidence.append(table)
    prior = _taken(left, f"{prefix}prior", np.float64)
    if prior.shape != (number,) or not _are_logarithms(prior):
        raise ValueError("classes")
    return Bayes(tuple(thresholds), tuple(evidence), prior)


def _are_logarithms(values: "np.ndarray") -> bool:
    """Whether they are of probabilities that are not 0."""
    return bool((np.isfinite(values) & (values <= 0)).all())


def _taken(left: Arrays, name: str, kind: type) -> "np.ndarray":
    """Takes an array out of the remaining ones."""
    array = left.pop(name)
    if array.dtype != kind:
        raise ValueError(name)
    return np.ascontiguousarray(array)
