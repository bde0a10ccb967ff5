#!/bin/sh
# The Python package in python/.
#
#   tools/python.sh environment   makes target/python, with what python/requirements.txt pins, and the package itself
#   tools/python.sh check         format, lints, types and tests of it, of tools/flows, tools/bench_servers, tools/limits.py and packaging
#   tools/python.sh pin           writes python/requirements.txt anew, with the newest versions
set -eu
cd "$(dirname "$0")/.."

bin=target/python/bin

environment() {
    # The package is read from where it is, so that only what it needs can be outdated.
    cat python/requirements.txt python/pyproject.toml 2>/dev/null | cmp -s - target/python/installed && return
    echo "installing what the Python package needs" >&2
    rm -rf target/python
    "${PYTHON:-python3}" -m venv target/python &&
        $bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement python/requirements.txt &&
        $bin/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable python &&
        cat python/requirements.txt python/pyproject.toml >target/python/installed
}

check() {
    tools=$PWD/$bin
    cd python
    "$tools/ruff" format --no-cache --check --config pyproject.toml . ../tools/flows ../tools/bench_servers ../tools/limits.py ../tools/gallery.py ../packaging
    "$tools/ruff" check --no-cache --config pyproject.toml . ../tools/flows ../tools/bench_servers ../tools/limits.py ../tools/gallery.py ../packaging
    "$tools/mypy" --cache-dir ../target/mypy
    # By itself, because tools/flows has a __main__.py, too.
    "$tools/mypy" --cache-dir ../target/mypy ../tools/bench_servers/*.py
    PYTHONDONTWRITEBYTECODE=1 "$tools/python" -m pytest --quiet
}

pin() {
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    "${PYTHON:-python3}" -m venv "$scratch"
    "$scratch/bin/pip" install --quiet pip-tools
    cd python
    CUSTOM_COMPILE_COMMAND="tools/python.sh pin" "$scratch/bin/pip-compile" --quiet --upgrade --extra gate --generate-hashes \
        --strip-extras --allow-unsafe --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
        --output-file requirements.txt pyproject.toml
}

case ${1:-} in
    environment) environment ;;
    check)
        environment || { echo 'skipped: what the Python package needs cannot be installed (make deps)'; exit 0; }
        check
        ;;
    pin) pin ;;
    *) sed -n 's/^# \{0,1\}//p' "$0" | sed 1d >&2; exit 2 ;;
esac
