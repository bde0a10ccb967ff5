#!/usr/bin/env python3
"""Tries the built playground (target/playground) in Chromium and in Firefox: `make playground` calls it.

Each browser loads the page as wide as a desk's screen and as wide as a phone, without a window, and waits for the results. They must
be complete, with the same digests in both browsers, and nothing may be wider than the page.
"""

import functools
import http.server
import json
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "target/playground"
WIDTHS = [1280, 390]
# Seconds for a browser to start and to compute, on a machine with other work.
LONGEST = 180
SETTINGS = "rate=57&rtt=40&loss=2&buffer=100&content=page&seed=1&system-0=rfc&system-1=default"

# Loads the page at each width and posts what it shows.
LOOK = """<!doctype html><meta charset="utf-8"><title>look</title><body><script>
async function look(width) {
    const frame = document.createElement("iframe");
    frame.style = `width:${width}px;height:800px`;
    frame.src = "index.html#SETTINGS";
    document.body.append(frame);
    const found = await new Promise((resolve) => {
        const timer = setInterval(() => {
            const page = frame.contentDocument, status = page?.getElementById("status");
            if (!status || (page.getElementById("results").hidden && status.className !== "error")) return;
            clearInterval(timer);
            const root = page.documentElement;
            resolve({
                width, status: status.textContent, error: status.className === "error",
                answer: page.getElementById("answer").textContent,
                digests: [...page.querySelectorAll("#numbers code")].map((code) => code.textContent),
                wide: root.scrollWidth - root.clientWidth,
            });
        }, 100);
    });
    frame.remove();
    return found;
}
(async () => {
    const found = [];
    for (const width of WIDTHS) found.push(await look(width));
    await fetch("/found", { method: "POST", body: JSON.stringify(found) });
})();
</script>"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the built page and the page that looks at it, and takes what that found."""

    found = queue.Queue()

    def do_GET(self):
        if self.path != "/look.html":
            super().do_GET()
            return
        page = LOOK.replace("SETTINGS", SETTINGS).replace("WIDTHS", json.dumps(WIDTHS)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def do_POST(self):
        self.found.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def commands(profile):
    """How each browser is started, by its name; the address follows."""
    chromium, firefox = shutil.which("chromium"), shutil.which("firefox") or shutil.which("firefox-esr")
    found = {}
    if chromium:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}/chromium"]
        # A page without a window is drawn at once, and stays.
        found["Chromium"] = [chromium, *flags, "--remote-debugging-port=0"]
    if firefox:
        (profile / "firefox").mkdir()
        found["Firefox"] = [firefox, "--headless", "--no-remote", "--profile", str(profile / "firefox")]
    return found


def look(command, url):
    """What a browser shows; `None` if it says nothing in time."""
    browser = subprocess.Popen([*command, url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return Handler.found.get(timeout=LONGEST)
    except queue.Empty:
        return None
    finally:
        browser.terminate()
        try:
            browser.wait(timeout=10)
        except subprocess.TimeoutExpired:
            browser.kill()
            browser.wait()


def main():
    wrong, digests = [], set()
    handler = functools.partial(Handler, directory=PAGE)
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browsers = commands(pathlib.Path(profile))
        for name in ("Chromium", "Firefox"):
            if name not in browsers:
                print(f"skipped: there is no {name} to try the playground in")
                continue
            found = look(browsers[name], f"http://127.0.0.1:{server.server_port}/look.html")
            if found is None:
                wrong.append(f"{name} had no results within {LONGEST} s")
                continue
            for page in found:
                print(f"{name}, {page['width']} pixels: {page['answer']} ({page['status']})")
                if page["error"] or not page["digests"]:
                    wrong.append(f"{name}: {page['status']}")
                if page["wide"] > 0:
                    wrong.append(f"{name}: the page is {page['wide']} pixels wider than {page['width']}")
                digests.add(tuple(page["digests"]))
        server.shutdown()
    if len(digests) > 1:
        wrong.append(f"browsers and widths have different digests: {sorted(digests)}")
    for problem in wrong:
        print(f"FAILED: {problem}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
