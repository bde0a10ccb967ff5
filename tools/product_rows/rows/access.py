"""Who may request, and how much."""

import contextlib
import json
import socket
import time

from programs import Caddy, Marline, Missing, Nginx
from rig import Failed, Skipped, equal, run
from rows import row
from rows.upstreams import quic

ELSEWHERE = ("--interface", "127.0.0.2")


@row(
    "basic authentication",
    nginx=Nginx('server { listen 443 ssl http2; root @site@; auth_basic "staff"; auth_basic_user_file @lab@/users; }'),
    caddy=Caddy(
        "https://localhost {\n tls @cert@ @key@\n root * @site@\n basicauth {\n ana @bcrypt@\n }\n file_server\n}"
    ),
    marline=Marline('[[site]]\ndir = "@site@"\nbasic_auth = "@lab@/users"\nrealm = "staff"'),
)
def basic_auth(t):
    with t.promise("only with the password"):
        answer = t.curl("https://localhost/note.txt")
        equal((answer.status, answer.headers.get("www-authenticate", "")[:5].lower()), (401, "basic"))
        equal(t.curl("https://localhost/note.txt", "-u", "ana:wrong").status, 401)
        equal(t.curl("https://localhost/note.txt", "-u", "ben:secret").status, 401)
        for version in ("1.1", "2"):
            equal(t.curl("https://localhost/note.txt", "-u", "ana:secret", f"--http{version}").status, 200)


@row(
    "allow and deny lists",
    nginx=Nginx(
        "server { listen 443 ssl http2; root @site@;"
        " location /sub/ { allow 127.0.0.2; deny all; } location /note.txt { deny 127.0.0.2; allow all; } }"
    ),
    caddy=Caddy(
        "https://localhost {\n tls @cert@ @key@\n root * @site@\n"
        " @outside {\n path /sub/*\n not remote_ip 127.0.0.2\n }\n respond @outside 403\n"
        " @denied {\n path /note.txt\n remote_ip 127.0.0.2\n }\n respond @denied 403\n file_server\n}"
    ),
    marline=Marline(
        '[[site]]\ndir = "@site@"\n[[site.route]]\npath = "/sub/*"\nallow = "127.0.0.2"\n'
        '[[site.route]]\npath = "/note.txt"\ndeny = "127.0.0.2"'
    ),
)
def networks(t):
    with t.promise("allow"):
        statuses = [t.curl("https://localhost/sub/one.txt", *source).status for source in ([], ELSEWHERE)]
        equal(statuses, [403, 200], "the statuses")
    with t.promise("deny"):
        statuses = [t.curl("https://localhost/note.txt", *source).status for source in ([], ELSEWHERE)]
        equal(statuses, [200, 403], "the statuses")


@row(
    "rate limit",
    nginx=Nginx(
        """
    limit_req_zone $binary_remote_addr zone=clients:1m rate=2r/s;
    limit_req_status 429;
    server { listen 443 ssl http2; root @site@; limit_req zone=clients burst=3 nodelay; }
"""
    ),
    caddy=Missing("needs a module that Debian's Caddy does not have"),
    marline=Marline('[[site]]\ndir = "@site@"\nrate = "2/s"\nburst = 4'),
)
def rate(t):
    def statuses(*arguments):
        # On one connection, so that all come at once.
        done = run(
            *["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}\n", "--cacert", t.lab.ca, "--http2", *arguments],
            *["https://localhost/note.txt?[1-12]"],
        )
        return [int(line) for line in done.stdout.split()]

    with t.promise("429"):
        found = statuses()
        equal((found[:3], found[-1], len(found)), ([200] * 3, 429, 12), "the first statuses, and the last")
    with t.promise("each client for itself"):
        equal(t.curl("https://localhost/note.txt", *ELSEWHERE).status, 200)
    with t.promise("less is answered again"):
        time.sleep(1.5)
        equal(t.curl("https://localhost/note.txt").status, 200)


@row(
    "connection limit",
    nginx=Nginx(
        """
    limit_conn_zone $binary_remote_addr zone=addresses:1m;
    server { listen 443 ssl http2; limit_conn addresses 4; location / { proxy_pass http://127.0.0.1:8001; proxy_buffering off; } }
"""
    ),
    caddy=Missing("has none"),
    marline=Marline('[[site]]\nto = "http://127.0.0.1:8001"\n[http]\nmax_tcp_connections_per_address = 4'),
)
def connections(t):
    t.app()
    request = b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with contextlib.ExitStack() as stack:
        with t.promise("further ones are refused"):
            for _ in range(4):
                stream = stack.enter_context(t.tls())
                stream.sendall(request)
                equal(stream.recv(12), b"HTTP/1.1 200", "the answer on a connection within the limit")
            equal(refused(t), True, "whether one more is refused")
        with t.promise("others are not"):
            with t.tls(source="127.0.0.2") as stream:
                stream.sendall(request)
                equal(stream.recv(12), b"HTTP/1.1 200", "the answer to another address")


