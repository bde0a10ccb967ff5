# What a newcomer types. Everything that is needed and not there is installed by `make deps`.
#
#   make demo         a web page on a phone, over LTE and Wi-Fi, with a report
#   make test         everything that must hold, against other stacks too, with a summary (CI runs this)
#   make check        the part of it that one runs before a commit
#   make vectors      the published decisions, through the code the stack runs (MARLINE_VECTORS=DIR: others)
#   make experiments  every experiment, with reports in lab-results/: continues, and says before what it takes
#   make gallery      the book's page with a picture of each experiment alone, of RESULTS too: target/book/gallery/index.html
#   make tunnel       the experiments of docs/tunnel-results.md, and its picture: half an hour, needs the kernel; continues
#   make kernel       the kernel for `marline lab run --backend kernel`, kept in ~/.cache/marline
#   make dist         what is given to others, in target/packages: static binaries, a package for Debian, a wheel, checksums
#   make dist-check   the same on a bare Debian: installs, serves, fetches, and leaves nothing (as root)
#   make attack       clients that use a server up, over loopback, on a larger scale than `make test` does
#   make packages     whether each crate can be published
#   make compiles     whether all of it compiles for macOS, Windows and Android (TARGET=one of Rust's targets)
#   make book         the documents as a book, with the gallery and, once it is built, the playground: target/book/index.html
#   make playground   a page that simulates in the browser, tried in Chromium and Firefox: target/playground/index.html
#   make flows        labelled traffic of Chromium, curl and marline, and what its flows tell (FLOWS=--quick: some minutes)
#   make determinants the trees of docs/wifi-results.md, and docs/determinants.png
#   make bench-servers   marline beside nginx, Caddy and h2o, as servers and proxies: an hour (ARGS=--quick: some minutes)
#   make lint bench bench-peers fuzz mutants
#
# Parts of `make test` can be run alone: format pages deny clippy clippy-fuzz clippy-peers docs unit vectors python
# examples readme curl-rows playground ring msrv minimal-versions compatible peers acme product-rows interop kernel virtual-time.

CARGO ?= cargo
PYTHON ?= python3
# What property tests draw from: the same cases every time, others with another number.
PROPTEST_RNG_SEED ?= 1
export CARGO PYTHON PROPTEST_RNG_SEED
FUZZ_SECONDS ?= 60
# Every build takes all of the workspace with all features, so that parts share what they build.
ALL := --workspace --all-features

.PHONY: help book playground demo determinants flows kernel dist dist-check compiles packages experiments tunnel gallery deps test check lint bench bench-peers bench-servers fuzz mutants attack clean
.PHONY: format pages deny clippy clippy-fuzz clippy-peers docs unit quick vectors python examples readme curl-rows playground ring msrv minimal-versions compatible peers acme product-rows interop virtual-time

help:
	@sed -n 's/^#   //p' Makefile

deps:
	@sh tools/deps.sh

demo:
	@$(CARGO) build --quiet --release -p marline-cli
	@target/release/marline demo --out target/demo

determinants:
	@$(CARGO) build --quiet --release -p marline-cli
	@sh tools/determinants.sh

book:
	@sh tools/deps.sh mdbook
	@target/tools/bin/mdbook build
	@$(PYTHON) tools/gallery.py
	@[ ! -d target/playground ] || cp -R target/playground target/book/playground
	@$(PYTHON) tools/book.py built
	@$(PYTHON) tools/book.py narrow

playground:
	@sh tools/playground.sh

kernel:
	@sh tools/kernel/build.sh

flows:
	@$(CARGO) build --quiet --release -p marline-cli
	@sh tools/python.sh environment
	@target/python/bin/python tools/flows $(FLOWS)

dist:
	@$(PYTHON) packaging/build.py $(ARCHITECTURES)

# Each crate as crates.io gets it, compiled of that alone.
packages:
	@$(CARGO) publish --workspace --dry-run --locked

# Whether the workspace compiles for systems on which nothing is tested.
compiles:
	@sh tools/compiles.sh $(TARGET)

dist-check:
	@sh packaging/check.sh

