"""Where rows are tried: a network of our own, certificates, files, the three programs, and their clients."""

import contextlib
import crypt
import dataclasses
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time

import apps
import http2

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Debian's, without their services (`tools/deps.sh servers`), and the nginx with HTTP/3 (`make -C interop nginx`).
NGINX = ROOT / "target/servers/usr/sbin/nginx"
NGINX_MODULES = ROOT / "target/servers/usr/lib/nginx/modules"
CADDY = next((str(path) for path in [ROOT / "target/servers/usr/bin/caddy"] if path.exists()), "caddy")
NGINX_H3 = ROOT / "target/nginx/nginx"
# With aioquic (`make -C interop aioquic`).
PEERS = ROOT / "interop/.venv/bin/python"
NAMES = ["a.test", "b.test", "www.test", "one.wild.test", "other.test", "acme.test", "ca.test"]
NETWORK = "MARLINE_PRODUCT_ROWS_ALONE"
PATIENCE = 10


def alone(program, arguments):
    """Starts again in a network of our own, with names of our own, where ports 80 and 443 are free; False where that cannot be."""
    if os.environ.get(NETWORK):
        return True
    # What is left running ends with the first process of the namespace.
    spaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    spaces += [] if os.getuid() == 0 else ["--map-root-user"]
    if subprocess.run([*spaces, "ip", "link", "set", "lo", "up"], capture_output=True, check=False).returncode:
        return False
    os.environ[NETWORK] = "1"
    hosts = f"127.0.0.1 localhost {' '.join(NAMES)}\\n::1 localhost six.test\\n"
    again = f'ip link set lo up && t=$(mktemp) && printf "{hosts}" >"$t" && mount --bind "$t" /etc/hosts && rm "$t" && exec "$@"'
    os.execvp("unshare", [*spaces, "sh", "-c", again, "sh", program, *arguments])


class Failed(Exception):
    """A program does not do as a row promises."""


@dataclasses.dataclass
class Response:
    version: str
    status: int
    headers: dict
    body: bytes
    exit: int

    def __str__(self):
        return f"{self.status} over HTTP/{self.version}"


def run(*command, timeout=30, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, timeout=timeout, check=False, **options)


class Lab:
    """Certificates and files that all rows share."""

    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        # Workers that are another user's read here.
        self.dir.chmod(0o755)
        self.certificates()
        self.files()

    def certificates(self):
        # The authority is new each time; no other program trusts it.
        self.ca, ca_key = self.dir / "ca.pem", self.dir / "ca.key"
        new = [
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
        made = run(*new, "-subj", "/CN=authority of tests", "-keyout", ca_key, "-out", self.ca)
        assert made.returncode == 0, made.stderr.decode()
        signed = [*new, "-CA", self.ca, "-CAkey", ca_key, "-addext", "basicConstraints=critical,CA:FALSE"]
        everyone = (
            ",".join(f"DNS:{name}" for name in ["localhost", "six.test", "*.wild.test", *NAMES])
            + ",IP:127.0.0.1,IP:::1"
        )
        for name, alternatives in {
            "all": everyone,
            "renewed": everyone,
            "a": "DNS:a.test",
            "b": "DNS:b.test",
            "app": "DNS:app.test,DNS:localhost,IP:127.0.0.1",
            "client": "DNS:ana",
        }.items():
            cert, key = self.dir / f"{name}.pem", self.dir / f"{name}.key"
            made = run(
                *signed,
                "-subj",
                f"/CN={name}",
                "-addext",
                f"subjectAltName={alternatives}",
                "-keyout",
                key,
                "-out",
                cert,
            )
            assert made.returncode == 0, made.stderr.decode()
        made = run(
            *new, "-subj", "/CN=stranger", "-keyout", self.dir / "stranger.key", "-out", self.dir / "stranger.pem"
        )
        assert made.returncode == 0, made.stderr.decode()

    def files(self):
        site = self.site = self.dir / "site"
        (site / "sub").mkdir(parents=True)
        text = "<!doctype html><title>index</title>\n" + "<p>a paragraph of the page\n" * 400
        (site / "index.html").write_text(text)
        (site / "404.html").write_text("our page for what is missing\n")
        (site / "sorry.html").write_text("our page for what broke\n")
        (site / "note.txt").write_text("caffè\n" * 10)
        (site / "sub/one.txt").write_text("one\n")
        (site / "sub/two words.txt").write_text("two\n")
        (site / "image.png").write_bytes(os.urandom(8000))
        (site / "big.bin").write_bytes(os.urandom(1 << 20) * 24)
        (site / "half.bin").write_bytes(bytes(500_000))
        (site / "app.js").write_text("export const answer = 42;\n" * 200)
        run("gzip", "-k", site / "app.js")
        # Content that tells whether it came from the file beside.
        (site / "app.js.br").write_bytes(b"content of the Brotli file")
        # bcrypt, which all three read.
        password = crypt.crypt("secret", crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=1 << 5))
        self.bcrypt = password
        (self.dir / "users").write_text(f"ana:{password}\n")

    def context(self, client=None):
        """A client's TLS, which trusts the authority."""
        context = ssl.create_default_context(cafile=str(self.ca))
        if client:
            context.load_cert_chain(self.dir / f"{client}.pem", self.dir / f"{client}.key")
        return context

    def server_context(self, name, *protocols):
        """TLS of an application."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.dir / f"{name}.pem", self.dir / f"{name}.key")
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context


def free(text):
    """Without colours, and without what differs from run to run."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).strip()


