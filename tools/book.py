#!/usr/bin/env python3
"""The book: checks its pages, and prepares them for mdBook.

    tools/book.py check        links, code blocks and lengths of all documents
    tools/book.py words        words of each page, without code
    tools/book.py update       makes the pictures, and takes over rows of other pages' tables
    tools/book.py built        whether the links in target/book lead somewhere
    tools/book.py narrow       whether its pages fit into the width of a phone, in Chromium
    tools/book.py preprocess   the preprocessor of book.toml (mdBook calls it)

`check` needs neither mdBook nor the command. The commands in blocks are run by tools/readme.py.

No figure is typed by hand: docs/templates/pictures.toml names the tables of which documents show pictures and rows.
"""

import functools
import http.server
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import tomllib
import urllib.parse

import pictures

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SUMMARY = DOCS / "SUMMARY.md"
TEMPLATES = DOCS / "templates"
COMMANDS = DOCS / "reference/commands.md"
# Words of a page of the guide, of guide and reference together, and of a decision.
GUIDE_PAGE, GUIDE_AND_REFERENCE, DECISION = 900, 45_000, 500
LANGUAGES = {
    "",
    "sh",
    "rust",
    "toml",
    "json",
    "python",
    "text",
    "ini",
    "cddl",
    "csv",
    "c",
    "console",
    "yaml",
    "diff",
    "html",
    "js",
}
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[^\n]*)\n(?P<text>.*?)^(?P=indent)```[ ]*$", re.M | re.S)
COMMENT = re.compile(r"<!--.*?-->\n?", re.S)
# A link or a picture; a reference in angle brackets or with a title included.
LINK = re.compile(
    r"(?P<before>!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()(?P<target><[^>]*>|[^\s)]+)(?P<after>(?:\s+\"[^\"]*\")?\))"
)
HEADING = re.compile(r"^(#{1,6})[ \t]+(.*?)[ \t]*#*$", re.M)
INCLUDE = re.compile(r"^\{\{#include (?P<path>[^}\s]+)\}\}$", re.M)
QUESTIONS = re.compile(r"^\| question \| answer \|\n(?:\|.*\n)+", re.M)
ENTRY = re.compile(r"^\s*(?:[-*] )?\[(?P<title>[^\]]+)\]\((?P<path>[^)]+)\)\s*$", re.M)
# A page that is named in code, in a help text or in another document, beside its links.
MENTION = re.compile(r"(?<![\w/.-])docs/[\w./-]+\.(?:md|png|cddl)(?:#[\w-]+)?")
# A long flag of a command of ours.
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


def without_fences(text):
    """The text with blocks of code blanked, so that everything keeps its place."""
    return FENCE.sub(blanked, text)


def blanked(found):
    """Spaces in the place of a match."""
    return re.sub(r"[^\n]", " ", found.group())


def without_code(text):
    return re.sub(r"(`+)(?:(?!\1).)+?\1", lambda found: " " * len(found.group()), without_fences(text))


def without_comments(text):
    """The text without HTML comments, but for those that blocks of code contain."""
    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts.append(COMMENT.sub("", text[end : fence.start()]))
        parts.append(fence.group())
        end = fence.end()
    parts.append(COMMENT.sub("", text[end:]))
    return "".join(parts)


def words(path):
    """Words that a person reads: without comments, blocks of code, and the marks of tables."""
    text = without_fences(COMMENT.sub("", expanded(path)))
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return sum(1 for word in text.split() if re.search(r"\w", word))


def expanded(path):
    """The text of a page with what it includes."""
    text = path.read_text()
    return INCLUDE.sub(lambda found: (path.parent / found["path"]).resolve().read_text(), text)


def anchors(path, known={}):
    """The anchors of a page, as GitHub and mdBook name them."""
    if path not in known:
        found, counts = set(), {}
        for _, title in HEADING.findall(without_fences(COMMENT.sub("", expanded(path)))):
            title = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", title)
            name = "".join(c.lower() if c.isalnum() or c in "_-" else "-" if c == " " else "" for c in title)
            count = counts.get(name, 0)
            counts[name] = count + 1
            found.add(f"{name}-{count}" if count else name)
        found.update(re.findall(r'<a id="([^"]+)">', path.read_text()))
        known[path] = found
    return known[path]


