#!/bin/sh
# Coverage-guided fuzzing, one target after the other.
#
#   scripts/fuzz.sh SECONDS [TARGET ...]      none: all of them, so many seconds each
#   scripts/fuzz.sh minimize [TARGET ...]     keeps of the corpora what reaches something that nothing smaller reaches
#
# libFuzzer in the process, on stable Rust; it needs a C++ compiler. What is found to reach
# something new is kept in FOUND (target/fuzz/found), and goes from there into the files of
# fuzz/corpus by `minimize`. An input that panics, crashes, takes FUZZ_TIMEOUT (20) seconds or
# FUZZ_MEGABYTES (3000) is left in target/fuzz/failures, named by its target; status 1 then. Atoms
# and modules are for ever, so that a run of a target is made of several, FUZZ_RUNS (150000) inputs
# at most each.
set -u
cd "$(dirname "$0")/.." || exit 2
here=$PWD
PATH="$HOME/.cargo/bin:$PATH"
what=${1:?seconds or minimize}
shift
targets=${*:-$(sed -n 's/^ *name: "\([a-z_]*\)",/\1/p' fuzz/src/lib.rs)}
triple=$(rustc -vV | sed -n 's/^host: //p')
found=${FOUND:-$here/target/fuzz/found}
failures=$here/target/fuzz/failures
mkdir -p "$found" "$failures"

cargo build -q -p purlin-fuzz --bin corpus || exit 2
corpus=${CARGO_TARGET_DIR:-target}/debug/corpus

# With --target, build scripts and macros are built without coverage. Libraries in C are built from
# their crates' sources, and count what they come by too, where the fuzzer knows how to be told.
export CARGO_TARGET_DIR="$here/target/fuzz" LIBZ_SYS_STATIC=1 PCRE2_SYS_STATIC=1
case $triple in
x86_64-*-linux-gnu) export CFLAGS="-O2 -fsanitize-coverage=trace-pc" muldefs=-Clink-arg=-Wl,-z,muldefs ;;
*) muldefs= ;;
esac
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Coverflow-checks $muldefs"
cargo build -q --release --target "$triple" -p purlin-fuzz --features libfuzzer --bin fuzz || exit 2
fuzzer=$CARGO_TARGET_DIR/$triple/release/fuzz

status=0
for t in $targets; do
  export FUZZ_TARGET=$t
  kept=$found/$t.kept
  rm -rf "$kept"
  mkdir -p "$found/$t" "$kept"
  [ ! -e "fuzz/corpus/$t" ] || "$corpus" unpack "fuzz/corpus/$t" "$kept" || exit 1
  if [ "$what" = minimize ]; then
    rm -rf "$found/$t.least"
    mkdir -p "$found/$t.least"
    "$fuzzer" -merge=1 -max_len=4096 -timeout="${FUZZ_TIMEOUT:-20}" "$found/$t.least" "$kept" "$found/$t" \
      >"$found/$t.log" 2>&1 </dev/null || { echo "$t: see $found/$t.log"; status=1; continue; }
    mkdir -p fuzz/corpus
    "$corpus" pack "$found/$t.least" "fuzz/corpus/$t" || exit 1
    echo "$t: $(ls "$found/$t.least" | wc -l) inputs, $(wc -c <"fuzz/corpus/$t") bytes"
    rm -rf "$kept" "$found/$t"
    mv "$found/$t.least" "$found/$t"
    continue
  fi
  dictionary=
  [ -e "$here/fuzz/dictionaries/$t" ] && dictionary=-dict=$here/fuzz/dictionaries/$t
  deadline=$(($(date +%s) + what))
  : >"$found/$t.log"
  while left=$((deadline - $(date +%s))) && [ "$left" -gt 0 ]; do
    # shellcheck disable=SC2086
    (cd "$found" && "$fuzzer" -max_total_time="$left" -runs="${FUZZ_RUNS:-150000}" -timeout="${FUZZ_TIMEOUT:-20}" \
      -rss_limit_mb="${FUZZ_MEGABYTES:-3000}" -artifact_prefix="$failures/$t-" $dictionary -print_final_stats=1 \
      "$found/$t" "$kept") >"$found/$t.last" 2>&1 </dev/null
    ended=$?
    cat "$found/$t.last" >>"$found/$t.log"
    if [ "$ended" != 0 ]; then
      echo "$t: $(grep -a -m1 -E "panicked|ERROR: libFuzzer" -A1 "$found/$t.last" | tr '\n' ' ')"
      status=1
      break
    fi
  done
  echo "$t: $(awk '/^stat::number_of_executed_units/ { n += $2 } END { print n + 0 }' "$found/$t.log") inputs tried," \
    "$(grep -ac NEW "$found/$t.log") new, $(grep -ao 'cov: [0-9]* ft: [0-9]*' "$found/$t.last" | tail -1)"
done
exit $status
