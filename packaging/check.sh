#!/bin/sh
# Checks what packaging/build.py made on a bare Debian: installs the package, serves, fetches, removes it, and compares what is
# left; lets it have its first day (packaging/first_day.py); runs the archive for the other architecture; makes the file system of the container without an engine, and serves in it.
#
# Needs root, debootstrap and qemu-user-static. Everything runs in a network namespace of its own.
set -eu
cd "$(dirname "$0")/.."

for program in debootstrap qemu-aarch64-static unshare; do
    command -v $program >/dev/null || { echo "skipped: $program is missing"; exit 0; }
done
[ "$(id -u)" -eq 0 ] || { echo "skipped: making a root file system needs root"; exit 0; }

packages=$PWD/target/packages
bare=$PWD/target/debian
root=$PWD/target/debian-with-marline

fail() {
    echo "failed: $*" >&2
    exit 1
}

if [ ! -e "$bare/done" ]; then
    rm -rf "$bare"
    debootstrap --variant=minbase bookworm "$bare" >target/debootstrap.log || fail "see target/debootstrap.log"
    touch "$bare/done"
fi
[ "${1:-}" = inside ] || exec unshare --net --mount --pid --fork sh packaging/check.sh inside
ip link set lo up

rm -rf "$root"
cp -a "$bare" "$root"
mount -t proc proc "$root/proc"
in_root() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }
files() { (cd "$root" && find . -path ./proc -prune -o -print | sort); }
# Fetches what a server of these arguments has at its root.
serves() {
    "$@" >"$root/tmp/log" 2>&1 &
    server=$!
    tries=100
    until grep -q 'listening on' "$root/tmp/log"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { cat "$root/tmp/log" >&2; fail "no server: $*"; }
        sleep 0.1
    done
    for http in 1.1 2 3; do
        got=$(in_root /usr/bin/marline get --silent --insecure --http $http https://localhost/index.html -o -) ||
            fail "HTTP/$http: the client ended with $?"
        [ "$got" = hello ] || fail "HTTP/$http: got '$got'"
    done
    kill $server
    wait $server || fail "the server ended with $?"
}

# Without a network: the package needs no other.
echo "127.0.0.1 localhost" >"$root/etc/hosts"
before=$(files)
cp "$packages"/marline_*_amd64.deb "$root/tmp/marline.deb"
in_root dpkg --install /tmp/marline.deb >/dev/null || fail "the package does not install"
in_root marline --version
in_root test -s /usr/share/man/man1/marline-serve.1.gz || fail "no manual page"
mkdir -p "$root/var/www"
echo hello >"$root/var/www/index.html"
in_root marline check /etc/marline/site.toml >/dev/null || fail "the configuration of the package is wrong"
serves chroot "$root" /usr/bin/marline serve --config /etc/marline/site.toml --state /var/lib/marline
python3 packaging/first_day.py "$root"
in_root dpkg --purge marline >/dev/null || fail "the package is not removed"
rm -rf "$root/var/www" "$root/tmp/marline.deb" "$root/tmp/log" "$root"/etc/marline "$root"/var/log/marline.log "$root/run/marline.pid"
# What dpkg keeps of itself, the copies that useradd makes, and the state with its user.
of_others='^./var/lib/marline\|^./var/log/dpkg.log$\|^./var/lib/dpkg/\|^./var/cache/\|^./etc/[a-z]*-$'
left=$(files | grep -v -e "$of_others" || true)
expected=$(echo "$before" | grep -v -e "$of_others" || true)
[ "$left" = "$expected" ] || { echo "$left" >target/left; echo "$expected" | diff - target/left >&2; fail "files are left"; }
echo "the package installs, serves, fetches and leaves nothing but its state"

# The other architecture, without an installation.
for archive in "$packages"/marline-*-aarch64-linux.tar.gz; do
    [ -e "$archive" ] || { echo "skipped: no archive for aarch64"; break; }
    tar -xzf "$archive" -C "$root/opt"
    qemu-aarch64-static "$root"/opt/marline-*-aarch64-linux/bin/marline --version
    qemu-aarch64-static "$root"/opt/marline-*-aarch64-linux/bin/marline demo --help >/dev/null || fail "aarch64"
done

# What the container file makes: a binary and certificates, and nothing else.
rm -rf "$root/container"
mkdir -p "$root/container/srv" "$root/container/var/lib/marline" "$root/container/unpacked"
dpkg -x "$packages"/marline_*_amd64.deb "$root/container/unpacked"
mkdir -p "$root/container/usr/bin"
cp "$root/container/unpacked/usr/bin/marline" "$root/container/usr/bin/"
cp "$root/container/unpacked/usr/bin/marline" "$root/usr/bin/"
rm -r "$root/container/unpacked"
echo hello >"$root/container/srv/index.html"
chown 65534:65534 "$root/container/var/lib/marline"
echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start
serves chroot --userspec 65534:65534 "$root/container" /usr/bin/marline serve /srv --listen :443 --state /var/lib/marline
echo "the container's file system serves, without privileges"