def title(path):
    """The first heading of a page, without marks."""
    heading = HEADING.search(without_fences(COMMENT.sub("", expanded(path))))
    return re.sub(r"[`*]", "", heading[2]) if heading else path.stem


def documents():
    """Every Markdown file of the repository that people read, which templates are not."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = [ROOT / name for name in sorted(set(listed.stdout.split("\n"))) if name]
    return [file for file in files if file.is_file() and TEMPLATES not in file.parents]


def parts():
    """The parts of the book with their pages, in the order of the summary."""
    found, part = {}, None
    for line in SUMMARY.read_text().splitlines():
        if line.startswith("# ") and line != "# Summary":
            part = found.setdefault(line[2:].strip(), [])
        elif (entry := ENTRY.match(line)) and part is not None:
            part.append(DOCS / entry["path"])
    return found


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def tables(text):
    """The tables of a page, each as rows of cells."""
    found = re.findall(r"^(?:\|.*\n)+", without_fences(COMMENT.sub("", text)), re.M)
    return [[cells(line) for line in table.splitlines()] for table in found]


def shown(table):
    """The cells of a table by the first one of their row, and by their column."""
    head, _, *rows = table
    return {row[0].strip("`"): dict(zip(head, row, strict=True)) for row in rows if len(row) == len(head)}


def measurements(name):
    """The columns of a file of interop/bench with the median of each stack, in seconds, and its name."""
    for column in json.loads((ROOT / f"interop/bench/{name}.json").read_text())["columns"]:
        for stack, rounds in column["stacks"].items():
            # Where every run had late packets, the tables show them nevertheless.
            valid = [run for run in rounds if run["valid"]] or rounds
            yield column, statistics.median(one for run in valid for one in run["seconds"]), stack


class Made:
    """The pictures, and the documents with rows of others, that docs/templates/pictures.toml describes."""

    def __init__(self):
        self.wrong = []
        # Text by path.
        self.files = {}
        described = tomllib.loads((TEMPLATES / "pictures.toml").read_text())
        for rows in described["rows"]:
            self.rows(rows)
        for picture in described["picture"]:
            self.picture(picture)
        for diagram in described["diagram"]:
            self.files[ROOT / diagram["file"]] = pictures.diagram(diagram["title"], diagram["boxes"], diagram["lines"])

    def text(self, path):
        return self.files.get(path) or path.read_text()

    def table(self, path, columns, rows, below=None):
        """The table of a page with these columns and rows: its lines by the first cell, and the places of the columns."""
        text = self.text(ROOT / path)
        if below is not None:
            text = re.split(rf"^(?:#+ )?{re.escape(below)}$", text, maxsplit=1, flags=re.M)[-1]
        for head, _, *lines in tables(text):
            known = {line[0].strip("`"): line for line in lines}
            if all(name in head for name in columns) and all(row.strip("`") in known for row in rows):
                return known, {name: head.index(name) for name in columns}
        self.wrong.append(f"no table of {path} has the columns {', '.join(columns)} and the rows {', '.join(rows)}")
        return None

    def rows(self, rows):
        found = self.table(rows["of"], rows["columns"], rows["rows"])
        if found is None:
            return
        known, places = found
        page = ROOT / rows["page"]
        text = self.text(page)
        labels = rows.get("labels", rows["rows"])
        for shown in re.finditer(r"^(?:\|.*\n)+", without_fences(COMMENT.sub(blanked, text)), re.M):
            head, rule, *lines = [cells(line) for line in shown.group().splitlines()]
            if head[1:] == rows["columns"] and [line[0].strip("`") for line in lines] == [
                row.strip("`") for row in labels
            ]:
                values = [known[row.strip("`")] for row in rows["rows"]]
                each = [
                    [line[0], *(value[places[name]] for name in rows["columns"])]
                    for line, value in zip(lines, values, strict=True)
                ]
                renewed = "".join("| " + " | ".join(line) + " |\n" for line in [head, rule, *each])
                # A blanked text has the offsets of the text.
                self.files[page] = text[: shown.start()] + renewed + text[shown.end() :]
                return
        self.wrong.append(
            f"{rows['page']} has no table with the columns {', '.join(rows['columns'])} and the rows {', '.join(labels)}"
        )

    def picture(self, picture):
        columns = list(dict.fromkeys(bar.get("column", picture["column"]) for bar in picture["bars"]))
        found = self.table(picture["of"], columns, [bar["row"] for bar in picture["bars"]], picture.get("below"))
        if found is None:
            return
        known, places = found
        unit = picture.get("unit", "s")
        each = []
        for bar in picture["bars"]:
            cell = known[bar["row"].strip("`")][places[bar.get("column", picture["column"])]]
            value = pictures.amount(cell, unit)
            if value is None:
                self.wrong.append(f"{picture['file']}: {cell} is not in {unit}")
                return
            each.append((bar["label"], value, bar.get("own", False)))
        self.files[ROOT / picture["file"]] = pictures.bars(picture["title"], each, unit)


class Checks:
    def __init__(self):
        self.wrong = []
        self.links = self.blocks = 0

    def say(self, path, line, text):
        self.wrong.append(f"{path.relative_to(ROOT)}:{line}: {text}")

    def target(self, path, line, target, base):
        """Whether a link leads somewhere; `base` is where relative ones begin."""
        self.links += 1
        place, _, anchor = urllib.parse.unquote(target).partition("#")
        file = (base / place).resolve() if place else path
        if not file.exists():
            self.say(path, line, f"{target}: there is no {os.path.relpath(file, ROOT)}")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            self.say(path, line, f"{target}: {file.relative_to(ROOT)} has no heading #{anchor}")

    def page(self, path):
        text = path.read_text()
        prose = without_code(COMMENT.sub(lambda found: "\n" * found.group().count("\n"), text))
        for found in LINK.finditer(prose):
            target = found["target"].strip("<>")
            if not re.match(r"[a-z][a-z0-9+.-]*:", target):
                self.target(path, prose.count("\n", 0, found.start()) + 1, target, path.parent)
        for found in INCLUDE.finditer(prose):
            self.target(path, prose.count("\n", 0, found.start()) + 1, found["path"], path.parent)
        for fence in FENCE.finditer(text):
            self.block(path, text.count("\n", 0, fence.start()) + 1, fence["language"].strip(), fence["text"])
        if text.count("\n```") % 2 and not path.name.startswith("CHANGELOG"):
            self.say(path, 1, "a block of code does not end")

    def block(self, path, line, language, text):
        self.blocks += 1
        name = language.split(",")[0]
        if name not in LANGUAGES:
            self.say(path, line, f"{name} is not one of the languages {', '.join(sorted(LANGUAGES - {''}))}")
        try:
            if name == "toml":
                tomllib.loads(text)
            elif name == "json":
                json.loads(text)
            elif name == "python":
                compile(text, str(path), "exec", dont_inherit=True)
        except (ValueError, SyntaxError) as error:
            self.say(path, line, f"the block is not {name}: {error}")
        if name == "sh":
            shell = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
            if shell.returncode != 0:
                self.say(path, line, f"the block is not a script: {shell.stderr.strip()}")
            self.flags(path, line, text)

    def flags(self, path, line, text):
        """Whether the commands of ours in a block have the verbs and flags that the reference lists."""
        if not COMMANDS.is_file():
            return
        for command in re.sub(r"\\\n", " ", text).splitlines():
            command = command.split(" #")[0].split(" -- ")[0]
            for call in re.finditer(r"(?:^|[|&;(]\s*|\b(?:sudo|do|then)\s+|/)marline\s+(?P<rest>[^|&;)]*)", command):
                rest = call["rest"].split()
                verbs = reference()
                name = " ".join(rest[:2]) if " ".join(rest[:2]) in verbs else rest[0] if rest else ""
                if not re.fullmatch(r"[a-z][a-z -]*", name):
                    continue
                if name not in verbs:
                    self.say(path, line, f"marline has no command {name}")
                    continue
                for flag in FLAG.findall(call["rest"]):
                    if flag not in verbs[name]:
                        self.say(path, line, f"marline {name} has no flag {flag}")

    def made(self):
        """Whether pictures, and rows of other pages, are what docs/templates/pictures.toml makes."""
        made = Made()
        for problem in made.wrong:
            self.say(TEMPLATES / "pictures.toml", 1, problem)
        for path, text in made.files.items():
            if not path.is_file() or path.read_text() != text:
                self.say(path, 1, "is not what docs/templates makes; run: python3 tools/book.py update")

    def measured(self):
        """Whether tables that programs of interop/bench printed have the medians of what these measured.

        README.md shows rows of the first.
        """
        page = DOCS / "default-links.md"
        each = [shown(table) for table in tables(page.read_text())]
        stacks = next((table for table in each if "marline-command" in table), {})
        links = next((table for table in each if "marline-command" in table.get("lte-a", {})), {})
        for column, seconds, stack in measurements("links"):
            size = re.sub(r"([kMG]?B)$", r" \1", column["size"])
            name = f"{size}, {column['link']}"
            self.median(page, f"{stack}, {name}", stacks.get(stack, {}).get(name, ""), seconds)
        for column, seconds, stack in measurements("presets"):
            cell = links.get(column["link"], {}).get(stack, "")
            self.median(page, f"{stack} over {column['link']}", cell, seconds)

    def median(self, page, what, cell, seconds):
        """Whether a cell has a time, with three digits."""
        value = re.match(r"([\d.]+) (ms|s)\b", cell)
        unit = 1e-3 if value and value[2] == "ms" else 1
        if not value or abs(float(value[1]) * unit - seconds) > 0.006 * seconds:
            self.say(page, 1, f"{what}: {cell or 'nothing'}, but interop/bench measured {seconds:.4g} s")

    def mentions(self):
        """Pages that are named in code, tests, help texts and configuration."""
        listed = subprocess.run(
            [
                "git",
                "grep",
                "-I",
                "-n",
                "-E",
                r"docs/[A-Za-z0-9_./-]+\.(md|png|cddl)",
                "--",
                ":!docs/results",
                ":!*.md",
                ":!*.lock",
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        for found in listed.stdout.splitlines():
            name, line, text = found.split(":", 2)
            for mention in MENTION.findall(text):
                # A name in capitals stands for any.
                if re.search(r"/[A-Z_]+\.md", mention):
                    continue
                self.target(ROOT / name, line, mention, ROOT)

    def book(self):
        """Whether every page is in the book once, and none is longer than it may be."""
        listed = [DOCS / entry["path"] for entry in ENTRY.finditer(SUMMARY.read_text())]
        for page in listed:
            if not page.is_file():
                self.say(SUMMARY, 1, f"there is no docs/{page.relative_to(DOCS)}")
        for page in {page for page in listed if listed.count(page) > 1}:
            self.say(SUMMARY, 1, f"docs/{page.relative_to(DOCS)} is listed twice")
        for page in sorted(DOCS.rglob("*.md")):
            if page not in listed and page != SUMMARY and TEMPLATES not in page.parents:
                self.say(SUMMARY, 1, f"docs/{page.relative_to(DOCS)} is not in the book: add it to its part")
        present = {part: [page for page in pages if page.is_file()] for part, pages in parts().items()}
        for page in present.get("Guide", []):
            if (count := words(page)) > GUIDE_PAGE:
                self.say(page, 1, f"has {count} words; a page of the guide has at most {GUIDE_PAGE}")
        total = sum(words(page) for part in ("Guide", "Reference") for page in present.get(part, []))
        if total > GUIDE_AND_REFERENCE:
            self.say(SUMMARY, 1, f"guide and reference have {total} words, more than {GUIDE_AND_REFERENCE}")
        for page in sorted((DOCS / "decisions").glob("0*.md")):
            if (count := words(page)) > DECISION:
                self.say(
                    page, 1, f"has {count} words; a decision has at most {DECISION}, and trials in decisions/trials"
                )
        return total


def reference(known={}):
    """The commands of the reference with their flags, by name."""
    if not known:
        for section in re.split(r"^## ", COMMANDS.read_text(), flags=re.M)[1:]:
            name = section.split("\n", 1)[0].strip().strip("`").removeprefix("marline").strip()
            known[name] = set(FLAG.findall(section)) | {"--help", "--version"}
    return known


def check():
    checks = Checks()
    pages = documents()
    for page in pages:
        checks.page(page)
    checks.made()
    checks.measured()
    checks.mentions()
    total = checks.book()
    for wrong in checks.wrong:
        print(f"FAILED: {wrong}")
    print(
        f"pages: {len(pages)} documents, {checks.links} links, {checks.blocks} blocks, {total} words of guide and reference, {len(checks.wrong)} wrong"
    )
    sys.exit(1 if checks.wrong else 0)


def update():
    made = Made()
    for problem in made.wrong:
        print(f"FAILED: {problem}")
    for path, text in made.files.items():
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)
            print(f"{path.relative_to(ROOT)} is new")
    sys.exit(1 if made.wrong else 0)


def built():
    """Whether each link of the book that was built leads to a file and an element of it."""
    book = ROOT / "target/book"
    wrong, links, names = 0, 0, {}
    pages = [page for page in book.rglob("*.html") if page.name not in ("print.html", "toc.html", "404.html")]
    for page in pages:
        names[page] = set(re.findall(r'\bid="([^"]+)"', page.read_text()))
    for page in pages:
        content = page.read_text().partition("<main>")[2].partition("</main>")[0]
        for target in re.findall(r'\b(?:href|src)="([^"]+)"', re.sub(r"<pre.*?</pre>", "", content, flags=re.S)):
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            links += 1
            place, _, anchor = urllib.parse.unquote(target).partition("#")
            file = (page.parent / place).resolve() if place else page
            if not file.exists() or (anchor and file in names and anchor not in names[file]):
                wrong += 1
                print(f"FAILED: {page.relative_to(book)}: {target} leads nowhere")
    print(f"book: {book}/index.html, {len(pages)} pages, {links} links, {wrong} wrong")
    sys.exit(1 if wrong else 0)


# Loads each page into a frame as wide as a phone, and names the elements that reach beyond it and do not scroll.
NARROW = """<body><pre id="o"></pre><script>
const pages = PAGES, wrong = []; let place = 0;
function next() {
    if (place == pages.length) { document.getElementById("o").textContent = wrong.join("\\n") + "\\n=" + place; return; }
    const page = pages[place++], frame = document.createElement("iframe");
    frame.style = "width:WIDTHpx;height:800px";
    frame.src = page;
    frame.onload = () => setTimeout(() => {
        const main = frame.contentDocument.querySelector("main");
        for (const e of main ? main.querySelectorAll("*") : [])
            if (e.getBoundingClientRect().right > WIDTH + 2 && !e.closest(".table-wrapper, pre, code, p:has(> img)")) {
                wrong.push("FAILED: " + page + ": " + e.tagName + " " + e.textContent.slice(0, 60));
                break;
            }
        frame.remove();
        next();
    }, 50);
    document.body.append(frame);
}
next();
</script>"""


def narrow(width=390):
    """Whether each page of the book that was built is as narrow as a phone."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("skipped: there is no chromium to look at the pages with")
        return
    book = ROOT / "target/book"
    pages = [
        str(page.relative_to(book))
        for page in sorted(book.rglob("*.html"))
        if page.name not in ("print.html", "toc.html", "404.html")
    ]
    frame = book / "narrow.html"
    frame.write_text(NARROW.replace("PAGES", json.dumps(pages)).replace("WIDTH", str(width)))
    handler = functools.partial(Quiet, directory=book)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, tempfile.TemporaryDirectory() as profile:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={profile}",
            "--virtual-time-budget=120000",
            "--dump-dom",
        ]
        url = f"http://127.0.0.1:{server.server_port}/narrow.html"
        found = subprocess.run([chromium, *flags, url], capture_output=True, text=True, check=False, timeout=180)
        server.shutdown()
    frame.unlink()
    said = found.stdout.partition('<pre id="o">')[2].partition("</pre>")[0].strip()
    print(said.rpartition("=")[0], end="")
    print(f"book: {len(pages)} pages at {width} pixels")
    sys.exit(0 if said == f"={len(pages)}" else 1)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, *_):
        pass


