"""Compares `marline get` with curl: the same flags against the same server, over every version of HTTP.

Prints a table with a row for each subject, and exits 1 if outputs, files or exit statuses differ. `--markdown` prints the table
of the documents.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import shutil
import socket
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parent.parent
CURL_VERSIONS = {"1.1": ["--http1.1"], "2": ["--http2"]}
OWN_VERSIONS = {**CURL_VERSIONS, "3": ["--http3-only"]}
TIME_LIMIT_S = 20


class Application(BaseHTTPRequestHandler):
    """The application behind the server: it returns requests, and fails as its paths say."""

    protocol_version = "HTTP/1.1"
    failed: set[str] = set()

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, content: bytes, **fields: str) -> None:
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def content(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def handle_request(self) -> None:
        content = self.content()
        path, _, query = self.path.partition("?")
        if path.startswith("/app/status/"):
            self.answer(int(path.rsplit("/", 1)[1]), b"an error page\n")
        elif path.startswith("/app/location/"):
            self.answer(int(path.rsplit("/", 1)[1]), b"moved", Location="/app/echo?moved")
        elif path == "/app/loop":
            self.answer(302, b"", Location="/app/loop")
        elif path == "/app/flaky" and query not in self.failed:
            self.failed.add(query)
            self.answer(503, b"later", Retry_After="0")
        elif path == "/app/flaky":
            self.answer(200, b"at last")
        elif path == "/app/slow":
            time.sleep(5)
            self.answer(200, b"slow")
        elif path == "/app/cookie":
            self.answer(200, b"cookie", Set_Cookie="taste=sweet; Path=/; Expires=Fri, 31 Dec 2099 23:59:59 GMT")
        elif path == "/app/named":
            self.answer(200, b"named", Content_Disposition='attachment; filename="given.txt"')
        elif path == "/app/empty":
            self.close_connection = True
        else:
            self.answer(200, self.echo(content), Content_Type="application/json")

    def echo(self, content: bytes) -> bytes:
        kind = self.headers.get("Content-Type", "")
        text = content.decode("latin-1")
        if match := re.search("boundary=(.*)", kind):
            text, kind = text.replace(match[1], "BOUNDARY"), kind.replace(match[1], "BOUNDARY")
        names = ["Authorization", "Cookie", "Referer", "X-Own"]
        fields = {name: value for name in names if (value := self.headers.get(name))}
        if self.headers.get("User-Agent", "").startswith("own"):
            fields["User-Agent"] = self.headers["User-Agent"]
        echo = {"method": self.command, "path": self.path, "content": text, "type": kind, "fields": fields}
        return json.dumps(echo, sort_keys=True).encode() + b"\n"

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = handle_request


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def get_request(self):
        return super().get_request()[0], ("unix", 0)


class Relay(socketserver.ThreadingTCPServer):
    """Passes connections on to the server: as a proxy of HTTP after CONNECT, otherwise at once."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, target: int, is_proxy: bool) -> None:
        self.target, self.is_proxy, self.tunnels = target, is_proxy, 0
        super().__init__(("127.0.0.1", 0), RelayHandler)

    def handle_error(self, *_: object) -> None:
        pass


class RelayHandler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        if self.server.is_proxy:
            head = b""
            while b"\r\n\r\n" not in head:
                if not (more := self.request.recv(4096)):
                    return
                head += more
            self.server.tunnels += 1
            self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        with socket.create_connection(("127.0.0.1", self.server.target)) as other:
            back = threading.Thread(target=pump, args=(other, self.request), daemon=True)
            back.start()
            pump(self.request, other)
            back.join()


def pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class QuietServer(ThreadingHTTPServer):
    """A server whose clients may leave."""

    def handle_error(self, *_: object) -> None:
        pass


def started(server: socketserver.BaseServer) -> socketserver.BaseServer:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@dataclass
class Place:
    """Where the servers are."""

    directory: Path
    port: int
    relay: int
    proxy: int
    closed: int
    mutual: int
    old: int

    def fill(self, text: str) -> str:
        values = {
            "{url}": f"https://127.0.0.1:{self.port}",
            "{plain}": f"http://127.0.0.1:{self.port}",
            "{bare}": f"127.0.0.1:{self.port}",
            "{port}": str(self.port),
            "{relay}": f"127.0.0.1:{self.relay}",
            "{proxy}": f"127.0.0.1:{self.proxy}",
            "{closed}": f"127.0.0.1:{self.closed}",
            "{mutual}": f"https://127.0.0.1:{self.mutual}",
            "{old}": f"https://127.0.0.1:{self.old}",
            "{dir}": str(self.directory),
        }
        for name, value in values.items():
            text = text.replace(name, value)
        return text


