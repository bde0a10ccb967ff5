"""The tasks, and the cores on which server, client and application run."""

import itertools
from dataclasses import dataclass

KIB, MB = 1 << 10, 1_000_000
VERSIONS = {"h1": "1.1", "h2": "2", "h3": "3"}
CONTENT = {"static": "file", "proxy": "proxied"}
SIZES = {"1k": ("1 KiB", KIB), "1m": ("1 MB", MB)}
HANDSHAKES = {"full": "full handshake", "resume": "resumed"}

# Requests in progress at once. HTTP/2 and 3 multiplex them over fewer connections; large files have one for each.
SMALL, STREAMS, LARGE, NEW = 64, 4, 8, 16


@dataclass(frozen=True)
class Task:
    """What clients do with a server that has so many cores."""

    version: str
    # Whether the server answers from a file, or passes requests on.
    content: str
    size: str
    # How long a connection is used: keep, or for one request with a handshake that is full or resumed.
    reuse: str
    cores: int

    @property
    def key(self) -> str:
        """Its name in results and for --only."""
        part = f"{self.content}-{self.size}" if self.reuse == "keep" else self.reuse
        return f"{self.version}-{part}-{self.cores}"

    @property
    def title(self) -> str:
        """Its name in tables, without the number of cores."""
        size = SIZES[self.size][0]
        what = f"{size}, {CONTENT[self.content]}" if self.reuse == "keep" else f"{size}, {HANDSHAKES[self.reuse]}"
        return f"HTTP/{VERSIONS[self.version]}, {what}"

    @property
    def bytes(self) -> int:
        """The length of the file."""
        return SIZES[self.size][1]

    @property
    def path(self) -> str:
        """The path of the file."""
        return f"/{self.size}.bin"

    @property
    def load(self) -> list[str]:
        """The flags of the client that say what it does."""
        if self.reuse != "keep":
            connections, streams = NEW, 1
        elif self.size == "1m":
            connections, streams = LARGE, 1
        elif self.version == "h1":
            connections, streams = SMALL, 1
        else:
            connections, streams = SMALL // STREAMS, STREAMS
        return [
            *["--http", VERSIONS[self.version], "--reuse", self.reuse, "--path", self.path, "--bytes", str(self.bytes)],
            *["--connections", str(connections), "--streams", str(streams)],
        ]


def all_tasks(cores: list[int]) -> list[Task]:
    """Every task, in the order of the tables."""
    tasks = []
    for number, version in itertools.product(cores, VERSIONS):
        tasks += [Task(version, content, size, "keep", number) for content in CONTENT for size in SIZES]
        tasks += [Task(version, "static", "1k", reuse, number) for reuse in HANDSHAKES]
    return tasks


def select(tasks: list[Task], only: list[str]) -> list[Task]:
    """Tasks whose keys have all the words of one of `only`; ValueError for a word that no task has."""
    known = {word for task in tasks for word in task.key.split("-")}
    wanted = [set(words.replace("-", " ").replace(",", " ").split()) for words in only]
    if unknown := set().union(*wanted) - known:
        raise ValueError(f"--only: no task has {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    return [task for task in tasks if not wanted or any(words <= set(task.key.split("-")) for words in wanted)]


@dataclass(frozen=True)
class Layout:
    """The cores of each program."""

    server: list[int]
    client: list[int]
    application: list[int]

    @property
    def shared(self) -> bool:
        """Whether the client runs on the server's cores."""
        return bool(set(self.server) & set(self.client))

    @classmethod
    def of(cls, available: list[int], number: int) -> "Layout":
        """The first `number` cores for the server, the last for the application, and those between for the client."""
        server, rest = available[:number], available[number:]
        if len(rest) > 1:
            return cls(server, rest[:-1], rest[-1:])
        return cls(server, rest or available, rest or available)
