#!/bin/sh
# Attacks `marline serve` and `marline proxy` over loopback with clients that use much and give little, on a larger scale than `make test` does.
#
#   make attack            all of them, some minutes in all; each ends by itself
#   make attack ONLY=ping  those whose name contains a word
#
# | attack | what must hold |
# | --- | --- |
# | 64 connections of HTTP/3 with 256 requests each, read by nobody, with small windows | the server buffers tens of MiB, and gives them back |
# | 8 connections of HTTP/2 with 256 requests each, read by nobody | the same |
# | floods of PING and SETTINGS from many connections | each is closed with ENHANCE_YOUR_CALM, and others are served |
# | 240 responses of `marline proxy` over HTTP/2 and HTTP/3, read by nobody | 128 MiB at most are held for them, and given back |
# | 1,280 slow POSTs of 20 networks, for the 512 places of an application | a client of another network is answered each time |
# | soak: 100,000 requests through the proxy to servers of Python and Node.js, a gigabyte each way | every response is right; memory does not grow |
#
# The attacks are the ignored tests of crates/marline-http/tests/http/attack.rs and proxy/soak.rs. They need some hundred MiB of memory for the
# clients, and nothing but the loopback interface.
set -eu
cargo=${CARGO:-cargo}
tests="test --release -p marline-http --all-features --test http"
# Building may take longer than the attacks.
# shellcheck disable=SC2086
$cargo $tests --no-run
# Each takes less than a minute on two cores; a server that hangs must not hang this.
# shellcheck disable=SC2086
exec timeout 900 $cargo $tests -- --ignored --test-threads 1 --nocapture "${ONLY:-}"
