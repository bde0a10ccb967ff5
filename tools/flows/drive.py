"""Runs in the namespace at the near end of a link: loads what a plan says, and notes what came of it.

python3 drive.py PLAN.json
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from chromium import Chromium, ChromiumError

LOAD_S: Final = 40.0
"""How long a page may take."""

MARKER_PORT: Final = 9
"""Of the datagram by which the times of a capture, which begin with it, become times of the clock."""

APART_S: Final = 6.0
"""Between two visits of a page: within a session's five seconds, the second would look like a part of the first."""


class Clients:
    """The programs that load pages; browsers stay open from visit to visit."""

    def __init__(self, plan: dict[str, Any], scratch: Path, stack: ExitStack) -> None:
        self._plan = plan
        self._scratch = scratch
        self._stack = stack
        self._browsers: dict[str, Chromium] = {}
        self._environment = {**os.environ, "SSLKEYLOGFILE": plan["key_log"]}

    def visit(self, visit: dict[str, Any]) -> None:
        """Load a page. Raises what went wrong."""
        by = {"chromium": self._chromium, "curl": self._curl, "marline": self._marline}
        by[visit["client"]](visit)

    def _chromium(self, visit: dict[str, Any]) -> None:
        version = visit["http"]
        if version not in self._browsers:
            flags = [f"--ignore-certificate-errors-spki-list={self._plan['spki']}"]
            if version == "3":
                hosts = ",".join(f"{host}:443" for host in self._plan["hosts"])
                flags += ["--enable-quic", f"--origin-to-force-quic-on={hosts}"]
            else:
                flags += ["--disable-quic", *(["--disable-http2"] if version == "1.1" else [])]
            profile = self._scratch / f"profile-{version}"
            browser = Chromium(self._plan["chromium"], flags, profile, Path(self._plan["key_log"]))
            self._browsers[version] = self._stack.enter_context(browser)
        try:
            self._browsers[version].visit(visit["url"], LOAD_S, visit["dwell_s"], visit["more"])
        except (ChromiumError, OSError):
            # The next visit gets a new one; this one ends with all others.
            del self._browsers[version]
            raise

    def _curl(self, visit: dict[str, Any]) -> None:
        urls = "".join(f'url = "{url}"\noutput = "/dev/null"\n' for url in (visit["url"], *visit["objects"]))
        command = ["curl", "--silent", "--show-error", "--cacert", self._plan["certificate"], "--config", "-"]
        command += ["--http2" if visit["http"] == "2" else "--http1.1"]
        command += ["--parallel", "--parallel-max", str(visit["connections"] if visit["http"] == "1.1" else 100)]
        subprocess.run(
            command, input=urls, text=True, check=True, timeout=LOAD_S, env=self._environment, stderr=subprocess.PIPE
        )

    def _marline(self, visit: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory(dir=self._scratch) as out:
            command = [self._plan["marline"], "get", "--cacert", self._plan["certificate"], "--http", visit["http"]]
            command += ["--connections", str(visit["connections"]), "-o", out, visit["url"], *visit["objects"]]
            subprocess.run(
                command,
                check=True,
                timeout=LOAD_S,
                env=self._environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )


def main() -> None:
    """Make all visits; a line of JSON for each goes to the file of the plan."""
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    # The mount namespace is this process's own.
    subprocess.run(["mount", "--bind", plan["hosts_file"], "/etc/hosts"], check=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as marker:
        Path(plan["marker"]).write_text(str(time.time()), encoding="ascii")
        marker.sendto(b"marker", (plan["server"], MARKER_PORT))
    end = time.monotonic() + plan["seconds"]
    with (
        ExitStack() as stack,
        Path(plan["visits_log"]).open("w", encoding="utf-8", buffering=1) as log,
    ):
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        clients = Clients(plan, scratch, stack)
        left: dict[str, float] = {}
        for visit in plan["visits"]:
            if time.monotonic() > end:
                break
            time.sleep(max(0.0, left.get(visit["url"], 0.0) + APART_S - time.monotonic()))
            began, problem = time.time(), None
            try:
                clients.visit(visit)
            except subprocess.CalledProcessError as error:
                problem = str(error.stderr).strip().splitlines()[-1:] or [str(error)]
            except (subprocess.SubprocessError, ChromiumError, OSError) as error:
                problem = [str(error)]
            row = {name: visit[name] for name in ("client", "http", "url")}
            row |= {"objects": len(visit["objects"]), "start_s": began, "end_s": time.time()}
            log.write(json.dumps({**row, "problem": problem[0] if problem else None}) + "\n")
            left[visit["url"]] = time.monotonic()
            time.sleep(visit["pause_s"])


if __name__ == "__main__":
    main()
