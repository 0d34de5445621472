#!/bin/sh
# Runs OTP's and Elixir's own test suites, unmodified, on the stock runtime and on Purlin, and says case by case where
# they differ.
#
#   scripts/conformance.sh [SUITE ...]      none: those listed in tests/otp/suites
#   scripts/conformance.sh from FILE        takes what runs made elsewhere gave: lines `APP/SUITE CASE STOCK PURLIN`;
#                                           MEASURED says of what, in place of the versions of here
#
# A suite is one of OTP's with its application (`stdlib/lists_SUITE`) or without (`lists_SUITE`), or `elixir/APP` for an
# application of Elixir's (`elixir/eex`); `emulator`, `stdlib`, `kernel`, `compiler`, `mnesia` and `elixir` stand for all of theirs.
# The sources come from the distribution (`apt-get source`) into CACHE (~/.cache/purlin/conformance); OTP_SOURCE and
# ELIXIR_SOURCE name trees that are there already. What stock gives is measured once and kept in the cache; STOCK=again
# measures anew. PURLIN: the executable (target/release/purlin); `PURLIN=stock` compares stock with itself.
# Suites run in a node with a name, as upstream runs them, with an epmd of its own on each side; nodes that they start run on
# what is measured.
# SUITE_SECONDS: the limit of a suite (600, of one of Elixir's 1800). A case of OTP's that takes the runtime down counts as
# failed, and the suite goes on without it, RESTARTS (15) times; in Elixir's, what then hasn't run has not passed.
# RESUME=1 leaves out suites that have been measured with this very executable, and takes their results as they are.
# TABLE=1 also writes the table in tests/otp/results.md and the totals in README.md, with the date and the versions, after each
# suite: a run that is broken off has written what it got to. Rows of suites that a run leaves out stay.
#
# Failures that are known are listed in tests/otp/known-failures-APP.txt and tests/elixir/known-failures.txt, lines
# `SUITE CASE REASON`; a reason that begins with `sometimes` is of a case whose outcome hangs on time, and one that begins with
# `left out:` of a case that isn't run here at all, since it would do harm. The table goes to
# standard output, the cases that differ to CACHE/differences.txt, each with `unexpected` or `known` before it. Status 1 if
# there are unexpected ones, or known ones that pass now.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
here=$PWD
. "$here/scripts/sources.sh"
restarts=${RESTARTS:-15}
mkdir -p "$cache/suites"
all=$(grep -v '^#' tests/otp/suites)

# The listed suites that a word means; a word that means none of them stands for itself.
meant() {
  echo "$all" | awk -v w="$1" '$0 == w || index($0, w "/") == 1 || substr($0, length($0) - length(w)) == "/" w && w ~ /_SUITE$/ { print; n = 1 }
    END { if (!n) print w }'
}

from=
if [ "${1:-}" = from ]; then
  from=${2:?a file of results}
  mkdir -p "$cache/from"
  suites=$(awk '{ print $1 }' "$from" | sort -u)
else
  suites=$(for w in ${*:-$all}; do meant "$w"; done)
  purlin=$(purlin_executable) || exit 1
fi