def refused(t):
    try:
        with t.tls() as stream:
            stream.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return stream.recv(12) in (b"HTTP/1.1 503", b"HTTP/1.1 429", b"")
    except TimeoutError:
        return False
    except OSError:
        return True


@row(
    "client certificates",
    nginx=Nginx(
        "server { listen 443 ssl http2; ssl_client_certificate @lab@/ca.pem; ssl_verify_client on;"
        " location / { proxy_pass http://127.0.0.1:8001; proxy_set_header X-Client $ssl_client_s_dn; } }"
    ),
    caddy=Caddy(
        "https://localhost {\n tls @cert@ @key@ {\n client_auth {\n mode require_and_verify\n trusted_ca_cert_file @lab@/ca.pem\n"
        " }\n }\n reverse_proxy 127.0.0.1:8001 {\n header_up X-Client {http.request.tls.client.subject}\n }\n}"
    ),
    marline=Marline(
        '[[site]]\nto = "http://127.0.0.1:8001"\nclient_certificates.ca = "@lab@/ca.pem"\n'
    ),
)
def client_certificates(t):
    t.app()
    with_certificate = ("--cert", t.lab.dir / "client.pem", "--key", t.lab.dir / "client.key")
    stranger = ("--cert", t.lab.dir / "stranger.pem", "--key", t.lab.dir / "stranger.key")
    with t.promise("only with a certificate of the authority"):
        for version in ("--http1.1", "--http2"):
            answer = t.curl("https://localhost/", version, *with_certificate)
            equal((answer.exit, answer.status), (0, 200))
        for arguments in ([], stranger):
            status = refusal(t, *arguments)
            if status == 200:
                raise Failed("answers without it")
    with t.promise("the application sees its subject"):
        answer = t.curl("https://localhost/", *with_certificate)
        fields = {name.lower(): value for name, value in json.loads(answer.body)["headers"].items()}
        if not any("client" in value for name, value in fields.items() if name.startswith(("x-", "client-cert"))):
            raise Failed(f"no field of {sorted(fields)} names it")


def refusal(t, *arguments):
    """The status of the answer, 0 where the handshake fails."""
    return t.curl("https://localhost/", *arguments).status


@row(
    "0-RTT with replay protection",
    nginx=Nginx(
        """
    server {
        listen 443 quic reuseport; listen 443 ssl; http2 on;
        ssl_early_data on;
        location / { proxy_pass http://127.0.0.1:8001; proxy_set_header Early-Data $ssl_early_data; }
    }
""",
        h3=True,
        note="not over HTTP/3 with OpenSSL",
    ),
    caddy=Caddy("https://localhost {\n tls @cert@ @key@\n reverse_proxy 127.0.0.1:8001\n}"),
    marline=Marline('[[site]]\nto = "http://127.0.0.1:8001"'),
)
def early_data(t):
    app = t.app()

    def early():
        return sum(each["path"].endswith("?early") for each in app.requests)

    with t.promise("0-RTT"):
        quic(t, "replay", "localhost", 443, "/early")
        equal(early() > 0, True, "whether the application got the request")
    with t.promise("a replay is refused"):
        if not early():
            raise Skipped("needs a request in 0-RTT")
        equal(early(), 1, "how often the application gets the request")


@row(
    "PROXY protocol",
    nginx=Nginx(
        "server { listen 443 ssl http2 proxy_protocol; set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol;"
        " location / { proxy_pass http://127.0.0.1:8001; proxy_set_header X-Forwarded-For $remote_addr; } }"
    ),
    caddy=Missing("needs a module that Debian's Caddy does not have"),
    marline=Marline('proxy_protocol = true\ntrusted_proxies = "127.0.0.0/8"\n[[site]]\nto = "http://127.0.0.1:8001"'),
)
def proxy_protocol(t):
    app = t.app()
    v2 = (
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"
        + bytes([192, 0, 2, 7, 127, 0, 0, 1])
        + (5555).to_bytes(2, "big")
        + (443).to_bytes(2, "big")
    )
    for name, header in {"version 1": b"PROXY TCP4 192.0.2.7 127.0.0.1 5555 443\r\n", "version 2": v2}.items():
        with t.promise(name):
            stream = socket.create_connection(("127.0.0.1", 443), 5)
            stream.sendall(header)
            with t.lab.context().wrap_socket(stream, server_hostname="localhost") as secured:
                secured.sendall(b"GET /from HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                equal(secured.recv(12), b"HTTP/1.1 200", "the answer")
            fields = {field.lower(): value for field, value in app.requests[-1]["headers"].items()}
            equal(fields.get("x-forwarded-for"), "192.0.2.7", "the client's address")
