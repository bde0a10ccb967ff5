"""Files that are not models, damaged or malicious: each is refused as such, and quickly."""

import io
import json
import pickle
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows import write_labelled
from marline.errors import MissingFileError, UnreadableFileError
from marline.flows.classify import Model, Sample, archive
from marline.flows.classify.learners import ALGORITHMS
from marline.flows.classify.model import ModelError

Arrays = dict[str, np.ndarray]
Change = Callable[[Arrays], None]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small model of each algorithm."""
    directory = tmp_path_factory.mktemp("models")
    sample = Sample.load(write_labelled(directory / "flows.parquet", 300))
    paths = {name: directory / name for name in ALGORITHMS}
    for name, path in paths.items():
        Model.train(sample, name, 1).save(path)
    return paths


def refused(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(ModelError) as raised:
        Model.load(path)
    return str(raised.value)


def contents(path: Path) -> dict[str, list[object]]:
    return {name: array.tolist() for name, array in archive.read(path).items()}


def changed(model: Path, change: Change) -> bytes:
    """The file with arrays that a change made of its own."""
    arrays = {name: array.copy() for name, array in archive.read(model).items()}
    change(arrays)
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)  # type: ignore[arg-type]
    return out.getvalue()


@pytest.mark.parametrize("algorithm", ["c45", "bayesnet", "nbtree", "random_forest"])
def test_a_flipped_byte_is_refused_or_changes_nothing(algorithm: str, models: dict[str, Path], tmp_path: Path) -> None:
    whole, expected, path = models[algorithm].read_bytes(), contents(models[algorithm]), tmp_path / "model"
    step = max(1, len(whole) // 500)
    for at in range(0, len(whole), step):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF if at % 2 else 1 << at % 8
        path.write_bytes(damaged)
        try:
            Model.load(path)
        except ModelError:
            continue
        # Dates and the like, which are not read.
        assert contents(path) == expected


def test_what_is_cut_or_has_a_part_of_another_is_refused(models: dict[str, Path], tmp_path: Path) -> None:
    whole, other = models["c45"].read_bytes(), models["bayesnet"].read_bytes()
    for at in range(0, len(whole) - 30, 3):
        refused(tmp_path / "model", whole[:at])
        refused(tmp_path / "model", whole[:at] + bytes(len(whole) - at))
    for at in range(0, len(whole), 50):
        refused(tmp_path / "model", whole[:at] + other[at : len(whole)])


@settings(max_examples=300, deadline=None)
@given(content=st.binary(max_size=200), prefix=st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06", b"\x93NUMPY\x01\0"]))
def test_anything_else_is_refused(content: bytes, prefix: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    refused(tmp_path_factory.getbasetemp() / "anything", prefix + content)


def test_foreign_files_are_refused(models: dict[str, Path], tmp_path: Path) -> None:
    foreign: list[bytes] = [pickle.dumps({"format": 1}), b"format: 1\n", b"PAR1" + bytes(100)]
    for arrays in ({"x": np.zeros(3)}, {"description": np.array([{"format": 1}], dtype=object)}):
        out = io.BytesIO()
        np.savez(out, **arrays)
        foreign.append(out.getvalue())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("word/document.xml", "<w/>")
    foreign += [out.getvalue(), models["c45"].with_name("flows.parquet").read_bytes()]
    for content in foreign:
        assert "is not a model that `classify train` wrote, or is damaged" in refused(tmp_path / "model", content)
    with pytest.raises(MissingFileError):
        Model.load(tmp_path / "absent")
    with pytest.raises(UnreadableFileError, match="is not a file"):
        Model.load(tmp_path)


def describe(**new: object) -> Change:
    def change(arrays: Arrays) -> None:
        description = {**json.loads(bytes(arrays["description"])), **new}
        arrays["description"] = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)

    return change


WRONG: list[Any] = [
    None,
    True,
    1.5,
    float("nan"),
    float("inf"),
    -1,
    1 << 70,
    "h1",
    "",
    [],
    {},
    [1, 2],
    [[]],
    ["h1"] * 2,
]


@pytest.mark.parametrize("key", ["format", "algorithm", "features", "names", "flows"])
def test_a_description_of_other_types_is_refused(key: str, models: dict[str, Path], tmp_path: Path) -> None:
    for value in WRONG:
        if key == "flows" and value == 1 << 70:
            continue
        refused(tmp_path / "model", changed(models["c45"], describe(**{key: value})))
    for value in ("[" * 60_000, "1" * 60_000, '{"a":' * 10_000, "\\ud800", "\0", "{}", "[]", "null", '"format"'):
        text = np.frombuffer(value.encode(), dtype=np.uint8)
        refused(tmp_path / "model", changed(models["c45"], lambda arrays, text=text: arrays.update(description=text)))  # type: ignore[misc]


def test_a_model_of_another_format_says_so(models: dict[str, Path], tmp_path: Path) -> None:
    told = refused(tmp_path / "model", changed(models["c45"], describe(format=2)))
    assert "is of format 2, and this program reads 1: train it again" in told


def values(name: str, array: np.ndarray) -> list[np.ndarray]:
    """Arrays in place of one: of other values at each end, of other types, shapes and lengths."""
    found = []
    wrong = [-1, 1 << 30, -(1 << 31)] if array.dtype.kind in "iu" else [np.nan, np.inf, -np.inf]
    if array.dtype.kind == "f" and "threshold" not in name:
        # No probability, and no logarithm of one.
        wrong += [2.0]
    for value in wrong:
        for at in {0, array.size - 1} if array.size else set():
            other = array.copy()
            other.flat[at] = value if array.dtype.kind == "f" else np.int64(value).astype(array.dtype)
            found.append(other)
    with np.errstate(invalid="ignore"):
        found += [array.astype(kind) for kind in (np.float32, np.int64, np.complex128, np.bool_, "S4", "U4", ">f8")]
    found += [array[None], array.reshape(-1)[:0], array.reshape(-1)[:-1] if array.size else np.zeros(9)]
    found += [np.concatenate([array, array]) if array.size else np.zeros(0, np.int32), np.array(1.0)]
    return [one for one in found if one.dtype != array.dtype or not np.array_equal(one, array)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_array_with_other_values_is_refused(algorithm: str, models: dict[str, Path], tmp_path: Path) -> None:
    arrays = archive.read(models[algorithm])
    del arrays["description"]
    for name in list(arrays)[:20]:
        for other in values(name, arrays[name]):

            def put(changing: Arrays, name: str = name, other: np.ndarray = other) -> None:
                changing[name] = other

            refused(tmp_path / "model", changed(models[algorithm], put))
        refused(tmp_path / "model", changed(models[algorithm], lambda changing, name=name: changing.pop(name)))  # type: ignore[misc]
    more = changed(models[algorithm], lambda changing: changing.update(more=np.zeros(3)))
    assert "is not a model" in refused(tmp_path / "model", more)


def tree(child: list[int]) -> Change:
    """A tree of these nodes."""

    def change(arrays: Arrays) -> None:
        inner = np.array(child) != np.arange(len(child))
        arrays.update(
            child=np.array(child, np.int32),
            feature=np.zeros(len(child), np.int32),
            threshold=np.where(inner, 0.0, np.inf),
            shares=np.full((len(child), 3), 1 / 3),
        )

    return change


def chain(depth: int) -> list[int]:
    """A tree whose second child asks the next question."""
    return [at + 1 if at % 2 == 0 and at < 2 * depth else at for at in range(2 * depth + 1)]


def test_trees_that_are_none_are_refused(models: dict[str, Path], tmp_path: Path) -> None:
    for child in (
        [0, 0, 2],  # A circle.
        [1, 2, 2],  # A child that is the other's.
        [1, 1, 2, 3],  # A node that nothing leads to.
        [2, 1, 2],  # A neighbour behind the end.
        # Each with two parents: the paths are as many as a power of two.
        [*range(1, 59), 58, 59],
        chain(1001),
    ):
        assert "is not a model" in refused(tmp_path / "model", changed(models["c45"], tree(child)))
    path = tmp_path / "deep"
    path.write_bytes(changed(models["c45"], tree(chain(1000))))
    assert Model.load(path).classify(np.ones((2, 8))[:, : len(Model.load(path).features)]).tolist() == [0, 0]
    many = changed(models["random_forest"], lambda arrays: arrays.update(roots=np.arange(1001, dtype=np.int32)))
    refused(tmp_path / "model", many)


def bomb(kind: int, entries: dict[str, int], model: Path) -> bytes:
    """An archive of arrays of zeros, so many bytes each, beside the description of a model."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as file:
        with zipfile.ZipFile(model) as whole:
            file.writestr("description.npy", whole.read("description.npy"))
        for name, size in entries.items():
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                header, {"descr": "<f8", "fortran_order": False, "shape": (size // 8,)}
            )
            with file.open(f"{name}.npy", "w", force_zip64=True) as array:
                array.write(header.getvalue())
                for _ in range(size >> 20):
                    array.write(bytes(1 << 20))
    return out.getvalue()


def test_what_unpacks_to_much_more_than_it_is_is_refused_unread(models: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "model"
    large = bomb(zipfile.ZIP_DEFLATED, {"child": 64 << 20, "shares": 64 << 20}, models["c45"])
    assert len(large) < 200_000
    lying = bytearray(large)
    # A directory that says of an array that it is small.
    at = large.rindex((128 + (64 << 20)).to_bytes(4, "little"))
    lying[at : at + 4] = (1000).to_bytes(4, "little")
    for content, told in (
        (large, "takes more than 100 times the memory of its file"),
        (bytes(lying), ""),
        (bomb(zipfile.ZIP_LZMA, {"child": 1 << 19}, models["c45"]), "is not a model"),
        (bomb(zipfile.ZIP_BZIP2, {"child": 1 << 19}, models["c45"]), "is not a model"),
    ):
        tracemalloc.start()
        assert told in refused(path, content)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 8 << 20
    many = io.BytesIO()
    with zipfile.ZipFile(many, "w") as file:
        for at in range((1 << 16) + 1):
            file.writestr(f"{at}.npy", b"")
    assert "has more than 65536 arrays" in refused(path, many.getvalue())


def test_a_file_beyond_any_size_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    with pytest.raises(ModelError, match="is larger than 1024 MiB: it is not a model"):
        Model.load(path)
