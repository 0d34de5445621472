# Each target installs what is missing on a Debian machine, then does its work. `sh demo`, `sh test`
# and `sh bench` need no make. A line with `##` is what `make help` shows of a target.
.PHONY: all dist install uninstall deb image releases figures help demo book test test-modes test-release test-aarch64 models world check tidy coverage bench conformance generated fuzz soak hunt storms sweep selfbuild setup test-musl instructions shared-writes release reproducible packaging newcomer \
  roots atoms tables cluster networks nif-packages nif-rustler rabbitmq applications \
  costs containers bombs
all: ## builds a release without a profile
	cargo build --release

dist: setup ## builds what is shipped, optimised by a profile (ten minutes)
	@sh scripts/dist.sh

help: ## lists the targets
	@grep -hE '^[a-z][a-z0-9%-]*:.*##' Makefile | awk -F':.*## ' '{ printf "  make %-14s %s\n", $$1, $$2 }'

# The program, its manual page and completions for shells, below PREFIX (/usr/local); DESTDIR stands
# before that.
PREFIX ?= /usr/local
install: ## installs the program, its manual page and completions below PREFIX
	@[ -x target/dist/purlin ] || { sh scripts/setup.sh && sh scripts/dist.sh; }
	@[ -z "$$(find crates Cargo.lock -newer target/dist/purlin -name '*.rs' -o -newer target/dist/purlin -name Cargo.lock | head -1)" ] || \
	  echo "install: sources are newer than target/dist/purlin, which is installed; make dist builds it anew" >&2
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" sh scripts/install.sh
uninstall: ## removes what install has put there
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" sh scripts/install.sh --uninstall

# In target/debian, looked at by lintian, installed, used and removed in a fresh root of this Debian
# or of others: SUITES="bookworm trixie sid" make deb
deb: setup ## makes Debian packages
	@sh scripts/deb.sh

# In target/image, made without a daemon, started in a fresh root.
image: setup ## makes an image of a container
	@sh scripts/image.sh

# BOMBS names some: make bombs BOMBS="loading fork heap"
bombs: setup ## programs that exceed a budget, each beside a server: one table
	@cargo build --release -q
	@mkdir -p target/bombs
	@target/release/purlin erlc -o target/bombs benches/bombs.erl
	@target/release/purlin erl -noshell -pa target/bombs -run bombs main $(BOMBS)

# SKIP_TESTS=1, SKIP_PACKAGES=1, PLAIN=1 and DRY_RUN=1 leave parts out: see scripts/release.sh.
release: setup ## makes a release: checks, packages, source, changes, bill of materials, checksums
	@sh scripts/release.sh

# PACKAGE=xtask compares a small one.
reproducible: ## builds the commit twice, from nothing, and compares the executables
	@sh scripts/reproducible.sh $(PACKAGE)

packaging: ## tries the files of packaging for asdf, mise, Homebrew and Nix
	@sh scripts/packaging.sh

# SUITES names roots, PURLIN the executable: SUITES=trixie make newcomer
newcomer: ## does what README and tutorials say, in bare roots of Debian
	@sh scripts/newcomer.sh

# Each step of their scripts, on several OTPs: make releases RELEASES="machine otp27 otp29"
releases: setup ## makes and runs releases of mix and relx
	@cargo xtask releases $(or $(RELEASES),machine)

# FIGURES names groups: make figures FIGURES="ladder image"
figures: setup ## draws the README's chart; compares figures in README and docs with commands
	@cargo xtask chart
	@sh scripts/figures.sh $(FIGURES)

setup: ## installs what building and testing need and the machine lacks
	@sh scripts/setup.sh tests

# ROOT names some: make roots ROOT=otp29
roots: ## fetches other releases of Erlang and Elixir, with their stock emulators, to target/roots
	@sh scripts/roots.sh $(ROOT)

demo: ## what Purlin is for, in twenty minutes: a million processes on both runtimes
	@sh demo

test: ## runs the tests, within an hour; the last line is the count
	@sh test

# The programs of tests/programs and random programs once more in the modes that `make test`
# samples: everything that goes from process to process in shared regions, a collection at every
# allocation, both, and with a fence (freed memory out of reach) with and without the latter; and
# with machine code of all functions, or of some that comes and goes. MODES names some.
MODES = shared stress shared-stress fence fence-stress always always-stress always-fence chaos chaos-stress chaos-fence
test-modes: setup ## programs in all modes of memory (takes long)
	@cargo build --release -q
	PROGRAMS_MODES="$(MODES)" PURLIN=$$PWD/target/release/purlin cargo test --release -q -p purlin --test programs
	PURLIN=$$PWD/target/release/purlin MODES=shared sh scripts/generated.sh
	PURLIN=$$PWD/target/release/purlin MODES=shared-stress COUNT=10000 sh scripts/generated.sh

# ROOT names one of `make roots`, NAMES some programs:
# make test-release ROOT=otp29 NAMES="zlib maps"
test-release: setup ## programs of tests/programs on another release, compared with its stock
	@sh scripts/release_tests.sh $(or $(ROOT),otp29) $(NAMES)

# NAMES names some: make test-aarch64 NAMES="map_operations two_nodes"
test-aarch64: setup ## all programs with machine code on aarch64, by qemu-user (takes hours)
	@sh scripts/aarch64.sh $(NAMES)

test-musl: setup ## a sample of the programs on a static executable with musl
	@sh scripts/musl.sh $(NAMES)

