#!/bin/sh
# Makes a root file system with marline and the Python package, without a container engine, and runs figure.sh in it:
#
#   sudo contrib/artifact/rootfs.sh ROOT bundle/ablation --quick
#
# It needs debootstrap, and a built target/release/marline. The figures are in ROOT/figures.
set -eu
cd "$(dirname "$0")/../.."

root=${1:?a directory for the file system} experiment=${2:?an experiment}
shift 2
command -v debootstrap >/dev/null || { echo "debootstrap is missing: apt-get install debootstrap" >&2; exit 1; }
[ -x target/release/marline ] || cargo build --release --locked -p marline-cli
if [ ! -e "$root/opt/complete" ]; then
    [ ! -e "$root/usr" ] || { echo "$root was not completed; remove it, and start again" >&2; exit 1; }
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$root"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    # A network may have a proxy with an authority of its own.
    cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    cp -r python "$root/opt/marline-python"
    chroot "$root" python3 -m venv /opt/python
    chroot "$root" /opt/python/bin/pip install --quiet '/opt/marline-python[lab]'
    touch "$root/opt/complete"
fi
install -m 755 target/release/marline contrib/artifact/figure.sh "$root/usr/local/bin/"
chroot "$root" env PYTHON=/opt/python/bin/python MPLCONFIGDIR=/tmp figure.sh "$experiment" /figures "$@"
