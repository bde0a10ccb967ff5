"""What an operator does with the program itself."""

import contextlib
import dataclasses
import http.client
import os
import pathlib
import pwd
import shlex
import signal
import socket
import ssl
import threading
import time

import rig
from programs import Caddy, Known, Marline, Missing, Nginx
from rig import Failed, Skipped, contains, equal, run, wait
from rows import row
from rows.addresses import Later

PROXIED = {
    "nginx": "server { listen 443 ssl http2; root @site@; location /app/ { proxy_pass http://127.0.0.1:8001/; } }",
    "caddy": "https://localhost {\n tls @cert@ @key@\n root * @site@\n handle_path /app/* {\n reverse_proxy 127.0.0.1:8001\n }\n"
    " file_server\n}",
    "marline": '[[site]]\ndir = "@site@"\n[[site.route]]\npath = "/app/*"\nrewrite = "/{rest}"\nto = "http://127.0.0.1:8001"',
}


@row(
    "configuration check",
    nginx=Nginx(PROXIED["nginx"]),
    caddy=Caddy(PROXIED["caddy"]),
    marline=Marline(PROXIED["marline"]),
    start=False,
)
def configuration_check(t):
    def checked():
        done = run(*t.server.config.check(t.server), env={**os.environ, "HOME": str(t.server.dir)})
        return done.returncode, rig.free((done.stdout + done.stderr).decode())

    with t.promise("a good one"):
        equal(checked()[0], 0, "the status")
    wrong = {"nginx": "no_such_key on;", "caddy": "no_such_key {\n tls no\n}", "marline": "no_such_key = true"}[
        t.program
    ]
    text = f"{t.server.config.text}\n{wrong}"
    with t.promise("an unknown key, with its line"):
        t.server.write(text)
        line = next(n for n, each in enumerate(t.server.path.read_text().splitlines(), 1) if "no_such_key" in each)
        status, said = checked()
        equal(status != 0, True, "whether the status says that it is wrong")
        if not any(f":{line + more}" in said for more in (0, 1)):
            raise Failed(f"does not name line {line}: {said[-200:]}")
    with t.promise("a certificate that is not there"):
        t.server.write(t.server.config.text)
        path = t.server.path.read_text().replace(str(t.lab.dir / "all.pem"), "/none.pem")
        t.server.path.write_text(path)
        status, said = checked()
        equal(status != 0, True, "whether the status says that it is wrong")
        contains(said, "/none.pem", "the message")


@row(
    "configuration documented",
    nginx=Known("at nginx.org"),
    caddy=Known("at caddyserver.com"),
    marline=Marline('dir = "@site@"'),
    start=False,
)
def documented(t):
    with t.promise("by the program itself"):
        done = run(t.server.marline, "reference", "settings")
        for key in ("listen", "site.basic_auth", "http.max_connections", "proxy"):
            contains(done.stdout, f"`{key}`", "the reference")
    with t.promise("a manual page"):
        contains(run(t.server.marline, "man", "serve").stdout, ".TH", "the manual page")


@row(
    "graceful stop",
    nginx=Nginx(
        """
    server {
        listen 443 quic reuseport; listen 443 ssl; http2 on; root @site@;
        location /app/ { proxy_pass http://127.0.0.1:8001/; }
    }
""",
        h3=True,
    ),
    caddy=Caddy(PROXIED["caddy"], options=" grace_period 10s\n"),
    marline=Marline(PROXIED["marline"]),
)
def graceful(t):
    app = t.app()
    running = {
        "HTTP/1.1": Later(t.lab, "https://localhost/app/slow", "--http1.1"),
        "HTTP/2": Later(t.lab, "https://localhost/app/slow", "--http2"),
    }
    file = t.server.dir / "file"
    fetched = Later(t.lab, "https://localhost/big.bin", "--http2", "--limit-rate", "12M", "-o", file)
    third = {}

    def fetch():
        try:
            third["answer"] = t.h3("https://localhost/app/slow", timeout=8)
        except Failed as error:
            third["error"] = error

    thread = threading.Thread(target=fetch)
    thread.start()
    wait(lambda: len(app.requests) == 3 and file.exists() and file.stat().st_size, "the requests do not begin")
    t.server.signal(signal.SIGQUIT if t.program == "nginx" else signal.SIGTERM)
    for name, each in running.items():
        with t.promise(name):
            equal(each.ticks(), 20, "lines of the response")
    with t.promise("HTTP/2, a file"):
        fetched.ticks()
        equal(file.read_bytes() == (t.lab.site / "big.bin").read_bytes(), True, "whether the file is complete")
    with t.promise("HTTP/3"):
        thread.join()
        if "error" in third:
            raise third["error"]
        equal(third["answer"].body.count(b"tick"), 20, "lines of the response")
    with t.promise("ends"):
        wait(lambda: t.server.process.poll() is not None, "does not end")