# NAMES names some loops. It needs a qemu-user that takes plugins.
instructions: setup ## instructions that loops execute on aarch64, by qemu-user
	@sh scripts/instructions.sh $(NAMES)

shared-writes: setup ## writes to cache lines that schedulers share, by qemu-user: bounds hold
	@cargo build --release
	@sh scripts/shared_writes.sh $(NAMES)

# Each for MODEL_SECONDS (120) at most. `make test` runs them for ten.
models: setup ## models of the protocols between threads
	@MODEL_SECONDS=$${MODEL_SECONDS:-120} cargo test -q -p purlin-models -- --nocapture --test-threads 1

# WORLD_PROGRAMS (100,000) of each kind, from WORLD_SEED (1) on; WORLD_DIR is the folder for files.
world: setup ## random programs of calls on models of files, sockets and epmd, and on these
	@WORLD_PROGRAMS=$${WORLD_PROGRAMS:-100000} \
	cargo test --release -q -p purlin-world -- --nocapture --test-threads 1

check: setup ## formatter, clippy, and make tidy
	@sh scripts/check.sh

tidy: ## compares the documents with the tree
	@sh scripts/tidy.sh

coverage: setup ## which program runs each op and each native
	@sh scripts/coverage.sh

# BENCH names some: make bench BENCH="fib ring". Other measurements:
# make bench-http PAGES="whole split", make bench-careful SIZES=1000000
bench: setup ## speed of both runtimes, in turn, then lateness, memory and pauses
	@sh scripts/bench.sh $(BENCH)
	@sh scripts/schedule.sh $(BENCH)

bench-%: ## another measurement; `sh bench` lists them
	@sh bench $* $(BENCH) $(PAGES) $(SIZES)

# SUITES names some: make conformance SUITES="lists_SUITE elixir/eex"
conformance: setup ## OTP's and Elixir's own test suites on both runtimes
	@cargo xtask conformance $(SUITES)

book: ## makes a book of docs in target/book, with mdbook
	@sh scripts/book.sh

tables: setup ## writes tests/otp/natives.md: native functions, present and missing
	@sh scripts/compatibility.sh
	@sh scripts/compatibility.sh releases

# RELEASES names roots of `make roots`.
atoms: ## writes crates/isa/atoms: the order of atoms in stock's emulators
	@sh scripts/atoms.sh $(or $(RELEASES),otp27 otp29)

selfbuild: setup ## compiler and libraries of OTP and Elixir, compiled on both runtimes and compared
	@sh scripts/compile-otp.sh
	@sh scripts/compile-elixir.sh

# ROUNDS=100 make generated goes on for long.
generated: setup ## random calls and programs, compared with stock
	@sh scripts/generated.sh $(FAMILIES)

# SECONDS (60) for each target. TARGETS="loader re" names some.
fuzz: setup ## coverage-guided fuzzing of what takes bytes from outside
	@sh scripts/fuzz.sh $(or $(SECONDS),60) $(TARGETS)

# For SECONDS (60); WORKERS="sharing timers" names some of its workers. LOAD=chaos: processes that
# do to each other whatever they may.
soak: setup ## a mixed load that ends with nothing lost, stuck or left behind
	@LOAD=$(LOAD) sh scripts/soak.sh $(or $(SECONDS),60) $(WORKERS)

# For SECONDS (60), in modes at random. SEED=N MODES="release,S1" make hunt runs one again.
hunt: setup ## random programs about memory
	@cargo xtask hunt $(or $(SECONDS),60)

# COSTS names kinds: make costs COSTS="suspensions links"
costs: setup ## what operations cost among very many entries, on both runtimes
	@sh scripts/costs.sh $(COSTS)

# For SECONDS (60); ONLY="sockets timers" names some, ON=stock has stock run them.
# SEED=N MODES="S2,delays7" make storms runs one again.
storms: setup ## processes that share sockets, timers, ports, tables, names and files: nothing is lost, doubled or late
	@cargo xtask storms $(or $(SECONDS),60)

# ONLY="files tcp" names some by part of their names; CALLS, SPAN and the rest are in the head of
# xtask/src/sweep.rs.
sweep: setup ## system calls of the test programs fail, one by one, and the runtime goes on
	@SWEEPS=all cargo test -q -p purlin --test sweeps
	@cargo xtask sweep

# In a virtual machine, with control groups of v2: containers.sh, memory_limit.sh and quota.sh.
containers: setup ## limits of memory and processors in control groups (takes minutes)
	@sh scripts/containers_vm.sh

cluster: setup ## one cluster of Purlin and stock of several releases
	@sh scripts/cluster.sh

networks: setup ## nodes whose network is cut and healed (as root)
	@sh scripts/networks.sh

nif-packages: setup ## native libraries that Debian packages, on both runtimes
	@sh scripts/nif_packages.sh

nif-rustler: setup ## a native library in Rust, on both runtimes
	@sh scripts/nif_rustler.sh

rabbitmq: setup ## RabbitMQ as Debian packages it, on both runtimes
	@sh scripts/rabbitmq.sh

# NAMES names some, APPS folders with checkouts, RELEASES releases:
# make applications NAMES="jason plug" APPS=~/src RELEASES="27 29"
applications: setup ## test suites of other people's libraries, on both runtimes
	@RELEASES="$(or $(RELEASES),27 29)" APPS="$(APPS)" cargo xtask applications $(NAMES)
