#!/bin/sh
# Test suites of other people's libraries, on stock and on Purlin in turn, on several releases: tests that pass and fail, time that passes, memory.
#
#   scripts/applications.sh                     all of tests/applications/list.txt, on each release that is there
#   scripts/applications.sh jason plug          these
#   scripts/applications.sh table               writes tests/applications/results.md alone
#
# RELEASES ("27 29"): 25 is the machine's own Erlang and Elixir, others are roots of scripts/roots.sh (ROOTS). Those that are not there are left
# out, with a line.
# APPS: folders with checkouts, by colons. One that has the name of a row is taken in the place of what would be fetched: at the row's version if it is
# a repository of git that has that tag, else as it is. One that no row names is run too, as what it is recognised by: mix.exs, rebar.config,
# or gleam.toml, unless LISTED=1 is given.
# What APPS doesn't have is cloned from the row's address, or taken from Debian's source package where the row names one. Rows that cannot be had are
# left out, with a line.
# PGHOST and PGPORT: a server of PostgreSQL that lets its user postgres in; rows that want one are left out without.
# LIMIT (600): seconds for a step, building or testing. PURLIN: the executable (target/release/purlin). KEEP=1: what is built stays.
#
# Dependencies are taken from the same list, without a registry: `mix` is given tests/applications/overlay.exs as its project, `rebar3` is given
# tests/applications/overlay.config.script and folders in _checkouts. What the list doesn't have is left out; .left beside the log of a project names
# it. Both runtimes build all for themselves, in trees of their own, below target/applications.
# What a suite printed is in target/applications/RELEASE/logs; tests that fail on one runtime only are told in lines of their own, and are in .differ.
# The status is 1 if there was such a test.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
here=$PWD
data=$here/tests/applications
list=$data/list.txt
work=${WORK:-$here/target/applications}
results=$work/results.txt
limit=${LIMIT:-600}
mkdir -p "$work"
touch "$results"
status=0

# field NAME N: the Nth field of the row NAME.
field() {
  awk -F'|' -v name="$1" -v n="$2" '/^#/ { next } { a = $1; gsub(/^ +| +$/, "", a) } a == name { x = $n; gsub(/^ +| +$/, "", x); print x; exit }' "$list"
}
rows() { awk -F'|' '/^#/ || !NF { next } { gsub(/ /, "", $1); print $1 }' "$list"; }

# write_table: results.md from its own rows and from what was measured; each row of these takes the place of its older one.
write_table() {
  page=$data/results.md
  old=$(mktemp) new=$(mktemp)
  # A line of $results: release, name, version, then of stock and of Purlin passed, failed, seconds, bytes, seconds of processors, and a date.
  sort -k1,1 -k2,2 "$results" | awk '
    { mb = 1048576
      printf "| %s | %s | %s | %s | %s | %s | %s | %.1f | %.2f | %.1f | %.2f | %.0f | %.2f | %s |\n", $2, $3, $1, $4, $5, $9, $10,
        $6, ($6 > 0 ? $11 / $6 : 0), $8, ($8 > 0 ? $13 / $8 : 0), $7 / mb, ($7 > 0 ? $12 / $7 : 0), $14 }' >"$new"
  awk '/^<!-- applications: begin/ { on = 1 } /^<!-- applications: end/ { on = 0 } on && /^\| [a-z]/ && !/^\| library/' "$page" |
    awk -F'|' -v new="$new" 'BEGIN { while ((getline <new) > 0) seen[$2 $4] = 1 } !seen[$2 $4]' >"$old"
  cat "$old" >>"$new"
  sort -t'|' -k2,2 -k4,4n "$new" >"$old"
  {
    echo '| library | version | OTP | stock passes | fails | Purlin passes | fails | stock, s | Purlin/stock | stock, s of processors | Purlin/stock | stock, MB | Purlin/stock | measured |'
    echo '|---|---|---|---|---|---|---|---|---|---|---|---|---|---|'
    cat "$old"
  } >"$new"
  awk -v table="$new" '
    $0 == "<!-- applications: end -->" { skip = 0 }
    !skip
    $0 == "<!-- applications: begin -->" { print ""; while ((getline line < table) > 0) print line; print ""; skip = 1 }' "$page" >"$old"
  cat "$old" >"$page"
  rm -f "$old" "$new"
}
if [ "${1:-}" = table ]; then
  write_table
  exit
fi

. scripts/executable.sh
PURLIN=$(realpath "$PURLIN")