class Server:
    """One of the three programs with the configuration of a row, in a directory of its own."""

    def __init__(self, lab, config, marline, directory):
        self.lab, self.config, self.dir = lab, config, pathlib.Path(directory)
        self.dir.chmod(0o755)
        self.marline = marline
        self.process, self.helpers = None, []
        self.variables = {
            "dir": self.dir,
            "lab": lab.dir,
            "site": lab.site,
            "cert": lab.dir / "all.pem",
            "key": lab.dir / "all.key",
            "bcrypt": lab.bcrypt,
            "modules": NGINX_MODULES,
        }
        # A copy that a row may replace.
        shutil.copy(lab.dir / "all.pem", self.dir / "cert.pem")
        shutil.copy(lab.dir / "all.key", self.dir / "key.pem")
        self.write(config.text)

    @property
    def program(self):
        return self.config.program

    def write(self, text):
        """Writes the configuration, which `reload` reads."""
        self.path = self.dir / self.config.file
        text = self.config.whole(text)
        for name, value in self.variables.items():
            text = text.replace(f"@{name}@", str(value))
        self.path.write_text(text)

    def command(self):
        return self.config.command(self)

    @property
    def printed(self):
        """All that the program has printed or written to its log of errors."""
        texts = [self.dir / "output", self.dir / "error.log"]
        return free("\n".join(path.read_text(errors="replace") for path in texts if path.exists()))

    def start(self, command=None, environment=(), **options):
        output = (self.dir / "output").open("ab")
        environment = {**os.environ, "HOME": str(self.dir), **dict(environment)}
        command = [str(part) for part in command or self.command()]
        options = {"start_new_session": True, **options}
        process = subprocess.Popen(
            command, cwd=self.dir, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **options
        )
        output.close()
        self.process = self.process or process
        deadline = time.monotonic() + PATIENCE
        while not all(open_port(port) for port in self.config.ports):
            if process.poll() is not None:
                raise Failed(f"does not start: {reason(self.printed)}")
            if time.monotonic() > deadline:
                raise Failed(f"does not listen: {reason(self.printed)}")
            time.sleep(0.03)
        return process

    def helper(self, command, directory):
        """Starts another program, which ends with the server."""
        with (directory / "helper.output").open("ab") as output:
            process = subprocess.Popen(
                [str(part) for part in command],
                cwd=directory,
                env={**os.environ, "HOME": str(directory)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.helpers.append(process)
        return process

    def signal(self, number):
        self.process.send_signal(number)

    def reload(self):
        """Has the program read its configuration again, and waits until it says that it has done so or refused."""
        before = len(self.printed)
        if self.program == "caddy":
            done = run(
                CADDY,
                "reload",
                "--adapter",
                "caddyfile",
                "--config",
                self.path,
                env={**os.environ, "HOME": str(self.dir)},
            )
            return done.returncode == 0, free(done.stderr.decode())
        self.signal(signal.SIGHUP)
        words = (
            ["emerg", "start worker process "]
            if self.program == "nginx"
            else ["read the configuration again", "stays as it was"]
        )
        wait(lambda: any(word in self.printed[before:] for word in words), "says nothing about the reload")
        time.sleep(0.2)
        said = self.printed[before:]
        return not any(word in said for word in ("emerg", "stays as it was")), said

    def stop(self):
        for process in [*self.helpers, *([self.process] if self.process else [])]:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def reason(text):
    """The line of what a program printed that says what was wrong."""
    lines = [line for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if re.search(r"error|emerg|unknown|unrecognized", line, re.I)]
    return (wrong or lines or ["it prints nothing"])[0].strip()[:160]


def open_port(port):
    place = port if isinstance(port, tuple) else ("127.0.0.1", port)
    try:
        socket.create_connection(place, 1).close()
    except OSError:
        return False
    return True


def wait(condition, otherwise, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise Failed(otherwise)
        time.sleep(0.03)
    return found


class Trial:
    """What the check of a row has: the server, its clients, and the promises that were kept."""

    def __init__(self, lab, server):
        self.lab, self.server = lab, server
        self.kept, self.broken, self.skipped, self.notes = [], [], [], []
        self.order = []
        self.open = []

    @property
    def program(self):
        return self.server.program

    @contextlib.contextmanager
    def promise(self, name):
        """What a server with the row does; what fails inside is its fault."""
        self.order.append(name)
        try:
            yield
        except Skipped as why:
            self.skipped.append(f"{name}: {why}")
        except (
            Failed,
            AssertionError,
            OSError,
            EOFError,
            ValueError,
            KeyError,
            IndexError,
            subprocess.TimeoutExpired,
        ) as error:
            self.broken.append([name, f"{type(error).__name__}: {error}"[:300]])
        else:
            self.kept.append(name)

    def app(self, place=8001, name="app", **options):
        """An application of HTTP/1.1 that ends with the row."""
        app = apps.App(place, name, **options)
        self.open.append(app)
        return app

    def app2(self, port=8001, **options):
        """An application of HTTP/2 that ends with the row."""
        app = http2.App(port, **options)
        self.open.append(app)
        return app

    def close(self):
        for each in self.open:
            each.close()
        self.server.stop()

    def curl(self, url, *arguments, timeout=20):
        """A response by curl over HTTP/1.1, or as the arguments say."""
        head, body = self.server.dir / "head", self.server.dir / "body"
        for path in (head, body):
            path.unlink(missing_ok=True)
        version = [] if any(str(each).startswith("--http") for each in arguments) else ["--http1.1"]
        command = ["curl", "-sS", "--path-as-is", "--cacert", self.lab.ca, "-m", timeout, "-D", head, "-o", body]
        done = run(*command, "-w", "%{http_version} %{http_code}", *version, *arguments, url, timeout=timeout + 5)
        version, status = done.stdout.decode().split()
        # The last header, for there may be interim ones.
        blocks = head.read_bytes().decode(errors="replace").split("\r\n\r\n") if head.exists() else [""]
        headers = {}
        for line in "\n".join(blocks[-2:]).splitlines():
            name, colon, value = line.partition(":")
            if colon:
                name = name.strip().lower()
                headers[name] = f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
        content = body.read_bytes() if body.exists() else b""
        return Response(version, int(status), headers, content, done.returncode)

    def h3(self, url, *arguments, timeout=20):
        """A response by `marline get` over HTTP/3."""
        har, body = self.server.dir / "get.har", self.server.dir / "get.body"
        for path in (har, body):
            path.unlink(missing_ok=True)
        command = [self.server.marline, "get", "--http", "3", "--cacert", self.lab.ca, "--max-time", timeout]
        done = run(*command, "--har", har, "-o", body, *arguments, url, timeout=timeout + 5)
        if not har.exists():
            raise Failed(f"marline get: {free(done.stderr.decode())[:200]}")
        response = json.loads(har.read_text())["log"]["entries"][0]["response"]
        if not response["status"]:
            raise Failed(f"marline get: {free(done.stderr.decode())[:200]}")
        headers = {each["name"].lower(): each["value"] for each in response["headers"]}
        version = response["httpVersion"].lower().removeprefix("http/").removeprefix("h")
        return Response(
            version, response["status"], headers, body.read_bytes() if body.exists() else b"", done.returncode
        )

    def tls(self, name="localhost", port=443, client=None, source=None):
        """A connection with TLS, for bytes of one's own."""
        stream = socket.create_connection(("127.0.0.1", port), 5, source_address=(source, 0) if source else None)
        return self.lab.context(client).wrap_socket(stream, server_hostname=name)

    def served(self, name="localhost", port=443):
        """The common name of the certificate that a client of this name gets."""
        with self.tls(name, port) as stream:
            subject = dict(part[0] for part in stream.getpeercert()["subject"])
        return subject["commonName"]


class Skipped(Exception):
    """The check needs a tool that is not there."""


def equal(found, wanted, subject="the answer"):
    if found != wanted:
        raise Failed(f"{subject} is {found!r}, not {wanted!r}")


def contains(found, wanted, subject="the answer"):
    found = found.decode(errors="replace") if isinstance(found, bytes) else str(found)
    if wanted not in found:
        raise Failed(f"{subject} is {found[:200]!r}, without {wanted!r}")


def today():
    return datetime.date.today().isoformat()
