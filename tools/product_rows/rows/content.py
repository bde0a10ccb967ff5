"""Answers of the server itself, and what it does with those of applications."""

import gzip
import json

from programs import Caddy, Marline, Nginx
from rig import contains, equal
from rows import row


def nginx(text, around="", **options):
    return Nginx(f"{around}\n    server {{ listen 443 ssl http2; server_name localhost; {text} }}", **options)


def caddy(text, **options):
    return Caddy(f"https://localhost {{\n tls @cert@ @key@\n {text}\n}}", **options)


def marline(text, more="", **options):
    return Marline(f"[[site]]\n{text}\n{more}", **options)


@row(
    "header rules",
    nginx=nginx(
        "location / { root @site@; add_header X-Frame-Options DENY always; more_clear_headers Server; }"
        " location /app { proxy_pass http://127.0.0.1:8001; proxy_set_header X-From edge; proxy_hide_header X-Internal; }",
        modules=("headers_more_filter",),
        note="with a module to remove Server",
    ),
    caddy=caddy(
        "root * @site@\n header X-Frame-Options DENY\n header -Server\n header -X-Internal\n"
        " reverse_proxy /app 127.0.0.1:8001 {\n header_up X-From edge\n header_down -X-Internal\n }\n file_server"
    ),
    marline=marline(
        'dir = "@site@"\nresponse_headers = { X-Frame-Options = "DENY", -Server = "", -X-Internal = "" }',
        '[[site.route]]\npath = "/app"\nto = "http://127.0.0.1:8001"\nrequest_headers = { X-From = "edge" }',
    ),
)
def header_rules(t):
    t.app()
    with t.promise("set"):
        equal(t.curl("https://localhost/").headers.get("x-frame-options"), "DENY")
    with t.promise("on errors"):
        equal(t.curl("https://localhost/none").headers.get("x-frame-options"), "DENY")
    with t.promise("remove Server"):
        equal(t.curl("https://localhost/").headers.get("server"), None)
    with t.promise("of requests"):
        answer = t.curl("https://localhost/app")
        equal({name.lower(): value for name, value in json.loads(answer.body)["headers"].items()}.get("x-from"), "edge")
    with t.promise("remove an application's"):
        equal(t.curl("https://localhost/app").headers.get("x-internal"), None)


@row(
    "redirects, rewrites",
    nginx=nginx(
        "location = /old { return 301 /new; } location /shop/ { rewrite ^/shop/(.*)$ https://shop.test/$1 redirect; }"
        " location /api/ { proxy_pass http://127.0.0.1:8001/v2/; }"
    ),
    caddy=caddy(
        "redir /old /new 301\n @shop path_regexp shop ^/shop/(.*)$\n redir @shop https://shop.test/{re.shop.1} 302\n"
        " handle_path /api/* {\n rewrite * /v2{uri}\n reverse_proxy 127.0.0.1:8001\n }"
    ),
    marline=marline(
        "status = 404",
        '[[site.route]]\npath = "/old"\nredirect = "/new"\nstatus = 301\n'
        '[[site.route]]\npath = "/shop/*"\nredirect = "https://shop.test/{rest}"\nstatus = 302\n'
        '[[site.route]]\npath = "/api/*"\nrewrite = "/v2/{rest}"\nto = "http://127.0.0.1:8001"',
    ),
)
def redirects(t):
    t.app()
    with t.promise("a redirect"):
        answer = t.curl("https://localhost/old")
        equal((answer.status, answer.headers["location"].removeprefix("https://localhost")), (301, "/new"))
    with t.promise("with a part of the path"):
        answer = t.curl("https://localhost/shop/shoes/1")
        equal((answer.status, answer.headers["location"]), (302, "https://shop.test/shoes/1"))
    with t.promise("a rewrite"):
        equal(
            json.loads(t.curl("https://localhost/api/users?page=2").body)["path"],
            "/v2/users?page=2",
            "the application's path",
        )
        equal(json.loads(t.curl("https://localhost/api/a%20b").body)["path"], "/v2/a%20b", "the application's path")


