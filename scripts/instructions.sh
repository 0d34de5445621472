#!/bin/sh
# Counts the instructions that loops of benches/instructions/kinds.erl execute on aarch64 under
# qemu-user, on stock OTP of the root `aarch64` (scripts/roots.sh) and on Purlin. The counter is
# benches/instructions/count.c. A row has instructions of machine code and of everything, per
# call, element or round, and Purlin's by stock's: the difference between one and two times the
# rounds, so starts and warm code are left out. The last line has the geometric means. Counts see no
# misses and no latencies. Of loops that wait (messages) they vary by some per cent, of others by
# less than one.
#
#   scripts/instructions.sh [NAME...]     NAMEs choose loops; PURLIN is an executable for aarch64, QEMU an emulator that takes
#                                         plugins; TIMES (1) multiplies the rounds, where a machine is busy; STOCK is a file
#                                         with stock's counts from an earlier run (target/instructions/stock)
set -eu
cd "$(dirname "$0")/.."
here=$PWD
PATH="$HOME/.cargo/bin:$PATH"
qemu=${QEMU:-$(command -v qemu-aarch64 || :)}
[ -n "$qemu" ] || { echo "qemu-aarch64 is needed, as a program that loads plugins (qemu-user, not qemu-user-static)" >&2; exit 2; }
sh scripts/roots.sh aarch64 >/dev/null
root=$(cd "${ROOTS:-target/roots}/aarch64" && pwd)
purlin=$(realpath "${PURLIN:-target/aarch64-unknown-linux-gnu/release/purlin}")
work=target/instructions
mkdir -p "$work"
work=$here/$work
cc -O2 -Wall -shared -fPIC -o "$work/count.so" benches/instructions/count.c
erlc -o "$work" benches/instructions/kinds.erl
lib=$root/usr/lib/erlang
# By another path: in a tree with a C library of its own Purlin starts anew under the tree's linker,
# and what the kernel starts is not counted.
ln -sfn "$lib" "$work/otp"
erts=$(ls -d "$lib"/erts-*/bin)
if [ $# = 0 ]; then
  # shellcheck disable=SC2046
  set -- $(erl -noshell -pa "$work" -eval '[io:format("~s ", [N]) || N <- kinds:names()], halt(0).')
fi

# counts FILE COMMAND...: a line `NAME code all` for each loop, per step, from its four marks.
counts() {
  file=$1
  shift
  QEMU_LD_PREFIX=$root ROOTDIR=$lib BINDIR=$erts EMU=beam PROGNAME=erl PURLIN_OTP_ROOT=$work/otp PURLIN_FENCE_BITS=38 \
    timeout -k 1 "${COUNT_SECONDS:-1800}" "$qemu" -plugin "$work/count.so,out=$file,mark=17" "$@" </dev/null >"$file.steps" || :
  # Marks before those of the loops are calls of getcwd by other code.
  awk 'NR == FNR { c[NR] = $1; t[NR] = $2; marks = NR; next }
    NF == 2 { name[++n] = $1; steps[n] = $2 }
    END { at = marks - 4 * n
          for (k = 1; k <= n; k++) {
            m = at + 4 * (k - 1)
            printf "%s %.1f %.1f\n", name[k], ((c[m+3] - c[m+2]) - (c[m+2] - c[m+1])) / steps[k],
              ((t[m+3] - t[m+2]) - (t[m+2] - t[m+1])) / steps[k]
          } }' "$file" "$file.steps"
}
all() {
  # Its compiler maps code once if it gets no large file. The emulator misses what a second mapping
  # changes, and OTP 25 has no flag for that.
  [ -n "${STOCK:-}" ] || (
    trap '' XFSZ && ulimit -f 2000 && counts "$work/marks.stock" "$erts/beam.smp" -S 1 -- -root "$lib" -bindir "$erts" -progname erl -- -home /tmp -- \
      -noshell -pa "$work" -run kinds main "${TIMES:-1}" "$@"
  ) >"$work/stock"
  # The emulator takes memory for each page that is reserved: Purlin reserves less where addresses
  # are limited.
  (ulimit -v 33554432 && counts "$work/marks.purlin" "$purlin" erl +S 1 -noshell -pa "$work" -run kinds main "${TIMES:-1}" "$@") >"$work/purlin"
  printf '| loop | stock, code / all | Purlin, code / all | code, by stock | all, by stock |\n| --- | --- | --- | --- | --- |\n'
  awk 'NR == FNR { c[$1] = $2; t[$1] = $3; next }
    { by = "- | -"
      if (c[$1] > 0 && t[$1] > 0) by = sprintf("%.2f | %.2f", $2 / c[$1], $3 / t[$1])
      printf "| %s | %s / %s | %s / %s | %s |\n", $1, c[$1], t[$1], $2, $3, by }' "${STOCK:-$work/stock}" "$work/purlin"
}
export QEMU_LD_PREFIX="$root"
# The kernel starts what the two start by itself.
if ! "$purlin" version >/dev/null 2>&1; then
  if [ -z "${INSTRUCTIONS_INSIDE:-}" ]; then
    INSTRUCTIONS_INSIDE=1 exec unshare --map-root-user --mount sh "$here/scripts/instructions.sh" "$@"
  fi
  mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
  sed 's/:OP$/:OPF/' /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register
  "$purlin" version >/dev/null || { echo "the kernel starts no program of aarch64" >&2; exit 2; }
fi
all "$@" | tee "$work/table"
awk -F'|' '$5 + 0 > 0 { c += log($5); s += log($6); n++ }
  END { if (n) printf "geometric mean of %d: code %.2f, all %.2f\n", n, exp(c / n), exp(s / n) }' "$work/table"
