#!/usr/bin/env python3
"""Runs the commands of the documentation as they are written there.

    tools/readme.py [PAGE]...

Pages are README.md and those of the book in the order of docs/SUMMARY.md, or those that are named. Their blocks share one
directory, as somebody's who follows them: what README.md and the guide make, later pages use. A comment before a block says what is done with it:

    <!-- not run: WHY -->          a command that cannot run here, such as one that needs a public address
    <!-- stays open: TEXT -->      a server: it is ready when it prints TEXT, and is ended when the next one begins, or the page ends
    <!-- file: NAME -->            the block is the content of a file that commands of the page read
    <!-- from: PATH -->            the block is a part of this file of the repository, which is tested elsewhere
    <!-- manifest -->              the block is the [dependencies] of a program; git stands for this repository

A block of commands (sh) that has no comment is run, and must succeed within a bounded time.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import book

ROOT = pathlib.Path(__file__).resolve().parent.parent
CARGO = os.environ.get("CARGO", "cargo")
# Seconds for a block; for a server to be ready; for a server to end.
BLOCK, READY, END = 120, 20, 15
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w,]*)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S)
COMMENT = re.compile(r"<!-- (?P<what>[\w ]+?)(?:: (?P<value>[^>]*?))? -->\s*\Z")
KNOWN = {"not run", "stays open", "file", "from", "manifest"}


class Wrong(Exception):
    """What is wrong with a block."""


class Block:
    def __init__(self, page, text, match):
        self.page = page
        self.line = text.count("\n", 0, match.start()) + 1
        self.language = match["language"]
        self.text = textwrap.dedent(match["text"])
        comment = COMMENT.search(text[: match.start()])
        self.what = comment["what"] if comment else None
        self.value = (comment["value"] or "").strip() if comment else ""

    def __str__(self):
        return f"{self.page}:{self.line}"

    def check(self):
        if self.what is None:
            return
        if self.what not in KNOWN:
            raise Wrong(f"{self.what!r} is not one of {', '.join(sorted(KNOWN))}")
        if not self.value and self.what != "manifest":
            raise Wrong(f"{self.what!r} needs a value")


def blocks(page):
    text = (ROOT / page).read_text()
    return [Block(page, text, match) for match in FENCE.finditer(text)]


class Runner:
    """Runs the blocks of a page in a directory."""

    def __init__(self, directory, environment):
        self.directory = directory
        self.environment = environment
        self.server = None
        self.ran = self.passed_over = self.compared = 0

    def take(self, block):
        """What was done with the block, if anything."""
        block.check()
        match block.what:
            case "not run":
                self.passed_over += 1
                return f"not run: {block.value}"
            case "file":
                (self.directory / block.value).write_text(block.text)
                return f"is {block.value}"
            case "from":
                if block.text not in (ROOT / block.value).read_text():
                    raise Wrong(f"is not part of {block.value}")
                self.compared += 1
                return f"is a part of {block.value}"
            case "manifest":
                manifest(block.text)
                self.compared += 1
                return "is a manifest that resolves"
            case "stays open":
                return self.timed(self.open, block)
            case None if block.language == "sh":
                return self.timed(self.run, block)
        return None

    def timed(self, run, block):
        start = time.monotonic()
        run(block)
        self.ran += 1
        return f"ran in {time.monotonic() - start:.1f} s"

    def shell(self, block, output):
        return subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def run(self, block):
        with tempfile.TemporaryFile() as output:
            shell = self.shell(block, output)
            try:
                status = shell.wait(BLOCK)
            except subprocess.TimeoutExpired:
                status = f"no end after {BLOCK} s"
            finally:
                end(shell, signal.SIGKILL)
            if status != 0:
                output.seek(0)
                printed = output.read().decode(errors="replace")
                also = f"\nThe server:\n{self.printed()}" if self.server else ""
                raise Wrong(f"{status}:\n{block.text}{printed}{also}")

    def open(self, block):
        self.close()
        self.output = tempfile.TemporaryFile()
        self.server = self.shell(block, self.output)
        deadline = time.monotonic() + READY
        while block.value not in self.printed():
            if self.server.poll() is not None or time.monotonic() > deadline:
                raise Wrong(f"does not print {block.value!r}:\n{block.text}{self.printed()}")
            time.sleep(0.05)

    def printed(self):
        self.output.seek(0)
        return self.output.read().decode(errors="replace")

    def close(self):
        if self.server is None:
            return
        server, self.server = self.server, None
        end(server, signal.SIGTERM)
        # A block may have started several, which leave their ports one after the other.
        deadline = time.monotonic() + END
        while alive(server):
            if time.monotonic() > deadline:
                end(server, signal.SIGKILL)
                raise Wrong(f"a server has not ended {END} s after SIGTERM")
            time.sleep(0.05)


def alive(process):
    """Whether anything that the process started still runs."""
    process.poll()
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def end(process, how):
    """Sends a signal to all that the process started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, how)
    if how == signal.SIGKILL:
        process.wait()


