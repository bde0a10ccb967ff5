"""The processor time of a tunnel at 1 Gbit/s beside wireguard-go's, in namespaces of this machine.

    python3 tools/tunnel_cpu.py [--marline FILE] [--wireguard FILE] [--seconds N] [--rounds N] [--rate RATE] [--systems NAME,NAME]

Prints a line of JSON for each run and a table of medians: seconds of the processor for a GiB of content of one connection of TCP (iperf3),
user and system time of the process at each end. The systems take turns in each round, so that other work on the machine meets all of them.
Needs root, iperf3, and a release build. All that it makes is in namespaces of its own, and ends with it.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from tunnel.cells import HOST, SERVER
from tunnel.guest import await_line, inside, ip, sh, tunnel, wireguard

ROOT = pathlib.Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
SYSTEMS = ["wireguard", "packets", "streams"]
# Seconds before the processor's time is taken: the connection has its rate.
WARM_UP = 2


def link(one, other):
    ip(f"-n {one[0]} link add {one[1]} type veth peer name {other[1]} netns {other[0]}")
    for namespace, device, address in (one, other):
        ip(f"-n {namespace} address add {address}/24 dev {device}")
        ip(f"-n {namespace} link set {device} up")


def network():
    for namespace in ("c", "s", "h"):
        ip(f"netns add {namespace}")
        ip(f"-n {namespace} link set lo up")
        sh(f"ip netns exec {namespace} sysctl -qw net.ipv4.ip_forward=1")
    ip(f"-n s address add {SERVER}/32 dev lo")
    link(("c", "path0", "10.1.0.2"), ("s", "to0", "10.1.0.1"))
    link(("s", "behind", "10.3.0.1"), ("h", "uplink", HOST))
    ip("-n c route add default via 10.1.0.1")
    ip("-n h route add default via 10.3.0.1")


def spent(process):
    """Seconds of the processor, of all threads."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure(system, direction, options):
    work = pathlib.Path(tempfile.mkdtemp())
    sh("rm -rf /run/wireguard/*")
    network()
    processes = [inside("h", "iperf3", "-s", "--forceflush", stdout=(work / "iperf.log").open("w"))]
    await_line(work / "iperf.log", "listening")
    if system == "plain":
        ends = []
    elif system == "wireguard":
        ends = wireguard(options.wireguard, work)
    else:
        ends = tunnel(options.marline, work, ["path0"], system)
    processes += ends
    command = ["ip", "netns", "exec", "c", "iperf3", "-c", HOST, "-t", str(options.seconds), "-O", str(WARM_UP), "-b", options.rate, "-J"]
    client = subprocess.Popen(command + (["-R"] if direction == "down" else []), stdout=subprocess.PIPE)
    time.sleep(WARM_UP)
    before, began = [spent(end) for end in ends], time.monotonic()
    output, _ = client.communicate()
    seconds = time.monotonic() - began
    after = [spent(end) for end in ends]
    summary = json.loads(output)["end"]["sum_received"]
    for process in processes:
        process.kill()
        process.wait()
    for namespace in ("c", "s", "h"):
        ip(f"netns delete {namespace}")
    subprocess.run(["rm", "-rf", str(work)], check=True)
    gib = summary["bytes"] / 2**30
    of_ends = dict(zip(("client", "server"), (round((later - earlier) / gib, 2) for earlier, later in zip(before, after))))
    return {"system": system, "direction": direction, "mbps": round(summary["bits_per_second"] / 1e6), "seconds": round(seconds, 1), **of_ends,
            "both": round(sum(of_ends.values()), 2), "load": round(os.getloadavg()[0], 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--marline", default=str(ROOT / "target/release/marline"))
    parser.add_argument("--wireguard", default=str(ROOT / "target/wireguard-go"))
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", default="1G")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    options = parser.parse_args()
    if "TUNNEL_CPU_INSIDE" not in os.environ:
        words = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, __file__, *sys.argv[1:]]
        return subprocess.run(words, env={**os.environ, "TUNNEL_CPU_INSIDE": "1"}).returncode
    sh("mount -t tmpfs tmpfs /run && mkdir -p /run/netns /run/wireguard")
    rows = []
    for _ in range(options.rounds):
        for direction in ("down", "up"):
            for system in options.systems.split(","):
                rows.append(measure(system, direction, options))
                print(json.dumps(rows[-1]), flush=True)
    print("\n| | direction | Mbit/s | client | server | both | of wireguard-go |\n| --- | --- | --- | --- | --- | --- | --- |")
    for direction in ("down", "up"):
        medians = {}
        for system in options.systems.split(","):
            runs = [row for row in rows if (row["system"], row["direction"]) == (system, direction)]
            medians[system] = {key: statistics.median(row.get(key, 0) for row in runs) for key in ("mbps", "client", "server", "both")}
        for system, row in medians.items():
            base = medians.get("wireguard", {}).get("both")
            ratio = f"{row['both'] / base:.2f}" if base else ""
            print(f"| {system} | {direction} | {row['mbps']:.0f} | {row['client']:.2f} | {row['server']:.2f} | {row['both']:.2f} | {ratio} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
