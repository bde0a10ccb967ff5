"""The first day of a server on a bare Debian, in the root file system and the network of packaging/check.sh.

    packaging/first_day.py ROOT    ROOT has the package installed

The package's server gets a certificate for a name from Pebble, an authority for tests, and Chromium loads a page of it
over HTTP/3. Then, while clients request over HTTP/1.1, 2 and 3, a connection for each request, it gets another
certificate by a reload and another binary by an upgrade, twice: no request may fail. Prints what happened; ends with 1
if something did not.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).resolve().parent.parent
PEBBLE = HERE / "target" / "pebble"
LOAD = HERE / "target" / "release" / "bench-load"
BROWSER = HERE / "interop" / ".venv" / "bin" / "python"
NAME = "www.marline.example"
PAGE = "<!doctype html><title>hello</title>"
# Seconds for each thing to happen.
PATIENCE = 60
# Seconds of requests, and how many there are at least in each of them.
SECONDS, LEAST = 16, 500
VERSIONS = ("1.1", "2", "3")
CONFIGURATION = """
listen = ":443"
redirect_http = ":80"

[acme]
contact = "you@marline.example"
directory = "https://127.0.0.1:14000/dir"
ca = "pebble.pem"

[[site]]
names = "www.marline.example"
dir = "/var/www"
"""
# The same with a certificate from a file.
OTHER_CONFIGURATION = """
listen = ":443"
redirect_http = ":80"

[[site]]
names = "www.marline.example"
dir = "/var/www"
cert = "other.pem"
key = "other.key"
"""


def wait(what: str, check: Callable[[], bool]) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not check():
        if time.monotonic() > deadline:
            sys.exit(f"failed: {what} did not happen in {PATIENCE} s")
        time.sleep(0.1)
    print(what, flush=True)


def served() -> bytes:
    """The certificate of the server in DER; empty if it does not answer."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection(("127.0.0.1", 443), timeout=5) as plain,
            context.wrap_socket(plain, server_hostname=NAME) as encrypted,
        ):
            return encrypted.getpeercert(binary_form=True) or b""
    except OSError:
        return b""


def certificate(place: Path, file: str, names: str) -> None:
    """A certificate signed by itself, and its key."""
    key = place / f"{file}.key"
    command = [
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
    command += ["-subj", "/CN=other", "-addext", f"subjectAltName={names}", "-keyout", str(key)]
    subprocess.run([*command, "-out", str(place / f"{file}.pem")], check=True, capture_output=True)


@contextlib.contextmanager
def running(*command: str | Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is ended afterwards."""
    process = subprocess.Popen(
        [str(part) for part in command],
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def listens() -> bool:
    """Whether the authority accepts connections."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", 14000)) == 0


