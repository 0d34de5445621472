# Each target installs what is missing on a Debian machine, then does its work.
.PHONY: all demo test test-modes models check bench bench-http bench-sockets bench-doom bench-careful conformance generated fuzz soak hunt selfbuild setup
all:
	cargo build --release

setup:
	@sh scripts/setup.sh

# What Purlin is for, in ten minutes: a million processes on both runtimes.
demo: setup
	@sh scripts/demo.sh

# Every test; the last line is the count.
test: setup
	@sh scripts/test.sh

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

# Formatter and clippy.
check: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

# Speed of both runtimes, in turn, then lateness, memory and pauses. BENCH names some: make bench BENCH="fib ring"
bench: setup
	@sh scripts/bench.sh $(BENCH)
	@sh scripts/schedule.sh $(BENCH)

# The servers of examples/http on both runtimes, in turn, under 400 connections. PAGES names some: make bench-http PAGES="whole split"
bench-http: setup
	@sh scripts/bench-http.sh $(PAGES)

# Connections on both runtimes, in turn: what an idle one costs, how many are accepted and answered per second.
bench-sockets: setup
	@sh scripts/bench-sockets.sh

# A page of 30 GB, rendered to an I/O list and sent: takes two minutes and 5 GB of memory.
bench-doom: setup
	@sh scripts/doom.sh 100000000

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