# checkout NAME: the folder among APPS that has it.
checkout() {
  old_ifs=$IFS
  IFS=:
  for top in ${APPS:-}; do
    if [ -d "$top/$1" ]; then
      IFS=$old_ifs
      realpath "$top/$1"
      return
    fi
  done
  IFS=$old_ifs
  return 1
}

# version NAME RELEASE: the tag, which may be another for a release: `v1.16.2 25=v1.14.0`.
version() {
  for word in $(field "$1" 3); do
    case $word in
      "$2"=*) echo "${word#*=}" && return ;;
      *=*) ;;
      *) plain=$word ;;
    esac
  done
  echo "${plain:-}"
  plain=
}

# unpack NAME VERSION INTO: the sources, from a checkout, by git, or from Debian.
unpack() {
  name=$1 tag=$2 into=$3
  mkdir -p "$into"
  echo "${tag:-head}" >"$into/.version"
  if from=$(checkout "$name"); then
    # A repository without a working tree has nothing that could be taken as it is.
    if [ -z "$tag" ] && [ "$(git -C "$from" rev-parse --is-bare-repository 2>/dev/null)" = true ]; then
      tag=HEAD
      git -C "$from" describe --tags --always >"$into/.version"
    fi
    if [ -n "$tag" ] && git -C "$from" rev-parse -q --verify "$tag^{tree}" >/dev/null 2>&1; then
      # File by file: one that the repository lacks, as those that are large may be, hinders no other.
      GIT_INDEX_FILE=$work/index git -C "$from" read-tree "$tag"
      GIT_INDEX_FILE=$work/index GIT_DIR=$(git -C "$from" rev-parse --absolute-git-dir) git --work-tree="$into" checkout-index -a -f 2>"$work/git.txt" || :
      rm -f "$work/index"
    else
      (cd "$from" && tar -c --exclude=.git --exclude=_build --exclude=deps .) | tar -x -C "$into"
      git -C "$from" describe --tags --always >"$into/.version" 2>/dev/null || echo "as it is" >"$into/.version"
    fi
    return
  fi
  store=$work/sources/$name-${tag:-head}
  if [ ! -d "$store" ]; then
    rm -rf "$store.new"
    for source in $(field "$name" 2); do
      case $source in
        debian:*) debian "${source#debian:}" "$store.new" && break ;;
        *)
          host=$(echo "$source" | cut -d/ -f3)
          [ ! -e "$work/unreachable-$host" ] || continue
          # shellcheck disable=SC2086
          if GIT_TERMINAL_PROMPT=0 timeout 300 git clone -q --depth 1 ${tag:+-b "$tag"} "$source" "$store.new" 2>"$work/git.txt"; then break; fi
          # A host that has no address has none for the next row either.
          if grep -qE 'resolve host|unable to access' "$work/git.txt"; then
            echo "git reaches nothing at $host" >&2
            : >"$work/unreachable-$host"
          fi
          rm -rf "$store.new" ;;
      esac
    done
    [ -d "$store.new" ] || { rm -rf "$into"; return 1; }
    mv "$store.new" "$store"
  fi
  (cd "$store" && tar -c --exclude=.git .) | tar -x -C "$into"
}

# prepare_in DIR COMMAND: a row's command in its folder, once.
prepare_in() {
  [ ! -e "$1/.prepared" ] || return 0
  [ -z "$2" ] || (cd "$1" && APPLICATIONS_DATA=$data sh -c "$2") || echo "$1: $2: failed" >&2
  : >"$1/.prepared"
}

# sources_of NAME VERSION: a tree for each runtime. That for Purlin is a copy of what has not been built.
sources_of() {
  plain_tree=$work/otp$release/sources/$1
  [ ! -d "$work/otp$release/purlin/$1" ] || return 0
  mkdir -p "$work/otp$release/stock" "$work/otp$release/purlin"
  rm -rf "$plain_tree" "$work/otp$release/stock/$1"
  unpack "$1" "$2" "$plain_tree" || return 0
  # Others that depend on it want it prepared too; what asks a server is left until its own suite is run.
  case $(field "$1" 4) in *+*) ;; *) prepare_in "$plain_tree" "$(field "$1" 6)" ;; esac
  cp -a "$plain_tree" "$work/otp$release/stock/$1" && mv "$plain_tree" "$work/otp$release/purlin/$1"
}

