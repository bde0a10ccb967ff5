"""Loads a page in Chromium over HTTP/3 and reports the protocol of each object.

`page_load.py client --server ADDR:PORT --name NAME --cert FILE --out DIR [--page /index.html]`

Prints one JSON document: the page, and for each resource its path, `nextHopProtocol`, status and bytes. Writes the
objects to DIR. Exits with 0 only if every resource came as `h3`.
"""

import argparse
import base64
import json
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

import websocket

# Seconds Chromium may take to start, and a page to load.
START = 20
LOAD = 30


def spki(cert: Path) -> str:
    """SHA-256 of the certificate's public key in base64, as Chromium's flag takes it."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.x509 import load_pem_x509_certificate

    public = load_pem_x509_certificate(cert.read_bytes()).public_key()
    digest = hashes.Hash(hashes.SHA256())
    digest.update(
        public.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return base64.b64encode(digest.finalize()).decode()


class Browser:
    """A headless Chromium with a separate profile."""

    def __init__(self, program: str, origin: str, address: str, cert: Path, profile: Path) -> None:
        host = origin.rpartition(":")[0]
        self._profile = profile
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
                f"--user-data-dir={profile}",
                "--enable-quic",
                f"--origin-to-force-quic-on={origin}",
                f"--ignore-certificate-errors-spki-list={spki(cert)}",
                f"--host-resolver-rules=MAP {host} {address}",
                "--remote-debugging-port=0",
                "--remote-allow-origins=*",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_) -> None:
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def page(self) -> "Page":
        """The first tab, once the browser is up."""
        deadline = time.monotonic() + START
        while time.monotonic() < deadline:
            try:
                port = (self._profile / "DevToolsActivePort").read_text().splitlines()[0]
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
                    targets = json.load(answer)
                return Page(
                    next(t["webSocketDebuggerUrl"] for t in targets if t["type"] == "page")
                )
            except (OSError, IndexError, StopIteration, ValueError):
                time.sleep(0.1)
        raise TimeoutError("Chromium did not start")


class Page:
    """A tab, driven through the DevTools protocol."""

    def __init__(self, url: str) -> None:
        self._socket = websocket.create_connection(url, timeout=LOAD)
        self._next = 0
        self._events: list[dict] = []

    def call(self, method: str, **params) -> dict:
        """Calls a method and returns its result; events that arrive meanwhile are kept."""
        self._next += 1
        self._socket.send(json.dumps({"id": self._next, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._next:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self._events.append(message)

    def evaluate(self, expression: str):
        """The value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return result["result"].get("value")

    def load(self, url: str) -> None:
        """Opens `url` and waits until it and its objects are loaded."""
        self.call("Network.enable")
        self.call("Page.enable")
        failure = self.call("Page.navigate", url=url).get("errorText")
        if failure:
            raise RuntimeError(f"{url}: {failure}")
        deadline = time.monotonic() + LOAD
        while self.evaluate("document.readyState") != "complete":
            if time.monotonic() > deadline:
                raise TimeoutError(f"{url}: not loaded after {LOAD} s")
            time.sleep(0.05)

    def bodies(self, names: set[str]) -> dict[str, bytes]:
        """Content of the responses whose path is in `names`."""
        found = {}
        for event in list(self._events):
            if event.get("method") != "Network.responseReceived":
                continue
            path = urllib.parse.urlsplit(event["params"]["response"]["url"]).path
            if path in names:
                body = self.call(
                    "Network.getResponseBody", requestId=event["params"]["requestId"]
                )
                raw = body["body"]
                found[path] = base64.b64decode(raw) if body["base64Encoded"] else raw.encode()
        return found


TIMINGS = """
[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].map(e => ({
  path: new URL(e.name).pathname, protocol: e.nextHopProtocol,
  status: e.responseStatus, bytes: e.encodedBodySize }))
"""


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    client = verbs.add_parser("client")
    client.add_argument("--server", required=True, help="ADDR:PORT")
    client.add_argument("--name", required=True, help="host name of the origin")
    client.add_argument("--cert", required=True, type=Path, help="the server's certificate, PEM")
    client.add_argument("--out", required=True, type=Path)
    client.add_argument("--page", default="/index.html")
    client.add_argument("--chromium", default="/usr/bin/chromium")
    client.add_argument("--case", help="part of the common command line")
    client.add_argument("--paths-from", type=Path, help="paths the page must have loaded")
    return parser.parse_args()


def main() -> int:
    """Loads the page; see the module's docstring for the exit status."""
    args = arguments()
    address, _, port = args.server.rpartition(":")
    origin = f"{args.name}:{port}"
    wanted = set(args.paths_from.read_text().split()) if args.paths_from else {args.page}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        with Browser(args.chromium, origin, address, args.cert, Path(profile)) as browser:
            page = browser.page()
            page.load(f"https://{origin}{args.page}")
            resources = page.evaluate(TIMINGS)
            for path, body in page.bodies(wanted).items():
                (args.out / path.lstrip("/")).write_bytes(body)
    print(json.dumps({"page": args.page, "resources": resources}, indent=1))
    other = [r["path"] for r in resources if r["protocol"] != "h3"]
    if other:
        print(f"error: not over h3: {', '.join(other)}", file=sys.stderr)
    missing = sorted(wanted - {r["path"] for r in resources})
    if missing:
        print(f"error: not loaded: {', '.join(missing)}", file=sys.stderr)
    return 1 if other or missing else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, RuntimeError, TimeoutError, websocket.WebSocketException) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
