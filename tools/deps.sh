#!/bin/sh
# Installs what the tests need beside Rust and Python, where the system is Debian and we may.
set -eu

wanted="chromium openssl cmake g++ make python3-venv iproute2 procps iperf3"
# A server for the tests of shared stores. They start it themselves: the service that comes with it stays off.
command -v valkey-server >/dev/null || wanted="$wanted redis-server"
missing=""
for package in $wanted; do
    dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "skipped: not installed, some peers will be missing:$missing" >&2
    exit 0
fi
echo "installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of names
apt-get install -y -qq --no-install-recommends $missing >/dev/null
case "$missing" in
    *redis-server*) systemctl disable --now redis-server >/dev/null 2>&1 || true ;;
esac
