"""The experiments `tunnel/*`: programs of a client with two networks, on the kernel in virtual time.

    python3 tools/tunnel_experiments.py run [--marline FILE] [--wireguard FILE] [--out FILE] [--only TEXT] [--jobs N]
    python3 tools/tunnel_experiments.py report FILE

`run` appends a line of JSON for each cell to FILE and leaves out those that are there. It needs the kernel of `make kernel`, and no
privileges: everything happens on kernels of its own. `report` prints the tables and writes the picture of docs/tunnel-results.md.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Name, Mbit/s, round-trip time in ms.
NETWORKS = [("Wi-Fi", 20, 30), ("LTE", 10, 65)]
# Packets that wait before a bottleneck, beyond those on their way: 100 ms.
QUEUE_SECONDS = 0.1
SERVER = "192.0.2.1"
HOST = "10.3.0.2"
TRANSFER_SECONDS = 10
CALL_SECONDS = 60
HAND_OVER_SECONDS = 10
CALL_INTERVAL = 0.02
CALL_BYTES = 160
LOSSES = [0, 1, 2, 3]
SYSTEMS = ["plain", "mptcp", "wireguard", "packets", "packets-wifi", "streams", "streams-wifi"]
# The controller of TCP does not see the losses where the tunnel splits connections.
CONTROLLERS = {"streams-wifi": ["cubic"]}
# Bytes of a packet of 1500 that are content of TCP with timestamps.
CONTENT = 1448 / 1514


def cells():
    """All cells: those that decide the claims first."""
    for loss in sorted(LOSSES, key=lambda loss: (loss not in (0, 2), loss)):
        for direction in ("down", "up"):
            for system in SYSTEMS:
                for cc in CONTROLLERS.get(system, ["cubic", "bbr"]):
                    yield {"kind": "transfer", "direction": direction, "loss": loss, "system": system, "cc": cc}
    for system in ("plain", "wireguard", "packets"):
        yield {"kind": "call", "system": system, "loss": 0}
        yield {"kind": "call", "system": system, "loss": 2}


def name(cell):
    return "tunnel/" + "-".join(str(cell[key]) for key in ("kind", "direction", "system", "cc", "loss") if key in cell)


# The host.


def run(arguments):
    out = pathlib.Path(arguments.out)
    known = {json.loads(line)["name"] for line in out.read_text().splitlines()} if out.exists() else set()
    wanted = [cell for cell in cells() if name(cell) not in known and arguments.only in name(cell)]
    lock = threading.Lock()

    def one(cell):
        command = [
            arguments.marline, "lab", "link", "--backend", "kernel", "--seed", str(arguments.seed), "--link", "rate=10gbps,rtt=1ms", "--",
            sys.executable, __file__, "guest", json.dumps(cell), "--marline", arguments.marline, "--wireguard", arguments.wireguard,
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


# Inside: two networks between a client and the server, and a host behind the server.


def ip(*words):
    subprocess.run(["ip", *" ".join(words).split()], check=True, stdout=subprocess.DEVNULL)


def sh(command):
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)


def inside(namespace, *command, **keywords):
    return subprocess.Popen(["ip", "netns", "exec", namespace, *command], **keywords)


def lossy(number, loss):
    """The two directions of a network."""
    _, rate, rtt = NETWORKS[number]
    on_way = rate * 1e6 / 8 / 1514 * rtt / 2000
    limit = round(on_way + rate * 1e6 / 8 / 1514 * QUEUE_SECONDS)
    for device in ("near", "far"):
        verb = f"ip netns exec r{number} tc qdisc replace dev {device} root netem"
        sh(f"{verb} delay {rtt / 2}ms rate {rate}mbit limit {limit} loss {loss}%")


def network(loss):
    for namespace in ("c", "s", "h", "r0", "r1"):
        ip(f"netns add {namespace}")
        ip(f"-n {namespace} link set lo up")
        sh(f"ip netns exec {namespace} sysctl -qw net.ipv4.ip_forward=1")
    ip(f"-n s address add {SERVER}/32 dev lo")
    for number in (0, 1):
        router, network = f"r{number}", number + 1
        ip(f"-n c link add path{number} type veth peer name near netns {router}")
        ip(f"-n s link add to{number} type veth peer name far netns {router}")
        for namespace, device, address in (
            ("c", f"path{number}", f"10.{network}.0.2"),
            (router, "near", f"10.{network}.0.1"),
            (router, "far", f"10.{network}.1.1"),
            ("s", f"to{number}", f"10.{network}.1.2"),
        ):
            ip(f"-n {namespace} address add {address}/24 dev {device}")
            # Packets are lost one by one: none leaves an end as part of a larger one.
            ip(f"-n {namespace} link set {device} up gso_max_segs 1")
        ip(f"-n c route add default via 10.{network}.0.1 dev path{number} metric {100 * network}")
        ip(f"-n c route add default via 10.{network}.0.1 dev path{number} table {network}")
        ip(f"-n c rule add from 10.{network}.0.2 table {network}")
        ip(f"-n s route add 10.{network}.0.0/24 via 10.{network}.1.1")
        ip(f"-n {router} route add default via 10.{network}.1.2")
        lossy(number, loss)
    ip("-n s link add behind type veth peer name uplink netns h")
    for namespace, device, address in (("s", "behind", "10.3.0.1"), ("h", "uplink", HOST)):
        ip(f"-n {namespace} address add {address}/24 dev {device}")
        ip(f"-n {namespace} link set {device} up gso_max_segs 1")
    ip("-n h route add default via 10.3.0.1")


def await_line(path, text, seconds=60):
    end = time.monotonic() + seconds
    while text not in path.read_text(errors="replace"):
        if time.monotonic() > end:
            raise SystemExit(f"no {text!r}: {path.read_text()}")
        time.sleep(0.05)


def tunnel(marline, work, paths, tcp):
    sh(f"cd {work} && umask 077 && {marline} tunnel token anna --tokens tokens >token")
    log = work / "server.log"
    with log.open("w") as file:
        inside("s", marline, "tunnel", "serve", "--tokens", f"{work}/tokens", "--state", f"{work}/state", "--name", SERVER, "--pool",
               "10.88.0.0/24", "--tcp", "streams", stderr=file)
    await_line(log, "listening on")
    log = work / "client.log"
    with log.open("w") as file:
        inside("c", marline, "tunnel", "up", SERVER, "--token-file", f"{work}/token", "--cacert", f"{work}/state/certificate.pem", "--tcp", tcp,
               *[word for path in paths for word in ("--path", path)], stderr=file)
    await_line(log, "is up")
    # Both paths are there, and their MTU is known.
    time.sleep(3)


def wireguard(program, work):
    """wireguard-go between the client and the server, over the first network."""
    keys = {}
    for end in ("c", "s"):
        sh(f"cd {work} && openssl genpkey -algorithm X25519 -outform DER -out {end}.key && openssl pkey -inform DER -in {end}.key -pubout -outform DER -out {end}.pub")
        keys[end] = [(work / f"{end}.{kind}").read_bytes()[-32:].hex() for kind in ("key", "pub")]
    for end, other, address in (("c", "s", "10.99.0.2"), ("s", "c", "10.99.0.1")):
        device = f"wg-{end}"
        inside(end, program, "--foreground", device, stderr=(work / f"{end}.log").open("w"))
        path = f"/run/wireguard/{device}.sock"
        for _ in range(200):
            if os.path.exists(path):
                break
            time.sleep(0.05)
        peer = f"endpoint={SERVER}:51820\nallowed_ip=0.0.0.0/0" if end == "c" else "allowed_ip=10.99.0.2/32"
        control = socket.socket(socket.AF_UNIX)
        control.connect(path)
        control.sendall(f"set=1\nprivate_key={keys[end][0]}\nlisten_port=51820\npublic_key={keys[other][1]}\n{peer}\n\n".encode())
        answer = control.recv(100)
        if b"errno=0" not in answer:
            raise SystemExit(f"wireguard-go: {answer}")
        ip(f"-n {end} address add {address}/24 dev {device}")
        ip(f"-n {end} link set {device} up mtu 1420")
    ip("-n c route add 10.3.0.0/24 dev wg-c")


def mptcp():
    for namespace, options in (("c", "subflow"), ("h", "")):
        ip(f"-n {namespace} mptcp limits set subflow 4 add_addr_accepted 4")
        if options:
            ip(f"-n {namespace} mptcp endpoint add 10.2.0.2 dev path1 {options}")


def guest(cell, arguments):
    work = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
    sh("mkdir -p /run/wireguard")
    network(cell["loss"])
    system = cell["system"]
    if system == "mptcp":
        mptcp()
    elif system == "wireguard":
        wireguard(arguments.wireguard, work)
    elif system != "plain":
        paths = ["path0"] if system.endswith("-wifi") else ["path0", "path1"]
        tunnel(arguments.marline, work, paths, system.split("-")[0])
    for namespace in ("c", "h"):
        sh(f"ip netns exec {namespace} sysctl -qw net.ipv4.tcp_congestion_control={cell.get('cc', 'cubic')}")
    result = (transfer if cell["kind"] == "transfer" else call)(cell)
    print(json.dumps(result), flush=True)


def own(role, cell, *words):
    namespace = "h" if role.startswith("host") else "c"
    return inside(namespace, sys.executable, __file__, "end", role, json.dumps(cell), *words, stdout=subprocess.PIPE, text=True)


def transfer(cell):
    host = own("host-transfer", cell)
    assert host.stdout.readline() == "ready\n"
    client = own("client-transfer", cell)
    received = json.loads((client if cell["direction"] == "down" else host).stdout.readline())
    for end in (client, host):
        end.send_signal(signal.SIGKILL)
    return {"mbps": round(received["bytes"] * 8 / TRANSFER_SECONDS / 1e6, 2)}


def call(cell):
    host = own("host-call", cell)
    assert host.stdout.readline() == "ready\n"
    client = own("client-call", cell)
    began = time.monotonic()
    dead = 1
    while time.monotonic() + HAND_OVER_SECONDS < began + CALL_SECONDS:
        time.sleep(HAND_OVER_SECONDS)
        # The other network comes back a moment before this one is lost without notice.
        lossy(dead, cell["loss"])
        time.sleep(1)
        dead = 1 - dead
        lossy(dead, 100)
    return {direction: json.loads(end.stdout.readline()) for direction, end in (("down", client), ("up", host))}


# The programs of the client and the host.


def tcp_socket(cell):
    protocol = 262 if cell["system"] == "mptcp" else 0
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)


def count(stream):
    """Bytes that come within the time."""
    total, end = 0, time.monotonic() + TRANSFER_SECONDS
    stream.settimeout(TRANSFER_SECONDS)
    buffer = bytearray(1 << 20)
    try:
        while time.monotonic() < end:
            total += stream.recv_into(buffer)
    except TimeoutError:
        pass
    print(json.dumps({"bytes": total}), flush=True)


def fill(stream):
    try:
        while True:
            stream.sendall(bytes(65536))
    except OSError:
        pass


def end(role, cell):
    if role == "host-transfer":
        listener = tcp_socket(cell)
        listener.bind((HOST, 7001))
        listener.listen()
        print("ready", flush=True)
        stream, _ = listener.accept()
        (fill if cell["direction"] == "down" else count)(stream)
    elif role == "client-transfer":
        stream = tcp_socket(cell)
        stream.connect((HOST, 7001))
        (count if cell["direction"] == "down" else fill)(stream)
    else:
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # That of a call (RFC 4594).
        udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 46 << 2)
        if role == "host-call":
            udp.bind((HOST, 7002))
            print("ready", flush=True)
            _, peer = udp.recvfrom(2000)
            udp.connect(peer)
        else:
            udp.connect((HOST, 7002))
            udp.send(bytes(CALL_BYTES))
        speak(udp)


def speak(udp):
    """Sends and receives a call, and prints the delays of what was received."""
    packets = round(CALL_SECONDS / CALL_INTERVAL)
    delays = {}

    def listen():
        while True:
            try:
                content = udp.recv(2000)
            except OSError:
                continue
            number, sent = struct.unpack_from("!Id", content)
            if sent:
                delays.setdefault(number, time.clock_gettime(time.CLOCK_MONOTONIC) - sent)

    threading.Thread(target=listen, daemon=True).start()
    began = time.monotonic()
    for number in range(packets):
        time.sleep(max(0, began + number * CALL_INTERVAL - time.monotonic()))
        content = struct.pack("!Id", number, time.clock_gettime(time.CLOCK_MONOTONIC))
        try:
            udp.send(content + bytes(CALL_BYTES - len(content)))
        except OSError:
            pass
    time.sleep(2)
    ordered = sorted(delays.values())
    lost = [number for number in range(packets) if number not in delays]
    longest, row = 0, 0
    for number in range(packets):
        row = row + 1 if number not in delays else 0
        longest = max(longest, row)
    at = lambda part: round(1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))], 1) if ordered else None
    print(json.dumps({"sent": packets, "lost": len(lost), "lost_in_a_row": longest, "median_ms": at(0.5), "p95_ms": at(0.95), "p999_ms": at(0.999), "max_ms": at(1)}), flush=True)


# The report.

TITLES = {
    "plain": "plain, Wi-Fi",
    "mptcp": "MPTCP",
    "wireguard": "wireguard-go, Wi-Fi",
    "packets": "tunnel, packets",
    "packets-wifi": "tunnel, packets, Wi-Fi alone",
    "streams-wifi": "tunnel, streams, Wi-Fi alone",
    "streams": "tunnel, streams",
}
COLOURS = {
    "plain": "#8a8a8a",
    "mptcp": "#b8860b",
    "wireguard": "#6a5acd",
    "packets": "#5f9ea0",
    "packets-wifi": "#a9c9ca",
    "streams-wifi": "#7fb77e",
    "streams": "#2e7d32",
}


def report(arguments):
    results = {row["name"]: row for row in map(json.loads, pathlib.Path(arguments.file).read_text().splitlines())}

    def rate(direction, system, cc, loss):
        found = results.get(f"tunnel/transfer-{direction}-{system}-{cc}-{loss}")
        return found and found["mbps"]

    for direction in ("down", "up"):
        print(f"\n### {direction}\n\n| | controller | {' | '.join(f'{loss} %' for loss in LOSSES)} |")
        print("| --- | --- |" + " --- |" * len(LOSSES))
        for system in TITLES:
            for cc in CONTROLLERS.get(system, ["cubic", "bbr"]):
                rates = [rate(direction, system, cc, loss) for loss in LOSSES]
                if any(rates):
                    shown = " | ".join("" if value is None else f"{value:.1f}" for value in rates)
                    print(f"| {TITLES[system]} | {cc.upper()} | {shown} |")
    print("\n### call\n\n| | losses of the link | direction | lost | in a row | median | p95 | p99.9 | longest |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in results.values():
        if row["kind"] == "call":
            for direction in ("down", "up"):
                end = row[direction]
                print(f"| {TITLES[row['system']]} | {row['loss']} % | {direction} | {end['lost']} | {end['lost_in_a_row']} | {end['median_ms']} | {end['p95_ms']} | {end['p999_ms']} | {end['max_ms']} |")
    (ROOT / "docs/tunnel-results.svg").write_text(picture(rate))


def picture(rate):
    """Mbit/s of downloads and uploads with CUBIC by the losses, a group of bars for each."""
    width, height, left, top, bottom = 900, 400, 50, 40, 100
    most = 30
    scale = (height - top - bottom) / most
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" role="img">',
        "<title>Mbit/s of one connection of TCP with CUBIC over two networks, by the packets that are lost</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    text = lambda x, y, content, anchor="middle": parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#222222">{content}</text>')
    for value in range(0, most + 1, 10):
        y = height - bottom - value * scale
        parts.append(f'<line x1="{left}" x2="{width - 10}" y1="{y}" y2="{y}" stroke="#dddddd"/>')
        text(left - 6, y + 4, value, "end")
    text(left - 40, top - 22, "Mbit/s", "start")
    group = (width - left - 20) / (2 * len(LOSSES))
    bar = (group - 14) / len(TITLES)
    for side, direction in enumerate(("down", "up")):
        for place, loss in enumerate(LOSSES):
            x = left + (side * len(LOSSES) + place) * group + 7
            text(x + group / 2 - 7, height - bottom + 16, f"{loss} %")
            for number, system in enumerate(TITLES):
                value = rate(direction, system, "cubic", loss)
                if value is not None:
                    parts.append(f'<rect x="{x + number * bar:.1f}" y="{height - bottom - value * scale:.1f}" width="{bar - 1:.1f}" height="{value * scale:.1f}" fill="{COLOURS[system]}"/>')
        text(left + (side + 0.5) * len(LOSSES) * group, height - bottom + 34, {"down": "downloads", "up": "uploads"}[direction])
    for number, (system, title) in enumerate(TITLES.items()):
        x, y = left + number % 4 * 215, height - 48 + number // 4 * 24
        parts.append(f'<rect x="{x}" y="{y}" width="10" height="10" fill="{COLOURS[system]}"/>')
        text(x + 14, y + 9, title, "start")
    return "\n".join([*parts, "</svg>\n"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    runs = verbs.add_parser("run")
    inner = verbs.add_parser("guest")
    for verb in (runs, inner):
        verb.add_argument("--marline", default=str(ROOT / "target/debug/marline"))
        verb.add_argument("--wireguard", default=str(ROOT / "target/wireguard-go"))
    runs.add_argument("--out", default=str(ROOT / "target/tunnel-experiments.jsonl"))
    runs.add_argument("--only", default="")
    runs.add_argument("--seed", type=int, default=1)
    runs.add_argument("--jobs", type=int, default=1)
    runs.add_argument("--timeout", type=int, default=600)
    inner.add_argument("cell")
    ends = verbs.add_parser("end")
    ends.add_argument("role")
    ends.add_argument("cell")
    reports = verbs.add_parser("report")
    reports.add_argument("file")
    arguments = parser.parse_args()
    if arguments.verb == "run":
        return run(arguments)
    if arguments.verb == "guest":
        return guest(json.loads(arguments.cell), arguments)
    if arguments.verb == "end":
        return end(arguments.role, json.loads(arguments.cell))
    return report(arguments)


if __name__ == "__main__":
    sys.exit(main())
