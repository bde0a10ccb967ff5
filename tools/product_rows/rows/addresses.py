"""Listening, certificates and names."""

import shutil
import threading

import rig
from programs import Caddy, Marline, Missing, Nginx
from rig import Failed, Skipped, contains, equal, run, wait
from rows import row

# The same as an operator writes it for each: files of a directory over everything that there is.
NGINX_H3_SITE = """
    server {
        listen 443 quic reuseport;
        listen 443 ssl;
        http2 on;
        server_name localhost;
        root @site@;
    }
"""


@row(
    "three protocols on one port",
    nginx=Nginx(NGINX_H3_SITE, h3=True),
    caddy=Caddy("https://localhost {\n tls @cert@ @key@\n root * @site@\n file_server\n}"),
    marline=Marline('dir = "@site@"'),
)
def protocols(t):
    for version in ("1.1", "2"):
        with t.promise(f"HTTP/{version}"):
            answer = t.curl("https://localhost/sub/one.txt", f"--http{version}")
            equal((answer.version, answer.status, answer.body), (version, 200, b"one\n"))
    with t.promise("HTTP/3"):
        answer = t.h3("https://localhost/sub/one.txt")
        equal((answer.version, answer.status, answer.body), ("3", 200, b"one\n"))


@row(
    "Alt-Svc",
    nginx=Nginx(
        NGINX_H3_SITE.replace("root", """add_header Alt-Svc 'h3=":$server_port"; ma=86400' always;\n        root"""),
        h3=True,
        note="a line by hand",
    ),
    caddy=Caddy("https://localhost {\n tls @cert@ @key@\n root * @site@\n file_server\n}"),
    marline=Marline('dir = "@site@"'),
)
def alt_svc(t):
    for version in ("1.1", "2"):
        with t.promise(f"over HTTP/{version}"):
            contains(t.curl("https://localhost/", f"--http{version}").headers["alt-svc"], 'h3=":443"', "Alt-Svc")
    with t.promise("on errors"):
        contains(t.curl("https://localhost/none").headers["alt-svc"], 'h3=":443"', "Alt-Svc")


@row(
    "own certificate",
    nginx=Nginx(NGINX_H3_SITE, h3=True),
    caddy=Caddy("https://localhost {\n tls @cert@ @key@\n root * @site@\n file_server\n}"),
    marline=Marline('dir = "@site@"'),
)
def own_certificate(t):
    with t.promise("over TCP"):
        equal(t.served(), "all", "the certificate")
    with t.promise("over QUIC"):
        equal(t.h3("https://localhost/").status, 200)
    with t.promise("TLS 1.2"):
        equal(t.curl("https://localhost/", "--tls-max", "1.2").status, 200)
    with t.promise("no TLS 1.1"):
        old = run(
            "openssl", "s_client", "-connect", "127.0.0.1:443", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0", input=b""
        )
        contains(old.stdout, "Cipher is (NONE)", "a handshake of TLS 1.1")


def two_nginx(name):
    return f"""
    server {{
        listen 443 quic{" reuseport" if name == "a" else ""};
        listen 443 ssl;
        http2 on;
        server_name {name}.test;
        ssl_certificate @lab@/{name}.pem;
        ssl_certificate_key @lab@/{name}.key;
        root @site@;
    }}
"""


@row(
    "several certificates by SNI",
    nginx=Nginx(two_nginx("a") + two_nginx("b"), h3=True),
    caddy=Caddy(
        "\n".join(
            f"{n}.test {{\n tls @lab@/{n}.pem @lab@/{n}.key\n root * @site@\n file_server\n}}" for n in ("a", "b")
        )
    ),
    marline=Marline(
        "\n".join(
            f'[[site]]\nnames = "{n}.test"\ncert = "@lab@/{n}.pem"\nkey = "@lab@/{n}.key"\ndir = "@site@"'
            for n in ("a", "b")
        )
    ),
)
def sni(t):
    with t.promise("over TCP"):
        equal([t.served("a.test"), t.served("b.test")], ["a", "b"], "the certificates")
    with t.promise("over QUIC"):
        # A client that gets the other certificate refuses it.
        equal([t.h3(f"https://{name}.test/").status for name in ("a", "b")], [200, 200])


