# What a newcomer types. Everything that is needed and not there is installed by `make deps`.
#
#   make demo         a web page on a phone, over LTE, with a report
#   make test         all tests, ours and against other stacks
#   make vectors      the published decisions, through the code the stack runs (MARLINE_VECTORS=DIR: others)
#   make experiments  every experiment in virtual time, with reports in lab-results/
#   make lint bench bench-peers fuzz

CARGO ?= cargo
PYTHON ?= python3
# What property tests draw from: the same cases every time, others with another number.
PROPTEST_RNG_SEED ?= 1
export PROPTEST_RNG_SEED
FUZZ_SECONDS ?= 60

.PHONY: help demo experiments test unit examples vectors interop lint bench bench-peers fuzz deps clean

help:
	@sed -n 's/^#   //p' Makefile

deps:
	@sh tools/deps.sh

demo:
	@$(CARGO) build --quiet --release -p marline-cli
	@target/release/marline demo --out target/demo

experiments:
	@$(CARGO) build --quiet --release -p marline-cli
	@for id in $$(target/release/marline lab list --json | $(PYTHON) -c 'import json, sys; print(*[e["id"] for e in json.load(sys.stdin) if e["backend"] == "sim"])'); do \
		target/release/marline lab run $$id || exit 1; \
	done

test: deps unit examples vectors interop

unit:
	$(CARGO) test --workspace --all-features

examples:
	@sh tools/run-examples.sh

vectors:
	@CARGO='$(CARGO)' sh tools/vectors.sh

interop:
	$(MAKE) -C interop peers
	$(MAKE) -C interop test
	$(MAKE) -C interop run

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --workspace --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items
	$(MAKE) -C interop lint
	@command -v cargo-deny >/dev/null && $(CARGO) deny check || echo 'skipped: cargo-deny is not installed (cargo install cargo-deny)'

bench:
	$(CARGO) bench --workspace

bench-peers:
	$(MAKE) -C interop/bench build run

fuzz:
	$(MAKE) -C fuzz run SECONDS=$(FUZZ_SECONDS)

clean:
	$(CARGO) clean
	$(MAKE) -C interop clean
