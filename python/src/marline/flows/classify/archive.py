"""Arrays in a file, whose content is validated before use.

The form is that of numpy's ``savez``: an archive (ZIP) of arrays, each with its type and its shape in a header.
"""

import io
import zipfile
from pathlib import Path
from typing import Final

import numpy as np

from marline.limits import (
    MAX_MODEL_ARRAYS,
    MAX_MODEL_BYTES,
    MAX_MODEL_FILE_BYTES,
    MAX_MODEL_RATIO,
    MIN_MODEL_BYTES,
)

Arrays = dict[str, np.ndarray]

_KINDS: Final = (np.dtype("<f8"), np.dtype("<i4"), np.dtype("u1"))
_SUFFIX: Final = ".npy"
_MOST_DIMENSIONS: Final = 2
_LONGEST_HEADER: Final = 256
"""The most bytes of an array's header; numpy writes 128 bytes."""


class TooLargeError(ValueError):
    """A file, or what it holds, is larger than any model."""


def write(arrays: Arrays) -> bytes:
    """The content of a file."""
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    return content.getvalue()


def read(path: Path) -> Arrays:
    """The arrays of a file by name, within the limits of a model.

    Raises :class:`TooLargeError`, and errors of any kind for a file that is not an archive.
    """
    size = path.stat().st_size
    if size > MAX_MODEL_FILE_BYTES:
        raise TooLargeError(f"is larger than {MAX_MODEL_FILE_BYTES >> 20} MiB")
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if len(entries) > MAX_MODEL_ARRAYS:
            raise TooLargeError(f"has more than {MAX_MODEL_ARRAYS} arrays")
        unpacked = sum(entry.file_size for entry in entries)
        if unpacked > MAX_MODEL_BYTES:
            raise TooLargeError(f"takes more than {MAX_MODEL_BYTES >> 30} GiB of memory")
        if unpacked > max(MIN_MODEL_BYTES, MAX_MODEL_RATIO * size):
            raise TooLargeError(f"takes more than {MAX_MODEL_RATIO} times the memory of its file")
        names = [entry.filename for entry in entries]
        if len(set(names)) < len(names) or not all(name.endswith(_SUFFIX) for name in names):
            raise ValueError("names")
        return {entry.filename.removesuffix(_SUFFIX): _array(archive, entry) for entry in entries}


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """One array; no more of it is unpacked than its entry states, and the checksum is compared."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("compression")
    content = archive.read(entry)
    header = io.BytesIO(content[:_LONGEST_HEADER])
    if np.lib.format.read_magic(header) != (1, 0):
        raise ValueError("version")
    shape, by_column, kind = np.lib.format.read_array_header_1_0(header, max_header_size=_LONGEST_HEADER)
    if kind not in _KINDS or not 1 <= len(shape) <= _MOST_DIMENSIONS:
        raise ValueError("kind")
    return np.frombuffer(content, kind, offset=header.tell()).reshape(shape, order="F" if by_column else "C")
