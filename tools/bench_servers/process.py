"""CPU time and memory of a program: of all its processes and threads, as /proc has them."""

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
# Between two looks at the memory, seconds.
PAUSE = 0.2


def fields(stat: str) -> list[str]:
    """What follows the name of the process, which may have spaces and parentheses: the state is the first."""
    return stat.rpartition(")")[2].split()


def family(root: int) -> list[int]:
    """The process and its descendants."""
    children: dict[int, list[int]] = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdecimal():
            try:
                parent = int(fields((directory / "stat").read_text())[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(directory.name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def cpu_seconds(processes: list[int]) -> float:
    """Time of user and system, of all threads, those that ended included."""
    ticks = 0
    for process in processes:
        user, system = fields(Path(f"/proc/{process}/stat").read_text())[11:13]
        ticks += int(user) + int(system)
    return ticks / TICKS


@dataclass
class Memory:
    """Sums over processes, bytes."""

    # Pages that processes share count once.
    pss: int = 0
    rss: int = 0


def memory(processes: list[int]) -> Memory:
    """The memory at this moment."""
    total = Memory()
    for process in processes:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "Pss":
                total.pss += int(value.split()[0]) << 10
            elif name == "Rss":
                total.rss += int(value.split()[0]) << 10
    return total


@dataclass
class Watch:
    """The peak of the memory while the block runs."""

    processes: list[int]
    peak: Memory = field(default_factory=Memory)

    def __enter__(self) -> "Watch":
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while True:
            try:
                now = memory(self.processes)
            except OSError:
                # The server has ended, which the client reports.
                return
            self.peak = Memory(max(self.peak.pss, now.pss), max(self.peak.rss, now.rss))
            if self._over.wait(PAUSE):
                return


def load_average() -> float:
    """Programs that want to run, over the last minute."""
    return os.getloadavg()[0]


def machine() -> str:
    """Processor, cores, memory and kernel."""
    information = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in information if line.startswith("model name")]
    gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    kind, kernel = names[0] if names else os.uname().machine, os.uname().release
    return f"{kind}, {os.cpu_count()} cores, {gib:.0f} GiB, Linux {kernel}"


def today() -> str:
    """The date, UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime())
