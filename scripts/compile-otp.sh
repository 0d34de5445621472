#!/bin/sh
# Compiles OTP's own sources with its compiler on Purlin and on stock, and compares the modules byte
# for byte.
#
#   scripts/compile-otp.sh [APP ...]        none: stdlib kernel compiler
#
# The sources are those of the installed OTP (package erlang-src), which have what its build
# generates. What the build makes with yecc is made anew on each side, and compiled from that.
# PURLIN: the executable (target/release/purlin). BUILD_SECONDS (1200): the limit of one application
# on one side. What stock makes is kept in CACHE (~/.cache/purlin/conformance); STOCK=again makes it
# anew.
# For each application a line `N of M modules identical`; a module that isn't is named, with the
# chunks that differ. Status 0 if all are identical.
set -u
cd "$(dirname "$0")/.." || exit 2
here=$PWD
PATH="$HOME/.cargo/bin:$PATH"
. "$here/scripts/sources.sh"
root=$(erl -noshell -eval 'io:put_chars(code:root_dir()), halt().')
purlin=$(purlin_executable) || exit 1

# compile APP OUT [COMMAND...]: its modules into OUT, by COMMAND erlc. Both sides work in the same
# place, one after the other, so that what names a file names the same.
compile() {
  app=$1 out=$2
  shift 2
  work=$cache/otp-build
  rm -rf "$work" "$out"
  mkdir -p "$work" "$out"
  # The includes of one application are found through relative paths from another, as in OTP's tree.
  for a in stdlib kernel compiler; do
    mkdir "$work/$a"
    cp -r "$root/lib/$a"-*/src "$work/$a/src" && cp -r "$root/lib/$a"-*/include "$work/$a/include" 2>/dev/null
  done
  cd "$work/$app/src" || return 1
  for grammar in *.yrl; do
    [ ! -e "$grammar" ] || { rm -f "${grammar%.yrl}.erl" && "$@" erlc +deterministic "$grammar"; } || return 1
  done
  # The flags of each application's Makefile that make a difference to the code; what the build
  # defines for single modules is defined for all.
  flags="+deterministic +debug_info -W0 -I../include -I../../kernel/include -I../../stdlib/include -o $out"
  flags="$flags -DCOMPILER_VSN=\"1\" -Depmd_dist_high=6 -Depmd_dist_low=5 -Derlang_daemon_port=4369"
  # shellcheck disable=SC2086
  if [ "$app" = compiler ]; then
    timeout -k 5 "${BUILD_SECONDS:-1200}" "$@" erlc $flags core_parse.erl &&
      mv core_parse.erl .. && timeout -k 5 "${BUILD_SECONDS:-1200}" "$@" erlc $flags +inline ./*.erl
  else
    timeout -k 5 "${BUILD_SECONDS:-1200}" "$@" erlc $flags ./*.erl
  fi
}

status=0
for app in ${*:-stdlib kernel compiler}; do
  ls -d "$root/lib/$app"-*/src >/dev/null 2>&1 || { echo "$app: no sources (apt-get install erlang-src)"; status=1; continue; }
  if [ "${STOCK:-}" = again ] || [ ! -d "$cache/otp-stock/$app" ]; then
    (compile "$app" "$cache/otp-stock/$app.new") || { echo "$app cannot be compiled on stock" >&2; exit 1; }
    rm -rf "$cache/otp-stock/$app"
    mv "$cache/otp-stock/$app.new" "$cache/otp-stock/$app"
  fi
  (compile "$app" "$cache/otp-purlin/$app" "$purlin" exec --) || status=1
  printf '%s: ' "$app"
  compare_trees "$cache/otp-stock/$app" "$cache/otp-purlin/$app" || status=1
done
rm -rf "$cache/otp-build"
exit $status
