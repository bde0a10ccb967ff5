#!/bin/sh
# Builds nginx in the directory that is named, from the source in the crate that Cargo.lock names, with the system's OpenSSL.
set -eu
out=$1
cd "$(dirname "$0")/../.."

manifest=$(${CARGO:-cargo} metadata --format-version 1 |
    ${PYTHON:-python3} -c 'import json, sys
print(next(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "nginx-src"))')
source=$(dirname "$manifest")
# Other options make another nginx.
built="$(basename "$source") $(cksum <peers/nginx/build.sh)"
[ "$(cat "$out/built" 2>/dev/null)" = "$built" ] && exit

rm -rf "$out"
mkdir -p "$out/run/logs"
cp -r "$source/nginx" "$out/source"
cd "$out/source"
auto/configure --prefix="$out/run" --with-http_ssl_module --with-http_v2_module \
    --with-http_v3_module --without-http_rewrite_module --without-http_gzip_module --with-cc-opt=-O2 >"$out/build.log"
make -j2 >>"$out/build.log"
mv objs/nginx "$out/nginx"
cd "$out"
rm -r source
echo "$built" >built
