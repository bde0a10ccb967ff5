"""Chromium without a window, driven through a pair of pipes: needs no port and no library."""

import fcntl
import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

START_S: Final = 40.0
"""How long the browser may take to answer first: machines that test it are busy."""


class ChromiumError(Exception):
    """The browser does not do what it is asked."""


class Chromium:
    """A browser; each visit has a context of its own, with no cache and no connections."""

    def __init__(self, program: str, flags: Sequence[str], profile: Path, key_log: Path) -> None:
        self._number = 0
        commands, self._commands = os.pipe()
        self._events, events = os.pipe()
        self._unread = b""
        self._process = subprocess.Popen(
            [
                program,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
                "--remote-debugging-pipe",
                f"--user-data-dir={profile}",
                f"--ssl-key-log-file={key_log}",
                *flags,
                "about:blank",
            ],
            # It reads and writes what has these numbers.
            preexec_fn=lambda: _renumber(commands, events),  # noqa: PLW1509 - this process has no threads
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(events)
        os.set_blocking(self._events, False)

    def __enter__(self) -> Self:
        try:
            self._call("Browser.getVersion", START_S)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def visit(self, url: str, load_s: float, dwell_s: float, more: Sequence[str]) -> None:
        """Load a page, stay for a while, and fetch ``more`` URLs meanwhile; then close all its connections."""
        context = self._call("Target.createBrowserContext", 10.0)["browserContextId"]
        try:
            target = self._call("Target.createTarget", 10.0, url="about:blank", browserContextId=context)["targetId"]
            page = self._call("Target.attachToTarget", 10.0, targetId=target, flatten=True)["sessionId"]
            self._call("Page.enable", 10.0, page)
            failed = self._call("Page.navigate", load_s, page, url=url).get("errorText")
            if failed:
                raise ChromiumError(f"{url}: {failed}")
            self._wait("Page.loadEventFired", page, load_s)
            for one in more:
                time.sleep(dwell_s / (len(more) + 1))
                self._call("Runtime.evaluate", load_s, page, expression=f"fetch('{one}')", awaitPromise=True)
            time.sleep(dwell_s / (len(more) + 1))
        finally:
            self._call("Target.disposeBrowserContext", 10.0, browserContextId=context)

    def _call(self, method: str, limit_s: float, session: str | None = None, **parameters: object) -> dict[str, Any]:
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + limit_s
        while True:
            answer = self._read(deadline, method)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise ChromiumError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _wait(self, event: str, session: str, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while True:
            message = self._read(deadline, event)
            if message.get("method") == event and message.get("sessionId") == session:
                return

    def _read(self, deadline: float, what: str) -> dict[str, Any]:
        while b"\0" not in self._unread:
            if time.monotonic() > deadline:
                raise ChromiumError(f"{what}: no answer in time")
            try:
                more = os.read(self._events, 1 << 16)
            except BlockingIOError:
                time.sleep(0.01)
                continue
            if not more:
                raise ChromiumError(f"{what}: the browser has ended")
            self._unread += more
        first, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message

    def _end(self) -> None:
        os.close(self._commands)
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._events)


def _renumber(commands: int, events: int) -> None:
    """Give the two ends the numbers 3 and 4, whichever they have; runs in the child."""
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands, events)]
    for number, end in enumerate(ends, start=3):
        os.dup2(end, number)
