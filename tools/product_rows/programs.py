"""The three programs: how each is configured and started."""

import dataclasses
import os
import pwd
import subprocess

import rig


@dataclasses.dataclass
class Missing:
    """A program that has no configuration for a row."""

    reason: str


@dataclasses.dataclass
class Known:
    """A program that has what a row promises, where nothing can be tried."""

    where: str


@dataclasses.dataclass
class Nginx:
    """What a row adds to `http`, or with `main` beside it."""

    text: str
    main: str = ""
    # Whether it needs the newer one, which has HTTP/3.
    h3: bool = False
    modules: tuple = ()
    workers: str = "1"
    # Of each worker, at most.
    connections: int = 1024
    # Whether it is in the background, without which it does not exchange its program.
    daemon: bool = False
    ports: tuple = (443,)
    note: str = ""
    program = "nginx"
    file = "nginx.conf"

    def whole(self, text):
        user = "" if "user " in self.main else f"user {pwd.getpwuid(os.getuid()).pw_name};\n"
        modules = "".join(f"load_module @modules@/ngx_http_{name}_module.so;\n" for name in self.modules)
        temporary = "".join(
            f"    {kind}_temp_path @dir@/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        certificate = (
            "" if "ssl_certificate " in text else "    ssl_certificate @cert@;\n    ssl_certificate_key @key@;\n"
        )
        access = "" if "    access_log" in text else "    access_log off;\n"
        return (
            f"{modules}{user}{self.main}\nworker_processes {self.workers};\npid @dir@/pid;\nerror_log @dir@/error.log notice;\n"
            f"events {{ worker_connections {self.connections}; }}\nhttp {{\n"
            f"{temporary}{certificate}{access}"
            "    types { text/html html; text/plain txt; text/javascript js; image/png png; }\n"
            "    default_type application/octet-stream;\n"
            f"{text}\n}}\n"
        )

    def command(self, server):
        program = rig.NGINX_H3 if self.h3 else rig.NGINX
        return [
            program,
            "-c",
            server.path,
            "-e",
            server.dir / "error.log",
            *([] if self.daemon else ["-g", "daemon off;"]),
        ]

    def check(self, server):
        return [*self.command(server), "-t"]


@dataclasses.dataclass
class Caddy:
    """The sites of a row, and what it adds to the global options."""

    text: str
    options: str = ""
    ports: tuple = (443,)
    note: str = ""
    program = "caddy"
    file = "Caddyfile"

    def whole(self, text):
        automatic = "" if "auto_https" in self.options else "    auto_https disable_redirects\n"
        return (
            f"{{\n{automatic}    skip_install_trust\n    storage file_system @dir@/storage\n{self.options}\n}}\n"
            f"{text}\n"
        )

    def command(self, server):
        return [rig.CADDY, "run", "--adapter", "caddyfile", "--config", server.path]

    def check(self, server):
        return [rig.CADDY, "validate", "--adapter", "caddyfile", "--config", server.path]


@dataclasses.dataclass
class Marline:
    """The configuration of a row, which begins with keys of the server."""

    text: str
    ports: tuple = (443,)
    verb: str = "serve"
    flags: tuple = ()
    # Keys that the row leaves to their defaults.
    without: tuple = ()
    note: str = ""
    program = "marline"
    file = "site.toml"

    def whole(self, text):
        lines = ""
        top = text.split("\n[")[0]
        for key, value in {"listen": "127.0.0.1:443", "cert": "@cert@", "key": "@key@", "state": "@dir@/state"}.items():
            if key not in self.without and not any(line.startswith(f"{key} ") for line in top.splitlines()):
                lines += f'{key} = "{value}"\n'
        return lines + text + "\n"

    def command(self, server):
        return [server.marline, self.verb, "--config", server.path, *self.flags]

    def check(self, server):
        return [server.marline, "check", server.path]


def versions(marline):
    """The versions of the programs, as they name themselves; those that are absent are left out."""
    found = {}
    for name, command, key in [
        ("nginx", [rig.NGINX, "-v"], "nginx"),
        ("nginx with HTTP/3", [rig.NGINX_H3, "-v"], "nginx-h3"),
        ("Caddy", [rig.CADDY, "version"], "caddy"),
        ("marline", [marline, "--version"], "marline"),
    ]:
        try:
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        except OSError:
            continue
        text = (done.stdout + done.stderr).strip().splitlines()
        if text:
            found[key] = {"name": name, "version": text[0].split("/")[-1].split(" ")[1 if key == "marline" else 0]}
    return found
