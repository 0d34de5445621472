#!/bin/sh
# Releases of an own system on Purlin, step by step: scripts/releases.sh [ROOT…]. `mix release` and relx (rebar3) with the folder that
# `purlin erts` makes, on the machine's OTP (`machine`) and on those of roots that scripts/roots.sh has made (otp27, otp29): each
# command of the release's script, from a read-only file system, as another user, with and without distribution, and a hot upgrade.
# PURLIN names the program, STEP_SECONDS (60) is what a step may take. Ends with a line: N passed, N failed. Needs root, to mount and to be another user.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
purlin=${PURLIN:-$here/target/release/purlin}
roots=${ROOTS:-$here/target/roots}
user=nobody
seconds=${STEP_SECONDS:-60}
[ "$(id -u)" = 0 ] || { echo "this mounts file systems: run it as root" >&2; exit 2; }
[ $# -gt 0 ] || set -- machine
work=$(mktemp -d)
chmod 755 "$work"
passed=0 failed=0
cleanup() {
  for p in /proc/[0-9]*; do
    case $(readlink "$p/exe" 2>/dev/null) in "$work"/*) kill -9 "${p#/proc/}" ;; esac
  done
  mount | awk -v work="$work" 'index($3, work) == 1 { print $3 }' | while read -r at; do umount -l "$at"; done
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
# check NAME PATTERN COMMAND…: the command ends well in time, and a line of what it prints is like the pattern.
check() {
  name=$1 pattern=$2
  shift 2
  out=$(timeout -k 5 "$seconds" "$@" </dev/null 2>&1)
  status=$?
  if [ $status = 0 ] && echo "$out" | grep -q "$pattern"; then
    passed=$((passed + 1))
    echo "ok: $name"
  else
    failed=$((failed + 1))
    echo "FAILED: $name: status $status: $out" | head -20
  fi
}
# As another user who has a home of his own, from where nothing but that home can be written: before variables and a command.
as_user="setpriv --reuid=$user --regid=65534 --clear-groups env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8"
# The programs of a root are scripts, which find what they start by where they lie: in a release they are the machine's own.
own_programs() { # folder of erts
  for program in "$1"/bin/*; do
    name=$(basename "$program")
    case $name in erl | erlexec | preloaded) continue ;; esac
    own=$(ls -d /usr/lib/erlang/erts-*/bin/"$name" 2>/dev/null | head -1)
    if [ "$(head -c2 "$program")" = '#!' ] && [ -n "$own" ]; then cp "$own" "$program"; fi
  done
}
read_only() { mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"; }
# until_answer SECONDS PATTERN COMMAND…
until_answer() {
  left=$1 wanted=$2
  shift 2
  while [ "$left" -gt 0 ]; do
    timeout 20 "$@" 2>/dev/null </dev/null | grep -q "$wanted" && return 0
    sleep 1
    left=$((left - 1))
  done
  return 1
}

mix_release() { # label
  label="$1 mix"
  dir=$work/$1/mix
  mkdir -p "$dir" && cd "$dir" || return
  erts=$("$purlin" erts "$dir/erts") || return
  [ "$1" = machine ] || own_programs "$erts"
  "$purlin" mix new demo --sup >/dev/null 2>&1
  cd demo || return
  sed -i "s|deps: deps()|deps: deps(), releases: [demo: [include_erts: \"$erts\"]]|" mix.exs
  mkdir -p config
  echo 'import Config' >config/config.exs
  printf 'import Config\nconfig :demo, told: System.get_env("TOLD", "nothing")\n' >config/runtime.exs
  check "$label: release" "Release created" env MIX_ENV=prod "$purlin" mix release
  rel=$dir/demo/_build/prod/rel/demo
  check "$label: no stock emulator, the program once" "^1$" sh -c \
    "[ -z \"\$(find '$rel' -name 'beam.smp')\" ] && find '$rel' -size +4M -type f | wc -l"
  echo "$label: $(du -sh "$rel" | cut -f1)"
  home=$dir/home
  mkdir -p "$home/tmp" && chown -R "$user" "$home"
  chmod 755 "$rel" && chmod a+r "$rel/releases/COOKIE"
  read_only "$rel"
  # shellcheck disable=SC2086
  run="$as_user HOME=$home RELEASE_TMP=$home/tmp RELEASE_COOKIE=c RELEASE_NODE=demo_$$"
  script=$rel/bin/demo
  check "$label: version" "demo 0.1.0" $run "$script" version
  check "$label: eval" "true said 25\|true said 27\|true said 29" $run TOLD=said "$script" eval \
    'Application.load(:demo); IO.puts("#{:erlang.function_exported(:purlin, :sharing, 0)} #{Application.get_env(:demo, :told)} #{System.otp_release()}")'
  timeout 20 $run "$script" daemon || failed=$((failed + 1))
  until_answer 20 '^[0-9]' $run "$script" pid
  check "$label: rpc" "^true$" $run "$script" rpc 'IO.inspect(:erlang.function_exported(:purlin, :sharing, 0))'
  pid=$(timeout 20 $run "$script" pid </dev/null)
  check "$label: pid" "^$pid$" $run "$script" pid
  check "$label: the process is called purlin" "^purlin$" cat "/proc/$pid/comm"
  # Left by Ctrl-G and q: at the end of its input a remote shell of OTP 27 takes the node along, on stock too.
  check "$label: remote" "42" sh -c "(sleep 3; echo '6 * 7'; sleep 2; printf '\\007'; sleep 1; printf 'q\\r'; sleep 2) | $run TERM=dumb timeout 15 script -qec '$script remote' /dev/null; true"
  # The node may go before its answer has come.
  check "$label: restart" "" sh -c "$run '$script' restart || :"
  sleep 2
  until_answer 20 '^[0-9]' $run "$script" pid
  check "$label: rpc after restart" "^:up$" $run "$script" rpc 'IO.inspect(:up)'
  check "$label: stop" "" $run "$script" stop
  # Without distribution, in the foreground, until a signal.
  $run RELEASE_DISTRIBUTION=none "$script" start >"$dir/start.out" 2>&1 &
  shell=$!
  sleep 4
  pid=$(for p in /proc/[0-9]*; do case $(readlink "$p/exe" 2>/dev/null) in "$rel"/*/erlexec) echo "${p#/proc/}" ;; esac; done | head -1)
  check "$label: start without distribution" "^$shell\$\|^$pid\$" echo "$pid"
  # Not before it has said what becomes of that signal: bit 14 of those that it catches.
  until_answer 20 1 sh -c "echo \$((0x\$(awk '/^SigCgt/ { print \$2 }' /proc/$pid/status) >> 14 & 1))"
  kill -TERM "$pid"
  wait "$shell"
  check "$label: ends by SIGTERM" "^0$" echo $?
  check "$label: eval without distribution" "nonode" $run RELEASE_DISTRIBUTION=none "$script" eval 'IO.puts(node())'
  # The port mapper that the node has started goes on.
  umount -l "$rel"
}

relx_release() { # label
  label="$1 relx"
  dir=$work/$1/relx
  mkdir -p "$dir" && cd "$dir" || return
  erts=$("$purlin" erts "$dir/erts") || return
  [ "$1" = machine ] || own_programs "$erts"
  HOME=$dir "$purlin" exec -- rebar3 new release rr >/dev/null 2>&1
  cd rr || return
  release() { # version
    cat >rebar.config <<R
{erl_opts, [debug_info]}.
{relx, [{release, {rr, "$1"}, [rr, sasl, runtime_tools, compiler]}, {mode, prod}, {include_erts, "$dir/erts"},
        {sys_config, "./config/sys.config"}, {vm_args, "./config/vm.args"}, {extended_start_script, true}]}.
R
    app=$(find . -path ./_build -prune -o -name rr.app.src -print)
    sed -i "s/{vsn, \"[^\"]*\"}/{vsn, \"$1\"}/" "$app"
    cat >"$(dirname "$app")/rr_told.erl" <<R
-module(rr_told).
-export([told/0]).
told() -> "$1".
R
    sed -i 's/^-setcookie .*/-setcookie c/' config/vm.args
  }
  release 0.1.0
  check "$label: release" "successfully assembled" env HOME="$dir" "$purlin" exec -- rebar3 release
  rel=$dir/rr/_build/default/rel/rr
  check "$label: no stock emulator, the program once" "^1$" sh -c \
    "[ -z \"\$(find '$rel' -name 'beam.smp')\" ] && find '$rel' -size +4M -type f | wc -l"
  echo "$label: $(du -sh "$rel" | cut -f1)"
  home=$dir/home
  cp -a "$rel" "$dir/target"
  rel=$dir/target
  mkdir -p "$home/log" && chown -R "$user" "$home"
  chmod -R a+rX "$rel"
  script=$rel/bin/rr
  # Read-only first: what the script makes of its configuration goes where it is told.
  read_only "$rel"
  run="$as_user HOME=$home RELX_OUT_FILE_PATH=$home RUNNER_LOG_DIR=$home/log PIPE_BASE_DIR=$home/"
  # Not this shell's child: the script's stop waits until there is no such process, and one that nobody waits for is there.
  (setsid $run "$script" foreground >"$dir/foreground.out" 2>&1 </dev/null &)
  until_answer 20 pong $run "$script" ping
  check "$label: ping, read-only" pong $run "$script" ping
  check "$label: eval" "^true$" $run "$script" eval 'erlang:function_exported(purlin,sharing,0).'
  pid=$(timeout 20 $run "$script" pid </dev/null | tail -1)
  check "$label: pid" "^purlin$" cat "/proc/$pid/comm"
  check "$label: versions" "0.1.0.*permanent" $run "$script" versions
  check "$label: stop" "" $run "$script" stop
  umount "$rel"
  # A running release is upgraded.
  release 0.2.0
  cp -a "$dir/target/." "$dir/rr/_build/default/rel/rr/"
  check "$label: the next release" "successfully assembled" env HOME="$dir" "$purlin" exec -- rebar3 release
  cat >"$dir/rr/_build/default/rel/rr/lib/rr-0.2.0/ebin/rr.appup" <<R
{"0.2.0", [{"0.1.0", [{load_module, rr_told}]}], [{"0.1.0", [{load_module, rr_told}]}]}.
R
  mkdir -p "$dir/rr/_build/default/lib/rr/ebin"
  cp "$dir/rr/_build/default/rel/rr/lib/rr-0.2.0/ebin/rr.appup" "$dir/rr/_build/default/lib/rr/ebin/"
  check "$label: relup" "" env HOME="$dir" "$purlin" exec -- rebar3 relup -n rr -v 0.2.0 -u 0.1.0
  check "$label: tar" "" env HOME="$dir" "$purlin" exec -- rebar3 tar
  chown -R "$user" "$rel"
  run="$as_user HOME=$home"
  timeout 20 $run "$script" daemon
  until_answer 20 pong $run "$script" ping
  check "$label: the old version runs" '0.1.0' $run "$script" eval 'rr_told:told().'
  pid=$(timeout 20 $run "$script" pid </dev/null | tail -1)
  cp "$dir/rr/_build/default/rel/rr/rr-0.2.0.tar.gz" "$rel/releases/"
  chown "$user" "$rel/releases/rr-0.2.0.tar.gz"
  check "$label: upgrade" "" $run "$script" upgrade 0.2.0
  check "$label: the new version runs" '0.2.0' $run "$script" eval 'rr_told:told().'
  check "$label: in the same process" "^$pid$" $run "$script" pid
  check "$label: downgrade" "" $run "$script" downgrade 0.1.0
  check "$label: the old version runs again" '0.1.0' $run "$script" eval 'rr_told:told().'
  check "$label: stop" "" $run "$script" stop
}

command -v rebar3 >/dev/null 2>&1 || echo "rebar3 is missing: relx is left out" >&2
plain=$PATH
for root; do
  PATH=$plain
  unset PURLIN_OTP_ROOT
  if [ "$root" != machine ]; then
    at=$(cd "$roots/$root" 2>/dev/null && pwd) || { echo "no root $root: scripts/roots.sh $root" >&2; failed=$((failed + 1)); continue; }
    PATH=$at/bin:$plain
    export PURLIN_OTP_ROOT="$at/usr/lib/erlang"
  fi
  export PATH
  case ${ONLY:-mix relx} in *mix*) (mix_release "$root"; echo "$passed $failed" >"$work/counts") ;; esac
  [ ! -e "$work/counts" ] || { read -r passed failed <"$work/counts"; rm "$work/counts"; }
  if command -v rebar3 >/dev/null 2>&1; then
    case ${ONLY:-mix relx} in *relx*) (relx_release "$root"; echo "$passed $failed" >"$work/counts") ;; esac
    [ ! -e "$work/counts" ] || { read -r passed failed <"$work/counts"; rm "$work/counts"; }
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