# debian SOURCE INTO: a source package of the release's Debian. What apt says of one that the mirror doesn't hold goes to apt.txt.
debian() (
  package=$1 into=$2
  RELEASE=${release:-25}
  [ "$RELEASE" != 25 ] || RELEASE=
  RELEASE=${RELEASE:+otp$RELEASE}
  cache=
  CACHE=$work/debian
  . "$here/scripts/sources.sh" || exit 1
  source_package "$package" 2>>"$work/apt.txt" || { echo "the mirror of Debian doesn't hold the sources of $package (apt.txt)" >&2; exit 1; }
  unpacked=$(ls -d "$cache/$package"-*/ 2>/dev/null | head -1)
  [ -n "$unpacked" ] && cp -r "$unpacked" "$into" && echo "${unpacked##*-}" | tr -d / >"$into/.version"
)

# root_of RELEASE: sets PATH and the rest for it.
root_of() {
  tools=$work/otp$1/tools
  mkdir -p "$tools"
  if [ "$1" = 25 ]; then
    [ "$(erl -noshell -eval 'io:put_chars(erlang:system_info(otp_release)), halt().' 2>/dev/null)" = 25 ] || return 1
    rebar=$(command -v rebar3 || :)
    return
  fi
  root=${ROOTS:-$here/target/roots}/otp$1
  [ -x "$root/bin/erl" ] || return 1
  root=$(cd "$root" && pwd)
  rebar=$tools/rebar3
  if [ ! -x "$rebar" ]; then
    # By apt's lists of that release, which scripts/roots.sh leaves.
    for apt in "$root"/../apt/*; do
      set -- "$1" -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$apt/lists" \
        -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root
      grep -q " $([ "$1" = 27 ] && echo trixie || echo sid) " "$apt/sources.list" || { set -- "$1"; continue; }
      (shift; cd "$tools" && apt-get "$@" download -qq rebar3 >&2 && dpkg-deb --fsys-tarfile rebar3*.deb | tar -xO ./usr/bin/rebar3 >rebar3 && chmod 755 rebar3)
      set -- "$1"
    done
    [ -s "$rebar" ] || { rm -f "$rebar"; rebar=$(command -v rebar3 || :); }
  fi
  PATH=$tools:$root/bin:$PATH PURLIN_OTP_ROOT=$root/usr/lib/erlang
  export PATH PURLIN_OTP_ROOT
}

# kind DIR: what its project is built with.
kind() {
  if [ -e "$1/mix.exs" ]; then echo mix
  elif [ -e "$1/rebar.config" ]; then echo rebar
  elif [ -e "$1/gleam.toml" ]; then echo gleam
  elif [ -e "$1/Makefile" ]; then echo make
  fi
}

# command NAME KIND TEST STEP: shell text that builds or tests.
command_of() {
  case $2:$4 in
    mix:build) echo 'mix deps.compile && mix compile --no-deps-check' ;;
    mix:test) echo "MIX_QUIET= mix test --no-deps-check $3" ;;
    rebar:build) echo 'rebar3 as test compile' ;;
    rebar:test) echo "rebar3 ${3:-eunit}" ;;
    erl:build) echo "sh $data/erl.sh build" ;;
    erl:test) echo "sh $data/erl.sh test $3" ;;
    gleam:build) echo 'gleam build' ;;
    gleam:test) echo 'gleam test' ;;
    make:build) echo 'make' ;;
    make:test) echo "make ${3:-tests}" ;;
  esac
}

# step RUNTIME DIR OUTPUT COMMAND: one command, measured in OUTPUT.csv. What it prints goes to OUTPUT.
step() {
  printf '%s\n' "cd '$2' && $4" >"$3.sh"
  under="$PURLIN exec --"
  [ "$1" != stock ] || under=
  # shellcheck disable=SC2086
  PURLIN_EXEC=quiet timeout -k 10 "$limit" "$PURLIN" measure --runs 1 --warmup 0 --any-status --csv --name suite --separator +++ +++ \
    $under sh -c "sh '$3.sh' >'$3' 2>&1" >"$3.csv" 2>"$3.err" </dev/null
}

# counts LOG: `PASSED FAILED`, of what ExUnit, EUnit, Common Test and gleeunit print.
counts() {
  sed 's/\x1b\[[0-9;]*m//g' "$1" | awk '
    # ExUnit: `3 doctests, 2 properties, 95 tests, 1 failure, 2 excluded, 1 skipped, 1 invalid`; since Elixir 1.20
    # `Result: 100 passed (…), 2 excluded`, and `Result: 99/100 passed` if one fails.
    /^Result: / {
      seen = 1; sub(/\(.*/, "")
      n = split($0, part, /[:,]/)
      for (i = 2; i <= n; i++) { split(part[i], w, " "); if (w[2] ~ /^passed/) { of[2] = ""; split(w[1], of, "/"); ok += of[1]; if (of[2] != "") bad += of[2] - of[1] } }
      next
    }
    /^[0-9]+ (tests?|doctests?|propert(y|ies))(,.*)?, [0-9]+ failures?/ || /^ *[0-9]+ tests?, [0-9]+ failures?/ {
      seen = 1; total = less = 0
      n = split($0, part, ",")
      for (i = 1; i <= n; i++) {
        split(part[i], w, " ")
        if (w[2] ~ /^(test|doctest|propert)/) total += w[1]
        else if (w[2] ~ /^(failure|invalid)/) { bad += w[1]; less += w[1] }
        else if (w[2] ~ /^(excluded|skip|cancel)/) less += w[1]
      }
      ok += total - less; next
    }
    # EUnit, and Common Test by rebar3.
    /^ *All [0-9]+ tests passed/ { seen = 1; ok += $2; next }
    /^ *Test passed\./ { seen = 1; ok += 1; next }
    /Passed: [0-9]+\./ { seen = 1; for (i = 1; i < NF; i++) { x = $(i + 1); sub(/\./, "", x); if ($i == "Passed:") ok += x; if ($i == "Failed:") bad += x } next }
    /Passed [0-9]+ tests/ || /^Failed [0-9]+ tests/ { seen = 1; for (i = 1; i < NF; i++) { if ($i == "Passed") ok += $(i + 1); if ($i == "Failed") bad += $(i + 1) } next }
    # Common Test by itself: `Testing x: TEST COMPLETE, 3 ok, 1 failed, 1 skipped of 5 test cases`
    /^counts: / { seen = 1; ok += $2; bad += $3; next }
    END { if (seen) print ok + 0, bad + 0; else print "- -" }'
}

