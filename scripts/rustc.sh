#!/bin/sh
# Cargo calls the compiler through this (`.cargo/config.toml`). Release builds for x86-64 get `profile/x86_64.profdata`: how often each part of
# the runtime ran in the programs of `scripts/profile.sh`, by which the compiler chooses what to inline and how to lay code out. All else
# is compiled as if this weren't there, and so is everything where the compiler can't read that file. PURLIN_PROFILE=0: for none.
compiler=$1
shift
profile=${0%/*}/../profile/x86_64.profdata
uses() {
  [ "${PURLIN_PROFILE:-1}" != 0 ] && [ -r "$profile" ] && [ "$(uname -sm)" = "Linux x86_64" ] || return 1
  case " $* " in
    # Another target; a build that counts for another purpose, or has counts of its own.
    *" --target "* | *profile-generate* | *profile-use* | *instrument-coverage*) return 1 ;;
    *" opt-level=3 "*) ;;
    *) return 1 ;;
  esac
  # The file was written by LLVM 22: later versions read it.
  [ "$("$compiler" -vV 2>/dev/null | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')" -ge 22 ] 2>/dev/null
}
# What has changed since it was measured is compiled without counts, which needs no warning.
uses "$@" && exec "$compiler" "$@" "-Cprofile-use=$profile" -Cllvm-args=-no-pgo-warn-mismatch
exec "$compiler" "$@"
