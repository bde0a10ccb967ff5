#!/bin/sh
# marline's tunnels with clients and servers made with connect-ip-go and masque-go, in a network namespace:
# tunnel.sh MARLINE CONNECT-IP-PEER MASQUE-PEER.
set -eu
if [ $# = 3 ]; then
    unshare -n true 2>/dev/null || { echo 'skipped: tunnels need root, for network namespaces and devices'; exit 0; }
    exec unshare -n "$0" "$(realpath "$1")" "$(realpath "$2")" "$(realpath "$3")" inside
fi
marline=$1 peer=$2 masque=$3
work=$(mktemp -d)
running=
end() {
    status=$?
    [ -z "$running" ] || kill $running 2>/dev/null || true
    wait
    [ $status = 0 ] || tail -n 20 "$work"/*.log
    rm -rf "$work"
    exit $status
}
trap end EXIT
# Waits up to 20 s for a line of a log.
await() {
    for _ in $(seq 200); do
        ! grep -q "$1" "$2" || return 0
        sleep 0.1
    done
    echo "no '$1' in $2"
    return 1
}
cd "$work"
mkfifo go
ip link set lo up
ip address add 10.3.0.9/32 dev lo
for setting in ipv4/ip_forward ipv6/conf/all/forwarding; do
    echo 1 >/proc/sys/net/$setting
done

"$marline" tunnel token anna --tokens tokens >token
"$marline" tunnel serve --tokens tokens --state state --listen 127.0.0.1:4433 --device tun-interop0 2>server.log &
running=$!
await 'listening on' server.log
"$peer" client 127.0.0.1:4433 "$(cat token)" 10.3.0.9 >client.log 2>&1
grep -q answered client.log
! "$peer" client 127.0.0.1:4433 wrong 10.3.0.9 2>refused.log
grep -q 401 refused.log
kill $running && wait $running
echo 'ok: connect-ip-go as the client'

"$peer" server 127.0.0.1:4434 2>server.log &
running=$!
await listening server.log
MARLINE_TUNNEL_TOKEN=any "$marline" tunnel up 127.0.0.1:4434 --insecure --device tun-interop1 2>client.log &
up=$!
running="$running $up"
await 'the tunnel is up' client.log
"$peer" ping 10.88.0.1 | grep -q answered
kill $up && wait $up
kill ${running%% *}
running=
echo 'ok: connect-ip-go as the server'

# A host behind the server, which is not an address of the server's own.
unshare -n sh -c 'echo here; read -r _; ip link set lo up; ip address add 10.4.0.2/24 dev behind
    ip link set behind up; exec "$0" echo 10.4.0.2:7' "$masque" <go >host.log 2>&1 &
host=$!
running=$host
exec 3>go
await here host.log
ip link add uplink type veth peer name behind netns $host
ip address add 10.4.0.1/24 dev uplink
ip link set uplink up
echo >&3
await listening host.log
"$marline" tunnel serve --tokens tokens --state state --listen 127.0.0.1:4433 --device tun-interop2 --udp 2>server.log &
server=$!
running="$running $server"
await 'listening on' server.log
"$masque" client 127.0.0.1:4433 "$(cat token)" 10.4.0.2:7 >client.log 2>&1
grep -q answered client.log
! "$masque" client 127.0.0.1:4433 wrong 10.4.0.2:7 2>refused.log
grep -q 401 refused.log
# No service of the server itself.
! "$masque" client 127.0.0.1:4433 "$(cat token)" 127.0.0.1:7 2>refused.log
grep -q 403 refused.log
kill $server && wait $server
echo 'ok: masque-go as the client'

"$masque" server 127.0.0.1:4434 2>server.log &
server=$!
running="$host $server"
await listening server.log
MARLINE_TUNNEL_TOKEN=any "$marline" tunnel udp 127.0.0.1:4434 --insecure --listen 127.0.0.1:7100 --to 10.4.0.2:7 2>client.log &
forward=$!
running="$running $forward"
await 'passing on' client.log
"$masque" ask 127.0.0.1:7100 | grep -q answered
kill $forward && wait $forward
kill $host $server
running=
echo 'ok: masque-go as the server'
