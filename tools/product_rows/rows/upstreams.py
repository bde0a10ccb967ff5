"""Applications behind the server."""

import json

import apps
import http2
from programs import Caddy, Marline, Missing, Nginx
from rig import PEERS, Failed, Skipped, equal, run, wait
from rows import row

NOT_YET = "not in this release"


def nginx(location, around=""):
    return Nginx(f"{around}\n    server {{ listen 443 ssl http2; server_name localhost; location / {{ {location} }} }}")


def caddy(text):
    return Caddy(f"https://localhost {{\n tls @cert@ @key@\n {text}\n}}")


def marline(text, more=""):
    return Marline(f"[[site]]\n{text}\n{more}")


def names(t, count, *arguments):
    """Which applications answered, of so many requests."""
    found = []
    for _ in range(count):
        answer = t.curl("https://localhost/x", *arguments)
        equal(answer.status, 200, "the status")
        found.append(json.loads(answer.body)["app"])
    return found


@row(
    "one and many upstreams",
    nginx=nginx(
        "proxy_pass http://apps; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
        "upstream apps { server 127.0.0.1:8001; server 127.0.0.1:8002; }",
    ),
    caddy=caddy("reverse_proxy 127.0.0.1:8001 127.0.0.1:8002 {\n lb_policy round_robin\n }"),
    marline=marline('to = ["http://127.0.0.1:8001", "http://127.0.0.1:8002"]'),
)
def upstreams(t):
    t.app(8001, "one")
    t.app(8002, "two")
    with t.promise("in turn"):
        found = names(t, 8)
        equal((found.count("one"), found.count("two")), (4, 4), "the number of answers of each")
    with t.promise("content of requests"):
        answer = t.curl("https://localhost/x", "--data-binary", f"@{t.lab.site}/half.bin", "--http2")
        equal((answer.status, json.loads(answer.body)["method"]), (200, "POST"))
    with t.promise("the client's address"):
        fields = {
            name.lower(): value for name, value in json.loads(t.curl("https://localhost/x").body)["headers"].items()
        }
        equal(fields["x-forwarded-for"], "127.0.0.1", "X-Forwarded-For")


@row(
    "active health checks",
    nginx=Missing("needs nginx Plus, or a module that Debian's nginx does not have"),
    caddy=caddy(
        "reverse_proxy 127.0.0.1:8001 127.0.0.1:8002 {\n lb_policy round_robin\n health_uri /health\n health_interval 200ms\n }"
    ),
    marline=marline(
        'to = ["http://127.0.0.1:8001", "http://127.0.0.1:8002"]',
        '[site.proxy]\nhealth_path = "/health"\nhealth_interval = "1s"',
    ),
    start=False,
)
def health_checks(t):
    t.app(8001, "one")
    two = t.app(8002, "two")
    t.server.start()
    with t.promise("an ill application gets no requests"):
        wait(lambda: set(names(t, 4)) == {"one", "two"}, "one of two healthy applications gets no requests")
        two.healthy = False
        wait(lambda: set(names(t, 6)) == {"one"}, "requests go to an application that is ill")
    with t.promise("one that is well again does"):
        two.healthy = True
        wait(lambda: set(names(t, 4)) == {"one", "two"}, "an application that is well again gets no requests")


@row(
    "a dead upstream is passed over",
    nginx=nginx("proxy_pass http://apps;", "upstream apps { server 127.0.0.1:8001; server 127.0.0.1:8002; }"),
    caddy=caddy(
        "reverse_proxy 127.0.0.1:8001 127.0.0.1:8002 {\n lb_policy round_robin\n lb_try_duration 2s\n fail_duration 10s\n }"
    ),
    marline=marline('to = ["http://127.0.0.1:8001", "http://127.0.0.1:8002"]'),
)
def dead_upstream(t):
    t.app(8001, "one")
    with t.promise("no request fails"):
        equal(set(names(t, 12)), {"one"}, "who answers")
    with t.promise("nor one with content"):
        equal(set(names(t, 6, "--data-binary", "x" * 2000)), {"one"}, "who answers")


@row(
    "Unix socket upstream",
    nginx=nginx("proxy_pass http://unix:@dir@/app.sock;"),
    caddy=caddy("reverse_proxy unix/@dir@/app.sock"),
    marline=marline('to = "unix:@dir@/app.sock"'),
)
def unix_socket(t):
    app = t.app(t.server.dir / "app.sock", "behind a socket")
    with t.promise("requests"):
        equal(set(names(t, 4)), {"behind a socket"}, "who answers")
    with t.promise("content of requests"):
        t.curl("https://localhost/y", "--data-binary", f"@{t.lab.site}/half.bin")
        equal(len(app.requests[-1]["content"]), 500_000, "the size of the content")


@row(
    "TLS upstream",
    nginx=nginx(
        "proxy_pass https://127.0.0.1:8001; proxy_ssl_trusted_certificate @dir@/trusted.pem; proxy_ssl_verify on;"
        " proxy_ssl_name app.test; proxy_ssl_server_name on;"
    ),
    caddy=caddy(
        "reverse_proxy https://127.0.0.1:8001 {\n transport http {\n tls_trusted_ca_certs @dir@/trusted.pem\n"
        " tls_server_name app.test\n }\n }"
    ),
    marline=marline('to = "https://127.0.0.1:8001"', '[site.proxy.tls]\nca = "@dir@/trusted.pem"\nname = "app.test"'),
    start=False,
)
def tls_upstream(t):
    trusted = t.server.dir / "trusted.pem"
    trusted.write_bytes(t.lab.ca.read_bytes())
    t.app(8001, "with TLS", context=t.lab.server_context("app"))
    t.server.start()
    with t.promise("requests"):
        equal(set(names(t, 4)), {"with TLS"}, "who answers")
    with t.promise("a stranger's certificate is refused"):
        t.server.stop()
        trusted.write_bytes((t.lab.dir / "stranger.pem").read_bytes())
        t.server.process = None
        t.server.start()
        equal(t.curl("https://localhost/").status, 502, "the status")