# failures LOG: the tests that failed, by name.
failures() {
  sed 's/\x1b\[[0-9;]*m//g' "$1" | sed -n -e 's/^ *[0-9]\{1,4\}) \(test\|property\|doctest\) /\1 /p' -e 's/^%%% \(.* ==> .*: FAILED\).*/\1/p' \
    -e 's/^ *[0-9]\{1,4\}) \([a-z_0-9]*:[a-z_0-9]*\/[0-9]*\).*/\1/p' -e 's/^\([a-z_0-9]*: [a-z_0-9]*\.*\*failed\*\)/\1/p' \
    -e 's/^Testing .*\.\([a-z_0-9A-Z]*_SUITE\): \*\*\* \(FAILED test case [0-9]*\).*/\1: \2/p' | sort -u
}

# suite RUNTIME DIR: the suite, by the variables of `one`. `PASSED FAILED SECONDS BYTES PROCESSOR` goes to $log.RUNTIME.result, unless a run before it failed less.
suite() {
  step "$1" "$2" "$log.$1" "$(command_of "$name" "$what" "$test" test)"
  measured=$(tail -1 "$log.$1.csv" 2>/dev/null | awk -F, '$5 ~ /^[0-9]/ { print $5, $8, $6 + $7 }')
  [ -n "$measured" ] || { measured="0 0 0"; echo "$name, OTP $release, $1: not done in $limit seconds"; }
  new="$(counts "$log.$1") $measured"
  if [ -s "$log.$1.result" ] && [ "$(echo "$new" | awk '{ print $2 }')" -ge "$(awk '{ print $2 }' "$log.$1.result")" ] 2>/dev/null; then return; fi
  echo "$new" >"$log.$1.result"
  failures "$log.$1" >"$log.$1.failures"
}