@contextlib.contextmanager
def authority(place: Path) -> Iterator[None]:
    """Pebble, and the name server by which it finds this machine."""
    certificate(place, "pebble", "IP:127.0.0.1")
    config = {
        "listenAddress": "127.0.0.1:14000",
        "managementListenAddress": "127.0.0.1:15000",
        "certificate": str(place / "pebble.pem"),
        "privateKey": str(place / "pebble.key"),
        "httpPort": 80,
        "tlsPort": 443,
        "retryAfter": {"authz": 1, "order": 1},
    }
    (place / "pebble.json").write_text(json.dumps({"pebble": config}))
    names = ["-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-dnsserver", "127.0.0.1:8053"]
    others = ["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""]
    pebble: list[str | Path] = [PEBBLE / "pebble", "-config", place / "pebble.json", "-dnsserver", "127.0.0.1:8053"]
    with (
        running(PEBBLE / "pebble-challtestsrv", *names, *others),
        running(*pebble, PEBBLE_VA_NOSLEEP="1"),
    ):
        wait("an authority", listens)
        yield


def browse(place: Path) -> None:
    """Loads the page in Chromium; fails unless it comes over HTTP/3."""
    (place / "served.pem").write_text(ssl.DER_cert_to_PEM_cert(served()))
    command = [str(BROWSER), str(HERE / "interop" / "chromium" / "page_load.py"), "client", "--server", "127.0.0.1:443"]
    command += ["--name", NAME, "--cert", str(place / "served.pem"), "--out", str(place), "--page", "/index.html"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"failed: Chromium did not load the page over HTTP/3: {done.stdout}{done.stderr}")
    print("Chromium loads the page over HTTP/3", flush=True)


def load() -> list[subprocess.Popen[str]]:
    """Clients of each version, which request for some seconds."""
    shared = ["--server", "127.0.0.1:443", "--name", NAME, "--path", "/index.html", "--bytes", str(len(PAGE))]
    shared += ["--connections", "4", "--reuse", "full", "--seconds", str(SECONDS)]
    return [
        subprocess.Popen([str(LOAD), *shared, "--http", version], stdout=subprocess.PIPE, text=True)
        for version in VERSIONS
    ]


def judge(clients: list[subprocess.Popen[str]]) -> None:
    """Fails if a request failed, or if there were too few."""
    total, failures = 0.0, []
    for version, client in zip(VERSIONS, clients, strict=True):
        report = json.loads(client.communicate()[0])
        total += report["requests"] / report["seconds"]
        print(f"HTTP/{version}: {report['requests']} requests, {report['errors']} failed", flush=True)
        if report["errors"]:
            failures.append(f"HTTP/{version}: {report['error']}")
    print(f"{total:.0f} requests a second", flush=True)
    if failures:
        sys.exit("failed: " + "; ".join(failures))
    if total < LEAST:
        sys.exit(f"failed: fewer than {LEAST} requests a second say little")


def changed(process: Callable[[], int], before: int) -> Callable[[], bool]:
    """Whether there is another process than before."""
    return lambda: process() not in (0, before)


def day(root: Path) -> None:
    """All of it."""
    etc = root / "etc" / "marline"
    (root / "var" / "www").mkdir(parents=True, exist_ok=True)
    (root / "var" / "www" / "index.html").write_text(PAGE)
    pid_file = root / "run" / "marline.pid"

    def process() -> int:
        text = pid_file.read_text().strip() if pid_file.exists() else ""
        return int(text or 0)

    server: list[str | Path] = ["chroot", root, "/usr/bin/marline", "serve", "--config", "/etc/marline/site.toml"]
    server += ["--state", "/var/lib/marline", "--pid-file", "/run/marline.pid", "--error-log", "/var/log/marline.log"]
    with authority(etc):
        (etc / "site.toml").write_text(CONFIGURATION)
        with running(*server):
            try:
                wait("a certificate of the authority", lambda: b"Pebble" in served())
                browse(etc)
                clients = load()
                time.sleep(2)
                certificate(etc, "other", f"DNS:{NAME}")
                other = ssl.PEM_cert_to_DER_cert((etc / "other.pem").read_text())
                (etc / "site.toml").write_text(OTHER_CONFIGURATION)
                os.kill(process(), signal.SIGHUP)
                wait("another certificate after a reload", lambda: served() == other)
                for count in ("an upgrade", "a second upgrade"):
                    before = process()
                    # As packages do it: a new file in the place of the old one.
                    binary = root / "usr" / "bin" / "marline"
                    shutil.copy2(binary, binary.with_name("marline.new"))
                    binary.with_name("marline.new").rename(binary)
                    os.kill(before, signal.SIGUSR2)
                    wait(f"another process after {count}", changed(process, before))
                judge(clients)
            finally:
                log = root / "var" / "log" / "marline.log"
                if log.exists() and sys.exc_info()[0] is not None:
                    print(log.read_text()[-4000:], file=sys.stderr)
                if process():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process(), signal.SIGTERM)


def main() -> None:
    """Says what is missing, or does it."""
    chromium = shutil.which("chromium") and BROWSER.exists()
    missing = [
        what
        for is_there, what in (
            ((PEBBLE / "pebble").exists(), "Pebble (make acme)"),
            (LOAD.exists(), "the client (make -C interop/bench load)"),
            (chromium, "Chromium (make -C interop chromium)"),
        )
        if not is_there
    ]
    if missing:
        print(f"skipped: there is no {', no '.join(missing)}")
        return
    day(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