@dataclass
class Outcome:
    status: int
    out: bytes
    err: bytes
    files: dict[str, bytes]
    times: dict[str, float]
    seconds: float


@dataclass
class Step:
    """One command line, and what is compared."""

    flags: str
    # Of curl, where that of `marline get` differs for a reason.
    curl_status: int | None = None
    # Of `marline get`, where that is neither curl's nor that of an error page.
    own_status: int | None = None
    # Of `marline get` alone, where curl reads without an end.
    alone: int | None = None
    compare: Callable[[bytes], bytes] = lambda out: out
    check: Callable[[Outcome], object] = lambda _: True
    # Of `marline get` alone, where curl 7.88 falls short of its manual.
    own_check: Callable[[Outcome], object] = lambda _: True
    versions: list[str] = field(default_factory=lambda: ["1.1", "2", "3"])
    files: bool = True
    variables: dict[str, str] = field(default_factory=dict)
    insecure: bool = True
    repeat: bool = False
    setup: Callable[[Path], None] = lambda _: None


def fields(out: bytes) -> bytes:
    """Headers without what differs between versions and moments."""
    text = re.sub(rb"HTTP/[0-9.]+ (\d+)[^\r]*", rb"HTTP \1", out)
    head, _, rest = text.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    left_out = (b"date:", b"alt-svc:", b"connection:", b"keep-alive:")
    lines = sorted(line.lower() for line in lines if not line.lower().startswith(left_out))
    return b"\n".join([first, *lines, b"", rest])


def cut(content: bytes) -> Callable[[Path], None]:
    return lambda directory: (directory / "big.bin").write_bytes(content) and None


def known(directory: Path) -> None:
    (directory / "hsts.txt").write_text('localhost "20991231 00:00:00"\n')
    (directory / "alt.txt").write_text('h2 127.0.0.1 1 h3 127.0.0.1 2 "20991231 00:00:00" 0 0\n')


def variables(out: bytes) -> bytes:
    """What curl says about a transfer as JSON, without what differs between versions and moments."""
    content, _, text = out.partition(b"|")
    found = json.loads(text)
    names = "content_type errormsg exitcode filename_effective http_code method num_connects num_redirects redirect_url referer"
    names += " remote_ip remote_port response_code scheme size_download size_upload url url_effective urlnum"
    kept = {name: found[name] for name in names.split()}
    kinds = {name: type(found[name]).__name__ for name in ("size_request", "speed_upload", "time_total", "local_port")}
    return content + json.dumps([kept, kinds], sort_keys=True).encode()


def header_variables(out: bytes) -> bytes:
    fields = json.loads(out.partition(b"|")[2])
    return json.dumps({name.lower(): fields[name] for name in ("content-type", "content-length")}).encode()


def certificates(out: bytes) -> bytes:
    """Certificates in PEM, without what curl says of each before it, and their number."""
    return b"".join(re.findall(b"-----BEGIN.*?-----END[^-]*-----|[0-9]+$", out, re.DOTALL))


def no_cookies_lines(out: bytes) -> bytes:
    return b"\n".join(line for line in out.splitlines() if line and not line.startswith(b"# "))


