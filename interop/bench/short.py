"""The cost of a short-lived process: `marline get` beside curl, one small object for each process.

    short.py MARLINE [--count N]

Starts `MARLINE serve` on loopback and lets each client fetch the object N times, in turns. Prints the medians of
wall-clock and processor time.
"""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ADDRESS = "127.0.0.1:14460"
URL = f"https://{ADDRESS}/object"


def clients(marline: str, certificate: str) -> dict[str, list[str]]:
    """The command line of each client on this machine."""
    found = {
        f"marline get --http {version}": [marline, "get", "--http", version, "--cacert", certificate, URL]
        for version in ("3", "2", "1.1")
    }
    found["marline get"] = [marline, "get", "--cacert", certificate, URL]
    curl = shutil.which("curl")
    if curl is None:
        print("skipped: curl is not installed")
        return found
    features = subprocess.run([curl, "--version"], capture_output=True, text=True, check=True).stdout
    for flag, feature in (("--http1.1", "SSL"), ("--http2", "HTTP2"), ("--http3-only", "HTTP3")):
        if feature in features.split():
            found[f"curl {flag}"] = [curl, "--silent", "--fail", flag, "--cacert", certificate, URL]
    return found


def measure(command: list[str]) -> tuple[float, float]:
    """Wall-clock and processor seconds of one fetch."""
    before = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    content = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - before
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 or content != b"content":
        sys.exit(f"{' '.join(command)}: exit status {process.returncode}, {len(content)} bytes")
    return elapsed, usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("marline")
    parser.add_argument("--count", type=int, default=40)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        site = Path(directory, "site")
        site.mkdir()
        Path(site, "object").write_bytes(b"content")
        state = Path(directory, "state")
        serve = [arguments.marline, "serve", str(site), "--listen", ADDRESS, "--state", str(state)]
        server = subprocess.Popen(serve, stderr=subprocess.PIPE, text=True)
        try:
            if not any("listening" in line for line in iter(server.stderr.readline, "")):
                sys.exit(f"{' '.join(serve)}: it does not listen")
            commands = clients(arguments.marline, str(Path(state, "certificate.pem")))
            measured = {name: [] for name in commands}
            for _ in range(arguments.count):
                for name, command in commands.items():
                    measured[name].append(measure(command))
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate()
    print("| process | ms | processor, ms |")
    print("| --- | ---: | ---: |")
    for name, times in measured.items():
        elapsed, cpu = (statistics.median(column) * 1000 for column in zip(*times))
        print(f"| {name} | {elapsed:.1f} | {cpu:.1f} |")


if __name__ == "__main__":
    main()