for s in $suites; do
  [ -z "$from" ] || break
  case $s in elixir/*) elixir=${elixir:-$(elixir_source)} || exit 1 ;; *) otp=${otp:-$(otp_source)} || exit 1 ;; esac
done
if [ -n "${otp:-}" ]; then
  erl -noshell -eval 'halt(length([M || M <- [ct, eunit_autoexport], code:which(M) =:= non_existing]))' || {
    echo "common_test or eunit is missing: apt-get install erlang-common-test erlang-eunit" >&2
    exit 2
  }
  erlc -o "$cache" "$here"/tests/otp/*.erl || exit 1
fi

# shared_libraries FILE: builds the native libraries and drivers that a Makefile.src names, where there is a C compiler and OTP has its
# headers. One that cannot be built is left out, on both sides.
shared_libraries() {
  headers=$(erl -noshell -eval 'io:put_chars(code:root_dir()), halt().')/usr/include
  rule="%.so: %.c\n\tcc -shared -fPIC -O1 -w -D_GNU_SOURCE -I. -I$headers -o \$@ \$<"
  sed "s|^@SHLIB_RULES@.*|$rule|; s/@dll@/.so/g; s/@obj@/.o/g; s/@WSL@//g; s/@[A-Za-z_]*@//g" "$1" >"${1%.src}"
  make -s -k -C "${1%/*}"
}

# prepare APP/SUITE: sets dir, where its compiled form and its data are
prepare() {
  mkdir -p "$cache/stock/${1%/*}" "$cache/purlin/${1%/*}" "$cache/measured/${1%/*}"
  case $1 in elixir/*) prepare_elixir "${1#*/}"; return ;; esac
  app=${1%/*}
  set -- "${1#*/}"
  file=$(ls "$otp/lib/$app/test/$1.erl" "$otp/erts/$app/test/$1.erl" 2>/dev/null | head -1)
  [ -n "$file" ] || return 1
  sources=$(dirname "$file")
  # `-include_lib("APP/src/...")`: an installed application may be without its sources. The headers that it has itself stay those
  # that are found, because some are generated.
  mkdir -p "$cache/include/$app" && ln -sfn "$otp/lib/$app/src" "$cache/include/$app/src"
  # Not a directory named as the application: on the code path that would stand for it, with its libraries.
  dir=$cache/suites/$app/test
  # Suites write beside their data, so they get a copy; helpers that they call are compiled with the first of them.
  if [ ! -d "$dir" ]; then
    mkdir -p "$cache/suites/$app"
    cp -r "$sources" "$dir.new"
    # Two of the examples are what suites about nodes run over.
    case $app in kernel) cp "$otp"/lib/kernel/examples/*_dist/src/*_dist.erl "$dir.new" ;; esac
    include="-I $dir.new -I $otp/lib/$app/src -I $otp/lib/$app/include -I $otp/lib/kernel/src -I $otp/lib/kernel/include -I $otp/lib/stdlib/src -I $otp/lib/compiler/src -I $otp/lib/stdlib/test -I $cache/include"
    for f in "$dir.new"/*.erl; do
      case $f in *_SUITE.erl) continue ;; esac
      # shellcheck disable=SC2086
      (cd "$dir.new" && erlc -W0 +debug_info $include "$f") >/dev/null 2>&1
    done
    mv "$dir.new" "$dir"
  fi
  if [ ! -e "$dir/$1.beam" ]; then
    include="-I $dir -I $otp/lib/$app/src -I $otp/lib/$app/include -I $otp/lib/kernel/src -I $otp/lib/kernel/include -I $otp/lib/stdlib/src -I $otp/lib/compiler/src -I $otp/lib/stdlib/test -I $cache/include"
    # shellcheck disable=SC2086
    (cd "$dir" && erlc -W0 +debug_info $include "$1.erl") >"$cache/compile-$1.log" 2>&1
    # Modules and libraries in C among its data; programs in C are left alone.
    for m in $(find "$dir/$1_data" -name Makefile.src 2>/dev/null); do
      if grep -q '^@SHLIB_RULES@' "$m"; then
        shared_libraries "$m" >>"$cache/compile-$1.log" 2>&1
        continue
      fi
      grep -qi '@cc@\|@dll@\|@shlib' "$m" && continue
      sed 's/@EMULATOR@/beam/g; s/@erl_name@/erl/g' "$m" >"${m%.src}"
      make -s -C "${m%/*}" >>"$cache/compile-$1.log" 2>&1
    done
  fi
  [ -e "$dir/$1.beam" ]
}

# prepare_elixir APP: each side has a tree of its own, because suites write into it. Its library is the installed one.
prepare_elixir() {
  library=$(dirname "$(readlink -f "$(command -v elixir)")")/../lib
  [ -z "${RELEASE:-}" ] || library=$root/usr/lib/elixir/lib
  for side in stock purlin; do
    tree=$cache/elixir-tree-$side
    [ -d "$tree" ] || { cp -r "$elixir" "$tree.new" && mv "$tree.new" "$tree"; } || return 1
    for app in "$tree"/lib/*; do
      [ -e "$app/ebin" ] || ln -s "$library/$(basename "$app")/ebin" "$app/ebin"
    done
  done
  [ -d "$elixir/lib/$1/test" ]
}

# end_leftovers DIRECTORY: ends the nodes that tests started in the background and, without distribution, could not stop:
# processes that have no parent any more and whose arguments name the directory.
end_leftovers() {
  for p in /proc/[0-9]*; do
    [ "$(awk '$1 == "PPid:" { print $2 }' "$p/status" 2>/dev/null)" = 1 ] || continue
    { tr '\0' ' ' <"$p/cmdline"; } 2>/dev/null | grep -qF "$1" || continue
    pkill -KILL -P "${p#/proc/}"
    kill -KILL "${p#/proc/}" 2>/dev/null
  done
}

# elixir_suite SIDE APP: leaves lines like those of `suite`
elixir_suite() {
  side=$1 app=$2
  lines=$cache/$side/elixir/$app.lines
  : >"$lines"
  tests=test
  [ "$app" = elixir ] && tests=test/elixir
  if [ "$side" = stock ] || [ "$purlin" = stock ]; then set --; else set -- "$purlin" exec --; fi
  # Waiting for a message is not what is measured, so a loaded machine gets time for it. Without rebar3, what needs it fails
  # on both sides.
  (cd "$cache/elixir-tree-$side/lib/$app" &&
    RESULTS=$lines ELIXIR_ASSERT_TIMEOUT=4000 REBAR3=${REBAR3:-$(command -v rebar3 || command -v false)} LC_ALL=C.UTF-8 \
      timeout -k 5 "${SUITE_SECONDS:-1800}" "$@" elixir -r "$here/tests/elixir/recorder.exs" \
      -r "$tests/test_helper.exs" -pr "$tests/**/*_test.exs") >"$cache/$side/elixir/$app.log" 2>&1 </dev/null
  end_leftovers "$cache/elixir-tree-$side/"
  grep -q '^done' "$lines" || echo "$side did not reach the end of elixir/$app: $cache/$side/elixir/$app.log" >&2
  verdicts "$lines" >"$cache/$side/elixir/$app"
}

