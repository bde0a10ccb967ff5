"""The style sheet of pages, a file of the package."""

from functools import cache
from importlib.resources import files

from marline.errors import MarlineError


class IncompleteInstallationError(MarlineError):
    """A file of the package itself is missing."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}: marline is not installed whole; install it again")


@cache
def style_sheet() -> str:
    """The rules. Raises :class:`IncompleteInstallationError`."""
    file = files("marline.pages").joinpath("style.css")
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise IncompleteInstallationError(str(file), error.strerror or str(error)) from error
