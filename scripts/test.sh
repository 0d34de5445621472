#!/bin/sh
# Runs every test and ends with one line of counts: N passed, N failed, N skipped.
# CHECKED (passed, failed or skipped) is the outcome of scripts/check.sh where that ran before, and
# counts as one test more. TEST_SECONDS bounds the whole (default 3300) and BINARY_SECONDS each test
# program (default 900): what hangs is a failure, what is left still runs, and the count is printed
# all the same. The programs of tests/programs come last and take what time is left: their runs in
# further modes that find no time are skipped (`make test-modes` has no bound).
#
# Tests that failed beside others run once more, alone. One that passes then is counted as passed
# and named as `flaky`: it depends on the load of the machine, which is a fault of its own. A panic
# of the runtime or a signal is never run again.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
export RUST_BACKTRACE="${RUST_BACKTRACE:-0}"
total=${TEST_SECONDS:-3300}
each=${BINARY_SECONDS:-900}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
started=$(date +%s)

# Whatever does not compile is one failure.
if ! cargo test --workspace --no-run --message-format=json-render-diagnostics >"$work/built"; then
  case ${CHECKED:-} in
    passed) echo "1 passed, 1 failed, 0 skipped" ;;
    failed) echo "0 passed, 2 failed, 0 skipped" ;;
    skipped) echo "0 passed, 1 failed, 1 skipped" ;;
    *) echo "0 passed, 1 failed, 0 skipped" ;;
  esac
  exit 1
fi
# Directory of the crate and test program, a line each, in the order in which cargo names the
# crates.
sed -n 's/.*"manifest_path":"\([^"]*\)\/Cargo.toml".*"executable":"\([^"]*\)".*/\1 \2/p' "$work/built" |
  grep '/deps/' | sort -u >"$work/programs"

run() { # seconds, directory, command...
  seconds=$1 dir=$2
  shift 2
  left=$((total - ($(date +%s) - started)))
  [ "$left" -lt "$seconds" ] && seconds=$left
  if [ "$seconds" -le 0 ]; then
    echo "no time left: $*"
    echo "exit status 124"
    return
  fi
  (cd "$dir" && timeout -k 10 "$seconds" "$@" </dev/null 2>&1)
  echo "exit status $?"
}
# Runs a test program, and those of its tests that failed a second time.
run_twice() { # directory, program
  run "$each" "$1" "$2" >"$work/first"
  cat "$work/first"
  grep -q '^test result: FAILED' "$work/first" || return 0
  ! grep -qE "panicked at (/[^ ]*/)?crates/[^: ]*/src/|signal: |SIGSEGV|SIGABRT" "$work/first" || return 0
  # The programs are selected by name; a name may be followed by +MODE.
  failed=$(sed -n 's/^test \([^ +]*\).* \.\.\. FAILED$/\1/p' "$work/first" | sort -u)
  [ -n "$failed" ] || return 0
  echo "run again: $(grep -c '^test .* \.\.\. FAILED$' "$work/first")"
  case $2 in
    */programs-*) exact= ;;
    *) exact='--exact --test-threads=1' ;;
  esac
  # shellcheck disable=SC2086
  run "$each" "$1" "$2" $exact $failed >"$work/second"
  cat "$work/second"
  ! grep -q '^test result: ok' "$work/second" || echo "flaky: $failed" | tr '\n' ' '
  echo
}
browser() {
  for p in chromium chromium-headless-shell chromium-browser google-chrome; do
    ! command -v "$p" >/dev/null 2>&1 || return 0
  done
  return 1
}
{
  while read -r dir program; do
    case $program in */programs-*) continue ;; esac
    echo "running $program"
    # Without a browser its tests would pass without having looked.
    case $program in
      */observe_page-*)
        browser || {
          echo "test result: ok. 0 passed; 0 failed; $("$program" --list | grep -c ': test$') ignored; no Chromium"
          continue
        }
        ;;
    esac
    run_twice "$dir" "$program"
  done <"$work/programs"
  run "$each" . cargo test --workspace --doc --no-fail-fast
  # Machine code of the other processor, where there is an emulator.
  run "$each" . sh scripts/aarch64_ops.sh
  # The same where an emulator is in between.
  run "$each" . sh scripts/emulated.sh
  # A sample of the programs on other releases, where those can be had: ROOT_SECONDS (default 200)
  # bounds each fetch.
  PROGRAMS_TEST=$(awk '$2 ~ /\/programs-[0-9a-f]*$/ { print $2; exit }' "$work/programs")
  export PROGRAMS_TEST
  for release in otp27 otp29; do
    if [ -n "$PROGRAMS_TEST" ] && timeout -k 10 "${ROOT_SECONDS:-200}" sh scripts/roots.sh "$release"; then
      run "$each" . sh scripts/release_tests.sh "$release" functions_of_later_releases map_hashes pids_of_funs \
        ets_tables ets_heirs ets_literals ets_map_keys ets_names ets_nested ets_resizing ets_specs \
        process_dictionary unicode_strings compiling_at_run_time repeated_options_of_patterns \
        packet_type_changes
    else
      echo "test result: ok. 0 passed; 0 failed; 1 ignored; no root of $release"
    fi
  done
  # Six minutes are kept for the last runs to end and for what runs a second time, alone.
  PROGRAMS_SECONDS=$((total - ($(date +%s) - started) - 240))
  [ "$PROGRAMS_SECONDS" -gt 0 ] || PROGRAMS_SECONDS=0
  export PROGRAMS_SECONDS
  total=$((total + 120)) each=$total
  grep '/programs-[0-9a-f]*$' "$work/programs" | while read -r dir program; do
    echo "running $program"
    run_twice "$dir" "$program"
  done
} | tee "$work/log"

# Counted from the summary of each program; one that died before its summary counts as one failure
# more.
awk -v checked="${CHECKED:-}" '/^test result:/ && again { for (i = 1; i < NF; i++) if ($(i+1) ~ /^failed/) { f += $i; own += $i; p += $i < again ? again - $i : 0 }
       again = 0; next }
     /^test result:/ { for (i = 1; i < NF; i++) { if ($(i+1) ~ /^passed/) p += $i; if ($(i+1) ~ /^failed/) { f += $i; own += $i }; if ($(i+1) ~ /^ignored/) s += $i } }
     /^run again: / { again = $3; f -= again }
     /^exit status / { if (again) { f += again; own = 1; again = 0 } if ($3 && !own) f++; own = 0 }
     /^flaky: / { flaky = flaky $0 "\n" }
     END { if (!p && !f) f = 1
           p += checked == "passed"; f += checked == "failed"; s += checked == "skipped"
           printf "%s%d passed, %d failed, %d skipped\n", flaky, p, f, s; exit (f > 0) }' "$work/log"
