"""Logs, metrics, and the view of what goes on."""

import datetime
import http.client
import json
import re
import signal
import time

from programs import Caddy, Marline, Missing, Nginx
from rig import Failed, contains, equal, run, wait
from rows import row

COMBINED = re.compile(
    r'^127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET /note\.txt\?q=1 HTTP/1\.1" 200 \d+'
    r'(?P<more> "https://from\.test/" "agent/7")?$',
    re.M,
)


def read(t, name):
    path = t.server.dir / name
    return path.read_text() if path.exists() else ""


def request(t):
    """A request with all that a log has to show."""
    equal(t.curl("https://localhost/note.txt?q=1", "-e", "https://from.test/", "-A", "agent/7").status, 200)


@row(
    "access log: JSON, common, combined",
    nginx=Nginx(
        """
    log_format json escape=json '{"time":"$time_iso8601","client":"$remote_addr","host":"$host","uri":"$request_uri",'
        '"status":$status,"referer":"$http_referer","agent":"$http_user_agent"}';
    log_format common '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent';
    server {
        listen 443 ssl http2;
        root @site@;
    access_log @dir@/json.log json;
    access_log @dir@/common.log common;
    access_log @dir@/combined.log combined;
    }
"""
    ),
    caddy=Caddy(
        "https://localhost {\n tls @cert@ @key@\n root * @site@\n file_server\n log {\n output file @dir@/json.log\n format json\n }\n}"
    ),
    marline=Marline('access_log = "@dir@/json.log"\ndir = "@site@"'),
)
def access_log(t):
    request(t)
    with t.promise("JSON"):
        line = wait(lambda: read(t, "json.log"), "there is no line").splitlines()[0]
        json.loads(line)
        contains(line, "/note.txt", "the line")
    with t.promise("host, query, referer, user agent"):
        for part in ("localhost", "q=1", "from.test", "agent/7"):
            contains(line, part, "the line")
    with t.promise("common"):
        log_as(t, "common")
        wait(lambda: COMBINED.search(read(t, "common.log")), "there is no line of it", 1)
    with t.promise("combined"):
        log_as(t, "combined")
        found = wait(lambda: COMBINED.search(read(t, "combined.log")), "there is no line of it", 1)
        equal(bool(found["more"]), True, "whether it has referer and user agent")


def log_as(t, form):
    """Has marline, which writes one log, write it in another form."""
    if t.program == "marline":
        text = t.server.config.text.replace("json.log", f"{form}.log")
        t.server.write(f'access_log_format = "{form}"\n{text}')
        done, said = t.server.reload()
        if not done:
            raise Failed(f"refuses the format: {said[:200]}")
        request(t)


@row(
    "rotation",
    nginx=Nginx("server { listen 443 ssl http2; root @site@;\n    access_log @dir@/access.log combined;\n }"),
    caddy=Caddy(
        "https://localhost {\n tls @cert@ @key@\n root * @site@\n file_server\n"
        " log {\n output file @dir@/access.log {\n roll_size 1MiB\n roll_uncompressed\n }\n }\n}",
        note="by size, not by a signal",
    ),
    marline=Marline('access_log = "@dir@/access.log"\ndir = "@site@"'),
)
def rotation(t):
    requests = 2500 if t.program == "caddy" else 60
    with t.promise("no line is lost"):
        connection = http.client.HTTPSConnection("localhost", context=t.lab.context())
        for number in range(requests):
            connection.request("GET", f"/note.txt?n={number}")
            connection.getresponse().read()
            if number == 30 and t.program != "caddy":
                (t.server.dir / "access.log").rename(t.server.dir / "access.log.1")
                t.server.signal(signal.SIGUSR1 if t.program == "nginx" else signal.SIGHUP)
                # The new file is opened when the signal is handled, which may take longer than all requests.
                wait((t.server.dir / "access.log").exists, "there is no second file")
                time.sleep(0.2)
        connection.close()

        def complete():
            files = {path.name: path.read_text() for path in t.server.dir.glob("access*")}
            numbers = {int(n) for text in files.values() for n in re.findall(r"/note\.txt\?n=(\d+)", text)}
            lines = sum(text.count("/note.txt") for text in files.values())
            return (
                len(files) > 1
                and all(files.values())
                and (lines == requests if not numbers else len(numbers) == requests)
            )

        wait(complete, "lines are missing, or there is no second file")


