#!/bin/sh
# Compiles Purlin for aarch64, runs programs of tests/programs with it under qemu-user, and
# compares them with the machine's own stock emulator. OTP's libraries and little programs are
# those of the root `aarch64` (scripts/roots.sh); shell and tools are the machine's own. Prints `N
# passed, N failed, N skipped`.
#
#   scripts/aarch64.sh [NAME...]     NAMEs choose programs by part of their names; without any: all
#   scripts/aarch64.sh sample        twenty programs, by the machine's own OTP and the cross compiler's C library, compiled in
#                                    the profile `dev`; the last lines are `test result: …`, and it installs nothing
#   scripts/aarch64.sh -- erl ...    runs `purlin erl ...` there
#
# The operations of the processor come first where no NAME is given (scripts/aarch64_ops.sh), and
# a third of the programs runs in stress and behind the fence last. `sample` counts as one skipped
# test where emulator, compiler or target are missing, where the kernel starts no program of
# aarch64, or where it takes longer than BUILD_SECONDS (300) and SAMPLE_SECONDS (240).
#
# PROGRAMS_MODES ("always chaos"), PROGRAMS_JOBS and the others of crates/purlin/tests/programs.rs
# hold. PROGRAMS_SLOWER (5): by how much longer than elsewhere a program may take.
#
# The kernel finds the emulator by what it is told in a mount namespace of its own (Linux 6.7), so
# nothing of the machine changes.
set -eu
cd "$(dirname "$0")/.."
here=$PWD
PATH="$HOME/.cargo/bin:$PATH"
machine=aarch64-unknown-linux-gnu
sample=""
[ "${1:-}" != sample ] || sample=1
skip() {
  echo "test result: ok. 0 passed; 0 failed; 1 ignored; no programs on aarch64: $1"
  exit 0
}
need=""
for p in aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu unshare:util-linux; do
  command -v "${p%%:*}" >/dev/null 2>&1 || need="$need ${p##*:}"
done
# Packages with the emulator as a static program serve as well.
command -v qemu-aarch64 >/dev/null 2>&1 || command -v qemu-aarch64-static >/dev/null 2>&1 || need="$need qemu-user"
[ -x /usr/libexec/qemu-binfmt/aarch64-binfmt-P ] || need="$need qemu-user-binfmt"
[ -z "$sample" ] || [ -z "$need" ] || skip "without$need"
if [ -n "$need" ]; then
  sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  echo "installing:$need" >&2
  $sudo apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $need >/dev/null
fi
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$machine" ]; then
  rustup target add "$machine" >&2 || [ -z "$sample" ] || skip "no target $machine"
fi
profile=release folder=release
if [ -n "$sample" ]; then
  # Its programs need no C library of OTP's, and modules are the same everywhere.
  profile=dev folder=debug
  prefix=/usr/aarch64-linux-gnu otp=$(erl -noshell -eval 'io:put_chars(code:root_dir()), halt(0).')
else
  sh scripts/roots.sh aarch64 >/dev/null
  prefix=$(cd "${ROOTS:-target/roots}/aarch64" && pwd)
  otp=$prefix/usr/lib/erlang
fi

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
  AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar
if [ -z "${PURLIN:-}" ]; then
  if [ -n "$sample" ]; then
    status=0
    timeout -k 5 "${BUILD_SECONDS:-300}" cargo build -q -p purlin --target "$machine" || status=$?
    [ "$status" != 124 ] || skip "it does not compile in time"
    [ "$status" = 0 ] || { echo "test result: FAILED. 0 passed; 1 failed; 0 ignored; it does not compile for aarch64"; exit 1; }
  else
    cargo build --release -p purlin --target "$machine"
  fi
fi
program=$(realpath "${PURLIN:-target/$machine/$folder/purlin}")
# The test program is the machine's own.
[ "${1:-}" = -- ] || test=${PROGRAMS_TEST:-$(cargo test --profile "$profile" -p purlin --test programs --no-run --message-format=json-render-diagnostics |
  sed -n 's/.*"executable":"\([^"]*\/programs-[0-9a-f]*\)".*/\1/p' | tail -1)}

# What starts it: the emulator finds libraries in the root, and Purlin its OTP, whatever a program
# does to its environment. For each page of addresses that are reserved the emulator takes memory,
# tens of GiB for a fence of the usual size, and 3.3 GiB without one: Purlin reserves less where
# addresses are limited, and starts in a third of the time.
mkdir -p target/aarch64
cat >target/aarch64/purlin <<WRAPPER
#!/bin/sh
export QEMU_LD_PREFIX='$prefix' PURLIN_OTP_ROOT='$otp' PURLIN_FENCE_BITS=38
[ -n "\${PURLIN_FENCE:-}" ] || ulimit -v 33554432
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

names=$*
if [ -n "$sample" ]; then
  # Kinds of code, memory, the order of what threads see, ports, files, sockets, timers.
  names="map_operations compiled_floats compiled_natives compiled_catches fused_instructions
    matched_bit_string_parts raising_natives_in_tail_calls purge_during_fun_calls shared_places
    garbage_of_loops waiting_with_deep_stack files_and_directories shared_counters_and_terms
    message_contents process_timers process_monitors socket_modes ets_resizing message_traces
    large_integers"
fi
export PROGRAMS_MODES="${PROGRAMS_MODES:-always chaos}" PROGRAMS_SLOWER="${PROGRAMS_SLOWER:-5}" \
  PROGRAMS_CC=aarch64-linux-gnu-gcc
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ -n "$sample" ]; then
  status=0
  "$PURLIN" version >/dev/null 2>&1 || (enter true) >/dev/null 2>&1 || skip "the kernel starts none"
  # The test program prints the result. It runs in the folder of its crate.
  cd crates/purlin
  # shellcheck disable=SC2086
  (enter timeout -k 5 "${SAMPLE_SECONDS:-240}" "$test" $names 2>&1 </dev/null) || status=$?
  [ "$status" != 124 ] || skip "the machine is too busy"
  exit "$status"
fi
ops=0
[ -n "$names" ] || sh scripts/aarch64_ops.sh all || ops=1
cd crates/purlin
# shellcheck disable=SC2086
enter "$test" $names 2>&1 </dev/null | tee "$log" || :
if [ -z "$names" ]; then
  # Every third program. Names that are parts of others bring those along.
  third=$(cd "$here/tests/programs/erlang" && find . -name '*.erl' | sed 's/.*\///; s/\.erl$//' | sort | awk 'NR % 3 == 0')
  # shellcheck disable=SC2086
  PROGRAMS_MODES="always-stress always-fence" enter "$test" $third 2>&1 </dev/null | tee -a "$log" || :
fi
cd "$here"
awk '/^test result:/ { for (i = 1; i < NF; i++) { if ($(i+1) ~ /^passed/) p += $i; if ($(i+1) ~ /^failed/) f += $i; if ($(i+1) ~ /^ignored/) s += $i } }
     END { if (!p && !f) f = 1
           printf "%d passed, %d failed, %d skipped\n", p, f, s; exit (f > 0) }' "$log" || exit 1
exit $ops
