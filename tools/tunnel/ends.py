"""The programs of the client and of the host behind the server."""

import json
import os
import pathlib
import random
import select
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

from tunnel.cells import (
    BUSY_SECONDS, CALL_BYTES, CALL_INTERVAL, CALL_SECONDS, FADING_SECONDS, HOST, KEY_SECONDS, MOBILE_SECONDS, PAGE_LOADS, PAGE_OBJECTS,
    SHARED_SECONDS, SHARED_SKIPPED, TRANSFER_SECONDS,
)

IPPROTO_MPTCP = 262
TRANSFER_PORT = 7001
CALL_PORT = 7002
RIVAL_PORT = 7003
SSH_PORT = 7022
SECONDS = {"transfer": TRANSFER_SECONDS, "fading": FADING_SECONDS, "mobile": MOBILE_SECONDS, "shared": SHARED_SECONDS, "busy": BUSY_SECONDS + 5,
           "stalled": TRANSFER_SECONDS}
SKIPPED = {"shared": SHARED_SKIPPED}
# A reader that stalls has read so much before, with a small buffer of its own.
STALLED_READ = 100_000
STALLED_BUFFER = 16_384
STALLED_WAIT = 90


def tcp_socket(cell):
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP if cell["system"] == "mptcp" else 0)


def count(stream, cell):
    """Prints the bytes that come within the time, and the longest time without any."""
    began = time.monotonic()
    begin, end = began + SKIPPED.get(cell["kind"], 0), began + SECONDS[cell["kind"]]
    total, longest, last = 0, 0.0, began
    buffer = bytearray(1 << 20)
    while (now := time.monotonic()) < end:
        stream.settimeout(end - now)
        try:
            received = stream.recv_into(buffer)
        except TimeoutError:
            break
        if not received:
            break
        now = time.monotonic()
        total += received * (now >= begin)
        longest, last = max(longest, now - last), now
    longest = max(longest, end - last)
    print(json.dumps({"bytes": total, "seconds": end - begin, "longest_pause_s": round(longest, 2)}), flush=True)


def fill(stream):
    try:
        while True:
            stream.sendall(bytes(65536))
    except OSError:
        pass


def listen_for(cell, port):
    listener = tcp_socket(cell)
    listener.bind((HOST, port))
    listener.listen(200)
    print("ready", flush=True)
    return listener


def end(role, cell, options):
    globals()[role.replace("-", "_")](cell, options)


def host_transfer(cell, _):
    stream, _ = listen_for(cell, TRANSFER_PORT).accept()
    if cell["direction"] == "down":
        fill(stream)
    else:
        count(stream, cell)


def client_transfer(cell, _):
    stream = tcp_socket(cell)
    stream.connect((HOST, TRANSFER_PORT))
    if cell["direction"] == "down":
        count(stream, cell)
    else:
        fill(stream)


def host_rival(cell, _):
    stream, _ = listen_for({**cell, "system": "plain"}, RIVAL_PORT).accept()
    fill(stream)


def client_rival(cell, _):
    stream = socket.create_connection((HOST, RIVAL_PORT))
    count(stream, cell)


def host_stalled(cell, _):
    listener = listen_for(cell, TRANSFER_PORT)
    while True:
        stream, _ = listener.accept()
        threading.Thread(target=fill, args=(stream,), daemon=True).start()


def client_stalled(cell, _):
    """Connections that are read for a while and then no more, and one more that is read."""
    stalled = []
    for _ in range(cell["stalled"]):
        stream = tcp_socket(cell)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, STALLED_BUFFER)
        stream.connect((HOST, TRANSFER_PORT))
        left = STALLED_READ
        while left > 0:
            left -= len(stream.recv(min(left, 65536)))
        stalled.append(stream)
    if stalled:
        time.sleep(STALLED_WAIT)
    stream = tcp_socket(cell)
    stream.settimeout(20)
    try:
        stream.connect((HOST, TRANSFER_PORT))
    except OSError as error:
        print(json.dumps({"bytes": 0, "seconds": TRANSFER_SECONDS, "error": str(error)}), flush=True)
        return
    count(stream, cell)


# A call.


def call_socket():
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # That of a call (RFC 4594).
    udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 46 << 2)
    return udp


def host_call(cell, _):
    udp = call_socket()
    udp.bind((HOST, CALL_PORT))
    print("ready", flush=True)
    _, peer = udp.recvfrom(2000)
    udp.connect(peer)
    speak(udp, cell)


def client_call(cell, _):
    udp = call_socket()
    udp.connect((HOST, CALL_PORT))
    udp.send(bytes(CALL_BYTES))
    speak(udp, cell)


