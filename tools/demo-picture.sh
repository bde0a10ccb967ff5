#!/bin/sh
# Writes docs/demo.png: the top of the page that `make demo` made, as Chromium shows it.
set -eu
cd "$(dirname "$0")/.."

page=$PWD/target/demo/report.html
[ -f "$page" ] || { echo "there is no $page: run make demo" >&2; exit 1; }
for chromium in chromium chromium-browser google-chrome; do
    command -v "$chromium" >/dev/null || continue
    "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1100,1180 \
        --screenshot="$PWD/docs/demo.png" "file://$page" >/dev/null 2>&1
    echo "docs/demo.png shows $page"
    exit
done
echo "chromium is missing: make deps installs it" >&2
exit 1
