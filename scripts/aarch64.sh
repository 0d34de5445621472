#!/bin/sh
# Compiles Purlin for aarch64, runs programs of tests/programs with it under qemu-user, and compares them with the machine's own stock
# emulator. OTP's libraries and little programs are those of the root `aarch64` (scripts/roots.sh); shell and tools are the machine's
# own. Prints `N passed, N failed, N skipped`.
#
#   scripts/aarch64.sh [NAME...]     NAMEs choose programs by part of their names, `all` takes all; without any: a sample
#   scripts/aarch64.sh -- erl ...    runs `purlin erl ...` there
#
# The operations of the processor come first where no NAME is given (scripts/aarch64_ops.sh).
#
# PROGRAMS_MODES ("always chaos"), PROGRAMS_JOBS and the others of crates/purlin/tests/programs.rs hold. PROGRAMS_SLOWER (5): by how
# much longer than elsewhere a program may take.
#
# The kernel finds the emulator by what it is told in a mount namespace of its own (Linux 6.7), so nothing of the machine changes.
set -eu
cd "$(dirname "$0")/.."
here=$PWD
PATH="$HOME/.cargo/bin:$PATH"
machine=aarch64-unknown-linux-gnu
need=""
for p in aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu unshare:util-linux; do
  command -v "${p%%:*}" >/dev/null 2>&1 || need="$need ${p##*:}"
done
# Packages with the emulator as a static program serve as well.
command -v qemu-aarch64 >/dev/null 2>&1 || command -v qemu-aarch64-static >/dev/null 2>&1 || need="$need qemu-user"
[ -x /usr/libexec/qemu-binfmt/aarch64-binfmt-P ] || need="$need qemu-user-binfmt"
if [ -n "$need" ]; then
  sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  echo "installing:$need" >&2
  $sudo apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $need >/dev/null
fi
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$machine" ]; then
  rustup target add "$machine" >&2
fi
sh scripts/roots.sh aarch64 >/dev/null
root=$(cd "${ROOTS:-target/roots}/aarch64" && pwd)

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
  AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar
[ -n "${PURLIN:-}" ] || cargo build --release -p purlin --target "$machine"
program=$(realpath "${PURLIN:-target/$machine/release/purlin}")
# The test program is the machine's own.
[ "${1:-}" = -- ] || test=${PROGRAMS_TEST:-$(cargo test --release -p purlin --test programs --no-run --message-format=json-render-diagnostics |
  sed -n 's/.*"executable":"\([^"]*\/programs-[0-9a-f]*\)".*/\1/p' | tail -1)}

# What starts it: the emulator finds libraries in the root, and Purlin its OTP, whatever a program does to its environment. For each
# page of addresses that are reserved the emulator takes memory, tens of GiB for a fence of the usual size.
mkdir -p target/aarch64
cat >target/aarch64/purlin <<WRAPPER
#!/bin/sh
export QEMU_LD_PREFIX='$root' PURLIN_OTP_ROOT='$root/usr/lib/erlang' PURLIN_FENCE_BITS=38
exec '$program' "\$@"
WRAPPER
chmod 755 target/aarch64/purlin

enter() { # command...
  inside='
    if ! "$PURLIN" version >/dev/null 2>&1; then
      mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
      sed "s/:OP\$/:OPF/" /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register
      "$PURLIN" version >/dev/null || { echo "the kernel starts no program of aarch64" >&2; exit 2; }
    fi
    exec "$@"'
  if "$PURLIN" version >/dev/null 2>&1; then "$@"; else unshare --map-root-user --mount sh -c "$inside" sh "$@"; fi
}
export PURLIN="$here/target/aarch64/purlin"
if [ "${1:-}" = -- ]; then
  shift
  enter "$PURLIN" "$@"
  exit
fi

# One program or two of each kind: memory, the order of what threads see, bits, natives in C, ports, files, sockets, signals of the
# system, nodes, tools.
sample="large_integers map_operations regular_expressions regex_ zlib_and_archives compiled_floats
  compiled_natives fused_instructions matched_bit_string_parts purge_during_fun_calls nif_basics
  drivers_in_c nif_threads shared_places garbage_of_loops waiting_with_deep_stack two_nodes
  files_and_directories operating_system_signals forker_port shared_counters_and_terms
  message_contents process_timers process_monitors crypto_digests socket_modes socket_natives
  ets_resizing message_traces elixir_servers_and_tasks terminal_shell crash_and_dump"
case "${*:-}" in
  "") names=$sample ;;
  all) names="" ;;
  *) names=$* ;;
esac
export PROGRAMS_MODES="${PROGRAMS_MODES:-always chaos}" PROGRAMS_SLOWER="${PROGRAMS_SLOWER:-5}" \
  PROGRAMS_CC=aarch64-linux-gnu-gcc
log=$(mktemp)
trap 'rm -f "$log"' EXIT
ops=0
[ -n "${*:-}" ] || sh scripts/aarch64_ops.sh all || ops=1
# shellcheck disable=SC2086
enter "$test" $names 2>&1 </dev/null | tee "$log" || :
awk '/^test result:/ { for (i = 1; i < NF; i++) { if ($(i+1) ~ /^passed/) p = $i; if ($(i+1) ~ /^failed/) f = $i; if ($(i+1) ~ /^ignored/) s = $i } }
     END { if (!p && !f) f = 1
           printf "%d passed, %d failed, %d skipped\n", p, f, s; exit (f > 0) }' "$log" || exit 1
exit $ops