def speak(udp, cell):
    """Sends and receives a call, and prints the delays of what was received."""
    packets = round((BUSY_SECONDS if cell["kind"] == "busy" else CALL_SECONDS) / CALL_INTERVAL)
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
    lost = [number for number in range(packets) if number not in delays]
    longest, row = 0, 0
    for number in range(packets):
        row = row + 1 if number not in delays else 0
        longest = max(longest, row)
    print(json.dumps({"sent": packets, "lost": len(lost), "lost_in_a_row": longest, **percentiles(delays.values())}), flush=True)


def percentiles(delays):
    """Those of delays in seconds, in ms."""
    ordered = sorted(delays)
    at = lambda part: round(1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))], 1) if ordered else None
    return {"median_ms": at(0.5), "p95_ms": at(0.95), "p999_ms": at(0.999), "max_ms": at(1)}


# Keystrokes of SSH.


def environment(cell, work):
    """That of a program whose sockets are of MPTCP, if the system is."""
    return {**os.environ, **({"LD_PRELOAD": str(work / "mptcp.so")} if cell["system"] == "mptcp" else {})}


def host_keys(cell, options):
    """sshd for root with one key. A machine without the package's user gets it in its own view of /etc/passwd."""
    work = pathlib.Path(options.work)
    passwd = pathlib.Path("/etc/passwd").read_text()
    if "\nsshd:" not in passwd:
        (work / "passwd").write_text(passwd + "sshd:x:65533:65533::/run/sshd:/usr/sbin/nologin\n")
        subprocess.run(["mount", "--bind", work / "passwd", "/etc/passwd"], check=True)
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    (work / "sshd_config").write_text(
        f"ListenAddress {HOST}:{SSH_PORT}\nHostKey {work}/host\nAuthorizedKeysFile {work}/user.pub\nStrictModes no\nPermitRootLogin yes\n"
        "UsePAM no\nUseDNS no\nPidFile none\nPrintMotd no\nPrintLastLog no\nMaxStartups 100\n"
    )
    os.execve(options.sshd, [options.sshd, "-D", "-e", "-f", str(work / "sshd_config")], environment(cell, work))


def client_keys(cell, options):
    """Types letters, one at a time, into a remote terminal, and prints how long each takes to be echoed."""
    work = pathlib.Path(options.work)
    command = [
        "ssh", "-F", "none", "-tt", "-p", str(SSH_PORT), "-i", f"{work}/user", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
        "-o", "LogLevel=ERROR", f"root@{HOST}", "echo here; exec cat >/dev/null",
    ]
    shell = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=environment(cell, work))
    seen = b""
    while b"here" not in seen:
        content = os.read(shell.stdout.fileno(), 4096)
        if not content:
            sys.exit("ssh has ended")
        seen += content
    sent, delays = [], []
    draws = random.Random(1)
    began = time.monotonic()
    due = began
    while True:
        now = time.monotonic()
        is_typing = now < began + KEY_SECONDS
        if not is_typing and (len(delays) == len(sent) or now > began + KEY_SECONDS + 60):
            break
        if is_typing and now >= due:
            # A line of the terminal holds 4095 letters.
            shell.stdin.write(b"a" if len(sent) % 1000 else b"\na")
            sent.append(now)
            due += draws.uniform(0.05, 0.25)
            continue
        wait = due - now if is_typing else 1
        if select.select([shell.stdout], [], [], wait)[0]:
            content = os.read(shell.stdout.fileno(), 4096)
            if not content:
                break
            now = time.monotonic()
            for _ in range(content.count(b"a")):
                delays.append(now - sent[len(delays)])
    shell.kill()
    print(json.dumps({"keys": len(sent), "not_echoed": len(sent) - len(delays), **percentiles(delays)}), flush=True)


# A download over QUIC.


def client_quic(cell, options):
    began = time.monotonic()
    ended = subprocess.run(
        [options.marline, "get", f"https://{HOST}:{TRANSFER_PORT}/file", "--http3-only", "--insecure", "-s", "-o", f"{options.work}/got"],
        stdout=subprocess.DEVNULL,
    )
    seconds = time.monotonic() - began
    got = pathlib.Path(options.work, "got")
    print(json.dumps({"bytes": got.stat().st_size if got.exists() else 0, "seconds": seconds, "status": ended.returncode}), flush=True)


# A page over HTTP/2.


def client_page(cell, options):
    """Loads a document and then its objects, several times on new connections, and prints the times."""
    times = []
    for _ in range(PAGE_LOADS):
        began = time.monotonic()
        urls = [f"https://{HOST}:{TRANSFER_PORT}/{number}" for number in range(PAGE_OBJECTS)]
        words = ["--mptcp"] if cell["system"] == "mptcp" else ["--http2"]
        subprocess.run([options.marline, "get", *urls, *words, "--insecure", "-s", "-o", f"{options.work}/page/"], stdout=subprocess.DEVNULL, check=True)
        times.append(round(1000 * (time.monotonic() - began)))
        shutil.rmtree(f"{options.work}/page")
    print(json.dumps({"ms": times}), flush=True)