# The first verdict of a case counts: cases that are left out of a second run are reported as skipped by it.
verdicts() {
  awk '/^end / { if (!seen[$2]++) { $1 = ""; print substr($0, 2) } }' "$1"
}

# suite SIDE APP/SUITE: leaves lines `CASE VERDICT REASON` in CACHE/SIDE/APP/SUITE
suite() {
  side=$1 suite=$2
  case $suite in elixir/*) elixir_suite "$side" "${suite#*/}"; return ;; esac
  if [ "$side" = stock ] || [ "$purlin" = stock ]; then set -- erl; else set -- "$purlin" exec -- erl; fi
  lines=$cache/$side/$suite.lines
  : >"$lines"
  left=
  known=$here/tests/otp/known-failures-${suite%%/*}.txt
  if [ "$side" = purlin ] && [ -e "$known" ]; then
    left=$(awk -v s="${suite#*/}" '$1 == s && $3 == "left" && $4 == "out:" { printf "%s ", $2 }' "$known")
  fi
  deadline=$(($(date +%s) + ${SUITE_SECONDS:-600}))
  # A daemon of its own, so that names are free on both sides.
  port=$(($$ % 20000 + 20000))
  for _ in $(seq 0 "$restarts"); do
    logs=$(mktemp -d)
    remaining=$((deadline - $(date +%s)))
    [ "$remaining" -gt 0 ] || break
    # shellcheck disable=SC2086
    (cd "$logs" && export ERL_EPMD_PORT="$port" && timeout -k 5 "$remaining" "$@" -sname test_server -noshell -pa "$cache" -pa "$dir" \
      -run conformance main "${suite#*/}" "$dir" "$logs" "$lines" $left) >"$cache/$side/$suite.log" 2>&1 </dev/null
    rm -rf "$logs"
    end_leftovers "$dir"
    ERL_EPMD_PORT=$port epmd -kill >/dev/null 2>&1
    grep -q '^done' "$lines" && break
    # The case that had begun and not ended is the one that the runtime did not survive.
    fallen=$(awk '/^start / { s = $2 } /^end / { s = "" } END { print s }' "$lines")
    [ -n "$fallen" ] || break
    echo "end $fallen failed the runtime ended" >>"$lines"
    # What has ended need not run again.
    left="$left "$(awk '/^end / { sub(/@.*/, "", $2); if (!seen[$2]++) printf "%s ", $2 }' "$lines")
  done
  verdicts "$lines" >"$cache/$side/$suite"
}

