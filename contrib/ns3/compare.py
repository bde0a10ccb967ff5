#!/usr/bin/env python3
"""Runs five scenarios in ns-3 and in the laboratory, and prints a table of both.

compare.py --ns3 BULK --marline MARLINE [--repeats N]
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

# Bytes of a delivery opportunity of Mahimahi.
OPPORTUNITY = 1500
RATES_MBPS = (12, 3)

LINK = "rate=10mbps, rtt=40ms, buffer=50kB"

# Name, arguments of bulk.cc, scenario of the laboratory, metric.
SCENARIOS = [
    (
        "CUBIC alone, 5 MB",
        ["--bytes=5000000"],
        'link = "{link}"\ncc = "cubic"\nworkload.transfer = "5MB"\n',
        "completion_s",
    ),
    (
        "NewReno, 5 MB, 1 % of packets lost",
        ["--bytes=5000000", "--loss=0.01", "--tcp=ns3::TcpLinuxReno"],
        'link = "{link}, down.loss=1%"\ncc = "newreno"\nworkload.transfer = "5MB"\n',
        "completion_s",
    ),
    (
        "Two flows of CUBIC, 30 s",
        ["--flows=2", "--seconds=30"],
        'link = "{link}"\ncc = "cubic"\nhttp.connections = 2\nworkload.measure = {{ after = "5s", until = "35s" }}\n',
        "goodput_mbps",
    ),
    (
        "The same through FQ-CoDel",
        ["--flows=2", "--seconds=30", "--queue=fq-codel"],
        'link = "rate=10mbps, rtt=40ms, queue=fq-codel, buffer=1500kB"\ncc = "cubic"\nhttp.connections = 2\n'
        'workload.measure = {{ after = "5s", until = "35s" }}\n',
        "goodput_mbps",
    ),
    (
        "CUBIC over a trace of Mahimahi, 5 MB",
        ["--bytes=5000000", "--rates=" + ",".join(map(str, RATES_MBPS))],
        'link = "down.trace={trace}, up.rate=10mbps, rtt=40ms, buffer=50kB"\ncc = "cubic"\nworkload.transfer = "5MB"\n',
        "completion_s",
    ),
]


def trace() -> str:
    """Delivery opportunities, as milliseconds of a span that repeats: each rate for a second."""
    lines = []
    owed = 0.0
    for millisecond in range(1000 * len(RATES_MBPS)):
        owed += RATES_MBPS[millisecond // 1000] * 1e3 / 8 / OPPORTUNITY
        while owed >= 1:
            lines.append(str(millisecond + 1))
            owed -= 1
    return "\n".join(lines) + "\n"


def of_ns3(program: str, arguments: list[str], metric: str, repeats: int) -> list[float]:
    """The metric of each run: of the last flow to end, or of all flows together."""
    values = []
    for seed in range(1, repeats + 1):
        done = subprocess.run([program, *arguments, f"--seed={seed}"], check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)[metric]
        values.append(max(found) if metric == "completion_s" else sum(found))
    return values


def of_marline(program: str, scenario: str, metric: str, repeats: int, scratch: pathlib.Path) -> list[float]:
    """The metric of each run."""
    file = scratch / "scenario.toml"
    file.write_text(f'title = "Beside ns-3"\nprofile = "rfc"\nrepeats = {repeats}\n{scenario}', encoding="utf-8")
    command = [program, "lab", "run", str(file), "--fresh", "--out", str(scratch / "out"), "--repeats", str(repeats)]
    subprocess.run(command, check=True, capture_output=True)
    lines = (scratch / "out" / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    runs = {run["run"]: run for run in map(json.loads, lines)}
    return [run["metrics"][metric] for run in runs.values()]


def main() -> None:
    """Run all scenarios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ns3", required=True)
    parser.add_argument("--marline", required=True)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    print("| scenario | metric | ns-3 | marline | marline by ns-3 |")
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        (scratch / "mahimahi.trace").write_text(trace(), encoding="utf-8")
        for name, arguments, scenario, metric in SCENARIOS:
            text = scenario.format(link=LINK, trace=scratch / "mahimahi.trace")
            theirs = of_ns3(options.ns3, arguments, metric, options.repeats)
            ours = of_marline(options.marline, text, metric, options.repeats, scratch)
            both = [statistics.median(theirs), statistics.median(ours)]
            print(f"| {name} | `{metric}` | {both[0]:.2f} | {both[1]:.2f} | {both[1] / both[0]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
