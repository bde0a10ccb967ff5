"""Captures of clients that load pages over an emulated link."""

import base64
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from pages import Built
from plan import Visit

HERE: Final = Path(__file__).resolve().parent

SERVER: Final = "10.77.0.1"
"""The far end of `marline lab link`."""

GRACE_S: Final = 120.0
"""After the last visit has begun, the longest that a capture may take."""


class CaptureError(Exception):
    """Nothing can be captured; the text says why."""


@dataclass(frozen=True, slots=True)
class Programs:
    """What a capture needs on the machine."""

    marline: Path
    chromium: str


@dataclass(frozen=True, slots=True)
class Within:
    """What bounds a capture, and what it draws."""

    seconds: float
    """No visit begins later."""
    seed: int
    """Of the link."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """Of all names of the pages."""

    chain: Path
    key: Path
    spki: str
    """Of its public key, as Chromium's flag takes it."""

    @classmethod
    def make(cls, hosts: Sequence[str], directory: Path) -> Self:
        """A certificate that is valid for a month, by openssl."""
        chain, key = directory / "certificate.pem", directory / "key.pem"
        names = ",".join(f"DNS:{host}" for host in hosts)
        make = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "30",
        ]
        make += ["-subj", "/CN=pages", "-addext", f"subjectAltName={names}", "-keyout", str(key), "-out", str(chain)]
        subprocess.run(make, check=True, stderr=subprocess.DEVNULL)
        public = subprocess.run(
            ["openssl", "x509", "-in", str(chain), "-pubkey", "-noout"], check=True, stdout=subprocess.PIPE
        ).stdout
        der = subprocess.run(
            ["openssl", "pkey", "-pubin", "-outform", "der"], input=public, check=True, stdout=subprocess.PIPE
        ).stdout
        digest = subprocess.run(
            ["openssl", "dgst", "-sha256", "-binary"], input=der, check=True, stdout=subprocess.PIPE
        ).stdout
        return cls(chain, key, base64.b64encode(digest).decode("ascii"))


@dataclass(frozen=True, slots=True)
class Capture:
    """The files of a capture in its directory."""

    directory: Path
    link: str

    @property
    def packets(self) -> Path:
        """Packets as they enter the link."""
        return self.directory / "packets.pcapng"

    @property
    def key_log(self) -> Path:
        """Secrets of TLS, of all clients that write them."""
        return self.directory / "keys.log"

    @property
    def access_log(self) -> Path:
        """Requests, by the server."""
        return self.directory / "access.jsonl"

    @property
    def marker(self) -> Path:
        """When the datagram was sent that begins the capture, in seconds since 1970."""
        return self.directory / "marker"

    @property
    def visits_log(self) -> Path:
        """What the clients did."""
        return self.directory / "visits.jsonl"


def hosts_of(pages: Sequence[Built]) -> list[str]:
    """The names of all servers of pages."""
    return sorted({str(urlsplit(url).hostname) for page in pages for url in page.urls})


@dataclass(frozen=True, slots=True)
class Site:
    """What the server has."""

    root: Path
    hosts: Sequence[str]
    certificate: Certificate


def capture(to: Capture, site: Site, visits: Sequence[Visit], programs: Programs, within: Within) -> None:
    """Make the visits over the link of ``to``. Raises :class:`CaptureError`."""
    directory = to.directory
    directory.mkdir(parents=True, exist_ok=True)
    to.key_log.touch()
    hosts_file = directory / "hosts"
    hosts_file.write_text(
        "127.0.0.1 localhost\n" + "".join(f"{SERVER} {host}\n" for host in site.hosts), encoding="ascii"
    )
    plan = directory / "plan.json"
    plan.write_text(
        json.dumps(
            {
                "visits": [visit.to_json() for visit in visits],
                "hosts": list(site.hosts),
                "hosts_file": str(hosts_file),
                "server": SERVER,
                "marker": str(to.marker),
                "visits_log": str(to.visits_log),
                "key_log": str(to.key_log),
                "certificate": str(site.certificate.chain),
                "spki": site.certificate.spki,
                "marline": str(programs.marline),
                "chromium": programs.chromium,
                "seconds": within.seconds,
            },
            indent=1,
        ),
        encoding="utf-8",
    )
    server = [
        str(programs.marline),
        "serve",
        str(site.root),
        "--listen",
        f"{SERVER}:443",
        "--cert",
        str(site.certificate.chain),
    ]
    server += ["--key", str(site.certificate.key), "--access-log", str(to.access_log)]
    # The sizes of objects are those of the pages.
    server += ["--compress", "off"]
    command = [
        str(programs.marline),
        "lab",
        "link",
        "--link",
        to.link,
        "--seed",
        str(within.seed),
        "--pcap",
        str(to.packets),
    ]
    command += ["--server", f"exec {shlex.join(server)}", "--", "unshare", "--mount", sys.executable]
    command += [str(HERE / "drive.py"), str(plan)]
    log, limit = directory / "link.log", within.seconds + GRACE_S
    with log.open("wb") as out:
        try:
            done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=limit)
        except subprocess.TimeoutExpired as error:
            raise CaptureError(f"{to.link}: not finished {GRACE_S:g} s after its time") from error
    if done.returncode != 0:
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        raise CaptureError(f"{to.link}: {last[0] if last else f'status {done.returncode}'} ({log})")
