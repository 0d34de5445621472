#!/bin/sh
# Checks the types of all crates for macOS on aarch64, without tests. Nothing is linked and nothing
# runs: where a crate has C code, a stand-in for Apple's compiler makes empty files of it. Without
# the target's standard library, which `rustup target add` fetches, a line says so.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
machine=aarch64-apple-darwin
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$machine" ] && ! rustup target add "$machine" >&2; then
  echo "macOS is not checked: no target $machine" >&2
  exit 0
fi
tools=$PWD/target/apple
mkdir -p "$tools"
# Questions about the compiler are the machine's own to answer.
cat >"$tools/cc" <<'COMPILER'
#!/bin/sh
out="" last=""
for a; do
  case $a in -E | -v | --version | -dumpversion | -dumpmachine) exec cc "$@" ;; esac
  [ "$last" = -o ] && out=$a
  last=$a
done
[ -z "$out" ] || : >"$out"
COMPILER
printf '#!/bin/sh\nexit 0\n' >"$tools/ar"
chmod 755 "$tools/cc" "$tools/ar"
export CC_aarch64_apple_darwin="$tools/cc" AR_aarch64_apple_darwin="$tools/ar" RANLIB_aarch64_apple_darwin="$tools/ar" SDKROOT=/
# What only Linux needs is not used.
export CARGO_TARGET_AARCH64_APPLE_DARWIN_RUSTFLAGS="-A dead_code"
cargo check -q --workspace --target "$machine"
