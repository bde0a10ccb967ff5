"""Models in files that run nothing when they are read: arrays and a description, checked before use."""

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np

from marline.arrays import Classes, Numbers
from marline.errors import MarlineError, UnreadableFileError
from marline.flows.classify.bayes import Bayes
from marline.flows.classify.learners import ALGORITHMS, Learnt
from marline.flows.classify.nbtree import NaiveBayesTree
from marline.flows.classify.sample import Sample
from marline.flows.classify.trees import Trees
from marline.flows.columns import VERSIONS
from marline.flows.features import CANDIDATES, SELECTED, FlowFeature
from marline.output import OutputFile
from marline.tables import require_file

FORMAT: Final = 1
"""Of the files; a change that older programs would misread adds one."""

LARGEST: Final = 4 << 30
"""Bytes of a model in memory."""

_Arrays = dict[str, np.ndarray]


class ModelError(MarlineError):
    """A file is no model that can be used."""


@dataclass(frozen=True, slots=True)
class Model:
    """What an algorithm has learnt, and from what."""

    algorithm: str
    features: tuple[FlowFeature, ...]
    names: tuple[str, ...]
    learnt: Learnt
    flows: int
    """That it has learnt from."""

    @classmethod
    def train(cls, sample: Sample, algorithm: str, seed: int) -> Self:
        """Learn from all of a sample, by the selected features."""
        learnt = ALGORITHMS[algorithm](sample.of(SELECTED), sample.classes, len(sample.names), seed)
        return cls(algorithm, SELECTED, sample.names, learnt, len(sample.rows))

    def classify(self, rows: Numbers) -> Classes:
        """The class of each row, a place among the names."""
        return self.learnt.classify(rows)

    def save(self, out: Path | OutputFile) -> None:
        """Write a file; whole or not at all. Raises :class:`OutputError`."""
        file = out if isinstance(out, OutputFile) else OutputFile(out)
        description = {
            "format": FORMAT,
            "algorithm": self.algorithm,
            "features": [feature.column for feature in self.features],
            "names": list(self.names),
            "flows": self.flows,
        }
        arrays = _pack(self.learnt)
        arrays["description"] = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
        content = io.BytesIO()
        np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
        with file.written() as path:
            path.write_bytes(content.getvalue())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file. Raises :class:`ModelError`, :class:`MissingFileError` and :class:`UnreadableFileError`."""
        require_file(path)
        try:
            with zipfile.ZipFile(path) as archive:
                if sum(entry.file_size for entry in archive.infolist()) > LARGEST:
                    raise ModelError(f"{path}: is larger than {LARGEST >> 30} GiB, which no model is")
            with np.load(path, allow_pickle=False) as file:
                arrays = dict(file)
            description = json.loads(bytes(arrays.pop("description")))
            if description["format"] != FORMAT:
                raise ModelError(
                    f"{path}: is of format {description['format']}, and this program reads {FORMAT}: train it again"
                )
            known = {feature.column: feature for feature in CANDIDATES}
            features = tuple(known[name] for name in description["features"])
            names = tuple(str(name) for name in description["names"])
            if not set(names) <= set(VERSIONS) or len(names) < 2:
                raise ValueError("classes")
            learnt = _unpack(str(description["algorithm"]), arrays, len(features), len(names))
            return cls(description["algorithm"], features, names, learnt, int(description["flows"]))
        except OSError as error:
            raise UnreadableFileError(path, error.strerror or str(error)) from error
        except (ValueError, KeyError, TypeError, IndexError, zipfile.BadZipFile, EOFError) as error:
            raise ModelError(f"{path}: is not a model that `classify train` wrote, or is damaged") from error


def _pack(learnt: Learnt) -> _Arrays:
    if isinstance(learnt, Trees):
        return _pack_trees(learnt)
    if isinstance(learnt, Bayes):
        return _pack_bayes(learnt, "")
    assert isinstance(learnt, NaiveBayesTree)
    arrays = {**_pack_trees(learnt.tree), "leaf": learnt.leaf}
    for place, counts in enumerate(learnt.counts):
        arrays |= _pack_bayes(counts, f"{place}.")
    return arrays


def _pack_trees(trees: Trees) -> _Arrays:
    return {name: getattr(trees, name) for name in ("roots", "feature", "threshold", "child", "shares")}


def _pack_bayes(counts: Bayes, prefix: str) -> _Arrays:
    arrays: _Arrays = {f"{prefix}prior": counts.prior}
    for at, (thresholds, evidence) in enumerate(zip(counts.thresholds, counts.evidence, strict=True)):
        arrays[f"{prefix}thresholds.{at}"] = thresholds
        arrays[f"{prefix}evidence.{at}"] = evidence
    return arrays


def _unpack(algorithm: str, arrays: _Arrays, features: int, number: int) -> Learnt:
    """What was packed. The compiled loops check nothing, so that all is checked here."""
    if algorithm == "bayesnet":
        return _unpack_bayes(arrays, "", features, number)
    if algorithm not in ALGORITHMS:
        raise ValueError(algorithm)
    trees = _unpack_trees(arrays, features, number)
    if algorithm != "nbtree":
        return trees
    leaf = np.ascontiguousarray(arrays["leaf"], dtype=np.int32)
    counts = tuple(_unpack_bayes(arrays, f"{at}.", features, number) for at in range(int(leaf.max()) + 1))
    if leaf.shape != trees.child.shape or leaf.min() < 0 or len(trees.roots) != 1:
        raise ValueError("leaves")
    return NaiveBayesTree(trees, leaf, counts)


def _unpack_trees(arrays: _Arrays, features: int, number: int) -> Trees:
    roots, feature, child = (np.ascontiguousarray(arrays[name], np.int32) for name in ("roots", "feature", "child"))
    threshold, shares = (np.ascontiguousarray(arrays[name], np.float64) for name in ("threshold", "shares"))
    nodes = len(child)
    own = np.arange(nodes)
    inner = child != own
    sound = (
        nodes > 0
        and feature.shape == child.shape == threshold.shape == (nodes,)
        and shares.shape == (nodes, number)
        and roots.ndim == 1
        and len(roots) > 0
        and bool(((roots >= 0) & (roots < nodes)).all())
        and bool(((feature >= 0) & (feature < features)).all())
        # Below its parent, so that a walk ends, and with its neighbour within the arrays.
        and bool((child[inner] > own[inner]).all())
        and bool((child[inner] < nodes - 1).all())
        and bool(np.isposinf(threshold[~inner]).all())
        and bool(np.isfinite(shares).all())
    )
    if not sound:
        raise ValueError("trees")
    return Trees(roots, feature, threshold, child, shares)


def _unpack_bayes(arrays: _Arrays, prefix: str, features: int, number: int) -> Bayes:
    thresholds, evidence = [], []
    for at in range(features):
        ends = np.asarray(arrays[f"{prefix}thresholds.{at}"], np.float64)
        table = np.asarray(arrays[f"{prefix}evidence.{at}"], np.float64)
        if ends.ndim != 1 or table.shape != (len(ends) + 1, number) or not bool((np.diff(ends) > 0).all()):
            raise ValueError("intervals")
        thresholds.append(ends)
        evidence.append(table)
    prior = np.asarray(arrays[f"{prefix}prior"], np.float64)
    if prior.shape != (number,):
        raise ValueError("classes")
    return Bayes(tuple(thresholds), tuple(evidence), prior)
