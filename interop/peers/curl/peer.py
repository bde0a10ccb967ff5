"""libcurl over ngtcp2 as an interop peer: `peer.py client`, the command line all peers have in common."""

import argparse
import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from curl_cffi import AsyncCurl, Curl, CurlError, CurlHttpVersion, CurlInfo, CurlMOpt, CurlOpt

UNSUPPORTED = 127
# Concurrent requests; with more than servers allow, libcurl opens a second connection.
IN_FLIGHT = 50

# Cases that libcurl does not support, and why.
LACKS = {
    "versionnegotiation": "libcurl has no switch for the version",
    "chacha20": "libcurl with BoringSSL offers no choice of TLS 1.3 cipher suites",
    "resumption": "libcurl does not report whether a session was resumed",
    "zerortt": "libcurl with BoringSSL has no 0-RTT",
    "keyupdate": "libcurl has no call that initiates a key update",
    "ecn": "libcurl neither sets nor counts ECN marks",
    "connectionmigration": "libcurl has no call that migrates",
}

# Cases with a connection for each file.
SINGLE = {"handshakeloss", "handshakecorruption"}


class Unsupported(Exception):
    """The stack does not support the case; the text gives the reason."""


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", action="version", version=version())
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("server")
    get = verbs.add_parser("client")
    get.add_argument("--case", required=True)
    get.add_argument("--server", required=True, help="ADDR:PORT")
    get.add_argument("--name", required=True)
    get.add_argument("--out", required=True, type=Path)
    get.add_argument("--paths-from", type=Path)
    get.add_argument("paths", nargs="*")
    return parser.parse_known_args()[0]


def version() -> str:
    """The versions of libcurl and its libraries."""
    return Curl().version().decode().replace("libcurl/", "curl ", 1).replace("-IMPERSONATE", "")


class Downloads:
    """Downloads of files from one server."""

    def __init__(self, args: argparse.Namespace) -> None:
        host, _, self.port = args.server.rpartition(":")
        self.name, self.out = args.name, args.out
        self.address = f"{self.name}:{self.port}:{host}"

    async def one(self, path: str, perform: Callable) -> None:
        """Downloads `path` by `perform`, which runs a transfer."""
        target = self.out / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        curl = Curl()
        curl.setopt(CurlOpt.URL, f"https://{self.name}:{self.port}{path}".encode())
        curl.setopt(CurlOpt.RESOLVE, [self.address])
        curl.setopt(CurlOpt.HTTP_VERSION, CurlHttpVersion.V3ONLY)
        curl.setopt(CurlOpt.SSL_VERIFYPEER, 0)
        curl.setopt(CurlOpt.SSL_VERIFYHOST, 0)
        curl.setopt(CurlOpt.FAILONERROR, 1)
        # Waits for the existing connection instead of opening another.
        curl.setopt(CurlOpt.PIPEWAIT, 1)
        with target.open("wb") as file:
            curl.setopt(CurlOpt.WRITEDATA, file)
            await perform(curl)
        used = curl.getinfo(CurlInfo.HTTP_VERSION)
        curl.close()
        if used != CurlHttpVersion.V3:
            raise RuntimeError(f"{path}: HTTP version {used}")

    async def on_one_connection(self, paths: list[str]) -> None:
        """Downloads concurrently."""
        multi = AsyncCurl()
        multi.setopt(CurlMOpt.MAX_HOST_CONNECTIONS, 1)
        slots = asyncio.Semaphore(IN_FLIGHT)

        async def perform(curl: Curl) -> None:
            await multi.add_handle(curl)

        async def download(path: str) -> None:
            async with slots:
                await self.one(path, perform)

        try:
            await asyncio.gather(*map(download, paths))
        finally:
            await multi.close()

    async def on_a_connection_each(self, paths: list[str]) -> None:
        """Downloads one after another."""

        async def perform(curl: Curl) -> None:
            curl.perform()

        for path in paths:
            await self.one(path, perform)


async def run(args: argparse.Namespace) -> None:
    """Runs the role in the arguments."""
    if args.verb == "server":
        raise Unsupported("curl is not a server")
    if reason := LACKS.get(args.case):
        raise Unsupported(reason)
    paths = args.paths
    if args.paths_from:
        paths += args.paths_from.read_text().splitlines()
    downloads = Downloads(args)
    if args.case in SINGLE:
        await downloads.on_a_connection_each(paths)
    else:
        await downloads.on_one_connection(paths)


def main() -> int:
    """Exit status: 0 done, 1 failed, 127 the peer does not support the case."""
    try:
        asyncio.run(run(arguments()))
    except Unsupported as reason:
        print(f"unsupported: {reason}", file=sys.stderr)
        return UNSUPPORTED
    except (OSError, RuntimeError, CurlError) as error:
        print(f"error: {error!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