def manifest(text):
    """Whether the dependencies of a block are there, with their features: resolves them as a package of its own."""
    with tempfile.TemporaryDirectory() as directory:
        package = pathlib.Path(directory)
        # Each crate of this repository, where the block names the repository.
        lines = []
        for line in text.splitlines():
            name = line.split(" ")[0]
            lines.append(re.sub(r'git = "[^"]*"', f'path = "{ROOT}/crates/{name}"', line))
        head = '[package]\nname = "program"\nversion = "0.0.0"\nedition = "2024"\n\n[workspace]\n\n'
        (package / "Cargo.toml").write_text(head + "\n".join(lines) + "\n")
        (package / "main.rs").write_text("fn main() {}\n")
        (package / "Cargo.toml").open("a").write('\n[[bin]]\nname = "program"\npath = "main.rs"\n')
        # The versions that are there, since nothing is downloaded.
        shutil.copy(ROOT / "Cargo.lock", package)
        command = [CARGO, "metadata", "--format-version=1", "--offline", "--quiet"]
        found = subprocess.run(command, cwd=package, capture_output=True, text=True, check=False)
        if found.returncode != 0:
            raise Wrong(f"does not resolve:\n{text}{found.stderr}")


def alone():
    """Starts again in a network of our own, where every port is free and nothing else can be reached."""
    if os.environ.get("MARLINE_README_ALONE"):
        return
    command = ["unshare", "--net"] + ([] if os.getuid() == 0 else ["--map-root-user"])
    with contextlib.suppress(OSError):
        if subprocess.run([*command, "ip", "link", "set", "lo", "up"], capture_output=True, check=False).returncode == 0:
            os.environ["MARLINE_README_ALONE"] = "1"
            again = 'ip link set lo up && exec "$@"'
            os.execvp("unshare", [*command, "sh", "-c", again, "sh", sys.executable, *sys.argv])
    print("note: the commands of the documentation ran in the network of this machine")


def pages_named(arguments):
    """The pages to run; ends the program where the arguments are others."""
    if {"-h", "--help"} & set(arguments):
        print(__doc__.strip())
        sys.exit(0)
    absent = [page for page in arguments if not (ROOT / page).is_file()]
    if absent:
        print(f"there is no page {absent[0]}; name README.md or docs/NAME.md", file=sys.stderr)
        sys.exit(2)
    pages = [page for part in book.parts().values() for page in part]
    return arguments or ["README.md", *(str(page.relative_to(ROOT)) for page in pages)]


def main():
    pages = pages_named(sys.argv[1:])
    program = os.environ.get("MARLINE")
    if program is None and not os.environ.get("MARLINE_README_ALONE"):
        # As the tests build it.
        subprocess.run([CARGO, "build", "--quiet", "--workspace", "--all-features", "--bins"], cwd=ROOT, check=True)
    if not os.environ.get("MARLINE_README_ALONE"):
        subprocess.run(["sh", "tools/python.sh", "environment"], cwd=ROOT, check=True)
    program = pathlib.Path(program or ROOT / "target/debug/marline").resolve()
    alone()
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch) / "marline"
        directory.mkdir()
        shutil.copy(ROOT / "README.md", directory)
        environment = {
            "HOME": scratch,
            "PATH": f"{program.parent}:{ROOT}/target/python/bin:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
        }
        runner = Runner(directory, environment)
        for page in pages:
            for block in blocks(page):
                try:
                    done = runner.take(block)
                    if done:
                        print(f"{block}: {done}", flush=True)
                except Wrong as error:
                    failed += 1
                    print(f"{block}: FAILED: {error}", flush=True)
            try:
                runner.close()
            except Wrong as error:
                failed += 1
                print(f"{page}: FAILED: {error}", flush=True)
    print(f"readme: {runner.ran} ran, {runner.compared} compared, {runner.passed_over} not run, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