@row(
    "error pages",
    nginx=nginx(
        "root @site@; error_page 404 /404.html; error_page 500 502 503 504 /sorry.html;"
        " location /app { proxy_pass http://127.0.0.1:8001; }"
    ),
    caddy=caddy(
        "root * @site@\n reverse_proxy /app 127.0.0.1:8001\n file_server\n handle_errors {\n"
        " @missing expression {http.error.status_code} == 404\n rewrite @missing /404.html\n"
        " @broken expression {http.error.status_code} >= 500\n rewrite @broken /sorry.html\n file_server\n }"
    ),
    marline=marline(
        'dir = "@site@"\nerror_pages = { 404 = "@site@/404.html", 5xx = "@site@/sorry.html" }',
        '[[site.route]]\npath = "/app"\nto = "http://127.0.0.1:8001"',
    ),
)
def error_pages(t):
    with t.promise("404"):
        for version in ("1.1", "2"):
            answer = t.curl("https://localhost/none", f"--http{version}")
            equal((answer.status, answer.body), (404, b"our page for what is missing\n"))
    with t.promise("502"):
        answer = t.curl("https://localhost/app")
        equal((answer.status, answer.body), (502, b"our page for what broke\n"))


@row(
    "single-page fallback",
    nginx=nginx("root @site@; location / { try_files $uri /index.html; }"),
    caddy=caddy("root * @site@\n try_files {path} /index.html\n file_server"),
    marline=marline('dir = "@site@"\ntry = ["{path}", "/index.html"]'),
)
def single_page(t):
    with t.promise("a path of the application"):
        answer = t.curl("https://localhost/users/7/edit")
        equal((answer.status, answer.body), (200, (t.lab.site / "index.html").read_bytes()))
    with t.promise("files"):
        equal(t.curl("https://localhost/note.txt").body, (t.lab.site / "note.txt").read_bytes())


@row(
    "directory listing",
    nginx=nginx("root @site@; autoindex on;"),
    caddy=caddy("root * @site@\n file_server browse"),
    marline=marline('dir = "@site@"\nlist = true'),
)
def listing(t):
    with t.promise("names as links"):
        answer = t.curl("https://localhost/sub/")
        equal(answer.status, 200)
        for part in ("one.txt", 'two%20words.txt"'):
            contains(answer.body, part, "the listing")
    with t.promise("/ is added"):
        equal(t.curl("https://localhost/sub").status in (301, 302, 307, 308), True, "whether /sub is redirected")


@row(
    "compression on the fly",
    nginx=nginx(
        "root @site@; gzip on; gzip_vary on; brotli on; location /text { proxy_pass http://127.0.0.1:8001; }",
        modules=("brotli_filter",),
    ),
    caddy=caddy("root * @site@\n encode zstd gzip\n reverse_proxy /text 127.0.0.1:8001\n file_server"),
    marline=marline(
        'dir = "@site@"',
        '[[site.route]]\npath = "/text"\nto = "http://127.0.0.1:8001"\ncompress = true',
    ),
)
def compression(t):
    t.app()
    wanted = (t.lab.site / "index.html").read_bytes()
    with t.promise("gzip"):
        answer = t.curl("https://localhost/", "-H", "Accept-Encoding: gzip")
        equal((answer.headers.get("content-encoding"), gzip.decompress(answer.body)), ("gzip", wanted))
        contains(answer.headers["vary"].lower(), "accept-encoding", "Vary")
    with t.promise("of an application"):
        equal(t.curl("https://localhost/text", "-H", "Accept-Encoding: gzip").headers.get("content-encoding"), "gzip")
    with t.promise("images as they are"):
        equal(
            t.curl("https://localhost/image.png", "-H", "Accept-Encoding: gzip").headers.get("content-encoding"), None
        )
    codings = []
    for coding in ("gzip", "br", "zstd"):
        answer = t.curl("https://localhost/", "--compressed", "-H", f"Accept-Encoding: {coding}")
        if answer.headers.get("content-encoding") == coding and answer.body == wanted:
            codings.append(coding)
    t.notes.append(", ".join(codings))


