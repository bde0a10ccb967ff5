"""Who loads what over which link, drawn from a seed before anything runs."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from pages import Built

CLIENTS: Final = (
    ("chromium", "1.1", 6),
    ("curl", "2", 1),
    ("marline", "3", 1),
    ("chromium", "2", 1),
    ("curl", "1.1", 6),
    ("chromium", "3", 1),
    ("marline", "2", 1),
    ("marline", "1.1", 2),
)
"""Program, version of HTTP, connections at most (where the program can be told); neighbours differ in both."""


@dataclass(frozen=True, slots=True)
class Set:
    """A set of flows: pages and links that no other set has."""

    name: str
    links: Sequence[str]
    sites: str
    """``cloned`` or ``live``."""


TRAIN: Final = Set(
    "train",
    (
        "rate=20mbps,rtt=30ms,buffer=100ms",
        "rate=50mbps,rtt=12ms,buffer=50ms",
        "lte-a",
        "rate=7mbps,rtt=50ms,loss=2%,buffer=45kB",
    ),
    "cloned",
)
TEST: Final = Set("test", ("rate=12mbps,rtt=70ms,buffer=120ms", "lte-a-international", "wifi-n-190"), "live")


@dataclass(frozen=True, slots=True)
class Visit:
    """A program that loads a page."""

    client: str
    http: str
    connections: int
    url: str
    objects: tuple[str, ...]
    more: tuple[str, ...] = field(default=())
    """What the browser asks for later, over the connections it has."""
    dwell_s: float = 0.0
    pause_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """As it is handed to the program in the namespace."""
        return asdict(self)


def visits(pages: Sequence[Built], rounds: int, seed: str) -> list[Visit]:
    """Each page by each client, once a round; neighbours are of other pages and other clients."""
    rng = random.Random(seed)
    planned = []
    for _ in range(rounds):
        order = list(pages)
        rng.shuffle(order)
        for shift in range(len(CLIENTS)):
            for at, page in enumerate(order):
                client, http, connections = CLIENTS[(at + shift) % len(CLIENTS)]
                again = rng.sample(page.urls, min(len(page.urls), rng.choice((0, 0, 1, 2))))
                planned.append(
                    Visit(
                        client,
                        http,
                        connections,
                        page.url,
                        # Not all programs that are no browsers take all of a page.
                        page.objects if client == "chromium" else _some(page.objects, rng),
                        tuple(f"{url}?{rng.getrandbits(32):08x}" for url in again),
                        min(8.0, rng.expovariate(1 / 1.5)),
                        0.2 + rng.expovariate(1 / 0.3),
                    )
                )
    return planned


def _some(objects: tuple[str, ...], rng: random.Random) -> tuple[str, ...]:
    return tuple(rng.sample(objects, rng.randint(0, len(objects))))
