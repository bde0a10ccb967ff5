#!/usr/bin/env python3
"""Compares the speed of `marline flow` with that of other programs that make flows of captures.

Makes a capture of connections over TCP and UDP whose packets interleave, then runs all programs that are installed in turn,
several rounds, and prints packets per second of processor time (of all threads), medians over the rounds, and how they
compare. softflowd sends its records to a socket that nobody reads, and so has no cost of writing them.

    tools/bench_flow.py --marline target/release/marline --megabytes 300 --rounds 3
"""

import argparse
import os
import random
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PACKET = struct.Struct("<IIII")
FLOWS_AT_ONCE = 500
PACKETS_OF_A_FLOW = 60
PACKETS_PER_SECOND = 20_000


def frame(number: int, position: int, sent: list[int], size: int) -> bytes:
    """A packet of a flow: its first and last ones open and close it, two of three are from the server. `sent` has the sequence numbers of both ends."""
    udp = number % 5 == 0
    client = 0x0A000000 | number & 0xFFFFFF
    server = 0xC0000200 | number % 97
    port = 32768 + number % 28000
    from_server = position % 3 != 0
    source, destination = (server, client) if from_server else (client, server)
    ports = (443, port) if from_server else (port, 443)
    if udp:
        header = struct.pack(">HHHH", *ports, 8 + size, 0)
        # 1-RTT packets of QUIC.
        payload = b"\x40" + bytes(size - 1) if size else b""
    else:
        flags = (
            0x02 if position == 0 else 0x12 if position == 1 else 0x11 if position >= PACKETS_OF_A_FLOW - 2 else 0x10
        )
        payload = bytes(0 if position < 2 else size)
        sequence = sent[from_server]
        sent[from_server] += len(payload) + (flags & 0x03 != 0)
        header = struct.pack(">HHIIBBHHH", *ports, sequence, 1, 5 << 4, flags, 65535, 0, 0)
    length = 20 + len(header) + len(payload)
    ip = struct.pack(
        ">BBHHHBBHII", 0x45, 0, length, number & 0xFFFF, 0x4000, 64, 17 if udp else 6, 0, source, destination
    )
    return b"\x02" * 12 + b"\x08\x00" + ip + header + payload


def make(path: Path, megabytes: int, snap_length: int) -> int:
    """Writes a capture; how many packets it has."""
    draw = random.Random(1)
    flows = [[number, draw.randrange(PACKETS_OF_A_FLOW), [0, 0]] for number in range(FLOWS_AT_ONCE)]
    following = FLOWS_AT_ONCE
    packets = written = 0
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snap_length, 1))
        while written < megabytes << 20:
            flow = draw.choice(flows)
            size = draw.choice((0, 0, 40, 300, 1400, 1400, 1400))
            data = frame(*flow, size)
            flow[1] += 1
            if flow[1] == PACKETS_OF_A_FLOW:
                flow[:] = [following, 0, [0, 0]]
                following += 1
            seconds, part = divmod(packets, PACKETS_PER_SECOND)
            part = part * 1_000_000 // PACKETS_PER_SECOND
            kept = data[:snap_length]
            file.write(PACKET.pack(1_700_000_000 + seconds, part, len(kept), len(data)) + kept)
            written += 16 + len(kept)
            packets += 1
    return packets


def processor_time(command: list[str]) -> float:
    """Runs a command; the processor time of all of its threads and children, in seconds."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    message = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: {message.decode(errors='replace')}")
    return usage.ru_utime + usage.ru_stime


def commands(marline: str, capture: Path, directory: Path, port: int) -> dict[str, list[str]]:
    """The programs that are installed."""
    known = {
        "marline flow": [marline, "flow", str(capture), "-o", str(directory / "flows.parquet")],
        "tshark": ["tshark", "-n", "-r", str(capture), "-q", "-z", "conv,tcp", "-z", "conv,udp"],
        "softflowd": ["softflowd", "-r", str(capture), "-n", f"127.0.0.1:{port}", "-v", "9", "-m", "100000"],
        "nfpcapd": ["nfpcapd", "-r", str(capture), "-w", str(directory)],
    }
    missing = [name for name, command in known.items() if shutil.which(command[0]) is None]
    for name in missing:
        print(f"skipped: {name} is not installed", file=sys.stderr)
    return {name: command for name, command in known.items() if name not in missing}


def compare(arguments: argparse.Namespace, snap_length: int, directory: Path, port: int) -> None:
    """Measures one capture."""
    capture = directory / f"{snap_length}.pcap"
    start = time.monotonic()
    packets = make(capture, arguments.megabytes, snap_length)
    took = time.monotonic() - start
    print(f"{packets:,} packets, {arguments.megabytes} MiB, at most {snap_length} bytes each (made in {took:.0f} s)")
    programs = commands(arguments.marline, capture, directory, port)
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(arguments.rounds):
        for name, command in programs.items():
            times[name].append(processor_time(command))
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, median in medians.items():
        ratio = median / medians["marline flow"]
        spread = f"{min(times[name]):.2f} to {max(times[name]):.2f} s"
        print(
            f"  {name:13} {packets / median / 1e6:7.2f} million packets/s of a core ({spread}); marline is {ratio:.1f} times as fast"
        )
    capture.unlink()


def main() -> None:
    """Measures captures with and without content."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--marline", default="target/release/marline", help="the command (%(default)s)")
    parser.add_argument("--megabytes", type=int, default=300, help="size of each capture (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each program (%(default)s)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("127.0.0.1", 0))
        for snap_length in (65535, 96):
            compare(arguments, snap_length, Path(name), sink.getsockname()[1])


if __name__ == "__main__":
    main()