@row(
    "precompressed files",
    nginx=nginx("root @site@; gzip_static on; brotli_static on;", modules=("brotli_static",)),
    caddy=caddy("root * @site@\n file_server {\n precompressed br gzip\n }"),
    marline=marline('dir = "@site@"\ncompress = false'),
)
def precompressed(t):
    with t.promise(".gz"):
        answer = t.curl("https://localhost/app.js", "-H", "Accept-Encoding: gzip")
        equal((answer.headers.get("content-encoding"), answer.body), ("gzip", (t.lab.site / "app.js.gz").read_bytes()))
    with t.promise(".br"):
        answer = t.curl("https://localhost/app.js", "-H", "Accept-Encoding: br, gzip")
        equal((answer.headers.get("content-encoding"), answer.body), ("br", b"content of the Brotli file"))
    with t.promise("others get the file"):
        answer = t.curl("https://localhost/app.js")
        equal((answer.headers.get("content-encoding"), answer.body), (None, (t.lab.site / "app.js").read_bytes()))
        contains(answer.headers["content-type"], "javascript", "the type")


@row(
    "ranges, ETag, If-Modified-Since",
    nginx=nginx("root @site@;"),
    caddy=caddy("root * @site@\n file_server"),
    marline=marline('dir = "@site@"'),
)
def conditional(t):
    whole = (t.lab.site / "image.png").read_bytes()
    url = "https://localhost/image.png"
    with t.promise("ranges"):
        answer = t.curl(url, "-r", "100-199")
        equal(
            (answer.status, answer.body, answer.headers["content-range"]),
            (206, whole[100:200], f"bytes 100-199/{len(whole)}"),
        )
        equal(t.curl(url, "-r", "-50").body, whole[-50:], "the end")
        equal(t.curl(url, "-r", "9000-").status, 416)
        contains(
            t.curl(url, "-r", "0-9,20-29").headers["content-type"], "multipart/byteranges", "the type of two ranges"
        )
    tag = t.curl(url).headers.get("etag", "")
    with t.promise("ETag"):
        equal(t.curl(url, "-H", f"If-None-Match: {tag}").status, 304)
        equal(t.curl(url, "-H", 'If-None-Match: "another"').status, 200)
        equal(t.curl(url, "-H", f"If-Range: {tag}", "-r", "0-9").status, 206)
        equal(t.curl(url, "-H", 'If-Range: "another"', "-r", "0-9").status, 200)
    with t.promise("If-Modified-Since"):
        equal(t.curl(url, "-H", f"If-Modified-Since: {t.curl(url).headers['last-modified']}").status, 304)
        equal(t.curl(url, "-H", "If-Modified-Since: Mon, 01 Jan 2001 00:00:00 GMT").status, 200)


@row(
    "charset of text",
    nginx=nginx("root @site@; charset utf-8; charset_types text/html text/plain text/javascript;"),
    caddy=caddy("root * @site@\n file_server"),
    marline=marline('dir = "@site@"'),
)
def charset(t):
    for path, kind in {"/index.html": "text/html", "/note.txt": "text/plain", "/app.js": "text/javascript"}.items():
        with t.promise(kind):
            equal(
                t.curl(f"https://localhost{path}").headers["content-type"].lower().replace(" ", ""),
                f"{kind};charset=utf-8",
            )


@row(
    "health endpoint",
    nginx=nginx('root @site@; location = /health { access_log off; default_type text/plain; return 200 "ok"; }'),
    caddy=caddy("root * @site@\n respond /health ok\n file_server"),
    marline=marline('dir = "@site@"', '[[site.route]]\npath = "/health"\nrespond = "ok"'),
)
def health(t):
    with t.promise("answers"):
        for version in ("1.1", "2"):
            answer = t.curl("https://localhost/health", f"--http{version}")
            equal((answer.status, answer.body), (200, b"ok"))
    with t.promise("text, not kept by caches for long"):
        contains(t.curl("https://localhost/health").headers.get("content-type", ""), "text/plain", "the type")
