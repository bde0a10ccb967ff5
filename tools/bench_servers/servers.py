"""The servers: how each is configured, and what it takes to have it.

Each has the configuration that its documentation recommends for load: a worker for each core, no access log,
connections to the application that are kept, and limits on requests of a connection that a benchmark does not reach.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import programs
import rig
from tasks import Task

ROOT: Path = rig.ROOT
CLIENT = ROOT / "target/release/bench-load"
MARLINE = Path(os.environ.get("MARLINE", ROOT / "target/dist/marline")).resolve()
CADDY = ROOT / "target/caddy/caddy"
H2O = ROOT / "target/servers/usr/bin/h2o"
# A number that no run reaches.
ENDLESS = 1_000_000_000
# Connections of a worker: those of clients, those to the application, and of QUIC those that were closed lately.
CONNECTIONS = 16_384

NGINX_SITE = f"""
    sendfile on;
    tcp_nopush on;
    keepalive_requests {ENDLESS};
    open_file_cache max=100;
    quic_gso on;
    upstream application {{ server 127.0.0.1:@port@; keepalive 64; keepalive_requests {ENDLESS}; }}
    server {{
        listen 443 quic reuseport;
        listen 443 ssl reuseport;
        http2 on;
        add_header Alt-Svc 'h3=":443"; ma=86400';
        @location@
    }}
"""
NGINX_LOCATION = {
    "static": "root @site@;",
    "proxy": """location / {
            proxy_pass http://application;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header X-Forwarded-Host $host;
            proxy_max_temp_file_size 0;
        }""",
}
NGINX_APPLICATION = f"""
    sendfile on;
    tcp_nopush on;
    keepalive_requests {ENDLESS};
    open_file_cache max=100;
    server {{ listen 127.0.0.1:@port@ reuseport; root @site@; }}
"""
CADDY_SITE = "https://localhost {\n tls @cert@ @key@\n @location@\n}"
CADDY_LOCATION = {
    "static": "root * @site@\n file_server",
    "proxy": "reverse_proxy 127.0.0.1:@port@ {\n transport http {\n keepalive_idle_conns_per_host 64\n }\n }",
}
MARLINE_LOCATION = {"static": 'dir = "@site@"', "proxy": '[proxy]\nto = "http://127.0.0.1:@port@"'}
H2O_LOCATION = {"static": "file.dir: @site@", "proxy": 'proxy.reverse.url: "http://127.0.0.1:@port@/"'}


class Configuration(Protocol):
    """What `rig.Server` takes."""

    text: str

    def whole(self, text: str) -> str:
        """The file."""
        ...

    def command(self, server: "Placed") -> list[object]:
        """What runs the program with it."""
        ...


class Placed(Protocol):
    """A `rig.Server`, which has written its configuration."""

    path: Path


@dataclass
class H2o:
    """The configuration of h2o, for `rig.Server`."""

    text: str
    ports: tuple[int, ...] = (443,)
    program = "h2o"
    file = "h2o.yaml"

    def whole(self, text: str) -> str:
        """The file."""
        return text

    def command(self, server: Placed) -> list[object]:
        """What runs the program with it."""
        return [H2O, "-c", server.path]


def h2o(task: Task) -> H2o:
    """The user is ours: that of root would be `nobody`, who cannot read the key."""
    user = pwd.getpwuid(os.getuid()).pw_name
    return H2o(
        f"user: {user}\nnum-threads: {task.cores}\nmax-connections: {CONNECTIONS}\n"
        "listen:\n  host: 127.0.0.1\n  port: 443\n  ssl:\n    certificate-file: @cert@\n    key-file: @key@\n"
        "    ocsp-update-interval: 0\n"
        f"proxy.preserve-host: ON\nhosts:\n  default:\n    paths:\n      /:\n        {H2O_LOCATION[task.content]}\n"
    )


def nginx(task: Task) -> Configuration:
    """The nginx that has HTTP/3."""
    text = NGINX_SITE.replace("@location@", NGINX_LOCATION[task.content])
    made: Configuration = programs.Nginx(text, h3=True, workers=str(task.cores), connections=CONNECTIONS)
    return made


def application(port: int, workers: int) -> Configuration:
    """The application behind proxies: the same nginx, over HTTP/1.1 without TLS."""
    text = NGINX_APPLICATION.replace("@port@", str(port))
    made: Configuration = programs.Nginx(text, h3=True, workers=str(workers), connections=CONNECTIONS, ports=(port,))
    return made


def caddy(task: Task) -> Configuration:
    """Caddy without its interface for administration."""
    text = CADDY_SITE.replace("@location@", CADDY_LOCATION[task.content])
    made: Configuration = programs.Caddy(text, options="    admin off\n")
    return made


def marline(task: Task) -> Configuration:
    """`serve` and `proxy` as they are, but for the number of workers."""
    verb = "serve" if task.content == "static" else "proxy"
    made: Configuration = programs.Marline(f"workers = {task.cores}\n{MARLINE_LOCATION[task.content]}", verb=verb)
    return made


@dataclass(frozen=True)
class Server:
    """A server of the comparison."""

    name: str
    path: Path
    # What makes or installs the program.
    how: str
    version: tuple[str, ...]
    configuration: Callable[[Task], Configuration]
    versions: tuple[str, ...] = ("h1", "h2", "h3")
    about: str = ""

    def does(self, task: Task) -> bool:
        """Whether it has the version of HTTP."""
        return task.version in self.versions

    @property
    def present(self) -> bool:
        """Whether the program is there."""
        return shutil.which(self.path) is not None

    def environment(self, task: Task) -> dict[str, str]:
        """Variables: the runtime of Go takes its number of threads from one."""
        return {"GOMAXPROCS": str(task.cores)} if self.name == "Caddy" else {}

    def described(self) -> str:
        """Its version, as it prints it, and what it is built with."""
        done = subprocess.run([str(self.path), *self.version], capture_output=True, text=True, check=False)
        line = (done.stdout + done.stderr).strip().splitlines()[0]
        number = next((word for word in line.replace("/", " ").split() if word.lstrip("v")[:1].isdecimal()), line)
        return f"{number.lstrip('v')}{self.about}"


NGINX = Server("nginx", rig.NGINX_H3, "make -C interop nginx", ("-v",), nginx, about=", with the system's OpenSSL")
SERVERS = [
    NGINX,
    Server("Caddy", CADDY, "make -C interop/bench caddy", ("version",), caddy, about=", built with Go"),
    Server("h2o", H2O, "sh tools/deps.sh servers", ("--version",), h2o, ("h1", "h2"), ", of Debian, without HTTP/3"),
    Server("marline", MARLINE, "cargo build --profile dist -p marline-cli", ("--version",), marline),
]