# one RELEASE NAME
one() {
  name=$2
  base=$work/otp$release
  only=$(field "$name" 7)
  case " ${only:-$release} " in *" $release "*) ;; *) return ;; esac
  what=$(field "$name" 4) test=$(field "$name" 5) prepare=$(field "$name" 6)
  case $what in
    -) return ;;
    *+postgres) [ -n "${PGHOST:-}" ] && [ -n "${PGPORT:-}" ] || { echo "$name: PGHOST and PGPORT name no server of PostgreSQL"; return; } ;;
  esac
  what=${what%+postgres}
  for runtime in stock purlin; do
    dir=$base/$runtime/$name
    [ -d "$dir" ] || { echo "$name: neither APPS nor its addresses have it"; return; }
    [ -n "$what" ] || what=$(kind "$dir")
    [ -n "$what" ] || { echo "$name: no project that is known (mix.exs, rebar.config, gleam.toml, Makefile)"; return; }
    case $what in
      gleam) command -v gleam >/dev/null || { echo "$name: there is no gleam"; return; } ;;
      rebar) [ -n "$rebar" ] || { echo "$name: there is no rebar3"; return; } ;;
    esac
  done
  log=$base/logs/$name
  mkdir -p "$base/logs"
  rm -f "$log".*
  line="$release $name $(tr ' ' - <"$base/stock/$name/.version" 2>/dev/null || echo head)"
  for runtime in stock purlin; do
    dir=$base/$runtime/$name
    prepare_in "$dir" "$prepare"
    # Within a project that has its sources in a folder below.
    sub=$(field "$name" 8)
    [ -z "$sub" ] || dir=$dir/$sub
    with=$(field "$name" 9)
    if [ "$what" = rebar ] && [ -n "$with" ]; then
      mkdir -p "$dir/_checkouts"
      for d in $with; do [ ! -d "$base/$runtime/$d" ] || ln -sfn "$base/$runtime/$d" "$dir/_checkouts/$d"; done
    fi
    export MIX_EXS="$data/overlay.exs" MIX_ENV=test MIX_REBAR3="$rebar" APPLICATIONS_DEPS="$base/$runtime" APPLICATIONS_LEFT_OUT="$log.left" \
      APPLICATIONS_WITH="$with" REBAR_CONFIG="$data/overlay.config" HEX_OFFLINE=1 MIX_QUIET=1 ERL_CRASH_DUMP=/dev/null
    step "$runtime" "$dir" "$log.$runtime.build" "$(command_of "$name" "$what" "$test" build)"
    suite "$runtime" "$dir"
  done
  # What depends on time fails now and then on a busy machine: a runtime with failures that the other one has not is asked once more.
  diff "$log.stock.failures" "$log.purlin.failures" >"$log.differ"
  for runtime in stock purlin; do
    case $runtime in stock) sign='<' ;; *) sign='>' ;; esac
    ! grep -q "^$sign" "$log.differ" || suite "$runtime" "$base/$runtime/$name${sub:+/$sub}"
  done
  for runtime in stock purlin; do
    line="$line $(cat "$log.$runtime.result")"
    [ -n "${KEEP:-}" ] || rm -rf "$base/$runtime/$name${sub:+/$sub}/_build"
  done
  [ ! -e "$log.left" ] || sort -u -o "$log.left" "$log.left"
  diff "$log.stock.failures" "$log.purlin.failures" >"$log.differ" && rm -f "$log.differ"
  case " $line " in *" - - "*) echo "$name, OTP $release: a suite that doesn't say how many tests there were: $log.stock, $log.purlin"; status=1; return ;; esac
  awk -v r="$release" -v n="$name" '$1 != r || $2 != n' "$results" >"$results.new"
  echo "$line $(date +%F)" >>"$results.new"
  mv "$results.new" "$results"
  echo "$line" | awk '{ printf "%s %s OTP %s: stock %s passed, %s failed, %.1f s, %.0f MB; Purlin %s, %s, %.1f s, %.0f MB\n", $2, $3, $1, $4, $5, $6, $7 / 1048576, $9, $10, $11, $12 / 1048576 }'
  if [ -e "$log.differ" ]; then
    sed -n -e 's/^< /  stock alone fails: /p' -e 's/^> /  Purlin alone fails: /p' "$log.differ"
    status=1
  fi
  set -- $line
  [ "$4 $5" = "$9 ${10}" ] || status=1
}

names=$*
rm -f "$work"/unreachable-*
for release in ${RELEASES:-27 29}; do
  before=$PATH
  unset PURLIN_OTP_ROOT
  if ! root_of "$release"; then
    echo "OTP $release is not here (scripts/roots.sh)"
    PATH=$before
    continue
  fi
  # All sources first: each may be a dependency of another.
  for name in $(rows); do
    sources_of "$name" "$(version "$name" "$release")"
  done
  others=
  old_ifs=$IFS
  IFS=:
  for top in ${APPS:-}; do
    IFS=$old_ifs
    for dir in "$top"/*/; do
      name=$(basename "$dir")
      [ -n "$names" ] || [ -n "${LISTED:-}" ] || rows | grep -qx "$name" || [ -z "$(kind "$dir")" ] || others="$others $name"
      rows | grep -qx "$name" || [ -z "$(kind "$dir")" ] || sources_of "$name" ""
    done
    IFS=:
  done
  IFS=$old_ifs
  for name in ${names:-$(rows) $others}; do one "$release" "$name"; done
  PATH=$before
done
write_table
exit $status
