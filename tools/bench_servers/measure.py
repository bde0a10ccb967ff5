"""One measurement: a server with a task."""

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import process
import rig
import servers
from servers import Configuration
from table import Measurement
from tasks import MB, SIZES, Layout, Task

# How long requests run before they are measured, of the seconds that are.
WARM_UP = 0.25
# A client that takes so much longer than it should hangs; it gives up by itself before.
PATIENCE = 60


class FailedError(Exception):
    """A measurement that is not valid."""


def pinned(cores: list[int], command: list[object]) -> list[str]:
    """The command, on these cores."""
    return ["taskset", "-c", ",".join(map(str, cores)), *map(str, command)]


class Bench:
    """Certificates, files, and the applications behind proxies, for all measurements."""

    def __init__(self, directory: str, layouts: dict[int, Layout], seconds: float) -> None:
        self.lab = rig.Lab(directory)
        self.layouts, self.seconds = layouts, seconds
        for name, (_, size) in SIZES.items():
            (self.lab.site / f"{name}.bin").write_bytes((b"0123456789abcde\n" * (MB // 16 + 1))[:size])

    @contextlib.contextmanager
    def applications(self) -> Iterator[None]:
        """One for each number of the server's cores, which are idle but for their own tasks."""
        with contextlib.ExitStack() as stack:
            for number, layout in self.layouts.items():
                configuration = servers.application(self.port(number), len(layout.application))
                stack.enter_context(self.running(configuration, layout.application, servers.NGINX.path, {}))
            yield

    @staticmethod
    def port(cores: int) -> int:
        """The application's."""
        return 8000 + cores

    @contextlib.contextmanager
    def running(
        self, configuration: Configuration, cores: list[int], program: Path, environment: dict[str, str]
    ) -> Iterator[int]:
        """Starts the server, whose process the block gets, and stops it."""
        with tempfile.TemporaryDirectory(prefix="server-", dir=self.lab.dir) as directory:
            server = rig.Server(self.lab, configuration, servers.MARLINE, directory)
            try:
                server.start(pinned(cores, [program, *server.command()[1:]]), environment.items())
                pid: int = server.process.pid
                yield pid
            except rig.Failed as error:
                raise FailedError(str(error)) from error
            except FileNotFoundError as error:
                raise FailedError(f"a process of the server has ended: {error.filename}") from error
            finally:
                server.stop()

    def client(self, task: Task, seconds: float) -> dict[str, Any]:
        """The report of the client."""
        cores = self.layouts[task.cores].client
        command = [
            servers.CLIENT,
            "--server",
            "127.0.0.1:443",
            "--threads",
            len(cores),
            "--seconds",
            seconds,
            *task.load,
        ]
        try:
            done = subprocess.run(
                pinned(cores, command), capture_output=True, text=True, check=False, timeout=seconds + PATIENCE
            )
        except subprocess.TimeoutExpired as error:
            raise FailedError("the client does not end") from error
        if done.returncode != 0:
            raise FailedError(f"the client: {done.stderr.strip()}")
        report: dict[str, Any] = json.loads(done.stdout)
        if report["errors"]:
            requests = report["requests"]
            raise FailedError(f"{report['errors']} errors beside {requests} responses, first: {report['error']}")
        return report

    def measure(self, number: int, task: Task, server: servers.Server) -> Measurement:
        """Starts the server, and measures it after some requests."""
        layout = self.layouts[task.cores]
        configuration = server.configuration(task)
        configuration.text = configuration.text.replace("@port@", str(self.port(task.cores)))
        environment = server.environment(task)
        with self.running(configuration, layout.server, server.path, environment) as pid:
            self.client(task, min(self.seconds * WARM_UP, 1))
            # Those that only helped it to start have ended.
            processes = process.family(pid)
            with process.Watch(processes) as watch:
                before = process.cpu_seconds(processes)
                report = self.client(task, self.seconds)
                cpu_s = process.cpu_seconds(processes) - before
        requests, seconds, full = report["requests"], report["seconds"], report["full_handshakes"]
        if task.reuse == "full" and full < requests:
            raise FailedError(f"only {full} of {requests} handshakes were full")
        if task.reuse == "resume" and full >= requests:
            raise FailedError("no handshake was resumed")
        if cpu_s == 0:
            raise FailedError(f"{requests} requests took no CPU time that the kernel counts; use more --seconds")
        return Measurement(
            round=number,
            task=task.key,
            server=server.name,
            requests_s=requests / seconds,
            cpu_ms=cpu_s / requests * 1e3,
            p50_ms=report["p50_ms"],
            p99_ms=report["p99_ms"],
            pss_mib=watch.peak.pss / (1 << 20),
            rss_mib=watch.peak.rss / (1 << 20),
            server_load=cpu_s / seconds / len(layout.server),
            client_load=report["cpu_s"] / seconds / len(layout.client),
            requests=requests,
            full_handshakes=full,
        )
