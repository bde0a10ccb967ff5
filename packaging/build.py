"""Builds what is given to others, into target/packages.

For each architecture a static binary in an archive and in a package for Debian; the Python package as a wheel; a list
of all components; files for Homebrew, Arch Linux and containers; checksums.

    packaging/build.py [ARCHITECTURE]...    x86_64, aarch64; both without arguments

Needs rustup. Compilers for other targets, and what packs, are installed into target/tools.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGING = ROOT / "packaging"
OUT = ROOT / "target" / "packages"
TOOLS = ROOT / "target" / "tools"
ENVIRONMENT = TOOLS / "packaging"
CARGO = os.environ.get("CARGO", "cargo")

# Names of architectures: of Rust and of archives, of Debian.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# What packs, by its makers; each version is built once.
CARGO_TOOLS = {"cargo-deb": "3.8.0", "cargo-cyclonedx": "0.5.9"}
# Bytes. Whoever installs downloads them.
LARGEST_BINARY = 15_000_000


def say(text: str) -> None:
    """Reports progress on standard error."""
    print(text, file=sys.stderr, flush=True)


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> None:
    """Runs a command; its failure ends the build."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=os.environ | environment, check=False)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}")


def version() -> str:
    """The version of the workspace."""
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    return str(workspace["package"]["version"])


def repository() -> str:
    """The address of the sources."""
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    return str(workspace["package"]["repository"])


def pip() -> tuple[str | Path, ...]:
    """What installs packages, also where the folder was moved, unlike the script `pip` in it."""
    return (ENVIRONMENT / "bin" / "python", "-m", "pip")


def install_tools(architectures: list[str]) -> None:
    """Compilers for these architectures, and what packs."""
    wanted = (PACKAGING / "requirements.txt").read_text()
    installed = ENVIRONMENT / "installed"
    if not installed.exists() or installed.read_text() != wanted:
        say("installing compilers for other targets")
        run(sys.executable, "-m", "venv", "--clear", ENVIRONMENT)
        requirements = PACKAGING / "requirements.txt"
        run(*pip(), "install", "--quiet", "--require-hashes", "--requirement", requirements)
        installed.write_text(wanted)
    listing = subprocess.run([CARGO, "install", "--list", "--root", TOOLS], capture_output=True, text=True, check=True)
    for tool, wanted in CARGO_TOOLS.items():
        if f"{tool} v{wanted}:" not in listing.stdout:
            say(f"installing {tool} {wanted}")
            run(CARGO, "install", "--quiet", "--locked", "--version", wanted, "--root", TOOLS, tool, cwd=Path("/"))
    run("rustup", "--quiet", "target", "add", *(target(architecture) for architecture in architectures))


def target(architecture: str) -> str:
    """Its name in Rust."""
    return f"{architecture}-unknown-linux-musl"


def build(architecture: str) -> Path:
    """The binary, linked statically with musl."""
    say(f"building for {architecture}")
    path = f"{ENVIRONMENT / 'bin'}{os.pathsep}{os.environ['PATH']}"
    # Rust's own linker, as zig's takes neither argument: functions that are the same are kept once, and the addresses
    # that are set at the start are packed.
    os.environ[f"CARGO_TARGET_{target(architecture).upper().replace('-', '_')}_LINKER"] = "rust-lld"
    run(
        *(ENVIRONMENT / "bin" / "cargo-zigbuild", "rustc", "--locked", "--profile", "dist"),
        *("--package", "marline-cli", "--bin", "marline", "--target", target(architecture)),
        *("--", "-C", "link-arg=--icf=all", "-C", "link-arg=--pack-dyn-relocs=relr", "-C", "link-arg=--strip-all"),
        PATH=path,
    )
    binary = ROOT / "target" / target(architecture) / "dist" / "marline"
    size = binary.stat().st_size
    if size > LARGEST_BINARY:
        say(f"note: {binary} has {size} bytes, more than {LARGEST_BINARY}")
    return binary


def write_texts(shared: Path, runs_here: Path) -> None:
    """Manual pages and completions, by a binary that runs on this machine, in the folders of `share`."""
    pages = shared / "man" / "man1"
    pages.mkdir(parents=True)
    run(runs_here, "man", "--dir", pages)
    for shell, place in (
        ("bash", "bash-completion/completions/marline"),
        ("zsh", "zsh/site-functions/_marline"),
        ("fish", "fish/vendor_completions.d/marline.fish"),
    ):
        script = subprocess.run([runs_here, "completions", shell], capture_output=True, check=True).stdout
        file = shared / place
        file.parent.mkdir(parents=True)
        file.write_bytes(script)


