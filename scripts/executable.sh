# Sourced from the root of the tree: sets PURLIN, unless it is set already, to the absolute path of
# the executable to run. That is target/dist/purlin if `make dist` made it after the sources last
# changed, and otherwise target/release/purlin, which is built first.
if [ -z "${PURLIN:-}" ]; then
  PURLIN=$PWD/target/dist/purlin
  if [ ! -x "$PURLIN" ] || [ -n "$(find crates Cargo.toml Cargo.lock -newer "$PURLIN" -type f \
    \( -name '*.rs' -o -name '*.c' -o -name 'Cargo.*' \) | head -1)" ]; then
    cargo build --release -q -p purlin || exit 1
    PURLIN=$PWD/target/release/purlin
  fi
fi
