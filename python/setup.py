"""Checks that ``pyproject.toml`` cannot ask for: a build without a file of data that the package needs fails."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist
from setuptools.errors import SetupError

NEEDED = ("py.typed", "pages/style.css")
"""The data of the package, as ``package-data`` names them: setuptools silently omits missing files."""


def require_data() -> None:
    """Raise :class:`SetupError` unless each file exists: a link may lead out of the copied tree."""
    package = Path(__file__).resolve().parent / "src" / "marline"
    for name in NEEDED:
        file = package / name
        if file.is_symlink() or not file.is_file():
            raise SetupError(f"{file}: is not a file, and the package needs it: copy all of its folder")


class Build(build_py):
    """Of a wheel, or of an installation that is read from where it is."""

    def run(self) -> None:
        """Build."""
        require_data()
        super().run()


class SourceDistribution(sdist):
    """An archive of the sources."""

    def run(self) -> None:
        """Pack."""
        require_data()
        super().run()


setup(cmdclass={"build_py": Build, "sdist": SourceDistribution})
