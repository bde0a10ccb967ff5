"""Models in files that run nothing when they are read: arrays and a description, checked before use."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np

from marline.arrays import Classes, Numbers
from marline.errors import MarlineError, UnreadableFileError
from marline.flows.classify import archive
from marline.flows.classify.learners import ALGORITHMS, Learnt
from marline.flows.classify.packing import pack, unpack
from marline.flows.classify.sample import Sample
from marline.flows.columns import VERSIONS
from marline.flows.features import CANDIDATES, TRANSPORT, FlowFeature
from marline.interrupts import INTERRUPTS
from marline.limits import MAX_DESCRIPTION_BYTES
from marline.output import OutputFile
from marline.tables import require_file

FORMAT: Final = 1
"""Of the files; a change that older programs would misread adds one."""


class ModelError(MarlineError):
    """A file is not a usable model."""


class _OtherFormatError(ValueError):
    """A model is of another format than this program reads."""


@dataclass(frozen=True, slots=True)
class Model:
    """A trained model, and the data that it was trained with."""

    algorithm: str
    features: tuple[FlowFeature, ...]
    names: tuple[str, ...]
    learnt: Learnt
    flows: int
    """The number of flows that it was trained with."""

    @classmethod
    def train(cls, sample: Sample, algorithm: str, seed: int) -> Self:
        """Learn from all of a sample, by the features that it names."""
        learnt = ALGORITHMS[algorithm](sample.of(), sample.classes, len(sample.names), seed)
        return cls(algorithm, sample.used, sample.names, learnt, len(sample.rows))

    def classify(self, rows: Numbers) -> Classes:
        """The class of each row, as an index in the names."""
        return self.learnt.classify(rows)

    def probabilities(self, rows: Numbers) -> Numbers:
        """The probability of each name (column) for each row."""
        return self.learnt.probabilities(rows)

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
        arrays = pack(self.learnt)
        arrays["description"] = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
        content = archive.write(arrays)
        with file.written() as path:
            path.write_bytes(content)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file.

        Raises :class:`ModelError` for anything that is not a model, and :class:`MissingFileError` and
        :class:`UnreadableFileError` for what cannot be read at all.
        """
        require_file(path)
        try:
            path.open("rb").close()
        except OSError as error:
            raise UnreadableFileError(path, error.strerror or str(error)) from error
        try:
            return cls._of(archive.read(path))
        except archive.TooLargeError as error:
            raise ModelError(f"{path}: {error}: it is not a model that `classify train` wrote") from error
        except _OtherFormatError as error:
            raise ModelError(f"{path}: {error}: train it again") from error
        except MemoryError as error:
            raise ModelError(f"{path}: needs more memory than there is") from error
        # The libraries that read archives, headers and JSON have errors of many kinds for damaged ones.
        except Exception as error:
            INTERRUPTS.check()
            raise ModelError(f"{path}: is not a model that `classify train` wrote, or is damaged") from error

    @classmethod
    def _of(cls, arrays: archive.Arrays) -> Self:
        described = arrays.pop("description")
        if described.dtype != np.uint8 or described.size > MAX_DESCRIPTION_BYTES:
            raise ValueError("description")
        description = json.loads(described.tobytes())
        if type(description["format"]) is not int:
            raise TypeError("format")
        if description["format"] != FORMAT:
            raise _OtherFormatError(f"is of format {description['format']}, and this program reads {FORMAT}")
        known = {feature.column: feature for feature in (*CANDIDATES, TRANSPORT)}
        features = tuple(known[name] for name in _texts(description["features"]))
        names = _texts(description["names"])
        algorithm, flows = description["algorithm"], description["flows"]
        if not set(names) <= set(VERSIONS) or len(names) < 2:
            raise ValueError("classes")
        if type(flows) is not int or flows < 0:
            raise TypeError("flows")
        return cls(algorithm, features, names, unpack(algorithm, arrays, len(features), len(names)), flows)


def _texts(value: object) -> tuple[str, ...]:
    """A list of texts, none of them twice."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TypeError("texts")
    if not value or len(set(value)) < len(value):
        raise ValueError("texts")
    return tuple(value)
