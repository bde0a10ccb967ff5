"""Cores: a server of marline with one worker and with several, side by side.

    cores.py BENCH_MARLINE [--workers N] [--rounds N] [--clients N] [--seconds S]

Each round starts a server with each number of workers, in turns, and measures requests, handshakes and downloads with CLIENTS
processes at once. Prints the medians of the rates, their ratio within each round, and the processor time that the server used for
each second. Clients need cores of their own: on a machine with fewer cores than workers and clients, the ratio is that of the machine.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ADDRESS = "127.0.0.1:14470"
BULK = 256 << 20


def tasks(seconds: float) -> dict[str, list[str]]:
    """The flags of a client for each task."""
    timed = ["--seconds", str(seconds)]
    return {
        "requests": ["--task", "requests", "--bytes", "100", "--concurrency", "100", *timed],
        "handshakes": ["--task", "handshakes", *timed],
        "bulk": ["--task", "bulk", "--bytes", str(BULK)],
    }


def rate(task: str, measured: list[dict]) -> float:
    """What all clients did in a second: requests, handshakes, or bytes."""
    amount = "bytes" if task == "bulk" else "count"
    return sum(one[amount] / one["seconds"] for one in measured)


class Server:
    """A server with a number of workers."""

    def __init__(self, program: str, directory: Path, workers: int) -> None:
        identity = ["--cert", str(directory / "cert.pem"), "--key", str(directory / "key.pem")]
        command = [program, "server", "--listen", ADDRESS, *identity, "--workers", str(workers)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = self.process.stderr.readline()
        if not line.startswith("listening"):
            sys.exit(f"{' '.join(command)}: {line}{self.process.stderr.read()}")

    def cpu_s(self) -> float:
        """The processor time that it has used, in seconds."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["cpu_s"]

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def measure(program: str, flags: list[str], clients: int) -> list[dict]:
    """The measurements of so many clients at once."""
    command = [program, "client", "--server", ADDRESS, *flags]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(clients)]
    outputs = [process.communicate()[0] for process in started]
    if any(process.returncode != 0 for process in started):
        sys.exit(f"{' '.join(command)}: failed")
    return [json.loads(output) for output in outputs]


def certificate(directory: Path) -> None:
    """Makes a self-signed certificate."""
    files = ["-keyout", str(directory / "key.pem"), "-out", str(directory / "cert.pem")]
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    subprocess.run(["openssl", "req", "-x509", *key, *files, *subject], check=True, capture_output=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()
    compared = (1, arguments.workers)
    rates = {task: {workers: [] for workers in compared} for task in tasks(arguments.seconds)}
    loads = {task: {workers: [] for workers in compared} for task in rates}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        certificate(directory)
        for number in range(arguments.rounds):
            for workers in compared if number % 2 == 0 else reversed(compared):
                server = Server(arguments.program, directory, workers)
                for task, flags in tasks(arguments.seconds).items():
                    before = server.cpu_s()
                    measured = measure(arguments.program, flags, arguments.clients)
                    longest = max(one["seconds"] for one in measured)
                    loads[task][workers].append((server.cpu_s() - before) / longest)
                    rates[task][workers].append(rate(task, measured))
                server.stop()
    one, several = compared
    print(f"| task | 1 worker | {several} workers | ratio | cores of the server |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for task, measured in rates.items():
        ratio = statistics.median(b / a for a, b in zip(measured[one], measured[several]))
        medians = [statistics.median(measured[workers]) for workers in compared]
        shown = [f"{value / 1e6:.0f} MB/s" if task == "bulk" else f"{value:.0f}/s" for value in medians]
        used = " and ".join(f"{statistics.median(loads[task][workers]):.2f}" for workers in compared)
        print(f"| {task} | {shown[0]} | {shown[1]} | {ratio:.2f} | {used} |")


if __name__ == "__main__":
    main()
