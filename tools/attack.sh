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
# | 200 responses over HTTP/2 that nobody reads, on connections that send PING | each is cancelled, and its connection ends |
# | 240 responses of `marline proxy` over HTTP/2 and HTTP/3, read by nobody | 128 MiB at most are held for them, and given back |
# | 1,280 slow POSTs of 20 networks, for the 512 places of an application | a client of another network is answered each time |
# | 24 busy clients with kept connections while a server or a proxy stops, 20 times | no request is lost |
# | 2,000 requests over HTTP/2 that mean something else over HTTP/1.1 | none is whole at the application, and a visitor is answered |
# | servers that send frames, interim responses or nothing for ever | `marline get` ends, over each version |
# | a million SYNs, datagrams and first fragments for `marline flow` | 200 bytes at most for each |
# | names and protocols of a ClientHello that are formulas | no cell of CSV is one |
# | models that are damaged, or unpack to a thousand times their size | a `ModelError`, before they are unpacked |
# | soak: 100,000 requests through the proxy to servers of Python and Node.js, a gigabyte each way | every response is right; memory does not grow |
#
# They are the ignored tests of crates/marline-http/tests/http/attack.rs, proxy/soak.rs and crates/marline-flow/tests/memory.rs, and
# tests of each run that need no larger scale. They need some hundred MiB of memory for the clients, and nothing but the loopback
# interface.
set -eu
cargo=${CARGO:-cargo}
only=${ONLY:-}
server="test --release -p marline-http --all-features --test http"
client="$server --test virtual_time"
flow="test --release -p marline-flow --lib --test memory"
# Building may take longer than the attacks.
# shellcheck disable=SC2086
{
	$cargo $client --no-run
	$cargo $flow --no-run
}
# Each takes less than a minute on two cores; a server that hangs must not hang this.
# shellcheck disable=SC2086
{
	timeout 900 $cargo $server -- --ignored --test-threads 1 --nocapture --skip panic_with_the_hook "$only"
	timeout 900 $cargo $flow -- --ignored --nocapture "$only"
}
# Those of clients, names and models are few; all of them run unless one was asked for.
if [ -z "$only" ]; then
	# shellcheck disable=SC2086
	{
		timeout 900 $cargo $client -- never_ends without_end
		timeout 900 $cargo $flow -- formula
	}
	sh tools/python.sh environment
	PYTHONDONTWRITEBYTECODE=1 target/python/bin/python -m pytest --quiet python/tests/test_models.py
fi
