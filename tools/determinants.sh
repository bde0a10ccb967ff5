#!/bin/sh
# Writes docs/determinants.png, and python/tests/determinants.json, by which a test checks docs/wifi-results.md: the full run of wifi/determinants, and its trees,
# in target/determinants.
set -eu
cd "$(dirname "$0")/.."

sh tools/python.sh environment
target/release/marline lab run wifi/determinants --out target/determinants/runs
target/python/bin/python -m marline determinants target/determinants/runs/runs.csv --group site -o target/determinants
cp target/determinants/tree-quic-without-mean-ipt.png docs/determinants.png
target/python/bin/python tools/determinants.py target/determinants/runs