@row(
    "virtual hosts",
    nginx=Nginx(
        """
    server { listen 443 ssl http2 default_server; return 421; }
    server { listen 443 ssl http2; server_name a.test; return 200 "a"; }
    server { listen 443 ssl http2; server_name b.test www.test; return 200 "b"; }
    server { listen 443 ssl http2; server_name *.wild.test; return 200 "wild"; }
"""
    ),
    caddy=Caddy(
        """
https://a.test {\n tls @cert@ @key@\n respond "a"\n}
https://b.test, https://www.test {\n tls @cert@ @key@\n respond "b"\n}
https://*.wild.test {\n tls @cert@ @key@\n respond "wild"\n}
https:// {\n tls @cert@ @key@\n respond 421\n}
"""
    ),
    marline=Marline(
        """
[[site]]
names = "a.test"
respond = "a"

[[site]]
names = ["b.test", "www.test"]
respond = "b"

[[site]]
names = "*.wild.test"
respond = "wild"
"""
    ),
)
def virtual_hosts(t):
    with t.promise("by name"):
        for name, body in {"a.test": b"a", "b.test": b"b", "www.test": b"b"}.items():
            for version in ("1.1", "2"):
                equal(t.curl(f"https://{name}/", f"--http{version}").body, body, f"the answer of {name}")
    with t.promise("wildcards"):
        equal(t.curl("https://one.wild.test/").body, b"wild")
    with t.promise("unknown names"):
        equal(t.curl("https://other.test/").status, 421)


@row(
    "ACME",
    nginx=Missing("needs certbot, or a module that Debian's nginx does not have"),
    caddy=Caddy(
        """
acme.test {\n respond "by ACME"\n}
""",
        options=" acme_ca https://ca.test:9443/acme/local/directory\n acme_ca_root @dir@/ca-root.pem\n",
    ),
    marline=Marline(
        """
redirect_http = "127.0.0.1:80"

[acme]
contact = "ana@acme.test"
directory = "https://ca.test:9443/acme/local/directory"
ca = "@dir@/ca-root.pem"

[[site]]
names = "acme.test"
respond = "by ACME"
""",
        without=("cert", "key"),
    ),
    start=False,
)
def acme(t):
    def certified():
        root = t.server.dir / "ca-root.pem"
        got = run("curl", "-sS", "--cacert", root, "https://acme.test/")
        return got.stdout == b"by ACME"

    with t.promise("a certificate of an authority"):
        authority(t)
        t.server.start()
        wait(certified, "there is no certificate of the authority", 30)


def authority(t):
    """An ACME server, which Caddy is: its root is in ca-root.pem."""
    if not shutil.which(rig.CADDY):
        raise Skipped("needs Caddy as the authority")
    directory = t.server.dir / "authority"
    directory.mkdir()
    (directory / "Caddyfile").write_text(
        f"{{\n admin off\n skip_install_trust\n http_port 9080\n https_port 9443\n storage file_system {directory}/storage\n"
        f"}}\nhttps://ca.test:9443 {{\n tls internal\n acme_server\n}}\n"
    )
    process = t.server.helper(
        [rig.CADDY, "run", "--adapter", "caddyfile", "--config", directory / "Caddyfile"], directory
    )
    root = directory / "storage/pki/authorities/local/root.crt"
    wait(root.exists, "there is no authority")
    (t.server.dir / "ca-root.pem").write_bytes(root.read_bytes())
    wait(
        lambda: run("curl", "-sS", "--cacert", root, "https://ca.test:9443/").returncode == 0,
        "the authority does not answer",
    )
    return process


@row(
    "HTTP to HTTPS redirect",
    nginx=Nginx(
        """
    server { listen 80 default_server; return 308 https://$host$request_uri; }
    server { listen 443 ssl http2; server_name a.test; root @site@; }
""",
        ports=(80, 443),
    ),
    caddy=Caddy(
        "a.test {\n tls @cert@ @key@\n root * @site@\n file_server\n}",
        options=" # auto_https as it comes\n",
        ports=(80, 443),
    ),
    marline=Marline('redirect_http = "127.0.0.1:80"\n[[site]]\nnames = "a.test"\ndir = "@site@"', ports=(80, 443)),
)
def redirect_http(t):
    with t.promise("the same path and query"):
        answer = t.curl("http://a.test/sub/one.txt?x=1")
        equal((answer.status, answer.headers.get("location")), (308, "https://a.test/sub/one.txt?x=1"))
    with t.promise("leads to the page"):
        equal(t.curl("http://a.test/sub/one.txt", "-L").body, b"one\n")


