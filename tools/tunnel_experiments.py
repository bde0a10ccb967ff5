"""The experiments `tunnel/*`: programs of a client with two networks, on the kernel in virtual time.

    python3 tools/tunnel_experiments.py run [--marline FILE] [--wireguard FILE] [--sshd FILE] [--out FILE] [--only TEXT] [--jobs N]
    python3 tools/tunnel_experiments.py report FILE

`run` appends a line of JSON for each cell to FILE and leaves out those that are there. It needs the kernel of `make kernel`, and no
privileges: everything happens on kernels of its own. `report` prints the tables and writes the picture of docs/tunnel-results.md.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import threading

from tunnel.cells import cells, name
from tunnel.ends import end
from tunnel.guest import guest
from tunnel.report import report

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(arguments):
    out = pathlib.Path(arguments.out)
    known = {json.loads(line)["name"] for line in out.read_text().splitlines()} if out.exists() else set()
    wanted = [cell for cell in cells() if name(cell) not in known and arguments.only in name(cell)]
    lock = threading.Lock()

    def one(cell):
        command = [
            arguments.marline, "lab", "link", "--backend", "kernel", "--seed", str(arguments.seed), "--link", "rate=10gbps,rtt=1ms", "--",
            sys.executable, __file__, "guest", json.dumps(cell), "--marline", arguments.marline, "--wireguard", arguments.wireguard,
            "--sshd", arguments.sshd,
        ]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=arguments.timeout)
        except subprocess.TimeoutExpired:
            print(f"{name(cell)}: no result within {arguments.timeout} s", file=sys.stderr)
            return False
        lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
        if ended.returncode != 0 or not lines:
            print(f"{name(cell)}: failed\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}", file=sys.stderr)
            return False
        result = {"name": name(cell), **cell, **json.loads(lines[-1])}
        with lock, out.open("a") as file:
            file.write(json.dumps(result) + "\n")
        print(json.dumps(result), flush=True)
        return True

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        return 0 if all(list(pool.map(one, wanted))) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    runs = verbs.add_parser("run")
    inner = verbs.add_parser("guest")
    ends = verbs.add_parser("end")
    for verb in (runs, inner, ends):
        verb.add_argument("--marline", default=str(ROOT / "target/debug/marline"))
        verb.add_argument("--wireguard", default=str(ROOT / "target/wireguard-go"))
        verb.add_argument("--sshd", default="/usr/sbin/sshd")
    runs.add_argument("--out", default=str(ROOT / "target/tunnel-experiments.jsonl"))
    runs.add_argument("--only", default="")
    runs.add_argument("--seed", type=int, default=1)
    runs.add_argument("--jobs", type=int, default=1)
    runs.add_argument("--timeout", type=int, default=600)
    inner.add_argument("cell")
    ends.add_argument("role")
    ends.add_argument("cell")
    ends.add_argument("--work", required=True)
    reports = verbs.add_parser("report")
    reports.add_argument("file")
    arguments = parser.parse_args()
    if arguments.verb == "run":
        return run(arguments)
    if arguments.verb == "guest":
        return guest(json.loads(arguments.cell), arguments)
    if arguments.verb == "end":
        return end(arguments.role, json.loads(arguments.cell), arguments)
    return report(arguments.file)


if __name__ == "__main__":
    sys.exit(main())
