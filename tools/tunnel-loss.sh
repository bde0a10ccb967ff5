#!/bin/sh
# Downloads of one TCP connection over an emulated link with losses: by its plain path, and through a tunnel with TCP as packets
# and as streams. tunnel-loss.sh MARLINE [LINK [CC]], where CC is that of TCP. Prints
# Mbit/s. Needs root, python3 and iproute2.
set -eu
if [ "${2:-}" = server ]; then
    marline=$1 work=$3
    cd "$work"
    # The origin is a host behind the server.
    unshare -n python3 -c '
import socket, subprocess, sys, threading
print("here", flush=True)
input()
for words in ("link set lo up", "address add 10.3.0.2/24 dev uplink", "link set uplink up", "route add default via 10.3.0.1"):
    subprocess.check_call(["ip", *words.split()])
listener = socket.create_server(("10.3.0.2", 7001))
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
print("ready", flush=True)
def serve(stream):
    try:
        while True:
            stream.sendall(bytes(65536))
    except OSError:
        pass
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
' "$4" <origin.in >origin.out &
    origin=$!
    exec 3>origin.in
    until grep -q here origin.out 2>/dev/null; do sleep 0.1; done
    ip link add behind type veth peer name uplink netns $origin
    ip address add 10.3.0.1/24 dev behind
    ip link set behind up
    echo >&3
    until grep -q ready origin.out; do sleep 0.1; done
    # For the plain path.
    python3 -c '
import socket, sys, threading
listener = socket.create_server(("10.77.0.1", 7001))
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
def serve(stream):
    try:
        while True:
            stream.sendall(bytes(65536))
    except OSError:
        pass
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
' "$4" &
    for setting in ipv4/ip_forward ipv6/conf/all/forwarding; do
        echo 1 >/proc/sys/net/$setting
    done
    exec "$marline" tunnel serve --tokens tokens --state state --name 10.77.0.1 --pool 10.88.0.0/24 --tcp streams \
        --device tun-loss0 2>server.log
fi
if [ "${2:-}" = client ]; then
    marline=$1 work=$3
    cd "$work"
    until grep -q 'listening on' server.log 2>/dev/null; do sleep 0.1; done
    get() {
        python3 -c '
import socket, statistics, sys, time
rates = []
for run in range(2):
    stream = socket.create_connection((sys.argv[1], 7001))
    began, received = time.time(), 0
    while time.time() < began + 12:
        received += len(stream.recv(1 << 20))
    stream.close()
    rates.append(received * 8 / (time.time() - began) / 1e6)
print(*("%.1f" % rate for rate in rates), "Mbit/s, median %.1f" % statistics.median(rates))
' "$1"
    }
    printf 'plain path: '
    get 10.77.0.1
    for tcp in packets streams; do
        "$marline" tunnel up 10.77.0.1 --token-file token --cacert state/certificate.pem --split 10.3.0.0/24 --tcp $tcp \
            --device tun-loss1 2>client.log &
        until grep -q 'is up' client.log; do sleep 0.1; done
        sleep 1
        printf 'tunnel, TCP as %s: ' $tcp
        get 10.3.0.2
        kill $!
        wait $! || true
    done
    exit
fi
marline=$(realpath "$1")
script=$(realpath "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkfifo "$work/origin.in"
"$marline" tunnel token anna --tokens "$work/tokens" >"$work/token"
"$marline" lab link --link "${2:-rate=20mbps,rtt=40ms,loss=2%}" --server "sh $script $marline server $work ${3:-cubic}" \
    -- sh "$script" "$marline" client "$work"
