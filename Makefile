# Each target installs what is missing on a Debian machine, then does its work. `sh demo` and `sh test` need no make.
.PHONY: all demo test test-modes models check bench bench-http bench-sockets bench-nodes bench-tls bench-doom bench-idle bench-careful conformance generated fuzz soak hunt selfbuild setup roots
all:
	cargo build --release

setup:
	@sh scripts/setup.sh

# Other releases of Erlang and Elixir, with their stock emulators, under target/roots. ROOT names some: make roots ROOT=otp29
roots:
	@sh scripts/roots.sh $(ROOT)

# What Purlin is for, in ten minutes: a million processes on both runtimes.
demo:
	@sh demo

# Every test; the last line is the count.
test:
	@sh test

# The programs of tests/programs and random programs once more in the modes that `make test` samples: everything that goes
# from process to process in shared regions, a collection at every allocation, both, and with a fence (freed memory out of
# reach) with and without the latter. MODES names some. Takes long.
MODES = shared stress shared-stress fence fence-stress
test-modes: setup
	@cargo build --release -q
	PROGRAMS_MODES="$(MODES)" PURLIN=$$PWD/target/release/purlin cargo test --release -q -p purlin --test programs
	PURLIN=$$PWD/target/release/purlin MODES=shared sh scripts/generated.sh
	PURLIN=$$PWD/target/release/purlin MODES=shared-stress COUNT=10000 sh scripts/generated.sh

# Models of the protocols between threads, each for MODEL_SECONDS (120) at most. `make test` runs them for ten.
models: setup
	@MODEL_SECONDS=$${MODEL_SECONDS:-120} cargo test -q -p purlin-models -- --nocapture --test-threads 1

# Formatter, clippy, and what the prose says of the tree.
check: setup
	@sh scripts/check.sh

# Speed of both runtimes, in turn, then lateness, memory and pauses. BENCH names some: make bench BENCH="fib ring"
bench: setup
	@sh scripts/bench.sh $(BENCH)
	@sh scripts/schedule.sh $(BENCH)

# The servers of examples/http on both runtimes, in turn, under 400 connections. PAGES names some: make bench-http PAGES="whole split"
bench-http: setup
	@sh scripts/bench-http.sh $(PAGES)

# Connections on both runtimes, in turn: what an idle one costs, how many are accepted and answered per second.
bench-nodes: setup
	@sh scripts/bench-nodes.sh

# TLS connections on both runtimes, in turn: what opening, using and keeping 1,000 of them takes.
bench-tls: setup
	@sh scripts/bench-tls.sh

bench-sockets: setup
	@sh scripts/bench-sockets.sh

# A page of 30 GB, rendered to an I/O list and sent, whole and with a value in each piece: takes two minutes and 8 GB of memory.
bench-doom: setup
	@sh scripts/doom.sh 100000000

# A node that does nothing, with little room in its tables and with all that there can be.
bench-idle: setup
	@sh scripts/idle.sh

# Three computations over one large list, in sequence and in three tasks. SIZES names the lengths: make bench-careful SIZES=1000000
bench-careful: setup
	@sh scripts/careful.sh $(SIZES)

# OTP's and Elixir's own test suites on both runtimes. SUITES names some: make conformance SUITES="lists_SUITE elixir/eex"
conformance: setup
	@sh scripts/conformance.sh $(SUITES)

# The compiler and the libraries of OTP and Elixir, compiled on both runtimes and compared.
selfbuild: setup
	@sh scripts/compile-otp.sh
	@sh scripts/compile-elixir.sh

# Random calls and programs, compared with stock. ROUNDS=100 make generated goes on for long.
generated: setup
	@sh scripts/generated.sh $(FAMILIES)

# Coverage-guided fuzzing of what takes bytes from outside, SECONDS (60) for each target. TARGETS="loader re" names some.
fuzz: setup
	@sh scripts/fuzz.sh $(or $(SECONDS),60) $(TARGETS)

# A mixed load for SECONDS (60), which ends with nothing lost, stuck or left behind, and level memory. WORKERS="sharing timers"
# names some of its workers. LOAD=chaos: processes that do to each other whatever they may.
soak: setup
	@LOAD=$(LOAD) sh scripts/soak.sh $(or $(SECONDS),60) $(WORKERS)

# Random programs about memory for SECONDS (60), in modes at random. SEED=N MODES="release,S1" make hunt runs one again.
hunt: setup
	@sh scripts/hunt.sh $(or $(SECONDS),60)
