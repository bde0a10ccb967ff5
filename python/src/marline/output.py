"""Files of results, which are whole or not there."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from marline.errors import OutputError


def write_all(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write ``files``, by name, into ``directory``, which is made if it is missing.

    All are written beside their places first, and renamed when that has succeeded for each.

    Raises :class:`OutputError`.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory, prefix=".unfinished-") as unfinished:
            for name, content in files.items():
                (Path(unfinished) / name).write_bytes(content)
            for name in files:
                (Path(unfinished) / name).replace(directory / name)
    except OSError as error:
        raise OutputError(directory, error.strerror or str(error)) from error
