#!/bin/sh
# Runs an experiment and draws its figures: figure.sh EXPERIMENT DIR [OPTION of marline lab run]...
#
# DIR gets the results in `results`, among them report.html, and the figures as PDF.
set -eu

if [ $# -lt 2 ]; then
    sed -n 's/^# \{0,1\}//p' "$0" | sed 1d >&2
    exit 2
fi
experiment=$1 directory=$2
shift 2
"${MARLINE:-marline}" lab run "$experiment" --out "$directory/results" "$@"
"${PYTHON:-python3}" -m marline figures "$directory/results" -o "$directory"