experiments:
	@$(CARGO) build --quiet --release -p marline-cli
	@$(PYTHON) tools/experiments.py target/release/marline

tunnel:
	@$(CARGO) build --quiet -p marline-cli --all-features
	@$(PYTHON) tools/tunnel_experiments.py run
	@$(PYTHON) tools/tunnel_experiments.py report target/tunnel-experiments.jsonl

gallery:
	@$(PYTHON) tools/gallery.py $(RESULTS)

# Other stacks' programs take longest to build and are needed last; then the kernel is built while they run.
test: deps
	+@MAKE='$(MAKE)' tools/gate.sh --beside peers,kernel format pages deny clippy clippy-fuzz clippy-peers docs unit vectors python examples readme curl-rows playground ring msrv minimal-versions compatible peers acme product-rows interop kernel virtual-time

check:
	+@MAKE='$(MAKE)' tools/gate.sh format pages clippy quick vectors

lint: format deny clippy clippy-fuzz clippy-peers docs

format:
	$(CARGO) fmt --check
	$(CARGO) fmt --check --manifest-path fuzz/Cargo.toml
	$(CARGO) fmt --check --manifest-path playground/Cargo.toml
	$(MAKE) -C interop format

# Links, code blocks and lengths of all documents.
pages:
	@$(PYTHON) tools/book.py check

deny:
	@sh tools/deny.sh

clippy:
	$(CARGO) clippy $(ALL) --all-targets -- -D warnings

clippy-fuzz:
	$(MAKE) -C fuzz lint

# The peers, and the benchmarks beside other stacks.
clippy-peers:
	$(MAKE) -C interop lint

# With the examples, because these have the features of tests: everything else is then as checked before.
docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(ALL) --no-deps --document-private-items --lib --examples

unit:
	@tools/unit.sh --no-fail-fast

quick:
	@tools/unit.sh --lib --bins

vectors:
	@sh tools/vectors.sh

python:
	@sh tools/python.sh check

examples:
	@sh tools/run-examples.sh

readme:
	@$(PYTHON) tools/readme.py

# As the commands of the documents need it.
curl-rows:
	@$(CARGO) build --quiet $(ALL) --bins
	@$(PYTHON) tools/curl_rows.py

# Whether everything of docs/compare-servers.md that worked still works.
product-rows:
	@$(CARGO) build --quiet $(ALL) --bins
	@$(PYTHON) tools/product_rows --check

ring:
	@sh tools/ring.sh

msrv:
	@sh tools/msrv.sh

minimal-versions:
	@sh tools/minimal-versions.sh

# Whether the version allows what has changed since the last release.
compatible:
	@sh tools/compatible.sh

peers:
	$(MAKE) -C interop others

interop:
	$(MAKE) -C interop peers
	$(MAKE) -C interop test
	$(MAKE) -C interop tunnel
	$(MAKE) -C interop/bench quick
	$(MAKE) -C interop run

# Certificates of Pebble, a certificate authority for tests.
acme:
	@sh tools/acme.sh

# What runs on the kernel of `make kernel`.
virtual-time:
	@tools/unit.sh --test virtual_time

bench:
	$(CARGO) bench --workspace

bench-peers:
	$(MAKE) -C interop/bench build run short

bench-servers:
	@$(CARGO) build --profile dist -p marline-cli
	@sh tools/deps.sh servers
	@$(MAKE) -C interop nginx
	@$(MAKE) -C interop/bench load caddy
	@$(PYTHON) tools/bench_servers $(ARGS)

fuzz:
	$(MAKE) -C fuzz run SECONDS=$(FUZZ_SECONDS)

attack:
	@ONLY='$(ONLY)' sh tools/attack.sh

# Which code and which tests: .cargo/mutants.toml. Each mutant takes a build; ONLY=RecvPart takes those whose names match
# (cargo-mutants 27.1 does not compare the names of those that delete a field).
mutants:
	@command -v cargo-mutants >/dev/null || { echo "cargo-mutants is missing: cargo install cargo-mutants --locked"; exit 1; }
	$(CARGO) mutants $(if $(ONLY),--re '$(ONLY)')

clean:
	$(CARGO) clean
	$(MAKE) -C interop clean
