"""The package as it is installed elsewhere: from a copy of its folder, and with nothing beside it."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest

from flows import write_flows

PACKAGE = Path(__file__).resolve().parents[1]
STYLE = Path("src") / "marline" / "pages" / "style.css"


def copied(directory: Path) -> Path:
    """The folder as `cp -r` copies it, without what tests and builds leave in it."""
    ignored = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    return shutil.copytree(PACKAGE, directory / "python", symlinks=True, ignore=ignored)


def ran(*command: str | Path, cwd: Path) -> "subprocess.CompletedProcess[str]":
    # Nothing of this environment but its programs, and no network.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
    environment |= {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def wheel(source: Path, out: Path) -> "subprocess.CompletedProcess[str]":
    return ran(
        sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", out, source, cwd=out.parent
    )


def archive(source: Path, out: Path) -> "subprocess.CompletedProcess[str]":
    program = f"from setuptools.build_meta import build_sdist; build_sdist({str(out)!r})"
    return ran(sys.executable, "-c", program, cwd=source)


def installed(wheel: Path, directory: Path) -> Path:
    """A new environment with the wheel, which finds the libraries of this one, but not its marline."""
    venv.create(directory, with_pip=False)
    python = directory / "bin" / "python"
    done = ran(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", wheel, cwd=directory)
    assert done.returncode == 0, done.stderr
    (packages,) = (directory / "lib").glob("python*/site-packages")
    (packages / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    return python


def test_the_style_sheet_is_a_file_and_that_of_the_laboratory() -> None:
    theirs = PACKAGE.parent / "crates" / "marline-report" / "src" / "html" / "style.css"
    ours = PACKAGE / STYLE
    assert not ours.is_symlink()
    assert ours.read_bytes() == theirs.read_bytes(), f"cp {theirs} {ours}"


@pytest.mark.parametrize("kind", ["wheel", "archive"])
def test_what_was_built_from_a_copy_of_the_folder_writes_a_page(kind: str, tmp_path: Path) -> None:
    source, out = copied(tmp_path), tmp_path / "out"
    out.mkdir()
    if kind == "archive":
        assert archive(source, out).returncode == 0
        (packed,) = out.glob("*.tar.gz")
        with tarfile.open(packed) as file:
            file.extractall(tmp_path / "unpacked", filter="data")
        (source,) = (tmp_path / "unpacked").iterdir()
    done = wheel(source, out)
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("*.whl")
    python = installed(built, tmp_path / "environment")
    shutil.rmtree(source)
    flows = write_flows(tmp_path / "flows.parquet", 1000)
    done = ran(python, "-m", "marline", "sessions", flows, "-o", tmp_path / "pages", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "--paper:" in (tmp_path / "pages" / "report.html").read_text()
    where = ran(python, "-c", "import marline; print(marline.__file__)", cwd=tmp_path).stdout
    assert where.startswith(str(tmp_path / "environment"))


@pytest.mark.parametrize("build", [wheel, archive])
@pytest.mark.parametrize("lacks", ["missing", "link"])
def test_a_build_without_the_style_sheet_fails(build, lacks: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    source, out = copied(tmp_path), tmp_path / "out"
    out.mkdir()
    (source / STYLE).unlink()
    if lacks == "link":
        (source / STYLE).symlink_to("../../../../crates/marline-report/src/html/style.css")
    done = build(source, out)
    assert done.returncode != 0
    assert "style.css: is not a file, and the package needs it" in done.stdout + done.stderr
    assert not list(out.iterdir())
