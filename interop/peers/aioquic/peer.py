"""aioquic as an interop peer: `peer.py server|client`, the command line all peers have in common."""

import argparse
import asyncio
import ssl
import sys
from pathlib import Path

import client
import server

UNSUPPORTED = 127


class Unsupported(Exception):
    """The stack does not support the case; the text gives the reason."""


# Cases that aioquic supports in neither role.
LACKS = {"ecn": "aioquic neither sets nor counts ECN marks"}


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    serve = verbs.add_parser("server")
    serve.add_argument("--listen", required=True, help="ADDR:PORT")
    serve.add_argument("--www", required=True, type=Path)
    serve.add_argument("--cert", required=True, type=Path)
    serve.add_argument("--key", required=True, type=Path)
    serve.add_argument("--case", required=True)
    get = verbs.add_parser("client")
    get.add_argument("--case", required=True)
    get.add_argument("--server", required=True, help="ADDR:PORT")
    get.add_argument("--name", required=True)
    get.add_argument("--out", required=True, type=Path)
    get.add_argument("--paths-from", type=Path)
    get.add_argument("paths", nargs="*")
    return parser.parse_args()


def split(address: str) -> tuple[str, int]:
    """Splits ADDR:PORT, with or without brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


async def run(args: argparse.Namespace) -> None:
    """Runs the role in the arguments."""
    if reason := LACKS.get(args.case):
        raise Unsupported(reason)
    if args.verb == "server":
        await server.run(args, *split(args.listen))
        return
    if args.paths_from:
        args.paths += args.paths_from.read_text().splitlines()
    await client.run(args, *split(args.server))


def main() -> int:
    """Exit status: 0 done, 1 failed, 127 the peer does not support the case."""
    try:
        asyncio.run(run(arguments()))
    except Unsupported as reason:
        print(f"unsupported: {reason}", file=sys.stderr)
        return UNSUPPORTED
    except (OSError, ConnectionError, RuntimeError, ssl.SSLError, asyncio.TimeoutError) as error:
        print(f"error: {error!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