class Visitors:
    """Clients that come again and again, each with a new connection, and count who was not served."""

    def __init__(self, t):
        self.t, self.served, self.failed, self.stop = t, 0, [], threading.Event()
        self.thread = threading.Thread(target=self.visit)
        self.thread.start()

    def visit(self):
        while not self.stop.is_set():
            try:
                connection = http.client.HTTPSConnection("localhost", context=self.t.lab.context(), timeout=5)
                connection.request("GET", "/note.txt", headers={"Connection": "close"})
                equal(connection.getresponse().status, 200)
                self.served += 1
            except (OSError, http.client.HTTPException, Failed) as error:
                self.failed.append(f"{type(error).__name__}: {error}")
            finally:
                connection.close()

    def done(self):
        self.stop.set()
        self.thread.join()


@row(
    "binary upgrade",
    nginx=Nginx(PROXIED["nginx"], daemon=True),
    caddy=Missing("has none; systemd restarts it"),
    marline=Marline('pid_file = "@dir@/pid"\n' + PROXIED["marline"]),
)
def upgrade(t):
    t.app()
    visitors = Visitors(t)
    slow = Later(t.lab, "https://localhost/app/slow", "--http2")
    time.sleep(0.3)
    before = running(t)
    with t.promise("another process serves"):
        os.kill(before, signal.SIGUSR2)
        wait(lambda: running(t) != before, "there is no new process")
        if t.program == "nginx":
            os.kill(before, signal.SIGQUIT)
        wait(lambda: ended(before), "the old process does not end")
    with t.promise("no client is refused"):
        visitors.done()
        equal((visitors.failed[:1], visitors.served > 5), ([], True), "failures, and whether clients were served")
    with t.promise("running requests complete"):
        equal(slow.ticks(), 20, "lines of the response")
    visitors.done()
    for process in {before, running(t)} - {None}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)