# measured SUITE: from the verdicts of both sides, `SUITE STOCK PURLIN` into CACHE/measured/SUITE, and the cases that
# differ to CACHE/differences.txt. Prints a row. The measure: of the cases that stock passes, how many pass here.
measured() {
  s=$1 theirs=$2 ours=$3
  case $s in elixir/*) known=tests/elixir/known-failures.txt ;; *) known=tests/otp/known-failures-${s%%/*}.txt ;; esac
  [ -e "$known" ] || known=/dev/null
  awk -v s="$s" -v own="${s#*/}" -v out="$cache/differences.txt" -v stale="$cache/stale.txt" -v date="$(date +%F)" -v by="$by" '
    # A case in a group is `CASE@GROUP` or `GROUP/CASE`; a list may leave the group out.
    function plain(c) { sub(/@.*/, "", c); sub(/^.*\//, "", c); return c }
    FILENAME == ARGV[1] { if ($0 !~ /^#/ && $1 == own) { k = $2; $1 = $2 = ""; reason[k] = substr($0, 3) } next }
    FILENAME == ARGV[2] { got[$1] = $2; line[$1] = $0; next }
    { all++ }
    $2 == "passed" {
      n++
      name = $1 in reason ? $1 : plain($1)
      if (got[$1] == "passed") { passed++; if (name in reason) ok[name] = 1; next }
      bad[name] = 1
      if (name in reason) { known++; print "known", s, $1, reason[name] >>out }
      else print "unexpected", s, (line[$1] ? line[$1] : $1 " did not run") >>out
    }
    END {
      for (c in ok) if (!(c in bad) && reason[c] !~ /^ *sometimes/) print s, c >>stale
      printf "%s %d %d %d %s %s\n", s, n, passed, all, date, by
      printf "%-32s %7d %7d %7d %8.1f%% %8d\n", s, n, passed, all, n ? 100 * passed / n : 0, n - passed - known >"/dev/stderr"
    }' "$known" "$ours" "$theirs" >"$cache/measured/$s" 2>"$cache/row"
  cat "$cache/row"
  # What stock passes none of measures nothing.
  grep -q '^[^ ]* 0 ' "$cache/measured/$s" && { rm "$cache/measured/$s"; return; }
  cat "$cache/measured/$s" >>"$cache/results"
  [ -z "${TABLE:-}" ] || sh "$here/scripts/compatibility.sh" suites "$cache/measured/$s"
}

: >"$cache/differences.txt"
: >"$cache/stale.txt"
: >"$cache/results"
printf '%-32s %7s %7s %7s %9s %8s\n' suite stock Purlin "of" "per cent" unexpected
if [ -n "$from" ]; then
  by=elsewhere
  for s in $suites; do
    mkdir -p "$cache/from/${s%/*}" "$cache/measured/${s%/*}"
    awk -v s="$s" '$1 == s { sub(/^pass$/, "passed", $3); print $2, $3 }' "$from" >"$cache/from/$s.stock"
    awk -v s="$s" '$1 == s { sub(/^pass$/, "passed", $4); print $2, $4 }' "$from" >"$cache/from/$s.purlin"
    measured "$s" "$cache/from/$s.stock" "$cache/from/$s.purlin"
  done
else
  by=$(if [ "$purlin" = stock ]; then echo stock; else md5sum <"$(command -v "$purlin")" | cut -c1-32; fi)
  for s in $suites; do
    if ! prepare "$s"; then
      printf '%-32s %s\n' "$s" "cannot be compiled here"
      continue
    fi
    { [ "${STOCK:-}" != again ] && [ -s "$cache/stock/$s" ]; } || suite stock "$s"
    if [ -z "${RESUME:-}" ] || ! grep -q " $by\$" "$cache/measured/$s" 2>/dev/null; then
      suite purlin "$s"
    fi
    measured "$s" "$cache/stock/$s" "$cache/purlin/$s"
  done
fi
# Totals by application, and of all.
awk '{ split($1, p, "/"); n[p[1]] += $2; k[p[1]] += $3; n["all"] += $2; k["all"] += $3 }
  END { for (a in n) printf "%-32s %7d %7d %7s %8.1f%%\n", a, n[a], k[a], "", n[a] ? 100 * k[a] / n[a] : 0 }' "$cache/results" |
  awk '$1 == "all" { last = $0; next } { print | "sort" } END { close("sort"); print last }'
echo "differences, with reasons: $cache/differences.txt"
[ ! -s "$cache/stale.txt" ] || sed 's/^/passes now, and is listed as known: /' "$cache/stale.txt"
! grep -q '^unexpected' "$cache/differences.txt" && [ ! -s "$cache/stale.txt" ]
