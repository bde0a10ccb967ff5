"""Pages with the counts and sizes of published ones, and content that is drawn from a seed."""

import base64
import csv
import random
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

KINDS: Final = ("html", "css", "js", "image", "other")

SPREAD: Final = 1.2
"""Standard deviation of the logarithm of sizes: a few objects of a page have most of its bytes."""

SMALLEST: Final = 120
"""Bytes of an object: what an image of nothing takes."""

SHARDED: Final = 20
"""A page with more images than this has them on a host of their own."""

SUFFIXES: Final = {"html": "html", "css": "css", "js": "js", "image": "png", "other": "json"}


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is known of a published page."""

    name: str
    counts: dict[str, int]
    """Objects of each of :data:`KINDS`."""
    size: int
    """Bytes of all of them."""


@dataclass(frozen=True, slots=True)
class Built:
    """A page in a directory."""

    url: str
    objects: tuple[str, ...]
    """The URLs of everything else."""

    @property
    def urls(self) -> tuple[str, ...]:
        """Of the page and its objects."""
        return (self.url, *self.objects)


def cloned(published: Path) -> list[Recipe]:
    """The 15 pages of table 5.1 of the thesis, with objects by kind."""
    return [
        Recipe(row["website"].lower(), {kind: int(row[kind]) for kind in KINDS}, int(row["size_kb"]) * 1000)
        for row in _rows(published / "002_table5_1_cloned_pages.csv")
    ]


def live(published: Path) -> list[Recipe]:
    """The 10 pages of table 5.2; it has no kinds, so the objects have them as those of table 5.1 do together."""
    known = cloned(published)
    all_of = {kind: sum(recipe.counts[kind] for recipe in known) for kind in KINDS}
    recipes = []
    for row in _rows(published / "002_table5_2_live_pages.csv"):
        left = int(row["objects"]) - 1
        counts = {kind: left * count // sum(all_of.values()) for kind, count in all_of.items()}
        counts["image"] += left - sum(counts.values())
        counts["html"] += 1
        recipes.append(Recipe(f"{row['website'].lower()}-live", counts, int(row["size_kb"]) * 1000))
    return recipes


def build(recipe: Recipe, root: Path, seed: int) -> Built:
    """Write a page into ``root``; equal seeds give equal pages."""
    rng = random.Random(f"{seed} {recipe.name}")
    www = f"www.{recipe.name}.test"
    static = f"static.{recipe.name}.test" if recipe.counts["image"] > SHARDED else www
    kinds = [kind for kind in KINDS for _ in range(recipe.counts[kind])]
    weights = [rng.lognormvariate(0.0, SPREAD) for _ in kinds]
    sizes = [max(SMALLEST, round(recipe.size * weight / sum(weights))) for weight in weights]
    directory = root / recipe.name
    directory.mkdir(parents=True, exist_ok=True)
    tags, urls = [], []
    for number, (kind, size) in enumerate(zip(kinds[1:], sizes[1:], strict=True)):
        name = f"{kind}-{number}.{SUFFIXES[kind]}"
        url = f"https://{static if kind == 'image' else www}/{recipe.name}/{name}"
        (directory / name).write_bytes(_content(kind, size, rng))
        tags.append(_tag(kind, url))
        urls.append(url)
    head = f"<!doctype html><title>{recipe.name}</title>\n" + "\n".join(tags) + "\n"
    padding = f"<!-- {_text(sizes[0] - len(head), rng)} -->"
    (directory / "index.html").write_text(head + padding, encoding="ascii")
    return Built(f"https://{www}/{recipe.name}/index.html", tuple(urls))


def _tag(kind: str, url: str) -> str:
    """How the page asks for an object."""
    return {
        "html": f'<iframe src="{url}"></iframe>',
        "css": f'<link rel="stylesheet" href="{url}">',
        "js": f'<script src="{url}"></script>',
        "image": f'<img src="{url}">',
        # Without credentials, as fonts of other origins and anonymous requests are asked for: browsers open
        # connections of their own for these.
        "other": f"<script>fetch('{url}', {{credentials: 'omit'}})</script>",
    }[kind]


def _content(kind: str, size: int, rng: random.Random) -> bytes:
    if kind == "image":
        return _image(size, rng)
    begin, end = {
        "html": ("<!doctype html><title></title><!-- ", " -->"),
        "css": ("/* ", " */"),
        "js": ("/* ", " */"),
        "other": ('"', '"'),
    }[kind]
    return f"{begin}{_text(size - len(begin) - len(end), rng)}{end}".encode("ascii")


def _text(length: int, rng: random.Random) -> str:
    """Random text that no format takes for a sign of its own."""
    return base64.b64encode(rng.randbytes(max(0, length))).decode("ascii").replace("/", "-")[: max(0, length)]


def _image(size: int, rng: random.Random) -> bytes:
    """A PNG of one pixel with a chunk that decoders skip: one that could not be decoded would end its request early."""
    frame = [
        _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)),
        _chunk(b"IDAT", zlib.compress(b"\0\0")),
        _chunk(b"IEND", b""),
    ]
    signature = b"\x89PNG\r\n\x1a\n"
    rest = size - len(signature) - sum(map(len, frame)) - 12
    padding = _chunk(b"paDd", rng.randbytes(max(0, rest)))
    return signature + frame[0] + padding + frame[1] + frame[2]


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def _rows(path: Path) -> list[dict[str, str]]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))
