#!/bin/sh
# Rewrites the tables of tests/otp/results.md and tests/otp/natives.md, each between its two
# markers.
#
#   scripts/compatibility.sh                    natives: what the installed OTP's emulator has built in (and its preloaded
#                                               modules load as native functions) against the tables of this runtime
#   scripts/compatibility.sh releases           the same for the roots that scripts/roots.sh has made (ROOTS), a row for each
#   scripts/compatibility.sh suites RESULTS     suites: lines `APP/SUITE STOCK PURLIN` of `cargo xtask conformance`, with
#                                               today's date and the versions; rows of suites that RESULTS doesn't name
#                                               stay. Totals by application go to docs/testing.md. MEASURED: what stands in
#                                               place of date and versions, of results that come from elsewhere
set -eu
cd "$(dirname "$0")/.."
PATH="$HOME/.cargo/bin:$PATH"

list=$(mktemp)
table=$(mktemp)
page=$(mktemp)
trap 'rm -f "$list" "$table" "$page"' EXIT

# put NAME FILE: the table, between the markers of NAME
put() {
  into=$2
  awk -v table="$table" -v name="$1" '
      $0 == "<!-- " name ": end -->" { skip = 0 }
      !skip
      $0 == "<!-- " name ": begin -->" { print ""; while ((getline line < table) > 0) print line; print ""; skip = 1 }
  ' "$into" >"$page"
  cat "$page" >"$into"
}

if [ "${1:-}" = suites ]; then
  otp=$(erl -noshell -eval 'R = erlang:system_info(otp_release),
    {ok, V} = file:read_file(filename:join([code:root_dir(), "releases", R, "OTP_VERSION"])), io:put_chars(string:trim(V)), halt().')
  measured="$(date +%F), OTP $otp"
  case $(cat "$2") in *elixir/*) measured="$measured, Elixir $(elixir --short-version)" ;; esac
  measured="$measured, Purlin $(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1) $(git rev-parse --short HEAD 2>/dev/null || :)"
  measured=${MEASURED:-$measured}
  # The rows that are there, but for what was measured anew.
  awk '/^<!-- suites: begin/ { on = 1 } /^<!-- suites: end/ { on = 0 } on && /^\| `/' tests/otp/results.md |
    awk -F'`' 'NR == FNR { split($0, new, " "); seen[new[1]] = 1; next } !seen[$2]' "$2" - >"$list"
  awk -v measured="$measured" '{ printf "| `%s` | %d | %d | %.1f%% | %s |\n", $1, $2, $3, $2 ? 100 * $3 / $2 : 0, measured }' "$2" >>"$list"
  sort -t'`' -k2,2 "$list" >"$page" && cp "$page" "$list"
  # totals WIDTH: a row for each application, by the part of the suites' names before the slash, and
  # one of all.
  totals() {
    awk -F'[|`/]' -v more="$1" '
      { app = $3 == "elixir" ? "Elixir" : "OTP, " $3; if (!(app in n)) order[++apps] = app; m = split($0, f, "|"); n[app] += f[3]; k[app] += f[4]; a += f[3]; b += f[4]; suites[app]++; s++ }
      END { for (i = 1; i <= apps; i++) { x = order[i]; printf "| %s, %d suites | %d | %d | %.1f%% |%s\n", x, suites[x], n[x], k[x], n[x] ? 100 * k[x] / n[x] : 0, more }
            printf "| all, %d suites | %d | %d | %.1f%% |%s\n", s, a, b, a ? 100 * b / a : 0, more }' "$list"
  }
  {
    echo '| suite | stock passes | of these, Purlin | | measured |'
    echo '|---|---|---|---|---|'
    cat "$list"
    totals ' |'
  } >"$table"
  put suites tests/otp/results.md
  {
    echo '| test suites of | cases that stock passes | of these, Purlin | |'
    echo '|---|---|---|---|'
    totals ''
  } >"$table"
  put totals docs/testing.md
  exit
fi

# natives_of ERL: the natives of that emulator, its functions of built-in libraries included.
natives_of() {
  "$1" -noshell -eval '
    [code:ensure_loaded(M) || M <- [prim_tty, zstd, records, erl_debugger, trace]],
    Nifs = [{M, F, A} || {M, File} <- code:all_loaded(), File =:= preloaded orelse lists:member(M, [prim_tty, zstd]), {F, A} <- M:module_info(nifs)],
    [io:format("~ts\t~ts\t~b~n", [M, F, A]) || {M, F, A} <- lists:usort(erlang:system_info(snifs) ++ Nifs)],
    halt().'
}

if [ "${1:-}" = releases ]; then
  {
    echo '| release | native functions here | missing |'
    echo '|---|---|---|'
    for root in "${ROOTS:-target/roots}"/otp*; do
      [ -x "$root/bin/erl" ] || continue
      number=$("$root/bin/erl" -noshell -eval 'io:put_chars(erlang:system_info(otp_release)), halt().')
      natives_of "$root/bin/erl" | cargo run -q -p purlin-runtime --example natives -- "$number"
    done
  } >"$table"
  put releases tests/otp/natives.md
  exit
fi

natives_of erl >"$list"
cargo run -q -p purlin-runtime --example natives <"$list" >"$table"
put natives tests/otp/natives.md