ERROR = 22
ROWS: list[tuple[str, list[Step] | str]] = [
    ("-L", [Step("-L {url}/app/location/302"), Step("-L -d a=b {url}/app/location/303"), Step("-L -d a=b {url}/app/location/307"), Step("-L --max-redirs 3 {url}/app/loop"), Step("-L -H X-Own:1 {url}/app/location/301"), Step("-L -X POST {url}/app/location/301"), Step("-L -X POST -d a=b {url}/app/location/302"), Step("-L -X POST -d a=b {url}/app/location/307")]),
    ("-d, -X, -T, -F, --url-query", [Step("-d a=b -d c=d {url}/app/echo"), Step("-d @{dir}/in.txt {url}/app/echo"), Step("--data-binary @{dir}/in.txt {url}/app/echo"), Step("--data-raw @x {url}/app/echo"), Step("--data-urlencode n=é& {url}/app/echo"), Step("--data-urlencode n=a\\nb\\_c {url}/app/echo"), Step('--json {"a":1} {url}/app/echo'), Step("-X DELETE {url}/app/echo"), Step("-G -d q=1 {url}/app/echo?p"), Step("-T {dir}/in.txt {url}/app/"), Step("-F a=b -F f=@{dir}/in.txt -F t=<{dir}/in.txt {url}/app/echo"), Step("-F f=@{dir}/in.txt;type=text/x;filename=n {url}/app/echo"), Step("--url-query a=b\\_c {url}/app/echo?p"), Step("--url-query +x=%20y --url-query plain --url-query =1 -d a=b {url}/app/echo"), Step("--url-query q=1 -G -d a=b {url}/app/echo"), Step("--url-query q@{dir}/in.txt {url}/app/echo", compare=bytes.lower)]),
    ("-I, -i", [Step("-I {url}/a.txt", compare=fields), Step("-i {url}/a.txt", compare=fields)]),
    ("-v", [Step("-v {url}/a.txt", check=lambda one: b"> GET /a.txt" in one.err and b"< HTTP/" in one.err)]),
    ("-w", [Step("-w %{http_code}|%{size_download}|%{url_effective}|%{content_type}|%{num_redirects}|%{method}|%{scheme}|%{remote_port}\\n {url}/a.txt"), Step("-L -w %{num_redirects}|%{response_code}|%header{content-type} {url}/app/location/302"), Step("-e http://r/ -w |%{json} {url}/a.txt", compare=variables), Step("-d a=b -w |%{json} {url}/app/echo", compare=variables), Step("-L -o file -w |%{json} {url}/app/location/301", compare=variables), Step("-w |%{header_json} {url}/a.txt", compare=header_variables), Step("-o /dev/null -w %{certs}|%{num_certs} {url}/a.txt", compare=certificates, check=lambda one: b"BEGIN CERTIFICATE" in one.out)]),
    ("-O", [Step("-O {url}/a.txt"), Step("-O -J {url}/app/named"), Step("--output-dir sub --create-dirs -O {url}/a.txt")]),
    ("-o, -o -, streaming", [Step("-o file {url}/big.bin"), Step("-o - {url}/big.bin"), Step("-o one -o two {url}/a.txt {url}/b.txt"), Step("{url}/a.txt {url}/b.txt"), Step("-o /dev/null {url}/a.txt {url}/b.txt"), Step("-o /dev/null {url}/n[1-3].txt")]),
    ("-k, -H", [Step("-H X-Own:1 {url}/app/echo"), Step("-H X-Own; {url}/app/echo"), Step("{url}/a.txt", insecure=False)]),
    ("-u, -b, -A, -e", [Step("-u me:secret -b a=b -A own/1 -e http://r/ {url}/app/echo"), Step("-b {dir}/jar {url}/app/echo")]),
    ("-c, --netrc", [Step("-c jar {url}/app/cookie", files=False), Step("-c - {url}/app/cookie", compare=no_cookies_lines), Step("--netrc-file {dir}/netrc {url}/app/echo")]),
    ("--compressed", [Step("--compressed {url}/text.html")]),
    ("--resolve, --connect-to", [Step("--resolve h.test:{port}:127.0.0.1 https://h.test:{port}/a.txt"), Step("--connect-to h.test:1:127.0.0.1:{port} https://h.test:1/app/echo")]),
    ("-x, proxy variables", [Step("-x {proxy} {url}/a.txt", versions=["1.1", "2"]), Step("{url}/a.txt", versions=["1.1", "2"], variables={"https_proxy": "http://{proxy}"}), Step("{url}/a.txt", variables={"https_proxy": "http://{closed}", "no_proxy": "127.0.0.1"})]),
    ("-4, -6", [Step("-4 https://localhost:{port}/a.txt"), Step("-6 --resolve h.test:{port}:::1 https://h.test:{port}/a.txt")]),
    ("--limit-rate", [Step("--limit-rate 200K -o file {url}/half.bin", own_check=lambda one: one.seconds > 0.9)]),
    ("--max-time", [Step("-m 0.5 {url}/app/slow")]),
    ("--connect-timeout, --retry", [Step("--connect-timeout 5 --retry 2 -o file {url}/app/flaky?{fresh}"), Step("--retry 1 --retry-delay 1 --retry-connrefused https://{closed}/", versions=["1.1"])]),
    ("-s, -S", [Step("-s https://{closed}/", versions=["1.1"], check=lambda one: not one.err), Step("-sS https://{closed}/", versions=["1.1"], check=lambda one: bool(one.err))]),
    ("-f, --fail-with-body", [Step("-f {url}/app/status/404"), Step("--fail-with-body {url}/app/status/404")]),
    ("error bodies", [Step("{url}/app/status/404", curl_status=0), Step("-o file {url}/app/status/500", curl_status=0)]),
    ("-R", [Step("-R -o file {url}/a.txt", check=lambda one: one.times["file"] == 1_000_000_000)]),
    ("-Z", [Step("-Z -o one -o two {url}/a.txt {url}/b.txt")]),
    ("--next, --fail-early, --proto, --stderr, -N", [Step("-H X-Own:1 {url}/app/echo --next -k -d a=b {url}/app/echo"), Step("-o one {url}/a.txt -: -k -o two {url}/b.txt"), Step("-s https://{closed}/ --next -k {url}/a.txt", curl_status=0, own_status=7, versions=["1.1"]), Step("--fail-early -o one -o two https://{closed}/ {url}/a.txt", versions=["1.1"]), Step("--fail-early -f -o one -o two {url}/app/status/404 {url}/a.txt"), Step("--fail-early -o one -o two {url}/a.txt {url}/b.txt"), Step("--proto =https {url}/a.txt"), Step("--proto =https {plain}/a.txt"), Step("--proto -https,ftp {plain}/a.txt"), Step("-L --proto-redir =http {url}/app/location/302"), Step("-L --proto =https --proto-redir all {url}/app/location/302"), Step("--proto-redir =http {url}/a.txt"), Step("--stderr messages -sS https://{closed}/", versions=["1.1"], files=False, check=lambda one: not one.err and one.files["messages"]), Step("--stderr - -sS https://{closed}/", versions=["1.1"], compare=lambda out: out[:0], check=lambda one: not one.err and one.out), Step("-N {url}/big.bin"), Step("--no-buffer {url}/a.txt")]),
    ("globbing", [Step("{url}/{a,b}.txt"), Step("-o got_#1 {url}/{a,b}.txt"), Step("-g {url}/{a}.txt", curl_status=0), Step("{url}/n[1-3].txt", compare=lambda out: out.replace(b"--_curl_--", b""))]),
    ("client certificate", [Step("--cert {dir}/cert.pem --key {dir}/key.pem {mutual}/app/echo", versions=["1.1"]), Step("-E {dir}/both.pem {mutual}/app/echo", versions=["1.1"])]),
    ("0-RTT across runs", "rustls does not let sessions be written to a file; within one run, they are resumed"),
    ("exit statuses", [Step("https://none.invalid/"), Step("https://{closed}/", versions=["1.1"]), Step("ftp//{bare}:x/", versions=[]), Step("-T {dir}/missing {url}/"), Step("--cacert {dir}/missing {url}/", insecure=False), Step("--max-filesize 10 -o file {url}/big.bin"), Step("-o {dir}/no/file {url}/a.txt"), Step("--tlsv1.3 {old}/", versions=["1.1", "2"], check=lambda one: re.search(b"alert:? protocol ?version", one.err, re.IGNORECASE))]),
    ("-C -", [Step("-C - -o big.bin {url}/big.bin", setup=cut((bytes(range(256)) * 4)[:1000]))]),
    ("progress bar", "terminal"),
    ("Happy Eyeballs", [Step("--resolve h.test:{port}:127.0.0.1,::1 https://h.test:{port}/a.txt")]),
    ("fallback where UDP is silent", [Step("https://{relay}/a.txt", versions=["any"])]),
    ("Alt-Svc cache, HSTS", [Step("--hsts hsts.txt http://localhost:{port}/a.txt -w %{scheme}", setup=known, files=False), Step("--alt-svc alt.txt {url}/a.txt", setup=known, files=False)]),
    ("http://", [Step("{plain}/a.txt"), Step("-d a=b {plain}/app/echo"), Step("-L {plain}/app/location/301")]),
    ("URL without scheme", [Step("{bare}/a.txt")]),
    ("user:password@", [Step("https://me:p%40ss@{bare}/app/echo")]),
    ("--interface, --unix-socket", [Step("--interface 127.0.0.1 {url}/a.txt"), Step("--interface lo {url}/a.txt"), Step("--unix-socket {dir}/socket http://h.test/app/echo", versions=["1.1"])]),
    ("config file", [Step("-K {dir}/config"), *[Step(f"{flag} {{url}}/a.txt", versions=["1.1"], alone=26) for flag in ("-K /dev/zero", "--netrc-file /dev/zero", "-H @/dev/zero", "-w @/dev/zero", "-b /dev/zero", "-d @/dev/zero")], *[Step(f"{flag} /dev/zero {{url}}/a.txt", versions=["1.1"], alone=0) for flag in ("--hsts", "--alt-svc")]]),
]


