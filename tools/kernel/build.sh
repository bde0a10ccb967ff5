#!/bin/sh
# Builds the kernel in which the laboratory's backend `kernel` runs: user-mode Linux with time travel, from Debian's source.
#
#   tools/kernel/build.sh
#
# MARLINE_KERNEL          a kernel that is there already: nothing is built
# MARLINE_LINUX_SOURCE    a linux-6.12*.tar.xz instead of Debian's package
#
# The kernel is kept in marline/kernel-VERSION-HASH of XDG_CACHE_HOME (~/.cache), where HASH is of the configuration and the
# patches, and marline/kernel points to it. It takes about 8 minutes of one processor, 150 MB to download, and 1 GB for a while.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
package=linux-source-6.12
if [ -n "${MARLINE_KERNEL:-}" ]; then
    echo "MARLINE_KERNEL is set: $MARLINE_KERNEL"
    exit 0
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/marline
hash=$(cat "$here/config" "$here"/patches/*.patch | sha256sum | cut -c1-8)

# use KERNEL: makes it the one that the laboratory runs.
use() {
    ln -sfn "$(basename "$1")" "$cache/kernel"
    echo "the kernel for virtual time: $1"
}

for known in "$cache"/kernel-*-"$hash"; do
    [ -x "$known" ] && use "$known" && exit 0
done

# stop WHY: where it cannot be built, the laboratory's other backends do.
stop() {
    echo "the kernel for virtual time cannot be built: $1" >&2
    exit 1
}

[ "$(uname -sm)" = 'Linux x86_64' ] || stop 'it is for Linux on x86_64'
missing=
for tool in gcc make ld flex bison bc xz patch; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
[ -z "$missing" ] || stop "install$missing"

mkdir -p "$cache"
work=$(mktemp -d "${TMPDIR:-/tmp}/marline-kernel-build-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work"
source=${MARLINE_LINUX_SOURCE:-}
if [ -z "$source" ]; then
    command -v apt-get >/dev/null || stop 'this system is not Debian; name a linux-6.12*.tar.xz in MARLINE_LINUX_SOURCE'
    # The user _apt may not write here.
    chmod 755 "$work"
    echo "downloading $package"
    apt-get download -qq -o APT::Sandbox::User=root "$package" 2>/dev/null ||
        { [ "$(id -u)" -eq 0 ] && apt-get update -qq && apt-get download -qq -o APT::Sandbox::User=root "$package"; } ||
        stop "there is no package $package here; name a linux-6.12*.tar.xz in MARLINE_LINUX_SOURCE"
    dpkg-deb --fsys-tarfile "$package"_*.deb | tar -x --strip-components=3 "./usr/src/$package.tar.xz"
    rm -f "$package"_*.deb
    source=$work/$package.tar.xz
fi
# What is built for no machine of this kind is left out, except for the lists of options.
echo "unpacking $source"
mkdir linux
tar -xJf "$source" -C linux --strip-components=1 --exclude='*/Documentation/*' --exclude='*/tools/testing/*' \
    --exclude='*/tools/perf/*' --exclude='*/sound/*.[ch]' --exclude='*/drivers/gpu/*.[chS]' --exclude='*/drivers/media/*.[ch]' \
    --exclude='*/drivers/net/ethernet/*.[ch]' --exclude='*/drivers/net/wireless/*.[ch]' --exclude='*/arch/arm*/*.dts*'
[ -z "${MARLINE_LINUX_SOURCE:-}" ] && rm -f "$source"
cd linux
mkdir -p Documentation
: >Documentation/Kconfig
for change in "$here"/patches/*.patch; do
    patch --quiet -p1 <"$change" || stop "$(basename "$change") does not apply to this version"
done

# Nothing of this machine goes into it: the release and the time of the build are a part of what random numbers derive from.
export KBUILD_BUILD_TIMESTAMP=1970-01-01 KBUILD_BUILD_USER=marline KBUILD_BUILD_HOST=marline KBUILD_BUILD_VERSION=1
build() {
    # A jobserver of the caller knows nothing of this build.
    env -u MAKEFLAGS -u MFLAGS make ARCH=um "$@" >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; stop 'see above'; }
}
build KCONFIG_ALLCONFIG="$here/config" allnoconfig
while read -r option; do
    case $option in
        CONFIG_*) grep -qxF "$option" .config || stop "this version has no $option" ;;
    esac
done <"$here/config"
echo "building $(make -s ARCH=um kernelversion)"
build -j "$(nproc)" linux
strip -o "$cache/.kernel-$$" linux
kernel=$cache/kernel-$(make -s ARCH=um kernelversion)-$hash
mv "$cache/.kernel-$$" "$kernel"
use "$kernel"
