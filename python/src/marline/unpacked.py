"""Files that may be compressed (gzip, bzip2, xz, Zstandard), as plain ones."""

import bz2
import gzip
import lzma
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

import pyarrow as pa

from marline.errors import UnreadableFileError
from marline.limits import MAX_UNPACKED_RATIO, MAX_UNPACKING_BYTES, MIN_UNPACKED_BYTES

SUFFIXES: Final = (".gz", ".bz2", ".xz", ".zst")

_PART: Final = 1 << 20


class Plain:
    """A file without its compression; its unpacked copy exists as long as this object."""

    def __init__(self, path: Path) -> None:
        """Unpack a file if its first bytes show that it is compressed.

        Raises :class:`UnreadableFileError`, also where its checksum or its end is wrong, and :class:`OSError`.
        """
        self.path: Final = path
        """The file that was given, which messages name."""
        self._unpacked: IO[bytes] | None = None
        self._others: list[Plain] = []
        with path.open("rb") as file:
            beginning = file.read(max(map(len, _READERS)))
        parts = next((reader(path) for magic, reader in _READERS.items() if beginning.startswith(magic)), None)
        if parts is not None:
            self._unpacked = _written(path, parts)

    @property
    def place(self) -> Path:
        """The path where it can be read."""
        return self.path if self._unpacked is None else Path(self._unpacked.name)

    def beside(self, path: Path) -> "Plain":
        """Another file, which exists as long as this one. Raises the same errors."""
        other = Plain(path)
        self._others.append(other)
        return other

    def beginning(self, size: int = 1 << 16) -> bytes:
        """Its first bytes."""
        with self.place.open("rb") as file:
            return file.read(size)


def _written(path: Path, parts: Iterator[bytes]) -> IO[bytes]:
    most = max(MIN_UNPACKED_BYTES, MAX_UNPACKED_RATIO * path.stat().st_size)
    out = tempfile.NamedTemporaryFile(prefix="marline-")  # noqa: SIM115 - until nobody reads it any more
    size = 0
    try:
        for part in parts:
            size += len(part)
            if size > most:
                raise UnreadableFileError(
                    path,
                    f"unpacks to more than {MAX_UNPACKED_RATIO} times its size, which no log does: unpack it first",
                )
            _write(path, out, part)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, ValueError) as error:
        raise UnreadableFileError(path, f"is compressed, and damaged or cut: {error}") from error
    except OSError as error:
        # Arrow and bz2 do not report more about the damage.
        raise UnreadableFileError(path, f"is compressed, and damaged or cut: {error.strerror or error}") from error
    return out


def _write(path: Path, out: IO[bytes], part: bytes) -> None:
    try:
        out.write(part)
        out.flush()
    except OSError as error:
        raise UnreadableFileError(
            path, f"cannot be unpacked into {tempfile.gettempdir()}: {error.strerror}; TMPDIR names another place"
        ) from error


def _gzip(path: Path) -> Iterator[bytes]:
    with gzip.open(path) as file:
        while part := file.read(_PART):
            yield part


def _bzip2(path: Path) -> Iterator[bytes]:
    with bz2.open(path) as file:
        while part := file.read(_PART):
            yield part


def _zstandard(path: Path) -> Iterator[bytes]:
    with pa.input_stream(str(path), compression="zstd") as file:
        while part := file.read(_PART):
            yield part


def _xz(path: Path) -> Iterator[bytes]:
    """One stream after another, within a limit of memory."""
    with path.open("rb") as file:
        packed = file.read(_PART)
        while packed.rstrip(b"\0"):
            stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_UNPACKING_BYTES)
            while not stream.eof:
                yield stream.decompress(packed, _PART)
                packed = b"" if not stream.needs_input or stream.eof else file.read(_PART)
                if not packed and stream.needs_input and not stream.eof:
                    raise EOFError("its end is missing")
            packed = stream.unused_data or file.read(_PART)


_READERS: Final[dict[bytes, Callable[[Path], Iterator[bytes]]]] = {
    b"\x1f\x8b": _gzip,
    b"BZh": _bzip2,
    b"\xfd7zXZ\0": _xz,
    b"\x28\xb5\x2f\xfd": _zstandard,
}
"""The compression of a file, by its first bytes."""