@row(
    "HTTP/2 upstream",
    nginx=nginx("grpc_pass grpc://127.0.0.1:8001;"),
    caddy=caddy("reverse_proxy h2c://127.0.0.1:8001"),
    marline=marline('to = "h2c://127.0.0.1:8001"'),
)
def http2_upstream(t):
    app = t.app2(8001)
    with t.promise("without TLS"):
        equal([t.curl("https://localhost/x", "--http2").status for _ in range(3)], [200] * 3)
        equal((app.requests, app.refused), (3, 0), "requests over HTTP/2 and others")
    with t.promise("with TLS"):
        second = t.app2(8002, context=t.lab.server_context("app", "h2"))
        text = {
            "nginx": lambda text: text.replace("grpc://127.0.0.1:8001", "grpcs://127.0.0.1:8002"),
            "caddy": lambda text: text.replace(
                "h2c://127.0.0.1:8001",
                f"https://127.0.0.1:8002 {{\n transport http {{\n tls_trusted_ca_certs {t.lab.ca}\n versions 2\n }}\n }}",
            ),
            "marline": lambda text: text.replace(
                'to = "h2c://127.0.0.1:8001"',
                f'to = "https://127.0.0.1:8002"\nproxy = {{ tls = {{ ca = "{t.lab.ca}" }} }}',
            ),
        }[t.program](t.server.config.text)
        t.server.write(text)
        done, said = t.server.reload()
        if not done:
            raise Failed(f"refuses the configuration: {said[:200]}")
        equal(t.curl("https://localhost/x", "--http2").status, 200)
        equal(second.requests, 1, "requests over HTTP/2")


@row(
    "gRPC",
    nginx=nginx("grpc_pass grpc://127.0.0.1:8001;"),
    caddy=caddy("reverse_proxy h2c://127.0.0.1:8001 {\n flush_interval -1\n }"),
    marline=marline('to = "h2c://127.0.0.1:8001"'),
)
def grpc(t):
    t.app2(8001)
    fields = ("content-type", "application/grpc"), ("te", "trailers")
    with t.promise("messages and trailers"):
        client = http2.Client(("127.0.0.1", 443), "localhost", t.lab.context())
        client.request("POST", "/service/Method", *fields)
        client.send(b"\0\0\0\0\5hello", end=True)
        client.wait(http2.HEADERS)
        content, _ = client.wait(http2.DATA)
        equal(content, b"\0\0\0\0\5hello", "the message")
        _, flags = client.wait(http2.HEADERS)
        equal(flags & http2.END_STREAM, http2.END_STREAM, "the flag of the end of the trailers")
        client.close()
    with t.promise("streams in both directions"):
        client = http2.Client(("127.0.0.1", 443), "localhost", t.lab.context())
        client.stream.settimeout(5)
        client.request("POST", "/service/Stream", *fields)
        for message in (b"\0\0\0\0\3one", b"\0\0\0\0\3two"):
            client.send(message)
            content, _ = client.wait(http2.DATA)
            equal(content, message, "the message")
        client.close()


@row(
    "WebSocket from HTTP/1.1, 2, 3",
    nginx=Nginx(
        """
    map $http_upgrade $connection_upgrade { default upgrade; '' close; }
    server {
        listen 443 quic reuseport; listen 443 ssl; http2 on;
        location / {
            proxy_pass http://127.0.0.1:8001;
            proxy_http_version 1.1;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $connection_upgrade;
        }
    }
""",
        h3=True,
    ),
    caddy=caddy("reverse_proxy 127.0.0.1:8001"),
    marline=marline('to = "http://127.0.0.1:8001"'),
)
def websocket(t):
    t.app()
    with t.promise("HTTP/1.1"):
        with t.tls() as stream:
            apps.websocket(stream, "localhost", "/ws")
    with t.promise("HTTP/2"):
        client = http2.Client(("127.0.0.1", 443), "localhost", t.lab.context())
        client.stream.settimeout(5)
        equal(client.settings.get(http2.ENABLE_CONNECT_PROTOCOL), 1, "the setting of RFC 8441")
        client.request("CONNECT", "/ws", (":protocol", "websocket"), ("sec-websocket-version", "13"))
        client.wait(http2.HEADERS)
        client.send(apps.frame("hello"))
        content, _ = client.wait(http2.DATA)
        equal(content, apps.frame("hello"), "the frame that comes back")
        client.close()
    with t.promise("HTTP/3"):
        quic(t, "websocket", "localhost", 443, "/ws")


def quic(t, *arguments):
    """Runs the client of aioquic; fails as it does."""
    if not PEERS.exists():
        raise Skipped("needs make -C interop aioquic")
    done = run(PEERS, __file__.replace("rows/upstreams.py", "quic.py"), t.lab.ca, *arguments)
    if done.returncode:
        raise Failed((done.stderr.decode().strip().splitlines() or ["no error"])[-1])
    return done.stdout.decode()
