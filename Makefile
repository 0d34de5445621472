# `make demo` and `make test` install what is missing on a Debian machine, then do their work.
.PHONY: all demo test check setup
all:
	cargo build --release

setup:
	@sh scripts/setup.sh

demo: setup
	@sh scripts/demo.sh

test: setup
	@sh scripts/test.sh

check: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
