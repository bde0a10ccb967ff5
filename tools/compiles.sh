#!/bin/sh
# Checks that the workspace compiles for systems on which nothing is tested.
#
#   tools/compiles.sh [TARGET]...    by default macOS, Windows and Android
#
# C code is compiled by zig, which packaging/requirements.txt names: nothing is linked, so that no system's libraries are needed.
set -eu
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- aarch64-apple-darwin x86_64-pc-windows-gnu aarch64-linux-android
environment=target/tools/packaging
if ! cmp -s packaging/requirements.txt $environment/installed; then
    echo "installing compilers for other targets" >&2
    "${PYTHON:-python3}" -m venv --clear $environment
    $environment/bin/pip install --quiet --require-hashes --requirement packaging/requirements.txt
    cp packaging/requirements.txt $environment/installed
fi
for target; do
    case $target in
        *-apple-darwin) zig=${target%%-*}-macos ;;
        *-windows-*) zig=${target%%-*}-windows-gnu ;;
        # Its own headers are not to be had; those of musl declare what the cryptographic libraries use.
        *-android*) zig=${target%%-*}-linux-musl ;;
        *) zig=$target ;;
    esac
    rustup --quiet target add "$target"
    compiler=$PWD/$environment/cc-$target
    printf '#!/bin/sh\n# The name of the target is given by this file.\nfor argument; do\n    shift\n    case $argument in --target=*) ;; *) set -- "$@" "$argument" ;; esac\ndone\nexec "%s" -m ziglang cc -target %s "$@"\n' \
        "$PWD/$environment/bin/python" "$zig" >"$compiler"
    printf '#!/bin/sh\nexec "%s" -m ziglang ar "$@"\n' "$PWD/$environment/bin/python" >"$environment/ar"
    chmod +x "$compiler" "$environment/ar"
    name=$(echo "$target" | tr - _)
    echo "checking $target" >&2
    env "CC_$name=$compiler" "CXX_$name=$compiler" "AR_$name=$PWD/$environment/ar" \
        "${CARGO:-cargo}" check --quiet --workspace --target "$target"
done