class Comparison:
    def __init__(self, marline: Path, place: Place) -> None:
        self.marline, self.place, self.fresh = marline, place, 0

    def run(self, program: list[str], step: Step, version: list[str]) -> Outcome:
        self.fresh += 1
        flags = self.place.fill(step.flags).replace("{fresh}", str(self.fresh)).split(" ")
        flags = [flag.replace("\\n", "\n").replace("\\_", " ") for flag in flags]
        insecure = ["-k"] if step.insecure else []
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            step.setup(directory)
            variables = {key: self.place.fill(value) for key, value in step.variables.items()}
            plain = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
            home = {"HOME": name, "XDG_CONFIG_HOME": name, "XDG_STATE_HOME": name}
            start = time.monotonic()
            done = subprocess.run(
                [*program, *insecure, *version, *flags],
                cwd=directory,
                env={**plain, **home, **variables},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TIME_LIMIT_S,
            )
            seconds = time.monotonic() - start
            paths = [path for path in directory.rglob("*") if path.is_file()]
            files = {str(path.relative_to(directory)): path.read_bytes() for path in paths}
            times = {str(path.relative_to(directory)): path.stat().st_mtime for path in paths}
        return Outcome(done.returncode, done.stdout, done.stderr, files, times, seconds)

    def differences(self, step: Step) -> list[str]:
        """What differs between curl and `marline get`."""
        found = []
        known: Outcome | None = None
        versions = {"any": []} if "any" in step.versions else OWN_VERSIONS
        for name, flags in versions.items():
            if name not in step.versions:
                continue
            own = self.run([str(self.marline), "get"], step, flags)
            if step.alone is not None:
                if own.status != step.alone:
                    found.append(f"HTTP/{name}: {step.flags}: status {own.status}: {own.err.decode()[-200:]}")
                continue
            if name in CURL_VERSIONS or known is None:
                known = self.run(["curl", "-sS"] if "-s" not in step.flags.split() else ["curl"], step, CURL_VERSIONS.get(name, []))
            found += [f"HTTP/{name}: {step.flags}: {text}" for text in compared(step, known, own)]
        return found