def count():
    for part, pages in parts().items():
        counts = {page: words(page) for page in pages if page.is_file()}
        print(f"{sum(counts.values()):7} {part}")
        for page, number in counts.items():
            print(f"{number:7}   {page.relative_to(DOCS)}")


class Preprocessor:
    """The form of pages in the book."""

    def __init__(self):
        manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
        self.repository = manifest["workspace"]["package"]["repository"]
        # Files beside docs/ that are pages of the book, because one includes them.
        self.pages = {}
        for pages in parts().values():
            for page in pages:
                include = INCLUDE.match(page.read_text()) if page.is_file() else None
                if include:
                    self.pages[(page.parent / include["path"]).resolve()] = page

    def link(self, found, origin, page):
        """A link of `origin`, for its place in `page`."""
        target = found["target"].strip("<>")
        if re.match(r"[a-z][a-z0-9+.-]*:", target) or target.startswith("#"):
            return found.group()
        place, hash_, anchor = target.partition("#")
        file = (origin.parent / urllib.parse.unquote(place)).resolve()
        file = self.pages.get(file, file)
        is_in_the_book = file.is_relative_to(DOCS) and file.is_file() and file != SUMMARY
        before = found["before"]
        if is_in_the_book and file.suffix == ".md" and re.fullmatch(r"\[[\w./-]+\.md\]\(", before):
            # A person reads the title of a page, not the name of its file.
            before = f"[“{title(file)}”]("
        if is_in_the_book and file.name == "README.md":
            # mdBook makes such a page the index of its directory.
            target = os.path.relpath(file.with_name("index.md"), page.parent)
        elif is_in_the_book:
            target = os.path.relpath(file, page.parent)
        else:
            kind = "tree" if file.is_dir() else "blob"
            target = f"{self.repository}/{kind}/main/{file.relative_to(ROOT)}"
        return f"{before}{target}{hash_}{anchor}{found['after']}"

    def text(self, text, origin, page):
        parts, end = [], 0
        text = without_comments(text)
        for fence in FENCE.finditer(text):
            parts.append(self.prose(text[end : fence.start()], origin, page))
            parts.append(fence.group())
            end = fence.end()
        parts.append(self.prose(text[end:], origin, page))
        return "".join(parts)

    @staticmethod
    def asked(text):
        """Tables of questions and answers as a heading and a paragraph each, which the search of the book finds by itself."""

        def sections(table):
            _, _, *rows = [cells(line) for line in table.group().splitlines()]
            return "".join(f"### {question}\n\n{sentence(answer)}\n\n" for question, answer in rows)

        def sentence(answer):
            return f"See {answer}." if answer.startswith("[") else f"{answer[:1].upper()}{answer[1:]}."

        return QUESTIONS.sub(sections, text)

    def prose(self, text, origin, page):
        text = LINK.sub(lambda found: self.link(found, origin, page), text)

        def included(found):
            path = (page.parent / found["path"]).resolve()
            return self.text(path.read_text(), path, page)

        return INCLUDE.sub(included, self.asked(text))

    @staticmethod
    def beside():
        """Links to the pages that only the built book has; `make book` adds them."""
        links = ["- [Every experiment in pictures](gallery/index.html)"]
        if (ROOT / "target/playground").is_dir():
            links.append("- [The playground](playground/index.html)")
        return "\n## In pictures\n\n" + "\n".join(links) + "\n"

    def item(self, item):
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if not chapter:
            return
        if chapter.get("path"):
            # mdBook has renamed the pages that are an index by now.
            page = DOCS / (chapter.get("source_path") or chapter["path"])
            chapter["content"] = self.text(chapter["content"], page, page)
            if page == DOCS / "README.md":
                chapter["content"] += self.beside()
        for inner in chapter["sub_items"]:
            self.item(inner)


def preprocess():
    # mdBook asks first whether the renderer is supported.
    if sys.argv[2:3] == ["supports"]:
        sys.exit(0)
    _, book = json.load(sys.stdin)
    preprocessor = Preprocessor()
    for item in book.get("items", book.get("sections", [])):
        preprocessor.item(item)
    json.dump(book, sys.stdout)


def main():
    tasks = {
        "check": check,
        "words": count,
        "update": update,
        "built": built,
        "narrow": narrow,
        "preprocess": preprocess,
    }
    if len(sys.argv) < 2 or sys.argv[1] not in tasks:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(0 if {"-h", "--help"} & set(sys.argv) else 2)
    tasks[sys.argv[1]]()


if __name__ == "__main__":
    main()
