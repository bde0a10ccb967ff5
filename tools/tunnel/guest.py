"""Inside the machine: two networks between a client and the server, and a host behind the server."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from tunnel import ends
from tunnel.cells import (
    CALL_SECONDS, FADING_STEP, HAND_OVER_SECONDS, HOST, KEY_SECONDS, MOBILE_SECONDS, NETWORKS, PAGE_BYTES, PAGE_OBJECTS, QUEUE_SECONDS, QUIC_BYTES, SERVER, SHARED_RATE, fading,
)

MAIN = str(pathlib.Path(__file__).resolve().parent.parent / "tunnel_experiments.py")
# A packet of Ethernet.
FRAME = 1514


def ip(*words):
    subprocess.run(["ip", *" ".join(words).split()], check=True, stdout=subprocess.DEVNULL)


def sh(command):
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)


def inside(namespace, *command, **keywords):
    return subprocess.Popen(["ip", "netns", "exec", namespace, *command], **keywords)


def netem(namespace, device, words):
    sh(f"ip netns exec {namespace} tc qdisc replace dev {device} root netem {words}")


def lossy(number, loss, rate=None):
    """The two directions of a network. Its queue stays where its rate changes."""
    _, usual, rtt = NETWORKS[number]
    limit = round(usual * 1e6 / 8 / FRAME * (rtt / 2000 + QUEUE_SECONDS))
    for device in ("near", "far"):
        netem(f"r{number}", device, f"delay {rtt / 2}ms rate {rate or usual}mbit limit {limit} loss {loss}" + ("%" if isinstance(loss, int) else ""))


def connect(one, other):
    """A link between two (namespace, device, address)."""
    ip(f"-n {one[0]} link add {one[1]} type veth peer name {other[1]} netns {other[0]}")
    for namespace, device, address in (one, other):
        ip(f"-n {namespace} address add {address}/24 dev {device}")
        # Packets are lost one by one: none leaves an end as part of a larger one.
        ip(f"-n {namespace} link set {device} up gso_max_segs 1")


def network(cell):
    shared = cell["kind"] == "shared"
    for namespace in ("c", "s", "h", "r0", "r1") + (("b", "d") if shared else ()):
        ip(f"netns add {namespace}")
        ip(f"-n {namespace} link set lo up")
        sh(f"ip netns exec {namespace} sysctl -qw net.ipv4.ip_forward=1")
    ip(f"-n s address add {SERVER}/32 dev lo")
    for number in (0, 1):
        router, network = f"r{number}", number + 1
        beyond = "b" if shared else "s"
        connect(("c", f"path{number}", f"10.{network}.0.2"), (router, "near", f"10.{network}.0.1"))
        connect((beyond, f"to{number}", f"10.{network}.1.2"), (router, "far", f"10.{network}.1.1"))
        ip(f"-n c route add default via 10.{network}.0.1 dev path{number} metric {100 * network}")
        ip(f"-n c route add default via 10.{network}.0.1 dev path{number} table {network}")
        ip(f"-n c rule add from 10.{network}.0.2 table {network}")
        ip(f"-n {beyond} route add 10.{network}.0.0/24 via 10.{network}.1.1")
        ip(f"-n {router} route add default via 10.{network}.1.2")
        if not shared:
            lossy(number, cell["loss"])
    if shared:
        bottleneck()
    connect(("s", "behind", "10.3.0.1"), ("h", "uplink", HOST))
    ip("-n h route add default via 10.3.0.1")


def bottleneck():
    """Both networks have delays alone, and one link to the server. Another client is on the first."""
    connect(("b", "out", "10.4.0.1"), ("s", "in", "10.4.0.2"))
    connect(("d", "path", "10.1.2.2"), ("r0", "side", "10.1.2.1"))
    ip("-n d route add default via 10.1.2.1")
    ip("-n b route add default via 10.4.0.2")
    ip("-n b route add 10.1.2.0/24 via 10.1.1.1")
    for network in (1, 2):
        ip(f"-n s route add 10.{network}.0.0/16 via 10.4.0.1")
    for router, device, rtt in (("r0", "near", NETWORKS[0][2]), ("r0", "side", NETWORKS[0][2]), ("r0", "far", NETWORKS[0][2]), ("r1", "near", NETWORKS[1][2]), ("r1", "far", NETWORKS[1][2])):
        netem(router, device, f"delay {rtt / 2}ms limit 10000")
    limit = round(SHARED_RATE * 1e6 / 8 / FRAME * QUEUE_SECONDS)
    for namespace, device in (("b", "out"), ("s", "in")):
        netem(namespace, device, f"rate {SHARED_RATE}mbit limit {limit}")


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
        server = inside("s", marline, "tunnel", "serve", "--tokens", f"{work}/tokens", "--state", f"{work}/state", "--name", SERVER, "--pool",
                        "10.88.0.0/24", "--tcp", "streams", stderr=file)
    await_line(log, "listening on")
    log = work / "client.log"
    with log.open("w") as file:
        client = inside("c", marline, "tunnel", "up", SERVER, "--token-file", f"{work}/token", "--cacert", f"{work}/state/certificate.pem", "--tcp", tcp,
                        *[word for path in paths for word in ("--path", path)], stderr=file)
    await_line(log, "is up")
    # Both paths are there, and their MTU is known.
    time.sleep(3)
    return client, server


def wireguard(program, work):
    """wireguard-go between the client and the server, over the first network."""
    keys, processes = {}, []
    for end in ("c", "s"):
        sh(f"cd {work} && openssl genpkey -algorithm X25519 -outform DER -out {end}.key && openssl pkey -inform DER -in {end}.key -pubout -outform DER -out {end}.pub")
        keys[end] = [(work / f"{end}.{kind}").read_bytes()[-32:].hex() for kind in ("key", "pub")]
    for end, other, address in (("c", "s", "10.99.0.2"), ("s", "c", "10.99.0.1")):
        device = f"wg-{end}"
        processes.append(inside(end, program, "--foreground", device, stderr=(work / f"{end}.log").open("w")))
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
    return processes


def mptcp():
    for namespace, options in (("c", "subflow"), ("h", "")):
        ip(f"-n {namespace} mptcp limits set subflow 4 add_addr_accepted 4")
        if options:
            ip(f"-n {namespace} mptcp endpoint add 10.2.0.2 dev path1 {options}")


def guest(cell, options):
    work = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
    options.work = str(work)
    sh("mkdir -p /run/wireguard")
    network(cell)
    system = cell["system"]
    if system == "mptcp":
        mptcp()
    elif system == "wireguard":
        wireguard(options.wireguard, work)
    elif system != "plain":
        paths = ["path0"] if system.endswith("-wifi") else ["path0", "path1"]
        tunnel(options.marline, work, paths, system.split("-")[0])
    cc = cell.get("cc", "cubic")
    for namespace in ("c", "h"):
        sh(f"ip netns exec {namespace} sysctl -qw net.ipv4.tcp_congestion_control={'cubic' if cc == 'default' else cc}")
    print(json.dumps(KINDS[cell["kind"]](cell, options)), flush=True)


# A library by which programs make sockets of MPTCP instead of TCP.
MPTCP_SOCKETS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
int socket(int domain, int type, int protocol) {
    static int (*real)(int, int, int);
    if (!real) real = dlsym(RTLD_NEXT, "socket");
    int is_tcp = (domain == AF_INET || domain == AF_INET6) && (type & 0xf) == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP);
    return real(domain, type, is_tcp ? 262 : protocol);
}
"""