@row(
    "reload, replaced certificate",
    nginx=Nginx(
        "server { listen 443 ssl http2; ssl_certificate @dir@/cert.pem; ssl_certificate_key @dir@/key.pem;"
        ' location /app/ { proxy_pass http://127.0.0.1:8001/; } location / { return 200 "old"; } }'
    ),
    caddy=Caddy(
        "https://localhost {\n tls @dir@/cert.pem @dir@/key.pem\n handle_path /app/* {\n reverse_proxy 127.0.0.1:8001\n }\n"
        ' respond "old"\n}'
    ),
    marline=Marline(
        'cert = "@dir@/cert.pem"\nkey = "@dir@/key.pem"\n[[site]]\nrespond = "old"\n[[site.route]]\npath = "/app/*"\n'
        'rewrite = "/{rest}"\nto = "http://127.0.0.1:8001"'
    ),
)
def reload(t):
    t.app()
    slow = Later(t.server.lab, "https://localhost/app/slow", "--http2")
    with t.promise("a new configuration"):
        equal(t.curl("https://localhost/").body, b"old")
        for name in ("cert.pem", "key.pem"):
            source = t.lab.dir / f"renewed.{'pem' if name == 'cert.pem' else 'key'}"
            (t.server.dir / name).write_bytes(source.read_bytes())
        t.server.write(t.server.config.text.replace('"old"', '"new"'))
        done, said = t.server.reload()
        if not done:
            raise Failed(f"refuses the new configuration: {said[:200]}")
        equal(t.curl("https://localhost/").body, b"new")
    with t.promise("a replaced certificate"):
        equal(t.served(), "renewed", "the certificate")
    with t.promise("running requests complete"):
        equal(slow.ticks(), 20, "lines of the response")
    with t.promise("a faulty configuration changes nothing"):
        t.server.write(t.server.config.text.replace('"old"', '"newer"') + "\nno_such_key = = 1\n")
        done, said = t.server.reload()
        equal((done, t.curl("https://localhost/").body), (False, b"new"), "the reload and the answer after it")


class Later:
    """A request by curl that goes on meanwhile."""

    def __init__(self, lab, url, *arguments):
        self.done = None

        def fetch():
            self.done = run("curl", "-sS", "--cacert", lab.ca, "-m", 20, *arguments, url)

        self.thread = threading.Thread(target=fetch)
        self.thread.start()

    def ticks(self):
        """The lines that came of a slow response; fails if curl did."""
        self.thread.join(25)
        equal((self.done.returncode, self.done.stderr.decode()), (0, ""), "the end of curl")
        return self.done.stdout.count(b"tick")


@row(
    "IPv6, several listeners, names",
    nginx=Nginx(
        """
    server {
        listen 127.0.0.1:443 quic reuseport; listen [::1]:443 quic reuseport; listen 127.0.0.1:8443 quic reuseport;
        listen 127.0.0.1:443 ssl; listen [::1]:443 ssl; listen 127.0.0.1:8443 ssl;
        http2 on;
        root @site@;
    }
""",
        h3=True,
        ports=(443, 8443, ("::1", 443)),
        note="an address and a kind a line",
    ),
    caddy=Caddy(
        "https://localhost, https://six.test, https://localhost:8443 {\n tls @cert@ @key@\n root * @site@\n file_server\n}",
        ports=(443, 8443, ("::1", 443)),
    ),
    marline=Marline('listen = ["localhost:443", "127.0.0.1:8443"]\ndir = "@site@"', ports=(443, 8443, ("::1", 443))),
)
def listeners(t):
    places = ["https://127.0.0.1/", "https://six.test/", "https://localhost:8443/"]
    if t.program == "caddy":
        places[0] = "https://localhost/"
    with t.promise("over TCP"):
        equal([t.curl(place, "--http2").status for place in places], [200, 200, 200])
    with t.promise("over QUIC"):
        equal([t.h3(place).status for place in places], [200, 200, 200])