def ended(process):
    """Whether a process is gone, or waits for its parent to notice."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def running(t):
    """The process that serves now."""
    path = t.server.dir / "pid"
    return int(path.read_text()) if path.exists() and path.read_text().strip() else t.server.process.pid


@row(
    "systemd: notify, sockets, unit",
    nginx=Nginx(PROXIED["nginx"]),
    caddy=Caddy(PROXIED["caddy"]),
    marline=Marline(PROXIED["marline"]),
    start=False,
)
def systemd(t):
    path = str(t.server.dir / "notify")
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(path)
    os.chmod(path, 0o777)
    notify.settimeout(5)

    def told(word):
        while True:
            if word in notify.recv(4096).decode():
                return

    with t.promise("a unit"):
        units = {
            "nginx": [
                "/lib/systemd/system/nginx.service",
                rig.ROOT / "target/servers/lib/systemd/system/nginx.service",
            ],
            "caddy": [
                "/lib/systemd/system/caddy.service",
                rig.ROOT / "target/servers/lib/systemd/system/caddy.service",
            ],
            "marline": [rig.ROOT / "contrib/systemd/marline.service"],
        }[t.program]
        equal(any(pathlib.Path(unit).exists() for unit in units), True, "whether there is a unit")
    with t.promise("notify"):
        t.server.start(environment={"NOTIFY_SOCKET": path})
        told("READY=1")
        t.server.reload()
        told("RELOADING=1")
        told("READY=1")
        t.server.signal(signal.SIGTERM)
        told("STOPPING=1")
        wait(lambda: t.server.process.poll() is not None, "does not end")
    notify.close()
    t.server.stop()
    t.server.process = None
    with t.promise("sockets"):
        # As systemd would have them. The port is taken then, and who does not use the sockets cannot listen there.
        text = t.server.config.text
        t.server.write(
            {
                "nginx": text.replace("443", "7443"),
                "caddy": text.replace("//localhost", "//localhost:7443"),
                "marline": f'listen = "127.0.0.1:7443"\n{text}',
            }[t.program]
        )
        t.server.config = dataclasses.replace(t.server.config, ports=(7443,))
        with (
            socket.create_server(("127.0.0.1", 7443)) as stream,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
        ):
            datagrams.bind(("127.0.0.1", 7443))
            places = {3: stream.fileno(), 4: datagrams.fileno()}

            def pass_on():
                for place, number in places.items():
                    os.dup2(number, place + 100)
                for place in places:
                    os.dup2(place + 100, place)
                os.environ["LISTEN_PID"] = str(os.getpid())

            shell = f"LISTEN_PID=$$ LISTEN_FDS=2 exec {shlex.join(str(part) for part in t.server.command())}"
            t.server.start(["sh", "-c", shell], close_fds=False, preexec_fn=pass_on)

            def answers():
                if t.server.process.poll() is not None:
                    raise Failed(f"does not start: {rig.reason(t.server.printed)}")
                return t.curl("https://localhost:7443/note.txt", timeout=3).status == 200

            wait(answers, "does not answer at the sockets")


@row(
    "privilege drop",
    nginx=Nginx(PROXIED["nginx"], main="user nobody nogroup;\n"),
    caddy=Missing("has none; its unit has a user"),
    # Unlike nginx, of which a process stays root's, it reads the key as nobody.
    marline=Marline(
        'user = "nobody"\ngroup = "nogroup"\ncert = "@dir@/cert.pem"\nkey = "@dir@/key.pem"\n' + PROXIED["marline"]
    ),
    start=False,
)
def privileges(t):
    nobody = pwd.getpwnam("nobody")
    with t.promise("serves as another user"):
        if pathlib.Path("/proc/self/uid_map").read_text().split()[2] == "1":
            raise Skipped("needs root")
        (t.server.dir / "state").mkdir()
        for path in (t.server.dir / "state", t.server.dir / "key.pem"):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
        t.server.start()
        t.server.dir.chmod(0o755)
        equal(t.curl("https://localhost/note.txt").status, 200)
        users = [{int(user) for user in line.split()[1:]} for line in statuses(t.server.process.pid, "Uid:")]
        equal({nobody.pw_uid} in users, True, f"whether a process of {users} is nobody's")
        if t.program == "marline":
            equal(users, [{nobody.pw_uid}] * len(users), "the users of all its threads")


def processes(first):
    """A process and those that it started."""
    found = [first]
    for each in found:
        with contextlib.suppress(OSError):
            for task in pathlib.Path(f"/proc/{each}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def statuses(first, field):
    """A field of the status of each thread of a process and of those that it started."""
    for process in processes(first):
        for task in pathlib.Path(f"/proc/{process}/task").iterdir():
            with contextlib.suppress(OSError):
                for line in (task / "status").read_text().splitlines():
                    if line.startswith(field):
                        yield line


@row(
    "all cores",
    nginx=Nginx(PROXIED["nginx"], workers="auto"),
    caddy=Caddy(PROXIED["caddy"]),
    marline=Marline(PROXIED["marline"]),
)
def cores(t):
    count = len(os.sched_getaffinity(0))

    def used():
        ticks = {}
        for process in processes(t.server.process.pid):
            for task in pathlib.Path(f"/proc/{process}/task").iterdir():
                fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
                ticks[task.name] = int(fields[11]) + int(fields[12])
        return ticks

    def load(stop):
        context = t.lab.context()
        while not stop.is_set():
            with socket.create_connection(("127.0.0.1", 443), 5) as stream:
                with contextlib.suppress(ssl.SSLError, OSError):
                    context.wrap_socket(stream, server_hostname="localhost").close()

    with t.promise("handshakes of TLS"):
        before, stop = used(), threading.Event()
        threads = [threading.Thread(target=load, args=(stop,)) for _ in range(4)]
        for thread in threads:
            thread.start()

        def spent_by_task():
            return sorted((ticks - before.get(task, 0) for task, ticks in used().items()), reverse=True)

        # Few ticks of the clock are no measure.
        deadline = time.monotonic() + 60
        while sum(spent_by_task()) < 100 * count and time.monotonic() < deadline:
            time.sleep(0.1)
        stop.set()
        for thread in threads:
            thread.join()
        spent = spent_by_task()
        # Each of as many threads as there are cores has a good part of the work.
        equal(
            len([each for each in spent if each > sum(spent) / count / 3]) >= count,
            True,
            f"whether all cores work: {spent[:8]}",
        )