class Own:
    """A program of tunnel/ends.py in a namespace."""

    def __init__(self, namespace, role, cell, options):
        words = [sys.executable, MAIN, "end", role, json.dumps(cell), "--marline", options.marline, "--sshd", options.sshd, "--work", options.work]
        self.process = inside(namespace, *words, stdout=subprocess.PIPE, text=True)
        self.role = role

    def ready(self):
        assert self.process.stdout.readline() == "ready\n", self.role
        return self

    def result(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.role} has ended")
        return json.loads(line)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)


def rate(counted):
    return round(counted["bytes"] * 8 / counted["seconds"] / 1e6, 2)


def in_background(function, *arguments):
    threading.Thread(target=function, args=arguments, daemon=True).start()


def transferred(cell, options):
    """What the receiver of a transfer has counted."""
    host = Own("h", "host-transfer", cell, options).ready()
    client = Own("c", "client-transfer", cell, options)
    counted = (client if cell["direction"] == "down" else host).result()
    for end in (client, host):
        end.kill()
    return counted


def transfer(cell, options):
    return {"mbps": rate(transferred(cell, options))}


def hand_over(cell, seconds):
    """The networks fail without notice, in turn."""
    began = time.monotonic()
    dead = 1
    while time.monotonic() + HAND_OVER_SECONDS < began + seconds:
        time.sleep(HAND_OVER_SECONDS)
        # The other network comes back a moment before this one is lost without notice.
        lossy(dead, cell["loss"])
        time.sleep(1)
        dead = 1 - dead
        lossy(dead, 100)