@row(
    "error log with times",
    nginx=Nginx("server { listen 443 ssl http2; location / { proxy_pass http://127.0.0.1:8001; } }"),
    caddy=Caddy("https://localhost {\n tls @cert@ @key@\n reverse_proxy 127.0.0.1:8001\n log\n}"),
    marline=Marline('[[site]]\nto = "http://127.0.0.1:8001"'),
)
def error_log(t):
    line = ""
    with t.promise("an application that cannot be reached"):
        equal(t.curl("https://localhost/").status, 502)
        line = wait(
            lambda: next(
                (line for line in t.server.printed.splitlines() if "8001" in line and "refused" in line.lower()), None
            ),
            "no line says it",
            3,
        )
    with t.promise("with the time"):
        now = datetime.datetime.now(datetime.UTC)
        wanted = [now.strftime("%Y/%m/%d"), now.strftime("%Y-%m-%d"), str(int(time.time()))[:-2]]
        equal(any(each in line for each in wanted), True, f"whether {line!r} has a time")


@row(
    "Prometheus",
    nginx=Nginx(
        "server { listen 443 ssl http2; root @site@; }\n server { listen 127.0.0.1:9100; location /metrics { stub_status; } }",
        note="stub_status, in a form of its own",
    ),
    caddy=Caddy(
        "https://localhost {\n tls @cert@ @key@\n root * @site@\n file_server\n}\n"
        "http://localhost:9100 {\n bind 127.0.0.1\n metrics /metrics\n}",
        options=" servers {\n metrics\n }\n",
    ),
    marline=Marline('metrics = "127.0.0.1:9100"\ndir = "@site@"', ports=(443, 9100)),
)
def prometheus(t):
    def value(pattern):
        lines = t.curl("http://localhost:9100/metrics").body.decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(pattern, line))

    with t.promise("counts over HTTP"):
        before = t.curl("http://localhost:9100/metrics")
        equal(before.status, 200)
        for path in ("note.txt", "note.txt", "none"):
            t.curl(f"https://localhost/{path}")
        if t.curl("http://localhost:9100/metrics").body == before.body:
            raise Failed("three requests change nothing")
    with t.promise("as Prometheus reads them"):
        equal(
            value(r'\w+(responses_total|request_duration_seconds_count)\{.*(code|status)="2(00|xx)"') >= 2,
            True,
            "the responses",
        )
    with t.promise("durations as histograms"):
        equal(value(r"\w+_seconds_bucket\{.*\+Inf") >= 3, True, "the durations")


@row(
    "admin view",
    nginx=Missing("stub_status has counters alone"),
    caddy=Caddy(
        "https://localhost {\n tls @cert@ @key@\n reverse_proxy 127.0.0.1:8001\n}", note="JSON by its admin API"
    ),
    marline=Marline(
        'metrics = "127.0.0.1:9100"\n[[site]]\nto = "http://127.0.0.1:8001"',
        ports=(443, 9100),
        note="`marline top`, and a page",
    ),
)
def admin(t):
    t.app()
    with t.promise("the state of applications"):
        t.curl("https://localhost/")
        if t.program == "marline":
            seen = run(t.server.marline, "top", "127.0.0.1:9100", "--once", "--json")
            contains(json.dumps(json.loads(seen.stdout)), "127.0.0.1:8001", "what it shows")
            contains(t.curl("http://localhost:9100/").body, "/health", "the page")
            contains(t.curl("http://localhost:9100/health").body, "127.0.0.1:8001", "what the page reads")
            return
        seen = t.curl("http://localhost:2019/reverse_proxy/upstreams")
        equal(json.loads(seen.body)[0]["address"], "127.0.0.1:8001")
