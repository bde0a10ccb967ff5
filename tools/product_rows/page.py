"""The results as JSON, and the page that shows them."""

import dataclasses
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs/compare-servers.json"
PAGE = ROOT / "docs/compare-servers.md"
RANK = {"missing": 0, "skipped": 0, "partly": 1, "works": 2}

# The order of the page, by subject.
SUBJECTS = {
    "Addresses and certificates": [
        "three protocols on one port",
        "Alt-Svc",
        "IPv6, several listeners, names",
        "virtual hosts",
        "HTTP to HTTPS redirect",
        "own certificate",
        "several certificates by SNI",
        "ACME",
        "client certificates",
        "0-RTT with replay protection",
        "PROXY protocol",
    ],
    "Applications": [
        "one and many upstreams",
        "active health checks",
        "a dead upstream is passed over",
        "Unix socket upstream",
        "TLS upstream",
        "HTTP/2 upstream",
        "gRPC",
        "WebSocket from HTTP/1.1, 2, 3",
    ],
    "Files and answers": [
        "header rules",
        "redirects, rewrites",
        "error pages",
        "single-page fallback",
        "directory listing",
        "compression on the fly",
        "precompressed files",
        "ranges, ETag, If-Modified-Since",
        "charset of text",
        "health endpoint",
    ],
    "Access and limits": [
        "basic authentication",
        "allow and deny lists",
        "rate limit",
        "connection limit",
    ],
    "Logs and metrics": [
        "access log: JSON, common, combined",
        "rotation",
        "error log with times",
        "Prometheus",
        "admin view",
    ],
    "Operation": [
        "configuration check",
        "configuration documented",
        "reload, replaced certificate",
        "graceful stop",
        "binary upgrade",
        "systemd: notify, sockets, unit",
        "privilege drop",
        "all cores",
    ],
}
ORDER = [title for titles in SUBJECTS.values() for title in titles]


@dataclasses.dataclass
class Cell:
    """A row's result for a program, a note of a few words, and the promises by how they ended."""

    result: str
    note: str = ""
    kept: list = dataclasses.field(default_factory=list)
    broken: list = dataclasses.field(default_factory=list)
    skipped: list = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, trial, config):
        broken = [name for name, _ in trial.broken]
        notes = [*([config.note] if config.note else []), *trial.notes]
        # The first promise is the one without which there is nothing of the row.
        first = trial.order[0] if trial.order else ""
        if not trial.kept or first in broken or "" in broken:
            result = "missing" if trial.broken else "skipped"
            if result == "skipped":
                notes = trial.skipped
            elif config.program == "marline":
                notes = ["not in this release"]
            elif not notes:
                notes = ["without: " + ", ".join(broken)]
        elif broken:
            result = "partly"
            notes = notes or ["without: " + ", ".join(broken)]
        else:
            result = "works"
        return cls(result, "; ".join(notes), trial.kept, trial.broken, trial.skipped)

    def left_out(self, promise):
        return any(each.startswith(f"{promise}:") for each in self.skipped)

    def shown(self):
        mark = {"works": "✓", "partly": "partly", "missing": "–", "skipped": "not run"}[self.result]
        return f"{mark} {self.note}" if self.note else mark


def load():
    """The results of the page, by row and program; nothing where there are none yet."""
    if not RESULTS.exists():
        return {}
    known = json.loads(RESULTS.read_text())["rows"]
    return {
        title: {name: Cell(each["result"], each["note"], each["promises"]) for name, each in cells.items()}
        for title, cells in known.items()
    }


def update(results, versions):
    """Takes over the results of the rows that ran; others stay as they are."""
    known = load()
    for title, cells in results.items():
        for name, cell in cells.items():
            if cell.result != "skipped":
                known.setdefault(title, {})[name] = cell
    before = json.loads(RESULTS.read_text())["versions"] if RESULTS.exists() else {}
    versions = {**before, **versions}
    rows = {
        title: {
            name: {"result": cell.result, "note": cell.note, "promises": cell.kept}
            for name, cell in sorted(known[title].items())
        }
        for title in ORDER
        if title in known
    }
    RESULTS.write_text(json.dumps({"versions": versions, "rows": rows}, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(text(known, versions))
    print(f"wrote {RESULTS.relative_to(ROOT)} and {PAGE.relative_to(ROOT)}")


def text(known, versions):
    counts = {
        name: {
            result: sum(cells[name].result == result for cells in known.values() if name in cells) for result in RANK
        }
        for name in ("caddy", "nginx", "marline")
    }
    shown = {key: f"{each['name']} {each['version']}" for key, each in versions.items()}
    titles = {"caddy": "Caddy", "nginx": "nginx", "marline": "marline"}

    def lacks(name):
        """What a program does not do, in a sentence."""
        rows = [title for title, cells in known.items() if name in cells and cells[name].result == "missing"]
        return f"- {titles[name]} does not have: {'; '.join(rows)}."

    lines = [
        "<!-- Generated by: python3 tools/product_rows --update -->",
        "",
        "# Beside nginx and Caddy",
        "",
        "## In short",
        "",
        f"- Of {len(known)} things that operators do daily, marline does all of {counts['marline']['works']}, nginx of "
        f"{counts['nginx']['works']} and Caddy of {counts['caddy']['works']}.",
        *[lacks(name) for name in titles if counts[name]["missing"]],
        "- No row is about caches, PHP or scripts, which marline does not have.",
        "- How fast they are is in [versions of HTTP](web-results.md#the-same-browser) and [speed](speed.md).",
        "",
        "![Things that each program does all of](compare-servers.svg)",
        "",
        "## How it was tried",
        "",
        f"What operators of web servers do daily, tried with {shown.get('caddy', 'Caddy')}, {shown.get('nginx', 'nginx')} as Debian 12 has "
        f"it, and {shown.get('marline', 'marline')}. Rows about HTTP/3 use nginx {versions.get('nginx-h3', {}).get('version', '')}, built from source. "
        "Caddy and nginx have what Debian's packages have, modules included.",
        "",
        "`tools/product_rows` has a configuration of each row for each program, starts it, and uses it with clients: curl, openssl, "
        "`marline get`, aioquic, and sockets. What is tried stands beside the name of the row. ✓ did all of it, *partly* "
        "a part, – nothing or not the first.",
        "",
        "| program | ✓ | partly | – |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, title in titles.items():
        each = counts[name]
        lines.append(f"| {title} | {each['works']} | {each['partly']} | {each['missing']} |")
    for subject, rows in SUBJECTS.items():
        lines += ["", f"## {subject}", "", "| | Caddy | nginx | marline |", "| --- | --- | --- | --- |"]
        for title in rows:
            if title in known:
                cells = [known[title][name].shown() if name in known[title] else "not run" for name in titles]
                promises = max((cell.kept for cell in known[title].values()), key=len)
                row = f"**{title}**: {', '.join(promises)}"
                lines.append(f"| {row} | {' | '.join(each.replace('|', chr(92) + '|') for each in cells)} |")
    lines += [
        "",
        "## Run it",
        "",
        "<!-- not run: needs other servers -->",
        "",
        "```sh",
        "sh tools/deps.sh servers && make -C interop nginx aioquic",
        "python3 tools/product_rows --only websocket",
        "python3 tools/product_rows --configurations --only websocket",
        "```",
        "",
        "The second command tries one row, the third prints its configurations side by side. `make product-rows` checks that all rows of "
        "marline that worked still do.",
    ]
    return "\n".join(lines) + "\n"