def compared(step: Step, curl: Outcome, own: Outcome) -> list[str]:
    found = []
    expected = curl.status if step.curl_status is None else step.curl_status
    wanted = ERROR if step.curl_status == 0 else curl.status
    wanted = wanted if step.own_status is None else step.own_status
    if curl.status != expected or own.status != wanted:
        found.append(f"status {own.status}, of curl {curl.status}: {own.err.decode()[-200:]}")
    if step.compare(curl.out) != step.compare(own.out):
        found.append(f"output {step.compare(own.out)[:300]!r}, of curl {step.compare(curl.out)[:300]!r}")
    if step.files and curl.files != own.files:
        sizes = [{name: len(content) for name, content in one.files.items()} for one in (own, curl)]
        found.append(f"files {sizes[0]}, of curl {sizes[1]}")
    for name, outcome in (("curl", curl), ("marline", own)):
        if not step.check(outcome):
            found.append(f"{name} falls short: {outcome.err.decode()[-300:]}")
    if not step.own_check(own):
        found.append(f"marline falls short: {own.err.decode()[-300:]}")
    return found


def on_terminal(command: list[str]) -> bytes:
    """What a command prints on a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=follower, stdin=follower)
    os.close(follower)
    printed = b""
    try:
        while more := os.read(leader, 4096):
            printed += more
    except OSError:
        pass
    process.wait()
    os.close(leader)
    return printed


def certificate(directory: Path) -> None:
    """A certificate for 127.0.0.1, which clients have, too."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([*command.split(), *names], cwd=directory, check=True, capture_output=True)
    both = (directory / "cert.pem").read_bytes() + (directory / "key.pem").read_bytes()
    (directory / "both.pem").write_bytes(both)