def mobile(cell, options):
    in_background(hand_over, cell, MOBILE_SECONDS)
    counted = transferred(cell, options)
    return {"mbps": rate(counted), "longest_pause_s": counted["longest_pause_s"]}


def fade(cell, began):
    for step, rates in enumerate(zip(fading(0), fading(1))):
        time.sleep(max(0, began + step * FADING_STEP - time.monotonic()))
        for number, rate in enumerate(rates):
            lossy(number, cell["loss"], rate)


def fading_transfer(cell, options):
    in_background(fade, cell, time.monotonic())
    counted = transferred(cell, options)
    return {"mbps": rate(counted), "longest_pause_s": counted["longest_pause_s"]}


def shared(cell, options):
    ip("-n h route replace default via 10.3.0.1")
    Own("h", "host-rival", cell, options).ready()
    host = Own("h", "host-transfer", cell, options).ready()
    rival = Own("d", "client-rival", cell, options)
    client = Own("c", "client-transfer", cell, options)
    result = {"mbps": rate(client.result()), "rival_mbps": rate(rival.result())}
    host.kill()
    return result


def call(cell, options):
    host = Own("h", "host-call", cell, options).ready()
    client = Own("c", "client-call", cell, options)
    hand_over(cell, CALL_SECONDS)
    return {"down": client.result(), "up": host.result()}


def busy(cell, options):
    """A call beside a transfer."""
    filler_host = Own("h", "host-transfer", cell, options).ready()
    filler = Own("c", "client-transfer", cell, options)
    host = Own("h", "host-call", cell, options).ready()
    time.sleep(2)
    client = Own("c", "client-call", cell, options)
    calls = {"down_call": client.result(), "up_call": host.result()}
    return {**calls, "mbps": rate((filler if cell["direction"] == "down" else filler_host).result())}


def stalled(cell, options):
    # The kernel's buffers would hold more than the tunnel does.
    for setting in ("tcp_wmem", "tcp_rmem"):
        sh(f'ip netns exec c sysctl -qw net.ipv4.{setting}="4096 65536 262144"')
    Own("h", "host-stalled", cell, options).ready()
    counted = Own("c", "client-stalled", cell, options).result()
    return {"mbps": rate(counted), **({"error": counted["error"]} if "error" in counted else {})}


def keys(cell, options):
    for key in ("host", "user"):
        sh(f"ssh-keygen -q -t ed25519 -N '' -f {options.work}/{key}")
    if cell["system"] == "mptcp":
        (pathlib.Path(options.work) / "mptcp.c").write_text(MPTCP_SOCKETS)
        sh(f"gcc -shared -fPIC -o {options.work}/mptcp.so {options.work}/mptcp.c")
    sshd = Own("h", "host-keys", cell, options)
    end = time.monotonic() + 30
    while not subprocess.run(["ip", "netns", "exec", "h", "ss", "-Hltn", "sport", "=", f":{ends.SSH_PORT}"], capture_output=True).stdout:
        if time.monotonic() > end:
            raise SystemExit("sshd does not listen")
        time.sleep(0.1)
    client = Own("c", "client-keys", cell, options)
    if cell["hand_over"]:
        in_background(hand_over, cell, KEY_SECONDS + 20)
    result = client.result()
    sshd.kill()
    return result


def serve(cell, options, *words):
    """marline as the server of files on the host."""
    work = pathlib.Path(options.work)
    (work / "site").mkdir()
    log = work / "serve.log"
    with log.open("w") as file:
        inside("h", options.marline, "serve", f"{work}/site", "--listen", f"{HOST}:{ends.TRANSFER_PORT}", "--name", HOST, "--state", f"{work}/serve",
               *words, stdout=file, stderr=file)
    await_line(log, "listening on")
    return work / "site"


def quic(cell, options):
    site = serve(cell, options, *(() if cell["cc"] == "default" else ("--cc", cell["cc"])))
    (site / "file").write_bytes(bytes(QUIC_BYTES))
    got = Own("c", "client-quic", cell, options).result()
    if got["bytes"] != QUIC_BYTES:
        raise SystemExit(f"marline get: {got}")
    return {"mbps": rate(got)}


def page(cell, options):
    site = serve(cell, options)
    for number in range(PAGE_OBJECTS):
        (site / str(number)).write_bytes(os.urandom(PAGE_BYTES))
    return Own("c", "client-page", cell, options).result()


KINDS = {
    "transfer": transfer, "call": call, "keys": keys, "quic": quic, "fading": fading_transfer, "shared": shared, "busy": busy, "mobile": mobile,
    "stalled": stalled, "page": page,
}