def stage(binary: Path, texts: Path, place: Path) -> None:
    """What archives and Debian packages have, in the folders in which it is installed."""
    for source, name in (
        (binary, "bin/marline"),
        (ROOT / "contrib" / "systemd" / "marline.service", "lib/systemd/system/marline.service"),
        (PACKAGING / "debian" / "site.toml", "etc/marline/site.toml"),
        (ROOT / "README.md", "share/doc/marline/README.md"),
        (ROOT / "CHANGELOG.md", "share/doc/marline/CHANGELOG.md"),
        (ROOT / "LICENSE-MIT", "share/licenses/marline/LICENSE-MIT"),
        (ROOT / "LICENSE-APACHE", "share/licenses/marline/LICENSE-APACHE"),
    ):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, place / name)
    shutil.copytree(texts, place / "share", dirs_exist_ok=True)


def archive(place: Path) -> None:
    """An archive of a folder under its name, owned by root."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        return member

    with tarfile.open(OUT / f"{place.name}.tar.gz", "w:gz") as file:
        file.add(place, arcname=place.name, filter=plain)


def debian(architecture: str, place: Path) -> None:
    """The package for Debian, whose contents crates/marline-cli/Cargo.toml lists."""
    # The manifest's paths lead here, whatever the architecture.
    link = ROOT / "target" / "staged"
    link.unlink(missing_ok=True)
    link.symlink_to(place)
    run(
        *(TOOLS / "bin" / "cargo-deb", "deb", "--no-build", "--no-strip", "--quiet", "--package", "marline-cli"),
        *("--profile", "dist", "--target", target(architecture), "--output", OUT),
    )
    link.unlink()


def components(place: Path) -> None:
    """The list of all components (CycloneDX), of a copy: the program writes beside each manifest."""
    say("listing components")
    archived = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", place], input=archived, check=True)
    run(
        *(TOOLS / "bin" / "cargo-cyclonedx", "cyclonedx", "--quiet", "--format", "json", "--target", target("x86_64")),
        *("--manifest-path", place / "crates" / "marline-cli" / "Cargo.toml"),
        cwd=place,
    )
    shutil.copy(place / "crates" / "marline-cli" / "marline-cli.cdx.json", OUT / f"marline-{version()}.cdx.json")


def wheel() -> None:
    """The Python package."""
    say("building the Python package")
    run(*pip(), "wheel", "--quiet", "--no-deps", "--wheel-dir", OUT, ROOT / "python")


def checksum(file: Path) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def fill_in(template: Path) -> None:
    """Writes a template with its `@NAME@` replaced. Files that were not built have no checksum."""

    def value(found: re.Match[str]) -> str:
        match found[1].split():
            case ["version"]:
                return version()
            case ["repository"]:
                return repository()
            case ["downloads"]:
                return f"{repository()}/releases/download/v{version()}"
            case ["sha256", name]:
                file = OUT / fill(name)
                return checksum(file) if file.exists() else "of-a-file-that-was-not-built"
        sys.exit(f"{template} has an unknown name: {found[0]}")

    def fill(text: str) -> str:
        return text.replace("@version@", version())

    text = re.sub(r"@((?:sha256 )?[^@\s]*(?:@version@[^@\s]*)?)@", value, template.read_text())
    (OUT / template.name).write_text(text)


def main() -> None:
    """Builds everything, in a folder that is emptied first."""
    architectures = sys.argv[1:] or list(ARCHITECTURES)
    for architecture in architectures:
        if architecture not in ARCHITECTURES:
            sys.exit(f"unknown architecture {architecture}: expected {' or '.join(ARCHITECTURES)}")
    here = os.uname().machine
    if here not in architectures:
        sys.exit(f"manual pages are written by the binary for this machine: build {here} as well")
    install_tools(architectures)
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    binaries = {architecture: build(architecture) for architecture in architectures}
    with tempfile.TemporaryDirectory() as scratch:
        texts = Path(scratch) / "texts"
        write_texts(texts, binaries[here])
        for architecture, binary in binaries.items():
            place = Path(scratch) / f"marline-{version()}-{architecture}-linux"
            stage(binary, texts, place)
            archive(place)
            debian(architecture, place)
        source = Path(scratch) / "source"
        source.mkdir()
        components(source)
    wheel()
    for template in ("homebrew/marline.rb", "arch/PKGBUILD", "container/Containerfile"):
        fill_in(PACKAGING / template)
    files = sorted(file for file in OUT.iterdir())
    sums = "".join(f"{checksum(file)}  {file.name}\n" for file in files)
    (OUT / "SHA256SUMS").write_text(sums)
    for file in files:
        print(f"{file.stat().st_size:>12,}  {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