def over_tls(directory: Path) -> tuple[QuietServer, ssl.SSLContext]:
    """A server, and its settings of TLS."""
    server = QuietServer(("127.0.0.1", 0), Application)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server, context


def mutual(directory: Path) -> QuietServer:
    server, context = over_tls(directory)
    context.load_verify_locations(directory / "cert.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    return server


def old(directory: Path) -> QuietServer:
    """A server without TLS 1.3."""
    server, context = over_tls(directory)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return server


def prepare(directory: Path, application: int) -> None:
    public = directory / "public"
    public.mkdir()
    (public / "a.txt").write_text("first")
    (public / "b.txt").write_text("second")
    for number in range(1, 4):
        (public / f"n{number}.txt").write_text(str(number))
    (public / "big.bin").write_bytes(bytes(range(256)) * 4096)
    (public / "half.bin").write_bytes(bytes(400 << 10))
    (public / "text.html").write_text("<p>text</p>\n" * 5000)
    for path in public.iterdir():
        os.utime(path, (1_000_000_000, 1_000_000_000))
    (directory / "in.txt").write_text("one\ntwo\n")
    (directory / "jar").write_text("127.0.0.1\tFALSE\t/\tFALSE\t0\tfrom\tfile\n")
    (directory / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    (directory / "site.toml").write_text(
        f'listen = ["127.0.0.1:0"]\n[[site]]\ndir = "{public}"\n'
        f'[[site.route]]\npath = "/app/*"\nto = "http://127.0.0.1:{application}"\n'
    )


def serve(marline: Path, directory: Path) -> tuple[subprocess.Popen[str], int]:
    command = [marline, "serve", "--config", directory / "site.toml", "--cleartext"]
    environment = {**os.environ, "XDG_STATE_HOME": str(directory)}
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert server.stderr
    for line in server.stderr:
        if match := re.search(r"listening on https://[^ ]*:(\d+)", line):
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return server, int(match[1])
    raise SystemExit("the server did not start")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", action="store_true", help="print the table of the documents")
    parser.add_argument("--only", metavar="TEXT", help="only rows whose name has TEXT")
    parser.add_argument("--marline", type=Path, default=ROOT / "target/debug/marline")
    arguments = parser.parse_args()
    if not shutil.which("curl") or not shutil.which("openssl"):
        print("skipped: curl or openssl is not installed")
        return 0
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        application = started(QuietServer(("127.0.0.1", 0), Application))
        certificate(directory)
        prepare(directory, application.server_address[1])
        server, port = serve(arguments.marline.resolve(), directory)
        try:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                closed = probe.getsockname()[1]
            place = Place(
                directory,
                port,
                started(Relay(port, is_proxy=False)).server_address[1],
                started(Relay(port, is_proxy=True)).server_address[1],
                closed,
                started(mutual(directory)).server_address[1],
                started(old(directory)).server_address[1],
            )
            started(UnixServer(str(directory / "socket"), Application))
            (directory / "config").write_text(place.fill('# a comment\nurl = "{url}/app/echo"\nheader = "X-Own: 1"\n-d a=b\n'))
            return compare(Comparison(arguments.marline.resolve(), place), arguments)
        finally:
            server.terminate()
            server.wait()


def compare(comparison: Comparison, arguments: argparse.Namespace) -> int:
    failures = []
    if arguments.markdown:
        print("| subject | `marline get` |\n| --- | --- |")
    for name, steps in ROWS:
        if arguments.only and arguments.only not in name:
            continue
        reason, found = "", []
        if steps == "terminal":
            url = comparison.place.fill("{url}/half.bin")
            flags = ["-k", "--limit-rate", "130K", "-o", "/dev/null", url]
            printed = [on_terminal([*program, *flags]) for program in (["curl"], [str(comparison.marline), "get"])]
            found = [] if all(printed) else ["one of them shows no progress on a terminal"]
        elif isinstance(steps, str):
            reason = steps
        else:
            try:
                found = [text for step in steps for text in comparison.differences(step)]
            except subprocess.TimeoutExpired as error:
                found = [f"{error.cmd} takes longer than {TIME_LIMIT_S} s"]
        failures += found
        state = f"no: {reason}" if reason else ("differs" if found else "as curl")
        print(f"| `{name}` | {state} |" if arguments.markdown else f"{name:32} {state}")
        for text in found:
            print(f"    {text}", file=sys.stderr)
    if failures:
        print(f"curl-rows: {len(failures)} differences", file=sys.stderr)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
